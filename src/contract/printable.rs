//! Names and messages as they may be shown: texts from a table, a server or a file must not steer a terminal, add a line, or
//! become a formula of a spreadsheet.

/// The text in one line, with what steers instead of showing escaped.
///
/// Escaped are control characters (also ESC and BEL, with which terminals are steered), what some readers take for
/// the end of a line (U+0085, U+2028, U+2029), and what changes the direction of the text around it (Unicode's
/// Bidi_Control) or shows nothing at the beginning of a file (U+FEFF).
#[must_use]
pub fn on_one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        if is_steering(letter) {
            out.extend(letter.escape_default());
        } else {
            out.push(letter);
        }
    }
    out
}

fn is_steering(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// JSON with what steers written as JSON escapes it; the line feeds between its values stay.
#[must_use]
pub fn json_printable(json: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(json.len());
    for letter in json.chars() {
        // JSON holds no line feed inside of a text, and nothing that steers outside of one; all are of one code unit.
        if is_steering(letter) && letter != '\n' {
            // Writing to a string can't fail.
            let _ = write!(out, "\\u{:04x}", u32::from(letter));
        } else {
            out.push(letter);
        }
    }
    out
}

/// The text as a cell of a CSV: in one line, and with an apostrophe before what spreadsheets run as a formula.
#[must_use]
pub fn as_cell(text: &str) -> String {
    let line = on_one_line(text);
    if line.starts_with(['=', '+', '-', '@']) {
        return format!("'{line}");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_is_escaped_and_letters_stay() {
        assert_eq!(on_one_line("gpu-07 Zürich 東京 \"x\""), "gpu-07 Zürich 東京 \"x\"");
        assert_eq!(
            on_one_line("a\n\u{1b}]0;x\u{7}\u{9b}2J"),
            "a\\n\\u{1b}]0;x\\u{7}\\u{9b}2J"
        );
        assert_eq!(
            on_one_line("a\u{2028}b\u{2029}c\u{85}d"),
            "a\\u{2028}b\\u{2029}c\\u{85}d"
        );
        assert_eq!(on_one_line("\u{202e}gpj.exe\u{2066}"), "\\u{202e}gpj.exe\\u{2066}");
    }

    #[test]
    fn json_stays_json() {
        let name = "a\u{2028}b\u{85}\u{202e}c\n";
        let json = serde_json::to_string(&[name]).expect("json");
        let printable = json_printable(&json);
        assert_eq!(printable, r#"["a\u2028b\u0085\u202ec\n"]"#);
        assert_eq!(serde_json::from_str::<Vec<String>>(&printable).expect("json"), [name]);
    }

    #[test]
    fn no_cell_is_a_formula() {
        assert_eq!(as_cell("=1+1"), "'=1+1");
        assert_eq!(as_cell("@SUM(A1)"), "'@SUM(A1)");
        assert_eq!(as_cell("\t=1"), "\\t=1");
        assert_eq!(as_cell("gpu=1"), "gpu=1");
    }
}

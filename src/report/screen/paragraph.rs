//! A word in front, a text beside it, wrapped at the width.

use crate::contract::printable::on_one_line;

/// Columns of the word in front.
const TAG: usize = 6;
/// Fewest columns of a text, however narrow the terminal is.
const LEAST: usize = 30;

/// How a screen looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Columns.
    pub width: usize,
    /// Whether to colour the words in front.
    pub colours: bool,
}

impl Default for Look {
    /// Files and pipes: a hundred columns, no colours.
    fn default() -> Self {
        Self {
            width: 100,
            colours: false,
        }
    }
}

/// A word and a text.
#[derive(Debug, Clone)]
pub(super) struct Paragraph {
    tag: &'static str,
    text: String,
}

impl Paragraph {
    pub fn new(tag: &'static str, text: String) -> Self {
        Self {
            tag,
            text: on_one_line(&text),
        }
    }

    /// Lines that it takes.
    pub fn lines(&self, look: Look) -> usize {
        self.wrapped(look).len()
    }

    /// Its lines, each ended.
    pub fn text(&self, look: Look) -> String {
        let mut out = String::new();
        for (number, line) in self.wrapped(look).iter().enumerate() {
            let tag = if number == 0 { self.tag } else { "" };
            let padded = format!("{tag:<TAG$}");
            match colour(tag).filter(|_| look.colours) {
                Some(code) => out += &format!("\x1b[{code}m{padded}\x1b[0m"),
                None => out += &padded,
            }
            // A long word in front pushes the text by itself.
            if tag.len() >= TAG {
                out.push(' ');
            }
            out += line;
            let end = out.trim_end().len();
            out.truncate(end);
            out.push('\n');
        }
        out
    }

    fn wrapped(&self, look: Look) -> Vec<String> {
        let beside = TAG.max(self.tag.len() + 1);
        let width = look.width.saturating_sub(beside).max(LEAST);
        let mut lines: Vec<String> = vec![String::new()];
        let mut used = 0;
        for word in self.text.split(' ') {
            let length = word.chars().count();
            if used > 0 && used + 1 + length > width {
                lines.push(String::new());
                used = 0;
            }
            if let Some(line) = lines.last_mut() {
                if used > 0 {
                    line.push(' ');
                    used += 1;
                }
                line.push_str(word);
            }
            used += length;
        }
        lines
    }
}

/// Colours of terminals by the word: bold red, yellow, green, or dim.
fn colour(tag: &str) -> Option<&'static str> {
    match tag {
        "FAULT" | "SLOW" => Some("1;31"),
        "UNEVEN" | "CANNOT TELL" | "WHY" | "maybe" => Some("1;33"),
        "HEALTHY" | "OK" => Some("1;32"),
        "" => None,
        _ => Some("2"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_wrap_at_the_width_and_words_stay_whole() {
        let paragraph = Paragraph::new("SLOW", "one two three four five six seven eight nine".to_owned());
        let look = Look {
            width: 40,
            colours: false,
        };
        let text = paragraph.text(look);
        assert_eq!(text, "SLOW  one two three four five six seven\n      eight nine\n");
        assert_eq!(paragraph.lines(look), 2);
        assert!(text.lines().all(|line| line.len() <= 40));
    }

    #[test]
    fn colours_are_for_the_word_alone() {
        let look = Look {
            width: 80,
            colours: true,
        };
        assert_eq!(
            Paragraph::new("OK", "fine".to_owned()).text(look),
            "\x1b[1;32mOK    \x1b[0mfine\n"
        );
        assert_eq!(Paragraph::new("", "more".to_owned()).text(look), "      more\n");
    }

    #[test]
    fn names_steer_no_terminal() {
        let text = Paragraph::new("SLOW", "\x1b[2J\nstatus: healthy".to_owned()).text(Look::default());
        assert_eq!(text.lines().count(), 1);
        assert!(!text.contains('\x1b'));
    }
}

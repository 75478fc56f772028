//! What launchers, loggers and terminals put around a line, undone.

use memchr::memmem;

/// The escape of a terminal.
const ESCAPE: u8 = 0x1b;

/// A line without terminal codes and blanks at its end; `space` holds it where something was taken out.
pub(super) fn clean<'a>(line: &'a [u8], space: &'a mut Vec<u8>) -> &'a [u8] {
    let has_codes = memchr::memchr2(ESCAPE, 8, line).is_some() || memmem::find(line, b"^[").is_some();
    if !has_codes {
        return trim_end(line);
    }
    space.clear();
    let mut rest = line;
    while let Some(&first) = rest.first() {
        let after = match rest {
            [ESCAPE, ..] => after_code(&rest[1..]),
            // A code that was pasted as it is shown: `^[c`, `^[[0m`.
            [b'^', b'[', b'c', ..] => Some(&rest[3..]),
            [b'^', b'[', b'[', ..] => after_code(&rest[2..]),
            // A bar that goes back over itself.
            [8, ..] => Some(&rest[1..]),
            _ => None,
        };
        if let Some(after) = after {
            rest = after;
        } else {
            space.push(first);
            rest = &rest[1..];
        }
    }
    trim_end(space)
}

/// What follows a terminal code, from behind its escape.
fn after_code(code: &[u8]) -> Option<&[u8]> {
    match code.first() {
        Some(b'[') => {
            let end = code[1..].iter().position(|byte| (0x40..=0x7e).contains(byte));
            Some(end.map_or(&[][..], |end| &code[end + 2..]))
        }
        Some(b']') => {
            let end = code.iter().position(|&byte| byte == 7 || byte == ESCAPE);
            Some(end.map_or(&[][..], |end| {
                code[end..].strip_prefix(b"\x1b\\").unwrap_or(&code[end + 1..])
            }))
        }
        Some(_) => Some(&code[1..]),
        None => Some(code),
    }
}

pub(super) fn trim_end(line: &[u8]) -> &[u8] {
    let blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0;
    let end = line.iter().rposition(|byte| !blank(byte)).map_or(0, |last| last + 1);
    &line[..end]
}

/// Length of what a launcher put before a line: `[default7]:`, `[rank7]:`, `[1,15]<stdout>:`, ` 3: `, `host: `, `> `.
pub(super) fn launcher_prefix(line: &[u8]) -> usize {
    let mut begin = 0;
    // More than three are seen nowhere.
    for _ in 0..3 {
        match one_prefix(&line[begin..]) {
            0 => break,
            length => begin += length,
        }
    }
    begin
}

/// A longer word before a colon is no host.
const LONGEST_HOST: usize = 64;

fn one_prefix(line: &[u8]) -> usize {
    if line.starts_with(b"> ") || line == b">" {
        return line.len().min(2);
    }
    if line.starts_with(b"[") {
        let Some(close) = line.iter().take(LONGEST_HOST).position(|&byte| byte == b']') else {
            return 0;
        };
        let rest = &line[close + 1..];
        for end in [&b":"[..], b"<stdout>:", b"<stderr>:", b"<stdout>: ", b"<stderr>: "] {
            if rest.starts_with(end) {
                return close + 1 + end.len();
            }
        }
        return 0;
    }
    let blanks = line.iter().take_while(|&&byte| byte == b' ').count();
    if blanks > 4 {
        return 0;
    }
    let word = &line[blanks..];
    let length = word
        .iter()
        .take(LONGEST_HOST)
        .take_while(|&&byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        .count();
    let is_number = word[..length].iter().all(u8::is_ascii_digit);
    // Only the padded numbers of srun stand behind blanks; a timer's name ends its line.
    let is_prefix = length > 0 && word[length..].starts_with(b": ") && (blanks == 0 || is_number);
    if is_prefix { blanks + length + 2 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_taken_out() {
        let clean = |line: &str| String::from_utf8_lossy(super::clean(line.as_bytes(), &mut Vec::new())).into_owned();
        assert_eq!(clean("  \x1b[1;34miteration\x1b[0m  10 \x1b[K"), "  iteration  10");
        assert_eq!(clean("^[c[2026] x"), "[2026] x");
        assert_eq!(clean("\x1b]0;title\x07a^[[0mb"), "ab");
        assert_eq!(clean("a\x1b["), "a");
        assert_eq!(clean("a \0\0"), "a");
    }

    #[test]
    fn prefixes_of_launchers_are_known() {
        for (line, rest) in [
            ("[default7]:     rank  0: 1.00", "     rank  0: 1.00"),
            (" 3:  iteration", " iteration"),
            ("gpu-007:   forward-compute:", "  forward-compute:"),
            ("[1,15]<stdout>:  x", "  x"),
            ("> 3: > x", "x"),
            ("  forward-compute:", "  forward-compute:"),
            ("     rank  0: 1.00", "     rank  0: 1.00"),
            ("[Rank 0] (after 1 iterations)", "[Rank 0] (after 1 iterations)"),
        ] {
            assert_eq!(&line[launcher_prefix(line.as_bytes())..], rest, "{line}");
        }
    }
}

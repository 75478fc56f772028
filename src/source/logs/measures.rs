//! Numbers as the programs print them: a fixed number of decimals, perhaps commas between thousands, `nan`.

/// Reads a number at the begin of a text, and gives what follows it. `decimals` must stand behind its point where some
/// are asked for: a number with fewer was cut.
///
/// `nan` and `inf` are NaN: printed, and no value.
pub(super) fn number(text: &[u8], decimals: Option<usize>) -> Option<(f64, &[u8])> {
    number_over(text, decimals, 1.0)
}

/// The same over a divisor, rounded once: what is printed in milliseconds is read in seconds to its last digit.
pub(super) fn number_over(text: &[u8], decimals: Option<usize>, divisor: f64) -> Option<(f64, &[u8])> {
    for word in [&b"nan"[..], b"inf", b"-inf", b"NaN"] {
        if let Some(rest) = text.strip_prefix(word) {
            return Some((f64::NAN, rest));
        }
    }
    let mut whole: u64 = 0;
    let mut at = 0;
    let mut since_comma = None;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'0'..=b'9' => {
                whole = whole.checked_mul(10)?.checked_add(u64::from(byte - b'0'))?;
                since_comma = since_comma.map(|digits: usize| digits + 1);
            }
            b',' if at > 0 && since_comma.is_none_or(|digits| digits == 3) && three_digits(&text[at + 1..]) => {
                since_comma = Some(0);
            }
            _ => break,
        }
        at += 1;
    }
    if at == 0 || since_comma.is_some_and(|digits| digits != 3) {
        return None;
    }
    let mut scale: f64 = 1.0;
    if text.get(at) == Some(&b'.') {
        let digits = text[at + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if decimals.is_some_and(|decimals| decimals != digits) || digits > 9 {
            return None;
        }
        for &byte in &text[at + 1..at + 1 + digits] {
            whole = whole.checked_mul(10)?.checked_add(u64::from(byte - b'0'))?;
            scale *= 10.0;
        }
        at += 1 + digits;
    } else if decimals.is_some() {
        return None;
    }
    Some((whole as f64 / (scale * divisor), &text[at..]))
}

fn three_digits(text: &[u8]) -> bool {
    text.len() >= 3 && text[..3].iter().all(u8::is_ascii_digit)
}

/// Milliseconds with two decimals as seconds.
pub(super) fn milliseconds(text: &[u8]) -> Option<(f64, &[u8])> {
    number_over(text, Some(2), 1e3)
}

/// A whole number at the begin of a text.
pub(super) fn integer(text: &[u8]) -> Option<(i64, &[u8])> {
    let digits = text.iter().take(18).take_while(|byte| byte.is_ascii_digit()).count();
    let number = std::str::from_utf8(&text[..digits]).ok()?.parse().ok()?;
    Some((number, &text[digits..]))
}

pub(super) fn skip_blanks(text: &[u8]) -> &[u8] {
    let blanks = text.iter().take_while(|&&byte| byte == b' ' || byte == b'\t').count();
    &text[blanks..]
}

/// What follows a mark in a text.
pub(super) fn after<'a>(text: &'a [u8], mark: &str) -> Option<&'a [u8]> {
    let at = memchr::memmem::find(text, mark.as_bytes())?;
    Some(&text[at + mark.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_whole_or_none() {
        let ms = |text: &str| milliseconds(text.as_bytes()).map(|(value, rest)| (value, rest.len()));
        assert_eq!(ms("494.04"), Some((0.49404, 0)));
        assert_eq!(ms("2,526.55)"), Some((2.52655, 1)));
        assert_eq!(ms("12,345,678.90"), Some((12_345.678_9, 0)));
        assert_eq!(ms("0.00"), Some((0.0, 0)));
        for cut in [
            "", "4", "4,78", "4,785", "4.7", "4,785.9", "4.785", "x", "1,23.00", "-3.00",
        ] {
            assert_eq!(ms(cut), None, "{cut}");
        }
        assert!(ms("nan").is_some_and(|(value, _)| value.is_nan()));
        assert_eq!(number(b"99999999999999999999.00", Some(2)), None);
    }
}

//! Whether a file is a log, by its first bytes.

use std::io::Read as _;

use memchr::memmem;

use super::grammar::{header, iteration_line, rank_row};
use super::lines::Lines;
use super::one_line::one_line;
use super::reports::Reports;
use super::utf16::as_utf8;

/// What the first bytes of a file look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::source) enum Sniffed {
    /// Text, which a log may be.
    Text,
    /// A page of a browser.
    Html,
    /// Bytes that are no text.
    Binary,
}

/// Share of control characters and damaged letters from which bytes are no text.
const STRANGE: usize = 10;

/// Looks at the first bytes.
pub(in crate::source) fn sniff(head: &[u8]) -> Sniffed {
    if head.starts_with(&[0xff, 0xfe]) || head.starts_with(&[0xfe, 0xff]) {
        return Sniffed::Text;
    }
    let head = &head[..head.len().min(1 << 14)];
    let begin = head.trim_ascii_start();
    let lower = begin[..begin.len().min(256)].to_ascii_lowercase();
    if lower.starts_with(b"<!doctype html") || memmem::find(&lower, b"<html").is_some() {
        return Sniffed::Html;
    }
    let damaged = String::from_utf8_lossy(head)
        .chars()
        .filter(|letter| *letter == char::REPLACEMENT_CHARACTER)
        .count();
    let control = |byte: &&u8| **byte < 32 && !b"\t\n\r\x1b\x08\x0c\x07".contains(byte);
    let strange = damaged + head.iter().filter(control).count();
    if strange * STRANGE > head.len() {
        Sniffed::Binary
    } else {
        Sniffed::Text
    }
}

/// Whether a text has a line that only training programs print.
pub(in crate::source) fn holds_a_log(head: &[u8]) -> bool {
    let mut text = Vec::new();
    let input = as_utf8(Box::new(std::io::Cursor::new(head.to_vec())));
    if input.and_then(|mut input| input.read_to_end(&mut text)).is_err() {
        return false;
    }
    let mut reports = Reports::default();
    let mut space = Vec::new();
    for line in Lines::of(&text) {
        let line = super::clean::clean(&text[line], &mut space);
        let found = iteration_line(line).is_some()
            || header(line).is_some()
            || rank_row(line).is_some()
            || one_line(line).is_some()
            || reports.take(line).is_some();
        if found {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_and_noise_are_no_text() {
        assert_eq!(sniff(b"\n<!DOCTYPE html>\n<html>"), Sniffed::Html);
        let noise: Vec<u8> = (0..4096u32)
            .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect();
        assert_eq!(sniff(&noise), Sniffed::Binary);
        assert_eq!(sniff("Zeit: 3 µs ━━ 51%|██\r\x1b[0m\n".as_bytes()), Sniffed::Text);
        assert_eq!(sniff(b""), Sniffed::Text);
    }
}

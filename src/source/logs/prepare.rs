//! What can be told of lines one by one, before any of them is put where it belongs: chunks are looked at in parallel, and lines
//! that say nothing, which most are in many logs, are passed over by a single search of the chunk for all of the words that matter.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::packed::Searcher;
use memchr::{memchr2, memmem};

use super::clean::{clean, launcher_prefix, trim_end};
use super::grammar::{is_open_spread, rank_row, spread_row};
use super::lines::Lines;

/// What a line says on its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Said {
    /// A rank's time in a block.
    Rank { rank: u32, seconds: f64 },
    /// A row of a block with the least and the greatest: where the name stands in the line; NaN where the least is not told.
    Spread { name: (u16, u16), least: f64, most: f64 },
    /// Nothing, unless it is the rest of a line before or of a report that is open.
    Nothing,
    /// To be read in full.
    Any,
}

/// A line of a chunk, without terminal codes and blanks at its end.
#[derive(Debug, Clone)]
pub(super) struct Prepared {
    /// Where it stands; behind the chunk's own bytes where something was taken out of it.
    text: Range<u32>,
    pub said: Said,
    /// Bytes until the next line.
    pub bytes: u32,
}

/// A chunk with what its lines say.
#[derive(Debug, Default)]
pub(super) struct PreparedChunk {
    pub(super) bytes: Vec<u8>,
    pub lines: Vec<Prepared>,
    /// Lines that were passed over for their length.
    pub too_long: u64,
    /// Whether a file ends with it.
    pub ends_file: bool,
}

/// Words without one of which a line says nothing, see [`Prepared`]. The first two are of rows, which have a way of their own.
const WORDS: [&str; 16] = [
    ".: ",
    ": (",
    " : ",
    "iteration",
    "time (ms)",
    "across ranks (ms)",
    "using world size:",
    "loaded checkpoint",
    "/Rnk:",
    "^^^^ ",
    "raggler",
    "RAGGLER",
    " performance:",
    " step=",
    "steps: ",
    "datetime: ",
];
/// How many of the words are of rows.
const OF_ROWS: usize = 3;

/// None where the processor has no such search: every line is then read in full.
static SEARCH: LazyLock<Option<Searcher>> = LazyLock::new(|| Searcher::new(WORDS));

impl PreparedChunk {
    /// Looks at all lines of a chunk.
    pub fn of(bytes: Vec<u8>) -> Self {
        let mut chunk = Self {
            bytes,
            ..Self::default()
        };
        let mut space = Vec::new();
        let mut mended: Vec<u8> = Vec::new();
        let mut lines = Lines::of(&chunk.bytes);
        let mut words = SEARCH
            .iter()
            .flat_map(|search| search.find_iter(&chunk.bytes))
            .peekable();
        let length = chunk.bytes.len();
        // Terminal codes may stand inside of a word.
        let has_codes = |text: &[u8]| memchr2(0x1b, 8, text).is_some() || memmem::find(text, b"^[").is_some();
        let codes = has_codes(&chunk.bytes);
        let mut prepared = Vec::with_capacity(length / 32);
        let mut begin = 0;
        for line in lines.by_ref() {
            let raw = &chunk.bytes[line.clone()];
            let bytes = (line.end + 1 - begin) as u32;
            begin = line.end + 1;
            // Rows of ranks are most of what says something.
            if let Some((rank, seconds)) = plain_rank_row(raw) {
                let text = line.start as u32..line.end as u32;
                let said = Said::Rank { rank, seconds };
                prepared.push(Prepared { text, said, bytes });
                continue;
            }
            while words.next_if(|word| word.start() < line.start).is_some() {}
            let (mut any, mut of_row) = (SEARCH.is_none(), false);
            while let Some(word) = words.next_if(|word| word.start() < line.end) {
                let is_of_row = word.pattern().as_usize() < OF_ROWS;
                any |= !is_of_row;
                of_row |= is_of_row;
            }
            let text = if codes { clean(raw, &mut space) } else { trim_end(raw) };
            let said = said(text, any || codes && has_codes(raw), of_row);
            let place = if text.len() == trim_end(raw).len() {
                line.start..line.start + text.len()
            } else {
                let begin = length + mended.len();
                mended.extend_from_slice(text);
                begin..begin + text.len()
            };
            let text = place.start as u32..place.end as u32;
            prepared.push(Prepared { text, said, bytes });
        }
        chunk.too_long = lines.too_long;
        chunk.lines = prepared;
        chunk.bytes.extend_from_slice(&mended);
        chunk
    }

    /// The text of a line.
    pub fn text(&self, line: &Prepared) -> &[u8] {
        &self.bytes[line.text.start as usize..line.text.end as usize]
    }
}

/// The form in which nearly all rows of ranks stand: `·····rank·<r:2>:·<x.2>`, nothing before or behind.
fn plain_rank_row(line: &[u8]) -> Option<(u32, f64)> {
    let rest = line.strip_prefix(b"     rank ")?;
    let blanks = rest.iter().take_while(|&&byte| byte == b' ').count();
    let (mut rank, mut at) = (0_u32, blanks);
    while let Some(digit) = rest.get(at).filter(|byte| byte.is_ascii_digit()) {
        rank = rank.checked_mul(10)?.checked_add(u32::from(digit - b'0'))?;
        at += 1;
    }
    let digits = at - blanks;
    let value = rest.get(at..)?.strip_prefix(b": ")?;
    let mut whole = 0_u64;
    let mut point = 0;
    while let Some(digit) = value.get(point).filter(|byte| byte.is_ascii_digit()) {
        whole = whole * 10 + u64::from(digit - b'0');
        point += 1;
        // More digits than a float tells go the long way.
        if point > 12 {
            return None;
        }
    }
    let &[b'.', tenth, hundredth] = value.get(point..)? else {
        return None;
    };
    let are_digits = tenth.is_ascii_digit() && hundredth.is_ascii_digit();
    if !are_digits || point == 0 || !(1..=9).contains(&digits) {
        return None;
    }
    let hundredths = whole * 100 + u64::from(tenth - b'0') * 10 + u64::from(hundredth - b'0');
    Some((rank, hundredths as f64 / 1e5))
}

/// What a line says; `any` where it holds a word that matters, `of_row` where it holds one of a row.
fn said(line: &[u8], any: bool, of_row: bool) -> Said {
    if let Some((rank, seconds)) = rank_row(line) {
        return Said::Rank { rank, seconds };
    }
    // A row that a terminal's width cut ends with its dots.
    if any || line.ends_with(b":") || line.ends_with(b".") {
        return Said::Any;
    }
    if of_row {
        let row = spread_row(line).filter(|_| !is_open_spread(line));
        let Some((name, least, most)) = row else {
            return Said::Any;
        };
        let begin = name.as_ptr().addr().wrapping_sub(line.as_ptr().addr());
        let place = (u16::try_from(begin), u16::try_from(begin + name.len()));
        return match place {
            (Ok(begin), Ok(end)) => Said::Spread {
                name: (begin, end),
                least: least.unwrap_or(f64::NAN),
                most,
            },
            _ => Said::Any,
        };
    }
    // Two blanks begin a timer's name, with its end perhaps cut away, and an argument.
    let own = &line[launcher_prefix(line)..];
    let indent = own.iter().take_while(|&&byte| byte == b' ').count();
    if indent == 2 { Said::Any } else { Said::Nothing }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said_of(text: &str) -> Vec<(String, Said)> {
        let chunk = PreparedChunk::of(text.as_bytes().to_vec());
        let lines = chunk.lines.iter();
        lines
            .map(|line| (String::from_utf8_lossy(chunk.text(line)).into_owned(), line.said))
            .collect()
    }

    #[test]
    fn lines_that_say_nothing_are_told_from_those_that_may() {
        for nothing in ["", "WARNING: x", "[rank7]: loss 1.0 at 17", "   a", "gpu-7: x", "    x"] {
            assert_eq!(
                said_of(nothing).last().map_or(Said::Nothing, |line| line.1),
                Said::Nothing,
                "{nothing}"
            );
        }
        for any in [
            " iteration 1/ 2 |",
            "times across ranks (ms):",
            "  forward-compute:",
            "gpu-7:   forward-comp[Rank 1]",
            "  log_interval .................................... 10",
            "it\u{1b}[0meration",
            "    optimizer ......................................: (140.68, 14",
            "[Rank 0] step=2, skipped=0",
        ] {
            assert_eq!(said_of(any)[0].1, Said::Any, "{any}");
        }
        let row = "    forward-compute ................................: (2584.92, 2735.66)";
        let [(_, Said::Spread { name, least, most })] = said_of(row)[..] else {
            panic!("{row}");
        };
        assert_eq!(&row[usize::from(name.0)..usize::from(name.1)], "forward-compute");
        assert_eq!((least, most), (2.58492, 2.73566));
    }

    #[test]
    fn the_short_way_of_a_rank_s_row_is_the_long_one() {
        for row in [
            "     rank  0: 3818.02",
            "     rank 100: 0.01",
            "     rank  7: 0.00",
            "     rank  7: 123456789.25",
            "     rank  7: 1234567890123.25",
            "     rank 12: 3,818.02",
            "     rank : 1.00",
            "     rank 1: 1.0",
            "     rank 1: .00",
            "     rank 1: 1.000",
            "     rank 1: 1.00 x",
            "     rank 1234567890: 1.00",
            "     rank 4294967296: 1.00",
            "     rank 1 : 1.00",
            "     rank 1: nan",
        ] {
            let (short, long) = (plain_rank_row(row.as_bytes()), rank_row(row.as_bytes()));
            assert!(short.is_none() || short == long, "{row}: {short:?} {long:?}");
        }
        assert_eq!(plain_rank_row(b"     rank  0: 3818.02"), Some((0, 3.81802)));
    }

    #[test]
    fn what_was_taken_out_of_a_line_does_not_move_others() {
        let lines = said_of("a\u{1b}[1mb  \nsecond\n\u{1b}[0mc\r\nlast");
        let texts: Vec<&str> = lines.iter().map(|line| line.0.as_str()).collect();
        assert_eq!(texts, ["ab", "second", "c", "last"]);
    }
}

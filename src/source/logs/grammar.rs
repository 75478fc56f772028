//! Megatron-LM's lines: the iteration line, the headers of timer blocks and their rows.
//!
//! Source: `megatron/training/training.py` (training_log) and `megatron/core/timers.py` since 2019, and public logs of forks.
//! Each reader takes a line without terminal codes and gives what it says, or nothing: half a line says nothing.

use memchr::memmem;

use super::clean::{launcher_prefix, trim_end};
use super::measures::{after, integer, milliseconds, number, number_over, skip_blanks};
use crate::source::Micros;
use crate::source::timestamp;

/// What an iteration line says.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct IterationLine {
    /// The last iteration of the interval.
    pub iteration: i64,
    /// How many the job is to run.
    pub total: Option<i64>,
    /// When it was printed, where it says so.
    pub time: Option<Micros>,
    /// Seconds an iteration, the mean of the interval.
    pub seconds: f64,
}

/// What a line that names an iteration comes to.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Iteration {
    /// All of it.
    Whole(IterationLine),
    /// The time is not there yet: the rest may stand in the next line.
    Open,
}

/// The iteration line, if the line is one; `None` for what merely names an iteration.
pub(super) fn iteration_line(line: &[u8]) -> Option<Iteration> {
    // A line of another rank may be glued in front.
    let at = memmem::rfind(line, b"iteration").filter(|at| begins(&line[at + 9..]));
    let at = at.or_else(|| memmem::find_iter(line, b"iteration").find(|at| begins(&line[at + 9..])))?;
    let rest = skip_blanks(line[at + 9..].strip_prefix(b"=").unwrap_or(&line[at + 9..]));
    let (iteration, rest) = integer(rest)?;
    let (total, rest) = integer(skip_blanks(skip_blanks(rest).strip_prefix(b"/")?))?;
    if !skip_blanks(rest).starts_with(b"|") {
        return rest.is_empty().then_some(Iteration::Open);
    }
    let Some(seconds) = elapsed(rest) else {
        return Some(Iteration::Open);
    };
    Some(Iteration::Whole(IterationLine {
        iteration,
        total: Some(total),
        time: stamp_before(&line[..at]),
        seconds: seconds?,
    }))
}

/// Whether `·10/·100` follows the word.
fn begins(rest: &[u8]) -> bool {
    let rest = skip_blanks(rest.strip_prefix(b"=").unwrap_or(rest));
    integer(rest).is_some_and(|(_, rest)| skip_blanks(rest).starts_with(b"/"))
}

/// The time of an iteration in seconds: `None` where it is not whole, `Some(None)` where it is printed and no number.
fn elapsed(fields: &[u8]) -> Option<Option<f64>> {
    const FORMS: [(&str, f64, usize); 3] = [
        ("elapsed time per iteration (ms):", 1e3, 1),
        ("elapsed time per iteration (s):", 1.0, 2),
        ("elapsed_time_per_iteration_ms=", 1e3, 1),
    ];
    FORMS.into_iter().find_map(|(mark, scale, decimals)| {
        let text = skip_blanks(after(fields, mark)?);
        let (seconds, rest) = number_over(text, None, scale)?;
        let ended = skip_blanks(rest).starts_with(b"|");
        // At the end of a line only all of its decimals tell that a number is whole.
        let whole = ended || rest.is_empty() && number(text, Some(decimals)).is_some();
        whole.then(|| Some(seconds).filter(|seconds| seconds.is_finite()))
    })
}

/// The time in brackets at the end of a text: `[2026-03-01 08:00:03.974159] `.
fn stamp_before(text: &[u8]) -> Option<Micros> {
    let text = trim_end(text).strip_suffix(b"]")?;
    let open = memchr::memrchr(b'[', text)?;
    timestamp::parse(std::str::from_utf8(&text[open + 1..]).ok()?)
}

/// The first time in brackets of a line, as loggers write it: `[2026-01-08 20:18:46,393] [INFO] ...`.
pub(super) fn logger_time(line: &[u8]) -> Option<Micros> {
    let open = memmem::find(line, b"[20")?;
    let inside = line.get(open + 1..)?;
    let close = inside.iter().take(32).position(|&byte| byte == b']')?;
    let text = std::str::from_utf8(&inside[..close]).ok()?.replace(',', ".");
    timestamp::parse(&text)
}

/// How the rows of a block are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// A name, and below it a row a rank.
    Ranks,
    /// A name with the least and the greatest, or the greatest alone.
    Spread,
}

/// The layout that a header announces, if the line ends with one.
pub(super) fn header(line: &[u8]) -> Option<Layout> {
    let before = trim_end(line).strip_suffix(b"across ranks (ms):")?;
    if before.ends_with(b"times ") {
        Some(Layout::Ranks)
    } else if before.ends_with(b"(min, max) time ") || before.ends_with(b"max time ") {
        Some(Layout::Spread)
    } else {
        None
    }
}

/// `·····rank·<r:2>:·<x.2>`: the rank and its seconds, NaN where `nan` is printed.
pub(super) fn rank_row(line: &[u8]) -> Option<(u32, f64)> {
    let colon = memchr::memrchr(b':', line)?;
    let (seconds, rest) = milliseconds(line[colon + 1..].strip_prefix(b" ")?)?;
    let digits = line[..colon]
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    if !rest.is_empty() || digits == 0 || digits > 9 {
        return None;
    }
    let (before, rank) = line[..colon].split_at(colon - digits);
    let blanks = before.iter().rev().take_while(|&&byte| byte == b' ').count();
    let word = &before[..before.len() - blanks];
    let indent = word.strip_suffix(b"rank").filter(|_| blanks > 0)?;
    // A sentence of somebody else names a rank behind a word.
    if !(indent.is_empty() || indent.ends_with(b"  ")) {
        return None;
    }
    let (rank, _) = integer(rank)?;
    Some((u32::try_from(rank).ok()?, seconds))
}

/// What a line that ends with a colon is inside of a block.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Name<'a> {
    /// `··<name>:`
    Whole(&'a str),
    /// The end of a name whose begin stands elsewhere, or its begin with another line's text.
    Cut,
}

/// The name of a timer above its ranks; `None` for a line that has nothing to do with it.
pub(super) fn timer_name(line: &[u8]) -> Option<Name<'_>> {
    let own = &line[launcher_prefix(line)..];
    let indent = own.iter().take_while(|&&byte| byte == b' ').count();
    let inside = &own[indent..];
    if let Some(name) = inside.strip_suffix(b":") {
        if let Some(name) = plain_name(name) {
            return Some(if indent == 2 { Name::Whole(name) } else { Name::Cut });
        }
        // A line of another rank in front: the name is what stands behind the last double blank.
        let tail = memmem::rfind(own, b"  ").map(|at| &own[at + 2..own.len() - 1]);
        return tail.and_then(plain_name).map(|_| Name::Cut);
    }
    let begun = inside
        .iter()
        .take_while(|&&byte| is_of_name(byte) && byte != b' ')
        .count();
    let glued = inside.get(begun).is_some_and(|&byte| byte == b'[' || byte == b':');
    (indent == 2 && begun > 1 && glued).then_some(Name::Cut)
}

/// A timer's name: letters, digits, `-`, `_`, `/`, `.`, single blanks.
pub(super) fn plain_name(name: &[u8]) -> Option<&str> {
    let plain = !name.is_empty()
        && name.len() <= 128
        && name[0].is_ascii_alphanumeric()
        && name.iter().all(|&byte| is_of_name(byte))
        && memmem::find(name, b"  ").is_none();
    std::str::from_utf8(name).ok().filter(|_| plain)
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_/. ".contains(&byte)
}

/// `····<name·, dots to 48 columns>:·(<min>,·<max>)` or with one value: name, the least if it is told, the greatest; seconds.
pub(super) fn spread_row(line: &[u8]) -> Option<(&str, Option<f64>, f64)> {
    let colon = memchr::memrchr(b':', line)?;
    let values = line[colon + 1..].strip_prefix(b" ")?;
    let name = dotted_name(&line[..colon])?;
    let pair = values.strip_prefix(b"(");
    let (first, rest) = milliseconds(pair.unwrap_or(values))?;
    let (least, most, rest) = match pair {
        Some(_) => {
            let (most, rest) = milliseconds(skip_blanks(rest.strip_prefix(b",")?))?;
            (Some(first), most, rest.strip_prefix(b")")?)
        }
        None => (None, first, rest),
    };
    // People mark rows: `<---`.
    (rest.is_empty() || rest.starts_with(b" ")).then_some((name, least, most))
}

/// The name before its dots, which a long name does not have.
fn dotted_name(text: &[u8]) -> Option<&str> {
    let dots = text.iter().rev().take_while(|&&byte| byte == b'.').count();
    let name = text[..text.len() - dots].strip_suffix(b" ")?;
    let begin = memmem::rfind(name, b"  ").map_or_else(|| launcher_prefix(name), |at| at + 2);
    let name = plain_name(&name[begin..])?;
    (dots > 0 || name.len() >= 46).then_some(name)
}

/// Whether a row of a spread breaks off at a terminal's width.
pub(super) fn is_open_spread(line: &[u8]) -> bool {
    let dots = memmem::find(line, b"......").is_some();
    let cut = |byte: u8| memchr::memrchr(byte, line).map(|at| &line[at..]);
    let open_pair = cut(b'(').is_some_and(|pair| !pair.contains(&b')')) && memmem::find(line, b".: (").is_some();
    dots && (line.ends_with(b"..") || line.ends_with(b".:") || open_pair)
}

/// `··<arg> <dots to 48> <value>` of the argument dump.
pub(super) fn argument(line: &[u8]) -> Option<(&str, &str)> {
    let own = &line[launcher_prefix(line)..];
    let text = std::str::from_utf8(own).ok()?.strip_prefix("  ")?;
    let (name, rest) = text.split_once(' ')?;
    let value = rest.trim_start_matches('.');
    let dots = rest.len() - value.len();
    let value = value.strip_prefix(' ')?;
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    (dots > 1 && is_name && !name.is_empty()).then_some((name, value.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(line: &str) -> (i64, f64, Option<Micros>) {
        match iteration_line(line.as_bytes()) {
            Some(Iteration::Whole(line)) => (line.iteration, line.seconds, line.time),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn iteration_lines_of_every_age_are_read() {
        let time = timestamp::parse("2026-03-01 08:00:03.974159");
        for (line, seconds, time) in [
            (
                " iteration       10/    1000 | consumed samples:           40 | elapsed time per iteration (ms): 19932.4 | learning rate: 0.0 |",
                19.9324,
                None,
            ),
            (
                " [2026-03-01 08:00:03.974159] iteration       10/  100000 | consumed samples:      4480000 | elapsed time per iteration (ms): 3974.2 | t",
                3.9742,
                time,
            ),
            (
                "[default7]: iteration       10/ 115311 | consumed samples: 7 | consumed tokens: 9 | elapsed time per iteration (s): 105.16 | learning",
                105.16,
                None,
            ),
            (
                " iteration       10/  320000 | elapsed time per iteration (ms): 963.3 | learning rate 3.937E-06 | lm loss 8.9 |",
                0.9633,
                None,
            ),
            (
                "[2026-01-01 08:00:00,123] [INFO] [x] - iteration=      10/  10000 | elapsed_time_per_iteration_ms=1234.5 | loss=3 |",
                1.2345,
                None,
            ),
            (
                " iteration       10/  100000 | elapsed time per iteration (ms): 9,990.2 |",
                9.9902,
                None,
            ),
            (
                "[Rank 3] memory (MB) | max: 46000.00 iteration       10/  100000 | elapsed time per iteration (ms): 1.5",
                0.0015,
                None,
            ),
        ] {
            assert_eq!(whole(line), (10, seconds, time), "{line}");
        }
    }

    #[test]
    fn lookalikes_are_no_iteration_lines() {
        for line in [
            " validation loss at iteration 50 | lm loss value: 8.256452E+00 |",
            "saving checkpoint at iteration      10 to /ckpt in torch_dist format",
            "args.iteration=1:",
            "iteration: 991 / 1000 | consumed_tokens: 7.94M | elapsed_time_per_iteration_ms: 13.3K |",
        ] {
            assert_eq!(iteration_line(line.as_bytes()), None, "{line}");
        }
        for open in [
            " iteration       10/  100000 | consumed samples: ",
            " iteration       10/  100000 | elapsed time per iteration (ms): 13",
            " iteration       10/  100000 | elapsed time per iteration (ms): 1304.",
        ] {
            assert_eq!(iteration_line(open.as_bytes()), Some(Iteration::Open), "{open}");
        }
    }

    #[test]
    fn rows_of_ranks_are_whole_or_nothing() {
        for (row, rank, seconds) in [
            ("     rank  0: 3818.02", 0, 3.81802),
            ("[default7]:     rank 15: 3,818.02", 15, 3.81802),
            ("rank  7: 0.00", 7, 0.0),
            (
                "[Rank 3] memory (MB) | max reserved: 46000.00     rank 100: 1.00",
                100,
                0.001,
            ),
        ] {
            assert_eq!(rank_row(row.as_bytes()), Some((rank, seconds)), "{row}");
        }
        for row in [
            "     rank  2: 4",
            "     rank  2: 4.2",
            "     rank  2: 4.29[Rank 32] (after 25 iterations)",
            "[rank7]: 3.90",
            "loss on rank 0: 12.34",
            "ank  5: 494.04",
            "     rank: 3.90",
            "     rank 99999999999: 3.90",
        ] {
            assert_eq!(rank_row(row.as_bytes()), None, "{row}");
        }
    }

    #[test]
    fn a_name_that_is_cut_is_no_name() {
        assert_eq!(
            timer_name(b"  forward-backward:"),
            Some(Name::Whole("forward-backward"))
        );
        assert_eq!(
            timer_name(b"gpu-1:   batch generator:"),
            Some(Name::Whole("batch generator"))
        );
        assert_eq!(timer_name(b"[default7]:  optimizer:"), Some(Name::Whole("optimizer")));
        assert_eq!(timer_name(b"r:"), Some(Name::Cut));
        assert_eq!(
            timer_name(b"  params-all-gathe[Rank 1] (after 58 iterations)"),
            Some(Name::Cut)
        );
        assert_eq!(timer_name(b"     rank  0: 1.00"), None);
        assert_eq!(timer_name(b"Traceback (most recent call last):"), None);
    }

    #[test]
    fn spreads_have_one_value_or_two() {
        let row = b"    forward-compute ................................: (2584.92, 2735.66)";
        assert_eq!(spread_row(row), Some(("forward-compute", Some(2.58492), 2.73566)));
        let row = b">     batch-generator ................................: (408.98, 817.78)  <---";
        assert_eq!(spread_row(row), Some(("batch-generator", Some(0.40898), 0.81778)));
        let row = b"    optimizer ......................................: 1,140.68";
        assert_eq!(spread_row(row), Some(("optimizer", None, 1.14068)));
        let row = b"    a-timer-whose-name-is-longer-than-all-of-its-dots : (1.00, 2.00)";
        assert!(spread_row(row).is_some());
        for cut in [
            "    optimizer ......................................: (140.6",
            "    optimizer ......................................: (140.68, 14",
            "  log_interval .................................... 1",
        ] {
            assert_eq!(spread_row(cut.as_bytes()), None, "{cut}");
        }
        assert!(is_open_spread(
            b"    optimizer ......................................: (140.68, 14"
        ));
    }

    #[test]
    fn arguments_are_no_timers() {
        let line = b"gpu-7:   log_interval .................................... 10";
        assert_eq!(argument(line), Some(("log_interval", "10")));
        assert_eq!(argument(b"    optimizer .....................: (1.00, 2.00)"), None);
    }
}

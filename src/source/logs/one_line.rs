//! `time (ms) | name: value | ...`: one rank's own times on one line. Megatron-LM until August 2022, DeepSpeed to this day.

use memchr::memmem;

use super::grammar::plain_name;
use super::measures::{after, integer, milliseconds, skip_blanks};

/// What a line of one rank's times says.
#[derive(Debug, PartialEq)]
pub(super) struct OneLine<'a> {
    /// The rank that the line names.
    pub rank: Option<u32>,
    /// The times in seconds, NaN where `nan` is printed; a field that was cut is not among them.
    pub times: Vec<(&'a str, f64)>,
}

/// Reads the line, if it is one.
pub(super) fn one_line(line: &[u8]) -> Option<OneLine<'_>> {
    let at = mark(line)?;
    let fields = skip_blanks(&line[at + MARK.len()..]);
    let times = match fields.strip_prefix(b"|") {
        Some(fields) => fields.split(|&byte| byte == b'|').filter_map(field).collect(),
        None if fields.is_empty() => Vec::new(),
        None => return None,
    };
    Some(OneLine {
        rank: printed_rank(&line[..at]),
        times,
    })
}

/// Whether the line is one, without reading its times.
pub(super) fn is_one_line(line: &[u8]) -> bool {
    mark(line).is_some_and(|at| {
        let fields = skip_blanks(&line[at + MARK.len()..]);
        fields.is_empty() || fields.starts_with(b"|")
    })
}

const MARK: &[u8] = b"time (ms)";

/// Where the mark stands as a word of its own.
fn mark(line: &[u8]) -> Option<usize> {
    memmem::rfind(line, MARK).filter(|&at| at == 0 || matches!(line[at - 1], b' ' | b']' | b'\t'))
}

fn field(field: &[u8]) -> Option<(&str, f64)> {
    let colon = memchr::memrchr(b':', field)?;
    let (seconds, rest) = milliseconds(field[colon + 1..].strip_prefix(b" ")?)?;
    let name = plain_name(field[..colon].trim_ascii())?;
    skip_blanks(rest).is_empty().then_some((name, seconds))
}

/// DeepSpeed's `[Rank 0]` and `rank=0`.
fn printed_rank(before: &[u8]) -> Option<u32> {
    ["[Rank ", "rank="].into_iter().find_map(|mark| {
        let at = memmem::rfind(before, mark.as_bytes())?;
        let (rank, _) = integer(&before[at + mark.len()..])?;
        u32::try_from(rank).ok()
    })
}

/// Whether the next line goes on with this one, which is a [`one_line`].
pub(super) fn goes_on(line: &[u8], next: &[u8]) -> bool {
    let last = line.rsplit(|&byte| byte == b'|').next().unwrap_or_default();
    let whole = field(last).is_some() || line.ends_with(MARK);
    if whole {
        return skip_blanks(next).starts_with(b"|");
    }
    // A cut field goes on with its rest and then the next field, or the line is at its end.
    let rest = next.split(|&byte| byte == b'|').next().unwrap_or_default();
    let joined = [last, rest].concat();
    field(&joined).is_some()
}

/// The number of the step that DeepSpeed prints beside its times: `step=2, skipped=0`, `steps: 2 loss: ...`.
pub(super) fn deepspeed_step(line: &[u8]) -> Option<i64> {
    let step = |mark: &str, next: &[u8]| {
        let (step, rest) = integer(after(line, mark)?)?;
        rest.starts_with(next).then_some(step)
    };
    step(" step=", b", skipped=").or_else(|| step("steps: ", b" loss:"))
}

/// Names of DeepSpeed's timers, without `_microstep`.
const DEEPSPEED: [&str; 12] = [
    "fwd",
    "bwd",
    "bwd_inner",
    "bwd_allreduce",
    "step",
    "forward",
    "backward",
    "backward_inner",
    "backward_allreduce",
    "optimizer_allgather",
    "optimizer_gradients",
    "optimizer_step",
];
/// Those that Megatron-LM of 2020 has as well.
const OF_BOTH: [&str; 2] = ["forward", "backward"];

/// Once a micro-batch, where the others are printed once a step.
pub(super) fn is_microstep(name: &str) -> bool {
    name.ends_with("_microstep")
}

/// Whether DeepSpeed printed the line.
pub(super) fn is_deepspeed(line: &OneLine) -> bool {
    let known = |name: &str| is_microstep(name) || DEEPSPEED.contains(&name) && !OF_BOTH.contains(&name);
    line.rank.is_some() || line.times.iter().any(|(name, _)| known(name))
}

/// Whether Megatron-LM of 2020 printed the line, which did so on rank 0; later the last rank printed it.
pub(super) fn is_of_rank_0(line: &OneLine) -> bool {
    line.times
        .iter()
        .any(|&(name, _)| OF_BOTH.contains(&name) || name == "batch generator")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_and_zeros_stay() {
        let line = b"time (ms) | forward: 276.11 | batch generator: 0.00 | optimizer: 14";
        let read = one_line(line).expect("a line");
        assert_eq!(read.times, [("forward", 0.27611), ("batch generator", 0.0)]);
        assert!(is_of_rank_0(&read) && !is_deepspeed(&read));
        let bar = b" 4%|##| 13/345 [00:07<05:03, 1.09it/s][2026-01-09 07:39:09,809] [INFO] [logging.py:96:log_dist] \
                    [Rank 0] rank=0 time (ms) | fwd: 7.64 | step: 62.39";
        let read = one_line(bar).expect("a line");
        assert_eq!((read.rank, read.times.len()), (Some(0), 2));
        assert!(is_deepspeed(&read));
        assert_eq!(one_line(b"time (ms)").map(|read| read.times.len()), Some(0));
    }

    #[test]
    fn other_times_are_no_such_line() {
        for line in [
            "(min, max) time across ranks (ms):",
            " iteration 1/ 2 | elapsed time per iteration (ms): 5.0 |",
            "uptime (ms) | x: 1.00",
            "my time (ms): 5.00",
        ] {
            assert_eq!(one_line(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn a_wrapped_line_goes_on() {
        assert!(goes_on(b"time (ms) | forward-recv: 100", b"07.14 | backward: 1.00"));
        assert!(goes_on(b"time (ms) | forward-recv: 1.00", b" | backward: 1.00"));
        assert!(goes_on(b"time (ms) | forward-re", b"cv: 1.00"));
        assert!(!goes_on(b"time (ms) | forward-recv: 1.00", b"[Rank 3] x | y"));
        assert!(!goes_on(b"time (ms) | forward-recv: 1", b"[Rank 3] x | y"));
    }

    #[test]
    fn deepspeed_numbers_its_steps() {
        assert_eq!(deepspeed_step(b"[Rank 0] step=2, skipped=0, lr=[0.1]"), Some(2));
        assert_eq!(
            deepspeed_step(b"steps: 7 loss: 3.1 iter time (s): 1.500 samples/sec: 21.0"),
            Some(7)
        );
        assert_eq!(deepspeed_step(b"my step=2"), None);
    }
}

//! What was read and left out of a log, counted, and told in words.

use super::placing::Held;

/// What was read and left out of a log.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub lines: u64,
    pub too_long: u64,
    pub iteration_lines: u64,
    pub repeated_lines: u64,
    /// Times that were read, of steps or not.
    pub times: u64,
    pub outside: u64,
    pub nan: u64,
    /// Times whose timer's name, or the block's header, was cut.
    pub nameless: u64,
    /// Times of blocks without an iteration line.
    pub without_iteration: u64,
    /// Blocks that are part of the next one.
    pub partial_blocks: u64,
    pub scaled_blocks: u64,
    pub reported: u64,
    pub jobs: u32,
    pub runs: u64,
}

impl Counts {
    /// Each count that is not 0, in words.
    pub fn notes(&self, has_clock: bool, held: &Held) -> Vec<String> {
        let mut notes = Vec::new();
        let mut note = |count: u64, text: &str| {
            if count > 0 {
                notes.push(format!("{count} {text}"));
            }
        };
        note(self.too_long, "lines are longer than 64 kB and were passed over");
        note(self.repeated_lines, "iteration lines repeat the one before");
        note(self.nan, "times are printed as nan: no values");
        note(
            self.nameless,
            "times have lost their timer's name to other output: left out",
        );
        note(
            self.without_iteration,
            "times stand in blocks without an iteration line: left out",
        );
        note(
            self.partial_blocks,
            "blocks of a run's first iteration are divided by the log interval and part of the next block: left out",
        );
        note(
            self.scaled_blocks,
            "blocks after a resume inside of a log interval were divided by too many iterations: mended",
        );
        note(
            self.outside,
            "times of set-up, evaluation or checkpoints belong to no step",
        );
        note(
            held.numbered,
            "timer blocks have no iteration line: iterations are their numbers",
        );
        note(
            self.runs.saturating_sub(1),
            "restarts: the counter went back, or the job started anew",
        );
        if !has_clock && self.iteration_lines + held.numbered > 0 {
            notes.push(
                "the log prints no times: they are counted from 1970-01-01 by the length of the steps".to_owned(),
            );
        }
        notes
    }
}

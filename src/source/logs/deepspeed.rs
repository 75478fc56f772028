//! DeepSpeed's times: those of a step stand on several lines, before the step's number.

use super::builder::{At, Kind};
use super::one_line::{OneLine, is_microstep};
use super::reading::Reading;

/// One rank's times of a step as DeepSpeed prints them: before the step's number.
#[derive(Debug, Default)]
pub(super) struct DeepSpeed {
    rank: u32,
    step: Option<i64>,
    times: Vec<(String, f64)>,
}

impl Reading {
    /// One rank's own times, of DeepSpeed: those of a step stand on several lines before its number.
    pub(super) fn deepspeed_line(&mut self, line: &OneLine) {
        let has = |name: &str| self.deepspeed.times.iter().any(|(known, _)| known == name);
        let of_step = |name: &str| !is_microstep(name) && !name.starts_with("optimizer_");
        let step_is_whole = self.deepspeed.times.iter().any(|(name, _)| of_step(name));
        let repeats = line.times.iter().any(|&(name, _)| has(name));
        let micro = line.times.iter().all(|&(name, _)| is_microstep(name));
        if step_is_whole && !line.times.is_empty() && (repeats || !line.times.iter().any(|&(name, _)| of_step(name)))
            || repeats && !micro
        {
            self.flush_deepspeed(None);
        }
        self.deepspeed.rank = line.rank.unwrap_or(0);
        for &(name, seconds) in &line.times {
            if seconds.is_nan() {
                self.counts.nan += 1;
                continue;
            }
            match self.deepspeed.times.iter_mut().find(|(known, _)| known == name) {
                // Micro-batches are summed.
                Some((_, sum)) => *sum += seconds,
                None => self.deepspeed.times.push((name.to_owned(), seconds)),
            }
        }
    }

    /// The number of the step whose times are gathered.
    pub(super) fn deepspeed_number(&mut self, step: i64) {
        if !self.deepspeed.times.is_empty() {
            self.deepspeed.step = Some(step);
        }
    }

    /// Puts what was gathered of a step where its number says, or the iteration line that came.
    pub(super) fn flush_deepspeed(&mut self, iteration: Option<i64>) {
        let DeepSpeed { rank, step, times } = std::mem::take(&mut self.deepspeed);
        if times.is_empty() {
            return;
        }
        self.counts.times += times.len() as u64;
        let lines = self.counts.iteration_lines > 0;
        let at = match (iteration, step) {
            (Some(_), _) => self.here(),
            (None, Some(step)) if !lines => {
                self.steps.number(step);
                if self.counts.runs == 0 {
                    self.counts.runs = 1;
                }
                self.here()
            }
            (None, Some(step)) if self.steps.current.is_some_and(|current| step > current.iteration) => At {
                iteration: step,
                ..self.here()
            },
            (None, _) if !lines => {
                self.held.blocks.push(Vec::new());
                for (name, seconds) in &times {
                    self.held.push(name, Some(rank), &[*seconds], &mut self.counts);
                }
                return;
            }
            (None, _) => {
                self.counts.without_iteration += times.len() as u64;
                return;
            }
        };
        for (name, seconds) in times {
            self.builder.set_subname(&name);
            self.builder.push(Kind::Timer, Some(rank), at, &[seconds]);
        }
    }
}

//! Which job, run and iteration the lines of a log are of, and when.
//!
//! The counter going back is a restart; sizes or a number of iterations that differ make another job. Between two times that
//! are printed the clock goes on by the steps' own lengths.

use super::grammar::IterationLine;
use super::setup::{LONGEST_INTERVAL, Setup};
use crate::source::timestamp::Micros;

/// A step is not longer: what says so is damage, and must not carry the clock away.
const LONGEST_STEP: f64 = 7.0 * 86_400.0;

/// What an iteration line does to the course of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Course {
    /// The run goes on.
    GoesOn,
    /// It is the first of a run; of another job where `job` says so.
    Begins {
        /// Whether the job is another one.
        job: bool,
    },
    /// The same line again, of another printer.
    Repeated,
}

/// What becomes of the values of a timer block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Mend {
    /// They are right.
    Keep,
    /// They were divided by the wrong number of iterations.
    Scale(f64),
    /// They are part of the next block.
    Drop,
}

/// The iteration whose lines follow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Step {
    pub iteration: i64,
    pub time: Micros,
    /// Whether a timer block of it was seen.
    pub has_block: bool,
}

/// Where the log is.
#[derive(Debug, Default)]
pub(super) struct Steps {
    /// Number of the job, from 1; 0 before the first iteration.
    pub job: u32,
    /// Number of the run in the job, from 1.
    pub run: u32,
    pub current: Option<Step>,
    total: Option<i64>,
    /// Whether a start was announced since the last iteration.
    announced: bool,
    /// Iteration lines of this run.
    lines: u64,
    /// Common divisor of the distances between its lines, the first left out.
    distance: i64,
    first_distance: i64,
    clock: Micros,
    /// Whether any time was printed.
    pub has_clock: bool,
}

impl Steps {
    /// Notes that a job starts.
    pub fn announce(&mut self) {
        self.announced = true;
    }

    /// Notes a time that was printed.
    pub fn tick(&mut self, time: Micros) {
        if !self.has_clock || time >= self.clock {
            self.clock = time;
        }
        self.has_clock = true;
    }

    /// What a line that numbers an iteration does.
    pub fn course(&self, line: &IterationLine, differs: bool) -> Course {
        let Some(current) = self.current else {
            return Course::Begins { job: true };
        };
        let other_total = line.total.zip(self.total).is_some_and(|(line, known)| line != known);
        let back = line.iteration < current.iteration;
        if self.announced || back {
            return Course::Begins {
                job: differs || other_total,
            };
        }
        if line.iteration == current.iteration {
            return Course::Repeated;
        }
        Course::GoesOn
    }

    /// Goes to the iteration of a line.
    pub fn enter(&mut self, line: &IterationLine, course: Course) {
        let before = self.current.map(|step| step.iteration);
        if let Course::Begins { job } = course {
            (self.job, self.run) = if job {
                (self.job + 1, 1)
            } else {
                (self.job, self.run + 1)
            };
            (self.lines, self.distance, self.first_distance) = (0, 0, 0);
            self.announced = false;
        } else if let Some(before) = before {
            let distance = line.iteration - before;
            match self.lines {
                1 => self.first_distance = distance,
                _ => self.distance = gcd(self.distance, distance),
            }
        }
        self.total = line.total.or(self.total);
        self.lines += 1;
        match line.time {
            Some(time) => {
                // A clock that is set back must not bring a later run before an earlier one.
                self.clock = if matches!(course, Course::Begins { .. }) {
                    time.max(self.clock)
                } else {
                    time
                };
                self.has_clock = true;
            }
            None => {
                let iterations = match (course, before) {
                    (Course::GoesOn, Some(before)) => (line.iteration - before).clamp(1, LONGEST_INTERVAL),
                    _ => 1,
                };
                let seconds = (line.seconds * iterations as f64).clamp(0.0, LONGEST_STEP);
                self.clock = self.clock.saturating_add((seconds * 1e6) as Micros);
            }
        }
        self.current = Some(Step {
            iteration: line.iteration,
            time: self.clock,
            has_block: false,
        });
    }

    /// Goes to an iteration that no line tells the time of.
    pub fn number(&mut self, iteration: i64) {
        let back = self.current.is_some_and(|step| iteration <= step.iteration);
        if self.current.is_none() || self.announced || back {
            (self.job, self.run) = (self.job.max(1), self.run + 1);
            self.announced = false;
        }
        self.clock = self.clock.saturating_add(1);
        self.current = Some(Step {
            iteration,
            time: self.clock,
            has_block: false,
        });
    }

    /// The time of what stands before the first iteration, if the log tells one.
    pub fn known_time(&self) -> Option<Micros> {
        Some(self.clock).filter(|_| self.has_clock)
    }

    /// Whether the line is the first of its run.
    pub fn is_first_line(&self) -> bool {
        self.lines == 1
    }

    /// How many iterations a line of the run is the mean of, as far as its lines tell.
    pub fn interval(&self, setup: &Setup) -> Option<i64> {
        let told = match (self.distance, self.first_distance) {
            (0, 0) => None,
            (0, first) => Some(first),
            (distance, _) => Some(distance),
        };
        setup
            .log_interval
            .or(told)
            .filter(|interval| (1..=LONGEST_INTERVAL).contains(interval))
    }

    /// What becomes of the block of the current iteration, by the log interval that the job printed.
    pub fn mend(&self, setup: &Setup) -> Mend {
        let (Some(step), Some(interval)) = (self.current, setup.log_interval.filter(|&interval| interval > 1)) else {
            return Mend::Keep;
        };
        if step.iteration % interval != 0 {
            // Since January 2026 the first iteration of a run is printed as well: its block is divided by the interval, and
            // the next one holds it.
            return if self.lines == 1 { Mend::Drop } else { Mend::Keep };
        }
        let resumed = match (self.lines, self.first_distance) {
            (1, _) => setup.loaded,
            (2, distance) if distance < interval => Some(step.iteration - distance - 1),
            _ => None,
        };
        let ran = resumed.map(|resumed| step.iteration - resumed);
        match ran.filter(|ran| (1..interval).contains(ran)) {
            Some(ran) => Mend::Scale(interval as f64 / ran as f64),
            None => Mend::Keep,
        }
    }

    /// Whether the second line of a run tells that the first one's block is part of the second's: the interval does not hold the
    /// first line's iteration, and the job did not print it.
    pub fn first_block_is_partial(&self, setup: &Setup) -> bool {
        let (Some(step), 2, None) = (self.current, self.lines, setup.log_interval) else {
            return false;
        };
        let first = step.iteration - self.first_distance;
        // The line before the first regular one is of the first iteration alone.
        let interval = self.first_distance + 1;
        interval > 2 && first % interval == 1 && step.iteration % interval == 0
    }
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(iteration: i64) -> IterationLine {
        IterationLine {
            iteration,
            total: Some(1000),
            time: None,
            seconds: 2.0,
        }
    }

    fn walk(steps: &mut Steps, iterations: &[i64]) {
        for &iteration in iterations {
            let line = line(iteration);
            steps.enter(&line, steps.course(&line, false));
        }
    }

    #[test]
    fn a_counter_that_goes_back_is_a_restart() {
        let mut steps = Steps::default();
        walk(&mut steps, &[10, 20, 30]);
        assert_eq!((steps.job, steps.run, steps.clock), (1, 1, 42_000_000));
        assert_eq!(steps.course(&line(30), false), Course::Repeated);
        walk(&mut steps, &[20]);
        assert_eq!((steps.job, steps.run), (1, 2));
        let other = IterationLine {
            total: Some(9),
            ..line(1)
        };
        assert_eq!(steps.course(&other, false), Course::Begins { job: true });
        steps.announce();
        assert_eq!(steps.course(&line(40), true), Course::Begins { job: true });
    }

    #[test]
    fn the_interval_is_told_or_found() {
        let mut steps = Steps::default();
        walk(&mut steps, &[1, 10, 20, 40]);
        assert_eq!(steps.interval(&Setup::default()), Some(10));
        let mut gaps = Steps::default();
        walk(&mut gaps, &[16, 35, 62, 63]);
        assert_eq!(gaps.interval(&Setup::default()), Some(1));
    }

    #[test]
    fn blocks_divided_by_too_much_are_noticed() {
        let setup = Setup {
            log_interval: Some(10),
            ..Setup::default()
        };
        let mut steps = Steps::default();
        walk(&mut steps, &[1]);
        assert_eq!(steps.mend(&setup), Mend::Drop);
        walk(&mut steps, &[10]);
        assert_eq!(steps.mend(&setup), Mend::Keep);
        // Resumed at 5003: seven iterations stand in the block at 5010.
        let resumed = Setup {
            loaded: Some(5003),
            ..setup.clone()
        };
        let mut steps = Steps::default();
        walk(&mut steps, &[5010]);
        assert_eq!(steps.mend(&resumed), Mend::Scale(10.0 / 7.0));
        let mut steps = Steps::default();
        walk(&mut steps, &[5004, 5010]);
        assert_eq!(steps.mend(&setup), Mend::Scale(10.0 / 7.0));
        walk(&mut steps, &[5020]);
        assert_eq!(steps.mend(&setup), Mend::Keep);
        // Without the arguments the second line tells.
        let mut steps = Steps::default();
        walk(&mut steps, &[1, 10]);
        assert!(steps.first_block_is_partial(&Setup::default()));
        let mut steps = Steps::default();
        walk(&mut steps, &[5, 10]);
        assert!(!steps.first_block_is_partial(&Setup::default()));
    }
}

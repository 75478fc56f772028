//! Logs as Megatron-LM prints them, of rows: for tests of the reader and of what a form of log can tell.
//!
//! In: rows of a job. Out: text. May use: the readers' common parts in `source`, `contract`.
//!
//! Source: `megatron/training/training.py` (`training_log`), `megatron/core/timers.py`, `megatron/training/arguments.py`.

mod rows;

use std::io::{Result, Write};

use super::super::timestamp::Micros;
use crate::contract::timers::{self, is_outside_of_steps};
pub use rows::{Printed, print_log};

/// What `--timing-log-option` was, or how an older version printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogForm {
    /// `all`: a line a timer and rank.
    All,
    /// `minmax`, the default: the least and the greatest over all ranks.
    MinMax,
    /// Until August 2022: the last rank's own times on one line.
    OneLine,
}

/// What a job prints of itself at its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrintedJob {
    /// Ranks.
    pub world: usize,
    /// Sizes of the tensor-, context-, expert- and pipeline-parallel groups; not printed where they are not known.
    pub sizes: Option<PrintedSizes>,
    /// Iterations that the job is to run.
    pub iterations: i64,
    /// Iterations that a line is the mean of.
    pub interval: i64,
}

/// Sizes of parallel groups as the arguments say them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrintedSizes {
    /// Tensor-parallel.
    pub tp: usize,
    /// Context-parallel.
    pub cp: usize,
    /// Expert-parallel.
    pub ep: usize,
    /// Pipeline-parallel.
    pub pp: usize,
    /// Whether stages come before replicas in the order of the ranks (`--use-tp-pp-dp-mapping`).
    pub pipeline_before_data: bool,
}

/// One timer of a step: each rank's seconds, by rank.
pub type PrintedTimer<'a> = (&'a str, &'a [(u32, f64)]);

/// Writes a log.
pub struct LogPrinter<W> {
    out: W,
    form: LogForm,
    job: PrintedJob,
}

impl<W: Write> LogPrinter<W> {
    /// Begins with what a job prints of itself.
    ///
    /// # Errors
    /// Text that can't be written.
    pub fn begin(mut out: W, form: LogForm, job: PrintedJob) -> Result<Self> {
        let sizes = job.sizes.unwrap_or(PrintedSizes {
            tp: 1,
            cp: 1,
            ep: 1,
            pp: 1,
            pipeline_before_data: false,
        });
        write!(out, "using world size: {}", job.world)?;
        if job.sizes.is_some() {
            let dp = job.world / (sizes.tp * sizes.cp * sizes.pp).max(1);
            write!(
                out,
                ", data-parallel size: {dp}, context-parallel size: {}, hierarchical context-parallel sizes: None, \
                 tensor-model-parallel size: {}, pipeline-model-parallel size: {}",
                sizes.cp, sizes.tp, sizes.pp
            )?;
        }
        writeln!(out, "\n------------------------ arguments ------------------------")?;
        let mut arguments = vec![
            ("log_interval", job.interval.to_string()),
            ("world_size", job.world.to_string()),
        ];
        if job.sizes.is_some() {
            let mapping = if sizes.pipeline_before_data { "True" } else { "False" };
            arguments.extend([
                ("context_parallel_size", sizes.cp.to_string()),
                ("expert_model_parallel_size", sizes.ep.to_string()),
                ("pipeline_model_parallel_size", sizes.pp.to_string()),
                ("tensor_model_parallel_size", sizes.tp.to_string()),
                ("use_tp_pp_dp_mapping", mapping.to_owned()),
            ]);
        }
        arguments.sort();
        for (name, value) in arguments {
            writeln!(
                out,
                "  {name} {} {value}",
                ".".repeat(48_usize.saturating_sub(name.len()))
            )?;
        }
        writeln!(out, "-------------------- end of arguments ---------------------")?;
        Ok(Self::resume(out, form, job))
    }

    /// Goes on with a log whose begin is printed.
    pub fn resume(out: W, form: LogForm, job: PrintedJob) -> Self {
        Self { out, form, job }
    }

    /// Prints the end of an iteration: when it was, its seconds, the seconds of its timers.
    ///
    /// # Errors
    /// Text that can't be written.
    pub fn step(&mut self, iteration: i64, time: Micros, seconds: f64, timers: &[PrintedTimer<'_>]) -> Result<()> {
        let stamp = chrono::DateTime::from_timestamp_micros(time).unwrap_or_default();
        writeln!(
            self.out,
            " [{}] iteration {iteration:8}/{:8} | consumed samples: {:12} | elapsed time per iteration (ms): {:.1} | learning \
             rate: 1.500000E-04 | global batch size: {:5} | lm loss: 2.500000E+00 | loss scale: 1.0 | grad norm: 1.000 | number \
             of skipped iterations:   0 | number of nan iterations:   0 |",
            stamp.format("%Y-%m-%d %H:%M:%S%.6f"),
            self.job.iterations,
            iteration.saturating_mul(32),
            seconds * 1e3,
            32,
        )?;
        let mut timers: Vec<&PrintedTimer<'_>> = timers.iter().filter(|(name, _)| is_printed(name)).collect();
        timers.sort_by_key(|(name, _)| (place(name), *name));
        match self.form {
            LogForm::All => self.all(&timers),
            LogForm::MinMax => self.min_max(&timers),
            LogForm::OneLine => self.one_line(&timers),
        }
    }

    fn all(&mut self, timers: &[&PrintedTimer<'_>]) -> Result<()> {
        writeln!(self.out, "times across ranks (ms):")?;
        for (name, ranks) in timers {
            writeln!(self.out, "  {name}:")?;
            // A rank whose time is 0 did not run the timer, as far as the program can tell.
            for (rank, seconds) in ranks.iter().filter(|(_, seconds)| *seconds != 0.0) {
                writeln!(self.out, "     rank {rank:2}: {:.2}", seconds * 1e3)?;
            }
        }
        Ok(())
    }

    fn min_max(&mut self, timers: &[&PrintedTimer<'_>]) -> Result<()> {
        writeln!(self.out, "(min, max) time across ranks (ms):")?;
        for (name, ranks) in timers {
            let ran = || {
                ranks
                    .iter()
                    .map(|&(_, seconds)| seconds)
                    .filter(|&seconds| seconds > 0.0)
            };
            let Some(least) = ran().min_by(f64::total_cmp) else {
                continue;
            };
            let most = ran().max_by(f64::total_cmp).unwrap_or(least);
            let dots = ".".repeat(48_usize.saturating_sub(name.len() + 1));
            writeln!(self.out, "    {name} {dots}: ({:.2}, {:.2})", least * 1e3, most * 1e3)?;
        }
        Ok(())
    }

    fn one_line(&mut self, timers: &[&PrintedTimer<'_>]) -> Result<()> {
        write!(self.out, "time (ms)")?;
        let last = self.job.world.saturating_sub(1);
        for (name, ranks) in timers {
            let own = ranks.iter().find(|(rank, _)| *rank as usize == last);
            write!(
                self.out,
                " | {name}: {:.2}",
                own.map_or(0.0, |(_, seconds)| seconds * 1e3)
            )?;
        }
        writeln!(self.out)
    }
}

/// Whether Megatron-LM prints a timer in the block of a step; the length of the step stands in the iteration line.
fn is_printed(name: &str) -> bool {
    name != timers::INTERVAL_TIME && !is_outside_of_steps(name)
}

/// The place of a timer in a block, as `training_log` lists them.
fn place(name: &str) -> usize {
    const ORDER: [&str; 8] = [
        timers::FORWARD_BACKWARD,
        timers::FORWARD_COMPUTE,
        timers::BACKWARD_COMPUTE,
        timers::BATCH_GENERATOR,
        timers::FORWARD_RECV,
        timers::FORWARD_SEND,
        timers::BACKWARD_RECV,
        timers::BACKWARD_SEND,
    ];
    let place = ORDER.iter().position(|known| *known == name);
    place.unwrap_or(if name.starts_with(timers::OPTIMIZER) {
        ORDER.len() + 1
    } else {
        ORDER.len()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: PrintedJob = PrintedJob {
        world: 4,
        sizes: Some(PrintedSizes {
            tp: 2,
            cp: 1,
            ep: 1,
            pp: 2,
            pipeline_before_data: false,
        }),
        iterations: 50,
        interval: 10,
    };

    fn printed(form: LogForm) -> String {
        let mut out = Vec::new();
        let mut printer = LogPrinter::begin(&mut out, form, JOB).expect("written");
        let timers: [PrintedTimer<'_>; 3] = [
            ("optimizer", &[(0, 0.5), (3, 0.25)]),
            ("interval-time", &[(0, 2.0)]),
            ("forward-compute", &[(0, 1.0), (1, 0.0), (3, 1.234567)]),
        ];
        printer.step(10, 1_772_352_000_500_000, 2.0, &timers).expect("written");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn each_form_is_that_of_the_program() {
        let all = printed(LogForm::All);
        assert!(all.starts_with(
            "using world size: 4, data-parallel size: 1, context-parallel size: 1, hierarchical context-parallel sizes: None, \
             tensor-model-parallel size: 2, pipeline-model-parallel size: 2\n"
        ));
        assert!(
            all.contains("  log_interval .................................... 10\n"),
            "{all}"
        );
        assert!(all.contains(
            " [2026-03-01 08:00:00.500000] iteration       10/      50 | consumed samples:          320 | elapsed time per \
             iteration (ms): 2000.0 |"
        ));
        assert!(
            all.ends_with(
                "times across ranks (ms):\n  forward-compute:\n     rank  0: 1000.00\n     rank  3: 1234.57\n  optimizer:\n     rank  \
                 0: 500.00\n     rank  3: 250.00\n"
            ),
            "{all}"
        );
        assert!(printed(LogForm::MinMax).ends_with(
            "(min, max) time across ranks (ms):\n    forward-compute ................................: (1000.00, 1234.57)\n    \
             optimizer ......................................: (250.00, 500.00)\n"
        ));
        assert!(printed(LogForm::OneLine).ends_with("\ntime (ms) | forward-compute: 1234.57 | optimizer: 250.00\n"));
    }
}

//! The rows of a job, gathered into steps and printed.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use super::{LogForm, LogPrinter, PrintedJob, PrintedSizes};
use crate::contract::metrics::{GROUPS, TIMERS};
use crate::contract::rank_order::{DEFAULT_ORDER, Layout, Sizes};
use crate::contract::timers::INTERVAL_TIME;
use crate::source::logs::setup::PIPELINE_BEFORE_DATA;
use crate::source::{Micros, Need, PartStatistics, Rows, Scan, SourceError, SourceFile, scan};

/// What [`print_log`] printed.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Printed {
    /// Iteration lines.
    pub lines: u64,
    /// Rows that a log has no place for: single calls, rows without a rank or an iteration.
    pub rows_left_out: u64,
    /// Whether the sizes of the groups were printed, which the arguments can't say of every order of ranks.
    pub sizes: bool,
}

/// Prints the rows of one job as a log, with the means of `interval` iterations a line.
///
/// # Errors
/// Files that can't be read, rows of several jobs or none, text that can't be written.
pub fn print_log(
    files: &[SourceFile],
    form: LogForm,
    interval: i64,
    path: &Path,
    out: &mut dyn Write,
) -> Result<Printed, SourceError> {
    let mut gathered = Gathered::default();
    scan(files, &mut gathered, &|_| ())?;
    gathered
        .print(form, interval.max(1), out)
        .map_err(SourceError::io(path))?
        .ok_or_else(|| SourceError::NoRows("the input holds no timers to print".to_owned()))
}

/// A cell of a step: timer, rank, seconds.
type Cell = (u32, u32, f64);

/// A step of a run: when it was written first and last, and its cells.
#[derive(Debug, Default)]
struct Step {
    time: Micros,
    cells: Vec<Cell>,
}

#[derive(Debug, Default)]
struct Gathered {
    job: Option<String>,
    runs: Vec<String>,
    timers: Vec<String>,
    /// Run and iteration -> step.
    steps: BTreeMap<(u32, i64), Step>,
    /// Group and rank -> position.
    groups: BTreeMap<(String, i64), i64>,
    world: usize,
    left_out: u64,
}

/// The code of a word, appended where it is new. There are few.
fn code(words: &mut Vec<String>, word: &str) -> u32 {
    let known = words.iter().position(|known| known == word);
    known.unwrap_or_else(|| {
        words.push(word.to_owned());
        words.len() - 1
    }) as u32
}

impl Scan for Gathered {
    type Digest = Rows;

    fn need(&self, _part: &PartStatistics) -> Need {
        Need::Everything
    }

    fn digest(&self, rows: Rows) -> Rows {
        rows
    }

    fn absorb(&mut self, rows: Rows) -> Result<(), SourceError> {
        for row in 0..rows.len() {
            if let Some(job) = rows.job.get(row) {
                match &self.job {
                    None => self.job = Some(job.to_owned()),
                    Some(known) if known == job => {}
                    Some(known) => return Err(SourceError::SeveralJobs(format!("{known}, {job}"))),
                }
            }
            let (metric, name) = (rows.metric_name.get(row), rows.subname.get(row));
            let rank = rows.rank.get(row).filter(|rank| (0..1 << 24).contains(rank));
            let value = rows.value.get(row);
            let (Some(metric), Some(name), Some(rank)) = (metric, name, rank) else {
                self.left_out += 1;
                continue;
            };
            match (metric, rows.iteration.get(row), rows.timestamp.get(row), value) {
                (GROUPS, _, _, Some(position)) => {
                    self.groups.insert((name.to_owned(), rank), position as i64);
                }
                (TIMERS, Some(iteration), Some(time), value) => {
                    let run = rows
                        .rerun_uuid
                        .as_ref()
                        .and_then(|runs| runs.get(row))
                        .unwrap_or_default();
                    let place = (code(&mut self.runs, run), iteration);
                    let timer = code(&mut self.timers, name);
                    let step = self.steps.entry(place).or_default();
                    step.time = step.time.max(time);
                    step.cells.push((timer, rank as u32, value.unwrap_or(f64::NAN)));
                    self.world = self.world.max(rank as usize + 1);
                }
                _ => self.left_out += 1,
            }
        }
        Ok(())
    }

    fn skipped(&mut self, _part: &PartStatistics) {}
}

impl Gathered {
    fn print(mut self, form: LogForm, interval: i64, out: &mut dyn Write) -> std::io::Result<Option<Printed>> {
        let Some(last) = self.steps.keys().map(|&(_, iteration)| iteration).max() else {
            return Ok(None);
        };
        for step in self.steps.values_mut() {
            // Of rows that repeat one the last counts.
            step.cells.sort_by_key(|&(timer, rank, _)| (timer, rank));
            step.cells.reverse();
            step.cells.dedup_by_key(|(timer, rank, _)| (*timer, *rank));
            step.cells.reverse();
        }
        // Runs come in the order of their times, as they were appended to the file.
        let mut runs: BTreeMap<u32, Micros> = BTreeMap::new();
        for (&(run, _), step) in &self.steps {
            let first = runs.entry(run).or_insert(step.time);
            *first = step.time.min(*first);
        }
        let mut runs: Vec<(Micros, u32)> = runs.into_iter().map(|(run, first)| (first, run)).collect();
        runs.sort_unstable();
        let sizes = self.sizes();
        let mut printed = Printed {
            rows_left_out: self.left_out,
            sizes: sizes.is_some(),
            ..Printed::default()
        };
        let job = PrintedJob {
            world: self.world,
            sizes,
            iterations: last,
            interval,
        };
        for (_, run) in runs {
            let mut printer = LogPrinter::begin(&mut *out, form, job)?;
            let steps: Vec<(i64, &Step)> = self
                .steps
                .range((run, i64::MIN)..=(run, i64::MAX))
                .map(|(&(_, iteration), step)| (iteration, step))
                .collect();
            let mut before = None;
            for several in steps.chunk_by(|a, b| (a.0 - 1).div_euclid(interval) == (b.0 - 1).div_euclid(interval)) {
                let (Some(&(iteration, end)), count) = (several.last(), several.len() as f64) else {
                    continue;
                };
                // What is left at the end of a run is not printed.
                if iteration % interval != 0 {
                    continue;
                }
                let mut sums: BTreeMap<u32, BTreeMap<u32, f64>> = BTreeMap::new();
                for &(timer, rank, seconds) in several.iter().flat_map(|(_, step)| &step.cells) {
                    *sums.entry(timer).or_default().entry(rank).or_default() += seconds / count;
                }
                let timers: Vec<(&str, Vec<(u32, f64)>)> = sums
                    .iter()
                    .map(|(&timer, ranks)| {
                        let cells = ranks.iter().map(|(&rank, &seconds)| (rank, seconds));
                        (self.timers[timer as usize].as_str(), cells.collect())
                    })
                    .collect();
                let told = timers.iter().find(|(name, _)| *name == INTERVAL_TIME);
                let told = told.and_then(|(_, ranks)| {
                    let seconds = ranks.iter().map(|&(_, seconds)| seconds);
                    seconds.filter(|seconds| seconds.is_finite()).max_by(f64::total_cmp)
                });
                let since = before.map(|before| (end.time - before) as f64 / 1e6 / count);
                let seconds = told.or(since).unwrap_or_default();
                let timers: Vec<_> = timers.iter().map(|(name, ranks)| (*name, ranks.as_slice())).collect();
                printer.step(iteration, end.time, seconds, &timers)?;
                printed.lines += 1;
                before = Some(end.time);
            }
        }
        out.flush()?;
        Ok(Some(printed))
    }

    /// The sizes whose arguments put every rank where the rows do; none where no arguments do.
    fn sizes(&self) -> Option<PrintedSizes> {
        let size = |group: &str| {
            let of_it = self.groups.iter().filter(|((name, _), _)| name == group);
            let most = of_it.map(|(_, &position)| position).max();
            most.map_or(1, |most| usize::try_from(most).unwrap_or_default().saturating_add(1))
        };
        if self.groups.is_empty() {
            return None;
        }
        let (tp, cp, ep, pp) = (size("tp"), size("cp"), size("ep"), size("pp"));
        let replica = tp.checked_mul(cp)?.checked_mul(pp)?;
        if self.world == 0 || !self.world.is_multiple_of(replica) {
            return None;
        }
        let grid = Sizes {
            tp,
            cp,
            ep: 1,
            dp: self.world / replica,
            pp,
        };
        [(DEFAULT_ORDER, false), (PIPELINE_BEFORE_DATA, true)]
            .into_iter()
            .find_map(|(order, pipeline_before_data)| {
                let layout = Layout::new(order, grid).ok()?;
                let fits = self.groups.iter().all(|((group, rank), &position)| {
                    let place = layout.coordinates(*rank as usize);
                    let place = match group.as_str() {
                        "tp" => place.tp,
                        "pp" => place.pp,
                        "dp" => place.dp,
                        "cp" => place.cp,
                        _ => return true,
                    };
                    usize::try_from(position) == Ok(place)
                });
                fits.then_some(PrintedSizes {
                    tp,
                    cp,
                    ep,
                    pp,
                    pipeline_before_data,
                })
            })
    }
}

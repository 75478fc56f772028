//! One batch of rows: what becomes of each, and what of them is kept.
//!
//! A batch of which every row is a timer row that is taken, as nearly all are, is told by its columns' least and greatest
//! cells alone, and its columns are taken as they are.

use super::calls::{CallRows, push_durations};
use super::collected_rows::{GroupRow, RunExtent, StepTally, TimerRows, Times, keep_latest};
use super::job_wide::{ReportedRank, SummaryRow};
use super::losses::Loss;
use super::quality::DataQuality;
use super::row_order::{by_timer, code_steps, in_order};
use super::sightings::Sightings;
use crate::contract::metrics::{LOG_INTERVAL, RECORDER, REPORT, SUMMARY};
use crate::source::fate::{Bounds, Cells, Fate, WANTED, WantedMetric, fate, place};
use crate::source::{Micros, Rows, TextColumn};

/// What one batch leaves behind; codes are positions in the batch's own words.
#[derive(Default)]
pub struct Digest {
    pub(super) jobs: Vec<String>,
    pub(super) timer_words: Vec<String>,
    pub(super) run_words: Vec<String>,
    pub(super) node_words: Vec<String>,
    pub(super) extents: Vec<Option<RunExtent>>,
    pub(super) rows: TimerRows,
    /// Parallel to the steps of `rows`.
    pub(super) tallies: Vec<StepTally>,
    pub(super) calls: CallRows,
    pub(super) seen: Sightings,
    pub(super) groups: Vec<GroupRow>,
    pub(super) quality: DataQuality,
    pub(super) summaries: Vec<SummaryRow>,
    /// Runs with the number of iterations that their rows are the means of.
    pub(super) log_intervals: Vec<(u32, i64)>,
    pub(super) reports: Vec<ReportedRank>,
    pub(super) losses: Vec<Loss>,
    pub(super) notes: Vec<String>,
}

/// A batch with what its words mean.
pub(super) struct Batch<'a> {
    rows: &'a Rows,
    bounds: Bounds,
    /// Of each word whether it is the job.
    ours: Vec<bool>,
    /// Of each word its place in [`WANTED`].
    metrics: Vec<Option<usize>>,
    /// Of each word whether calls of such a timer are wanted.
    listed: Vec<bool>,
    /// Of each word whether it is a node's name.
    is_node: Vec<bool>,
    /// The run of rows that name none: the one behind the last word.
    nameless: u32,
}

/// The timer rows of a batch that are taken: all of them, or some by place.
enum Taken {
    All,
    Some(Vec<usize>),
}

impl<'a> Batch<'a> {
    /// Looks the batch's words up; without a `job` rows of every job are taken.
    pub fn new(rows: &'a Rows, job: Option<&str>, bounds: Bounds) -> Self {
        let each = |words: &[String], of: &dyn Fn(&str) -> bool| words.iter().map(|word| of(word)).collect();
        let lists = WANTED[place::TRACE].lists.unwrap_or_default();
        let metric = |word: &String| WANTED.iter().position(|metric| metric.name == word);
        let words = |column: &'a Option<TextColumn>| column.as_ref().map_or(&[][..], |column| &column.words);
        Self {
            rows,
            bounds,
            ours: each(&rows.job.words, &|word| job.is_none_or(|job| job == word)),
            metrics: rows.metric_name.words.iter().map(metric).collect(),
            listed: each(&rows.subname.words, &|word| lists.contains(&word)),
            is_node: each(words(&rows.node), &|word| !word.is_empty()),
            nameless: words(&rows.rerun_uuid).len() as u32,
        }
    }

    /// Takes from the batch what matters.
    pub fn digest(self) -> Digest {
        let words = |column: &Option<TextColumn>| column.as_ref().map_or(Vec::new(), |column| column.words.clone());
        let mut digest = Digest {
            jobs: self.rows.job.words.clone(),
            timer_words: self.rows.subname.words.clone(),
            run_words: words(&self.rows.rerun_uuid),
            node_words: words(&self.rows.node),
            ..Digest::default()
        };
        digest.run_words.push(String::new());
        digest.extents = vec![None; digest.run_words.len()];
        digest.quality.rows_read = self.rows.len() as u64;
        digest.notes = self.rows.notes.clone();
        let taken = match self.extent_if_all_are_taken() {
            Some(extent) => {
                self.note_extents(&extent, &mut digest);
                Taken::All
            }
            None => Taken::Some(self.sort_out(&mut digest)),
        };
        self.keep(&taken, &mut digest);
        keep_latest(&mut digest.groups);
        digest
    }

    /// The least and greatest time and iteration, where every row is a timer row that is taken.
    ///
    /// What a rule lets pass of a column has no gap, so that a column passes where its least and greatest cell do.
    fn extent_if_all_are_taken(&self) -> Option<RunExtent> {
        let rows = self.rows;
        let uniform = |column: &TextColumn| column.is_uniform();
        let of_the_job = uniform(&rows.job) && self.ours == [true];
        let of_timers = uniform(&rows.metric_name) && self.metrics == [Some(place::TIMERS)];
        if !of_the_job || !of_timers || rows.subname.codes.contains(&TextColumn::MISSING) {
            return None;
        }
        let (first_time, last_time) = ends(rows.timestamp.whole()?)?;
        let (first_rank, last_rank) = ends(rows.rank.whole()?)?;
        let (first_iteration, last_iteration) = ends(rows.iteration.whole()?)?;
        let seconds = rows.value.whole().filter(|_| rows.has_values())?;
        let finite = seconds.iter().fold(true, |all, second| all & second.is_finite());
        let (least, most) = seconds
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), &second| {
                (least.min(second), most.max(second))
            });
        let is_taken = |time, rank, iteration, value| {
            let cells = Cells {
                time: Some(time),
                rank: Some(rank),
                iteration: Some(iteration),
                named: true,
                listed: false,
                empty: false,
                value: Some(value),
            };
            fate(&WANTED[place::TIMERS], &cells, &self.bounds) == Fate::Taken
        };
        let all = finite
            && is_taken(first_time, first_rank, first_iteration, least)
            && is_taken(last_time, last_rank, last_iteration, most);
        all.then_some(RunExtent {
            first_time,
            last_time,
            first_iteration,
            last_iteration,
        })
    }

    /// Notes where each run of a batch that is taken as a whole began and ended.
    fn note_extents(&self, whole: &RunExtent, digest: &mut Digest) {
        if let Some(run) = self.only_run() {
            digest.extents[run as usize] = Some(whole.clone());
            return;
        }
        let (times, iterations) = (&self.rows.timestamp, &self.rows.iteration);
        for row in 0..self.rows.len() {
            if let (Some(time), Some(iteration)) = (times.get(row), iterations.get(row)) {
                RunExtent::of(time, iteration).add_to(&mut digest.extents[self.run(row) as usize]);
            }
        }
    }

    /// Decides on each row by itself, keeps group rows and calls, and returns the places of the timer rows that are taken.
    fn sort_out(&self, digest: &mut Digest) -> Vec<usize> {
        let mut taken = Vec::new();
        for row in 0..self.rows.len() {
            let quality = &mut digest.quality;
            if !of_word(&self.ours, self.rows.job.codes[row]).unwrap_or(false) {
                quality.other_jobs += 1;
                continue;
            }
            let metric = of_word(&self.metrics, self.rows.metric_name.codes[row]).flatten();
            let Some(metric) = metric else {
                match self.rows.metric_name.get(row) {
                    Some(SUMMARY) => self.take_summary(row, digest),
                    Some(REPORT) => self.take_report(row, digest),
                    Some(RECORDER) => self.take_loss(row, digest),
                    _ => quality.other_metrics += 1,
                }
                continue;
            };
            let cells = self.cells(row);
            let fate = fate(&WANTED[metric], &cells, &self.bounds);
            quality.leave_out(metric, fate, 1);
            if metric == place::TIMERS
                && fate.tells_the_run()
                && let (Some(time), Some(iteration)) = (cells.time, cells.iteration)
            {
                RunExtent::of(time, iteration).add_to(&mut digest.extents[self.run(row) as usize]);
            }
            match (fate, metric) {
                (Fate::Taken, place::TIMERS) => taken.push(row),
                (Fate::Taken, place::GROUPS) => self.take_group(row, &cells, digest),
                (Fate::Taken, _) => self.take_calls(row, &cells, digest),
                _ => {}
            }
        }
        taken
    }

    fn cells(&self, row: usize) -> Cells {
        let subname = self.rows.subname.codes[row];
        Cells {
            time: self.rows.timestamp.get(row),
            rank: self.rows.rank.get(row),
            iteration: self.rows.iteration.get(row),
            named: subname != TextColumn::MISSING,
            listed: of_word(&self.listed, subname).unwrap_or(false),
            empty: self.rows.has_values() && self.rows.calls.get(row).is_empty(),
            value: self.rows.value.get(row),
        }
    }

    /// The run of a row.
    fn run(&self, row: usize) -> u32 {
        let runs = self.rows.rerun_uuid.as_ref();
        runs.map_or(self.nameless, |runs| runs.codes[row]).min(self.nameless)
    }

    /// The run of all rows, where there is one.
    fn only_run(&self) -> Option<u32> {
        match &self.rows.rerun_uuid {
            None => Some(self.nameless),
            Some(runs) => runs.is_uniform().then_some(0),
        }
    }

    fn take_group(&self, row: usize, cells: &Cells, digest: &mut Digest) {
        let (Some(position), Some(time), Some(rank)) = (cells.value.and_then(as_position), cells.time, cells.rank)
        else {
            digest.quality.unreadable_rows += 1;
            return;
        };
        digest.quality.group_rows += 1;
        digest.groups.push(GroupRow {
            group: self.rows.subname.codes[row],
            rank: rank as u32,
            run: self.run(row),
            time,
            position,
        });
    }

    /// A row of the whole job, which is about no rank.
    fn take_summary(&self, row: usize, digest: &mut Digest) {
        const AS: WantedMetric = WantedMetric {
            name: SUMMARY,
            windowed: true,
            lists: None,
            durations: false,
        };
        let cells = Cells {
            rank: Some(0),
            ..self.cells(row)
        };
        let values = self.rows.calls.get(row);
        if self.rows.subname.get(row) == Some(LOG_INTERVAL) {
            let interval = values
                .first()
                .copied()
                .and_then(as_position)
                .filter(|&interval| interval > 0);
            match interval {
                Some(interval) => digest.log_intervals.push((self.run(row), i64::from(interval))),
                None => digest.quality.unreadable_rows += 1,
            }
            return;
        }
        let fate = fate(&AS, &cells, &self.bounds);
        digest.quality.leave_out(place::TIMERS, fate, 1);
        let (Some(time), Some(iteration)) = (cells.time, cells.iteration) else {
            return;
        };
        if fate.tells_the_run() {
            RunExtent::of(time, iteration).add_to(&mut digest.extents[self.run(row) as usize]);
        }
        if fate != Fate::Taken {
            return;
        }
        let sound = |value: &f64| value.is_finite() && (0.0..=1e9).contains(value);
        let most = values.last().copied().filter(sound);
        let Some(most) = most else {
            digest.quality.missing_values += 1;
            return;
        };
        let least = values.first().copied().filter(|least| values.len() > 1 && sound(least));
        digest.summaries.push(SummaryRow {
            timer: self.rows.subname.codes[row],
            run: self.run(row),
            iteration,
            time,
            least: least.unwrap_or(f64::NAN),
            most,
        });
    }

    fn take_report(&self, row: usize, digest: &mut Digest) {
        let cells = self.cells(row);
        let rank = cells.rank.and_then(|rank| u32::try_from(rank).ok());
        let (Some(rank), Some(measure), Some(value)) = (rank, self.rows.subname.get(row), cells.value) else {
            digest.quality.unreadable_rows += 1;
            return;
        };
        digest.quality.report_rows += 1;
        let nodes = self.rows.node.as_ref();
        digest.reports.push(ReportedRank {
            measure: measure.to_owned(),
            rank,
            node: nodes
                .and_then(|nodes| nodes.get(row))
                .filter(|node| !node.is_empty())
                .map(str::to_owned),
            iteration: cells.iteration.unwrap_or_default(),
            value,
        });
    }

    fn take_loss(&self, row: usize, digest: &mut Digest) {
        let total = self.rows.rank.get(row).zip(self.rows.value.get(row));
        let loss = total.zip(self.rows.subname.get(row));
        match loss.and_then(|((rank, total), name)| Loss::of(self.run(row), rank, name, total)) {
            Some(loss) => digest.losses.push(loss),
            None => digest.quality.other_metrics += 1,
        }
    }

    /// Unlike timer rows those of calls say nothing of where a run began.
    fn take_calls(&self, row: usize, cells: &Cells, digest: &mut Digest) {
        let (Some(time), Some(rank), Some(iteration), true) =
            (cells.time, cells.rank, cells.iteration, self.rows.has_values())
        else {
            digest.quality.trace_rows_left_out += 1;
            return;
        };
        let kept = &mut digest.calls;
        kept.timer.push(self.rows.subname.codes[row]);
        kept.run.push(self.run(row));
        kept.rank.push(rank as u32);
        kept.iteration.push(iteration);
        kept.timestamp.push(time);
        push_durations(self.rows.calls.get(row), &mut kept.seconds);
        kept.ends.push(kept.seconds.len());
    }

    /// Keeps the columns of the timer rows that are taken, those of a timer together.
    fn keep(&self, taken: &Taken, digest: &mut Digest) {
        let rows = self.rows;
        // Of a row that is taken no cell is missing.
        fn same<T>(cell: T) -> T {
            cell
        }
        let codes = &rows.subname.codes;
        let timer = taken.of(Some(codes.as_slice()), |row| Some(codes[row]), same);
        let rank = taken.of(rows.rank.whole(), |row| rows.rank.get(row), |rank| rank as u32);
        let iteration = taken.of(rows.iteration.whole(), |row| rows.iteration.get(row), same);
        let time = taken.of(rows.timestamp.whole(), |row| rows.timestamp.get(row), same);
        let seconds = taken.of(rows.value.whole(), |row| rows.value.get(row), same);
        let only_run = self.only_run();
        let run_of = |kept: usize| only_run.unwrap_or_else(|| self.run(taken.place(kept)));
        let (step, steps) = code_steps(&iteration, run_of);
        digest.tallies = vec![StepTally::NONE; steps.len()];
        for (&step, &time) in step.iter().zip(&time) {
            let tally = &mut digest.tallies[step as usize];
            tally.rows += 1;
            tally.first_time = tally.first_time.min(time);
            tally.last_time = tally.last_time.max(time);
        }
        for (kept, (&rank, &time)) in rank.iter().zip(&time).enumerate() {
            let node = rows.node.as_ref().map(|nodes| nodes.codes[taken.place(kept)]);
            let node = node.filter(|&node| of_word(&self.is_node, node) == Some(true));
            digest.seen.note(run_of(kept), rank, time, node, &digest.node_words);
        }
        let (order, pieces) = by_timer(&timer, digest.timer_words.len());
        digest.rows = TimerRows {
            pieces,
            steps,
            rank: in_order(rank, &order),
            step: in_order(step, &order),
            time: Times::new(in_order(time, &order)),
            seconds: in_order(seconds, &order),
        };
    }
}

impl Taken {
    /// A column of the rows that are taken, from one without a gap where all are.
    fn of<T: Copy, U>(
        &self,
        whole: Option<&[T]>,
        cell: impl Fn(usize) -> Option<T>,
        as_kept: impl Fn(T) -> U,
    ) -> Vec<U> {
        match (self, whole) {
            (Self::All, Some(whole)) => whole.iter().map(|&cell| as_kept(cell)).collect(),
            (Self::All, None) => Vec::new(),
            (Self::Some(places), _) => places.iter().filter_map(|&row| cell(row)).map(as_kept).collect(),
        }
    }

    /// The place in the batch of a row that is taken.
    fn place(&self, kept: usize) -> usize {
        match self {
            Self::All => kept,
            Self::Some(places) => places[kept],
        }
    }
}

/// The least and the greatest of some numbers; `None` of none.
fn ends(numbers: &[i64]) -> Option<(Micros, Micros)> {
    let first = *numbers.first()?;
    let ends = |(least, most): (i64, i64), &number: &i64| (least.min(number), most.max(number));
    Some(numbers.iter().fold((first, first), ends))
}

/// What is known of the word that a code stands for; `None` of a missing cell.
fn of_word<T: Copy>(known: &[T], code: u32) -> Option<T> {
    known.get(code as usize).copied()
}

fn as_position(number: f64) -> Option<u32> {
    (number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number)).then_some(number as u32)
}

#[cfg(test)]
#[path = "batch_tests.rs"]
mod tests;

//! Lines -> rows: joins lines that a terminal wrapped, and puts what each says where it belongs.

use std::sync::Arc;

use memchr::memmem;

use super::builder::{At, Builder, Kind};
use super::clean::launcher_prefix;
use super::counts::Counts;
use super::deepspeed::DeepSpeed;
use super::grammar::{
    Iteration, IterationLine, Layout, Name, header, is_open_spread, iteration_line, logger_time, rank_row, spread_row,
    timer_name,
};
use super::nodes::NodeMap;
use super::one_line::{deepspeed_step, goes_on, is_deepspeed, is_one_line, one_line};
use super::placing::{Block, Held};
use super::prepare::{Prepared, PreparedChunk, Said};
use super::reports::Reports;
use super::setup::{Setup, is_open_world_line};
use super::steps::{Course, Steps};
use crate::contract::metrics::LOG_INTERVAL;
use crate::contract::timers::INTERVAL_TIME;
use crate::source::columns::Columns;
use crate::source::rows::Rows;
use crate::source::timestamp;

/// Lines that a terminal may have made of one.
const MOST_PIECES: usize = 12;
/// Bytes of a line that is put together.
const LONGEST_JOINED: usize = 1 << 14;

/// A pass over logs.
pub(super) struct Reading {
    name: String,
    pub(super) builder: Builder,
    pub(super) setup: Setup,
    /// The setup of the run at hand.
    pub(super) run_setup: Setup,
    pub(super) steps: Steps,
    pub(super) block: Option<Block>,
    pub(super) deepspeed: DeepSpeed,
    pub(super) reports: Reports,
    pub(super) held: Held,
    /// Rows before the block of a run's first line, while the second may take it back.
    pub(super) first_block: Option<usize>,
    /// A line whose rest may follow.
    open: Vec<u8>,
    pieces: usize,
    pub(super) counts: Counts,
}

impl Reading {
    pub fn new(name: &str, nodes: Option<Arc<NodeMap>>, columns: Columns) -> Self {
        let mut builder = Builder::new(columns, nodes);
        builder.name(name.to_owned(), "run-1".to_owned());
        Self {
            name: name.to_owned(),
            builder,
            setup: Setup::default(),
            run_setup: Setup::default(),
            steps: Steps::default(),
            block: None,
            deepspeed: DeepSpeed::default(),
            reports: Reports::default(),
            held: Held::default(),
            first_block: None,
            open: Vec::new(),
            pieces: 0,
            counts: Counts::default(),
        }
    }

    /// Takes the next line of a chunk.
    pub fn line(&mut self, chunk: &PreparedChunk, line: &Prepared) {
        self.counts.lines += 1;
        let text = chunk.text(line);
        if !self.open.is_empty() {
            return self.join(text);
        }
        match line.said {
            Said::Rank { rank, seconds } => self.rank_row(rank, seconds),
            Said::Spread { name, least, most } if self.block.as_ref().is_some_and(Block::is_spread) => {
                self.pieces = 0;
                if let Some(name) = text.get(usize::from(name.0)..usize::from(name.1)) {
                    self.spread(&String::from_utf8_lossy(name), Some(least), most);
                }
            }
            Said::Nothing if self.reports.is_open() => self.other(text),
            Said::Nothing => self.pieces = 0,
            Said::Spread { .. } | Said::Any => self.take(text, false),
        }
    }

    /// Puts a line behind one that was open, if it is its rest.
    fn join(&mut self, line: &[u8]) {
        let mut open = std::mem::take(&mut self.open);
        // What stands before every line is not in the middle of one.
        let prefix = &open[..launcher_prefix(&open)];
        let rest = if prefix.is_empty() {
            line
        } else {
            line.strip_prefix(prefix).unwrap_or(line)
        };
        let is_rest = !line.is_empty() && !begins_an_event(line) && is_rest_of(&open, rest);
        if !is_rest {
            self.take(&open, true);
            return self.take(line, false);
        }
        open.extend_from_slice(rest);
        self.pieces += 1;
        let last = self.pieces >= MOST_PIECES || open.len() >= LONGEST_JOINED;
        self.take(&open, last);
    }

    /// Takes a line; one whose rest may follow is kept back unless it is the `last` chance.
    fn take(&mut self, line: &[u8], last: bool) {
        if line.is_empty() {
            return;
        }
        if let Some((rank, seconds)) = rank_row(line) {
            return self.rank_row(rank, seconds);
        }
        let iteration = iteration_line(line);
        if !last && is_open(line, iteration.as_ref()) {
            if self.open.is_empty() {
                self.pieces = self.pieces.max(1);
            }
            self.open = line.to_vec();
            return;
        }
        self.pieces = 0;
        if let Some(Iteration::Whole(found)) = iteration {
            return self.iteration(&found);
        }
        if let Some(layout) = header(line) {
            self.reports.close();
            self.block = Some(Block::new(layout));
            return;
        }
        if let Some(times) = one_line(line) {
            if let Some(time) = logger_time(line) {
                self.steps.tick(time);
            }
            return if is_deepspeed(&times) {
                self.deepspeed_line(&times)
            } else {
                self.one_line(&times)
            };
        }
        if self.block.is_some() && self.row_of_block(line) {
            return;
        }
        self.other(line);
    }

    /// A row of the block at hand that is no rank's.
    fn row_of_block(&mut self, line: &[u8]) -> bool {
        let Some(block) = &mut self.block else { return false };
        match block.layout {
            Layout::Ranks => match timer_name(line) {
                Some(Name::Whole(name)) => {
                    self.begin_timer(name);
                    true
                }
                Some(Name::Cut) => {
                    block.lose_timer();
                    true
                }
                None => false,
            },
            Layout::Spread => match spread_row(line) {
                Some((name, least, most)) => {
                    self.spread(name, least, most);
                    true
                }
                None => false,
            },
        }
    }

    /// What is neither an iteration nor a timer.
    fn other(&mut self, line: &[u8]) {
        if (self.reports.is_open() || may_be_of_a_report(line))
            && let Some(rows) = self.reports.take(line)
        {
            return self.report(rows);
        }
        if let Some(setup) = Setup::of_world_line(line) {
            // Every node may print it.
            if self.setup.world != setup.world || self.steps.current.is_some() {
                self.steps.announce();
                self.block = None;
            }
            let before = std::mem::replace(&mut self.setup, setup);
            self.setup.log_interval = before.log_interval.filter(|_| self.steps.current.is_none());
            return;
        }
        if self.setup.take(line) {
            return;
        }
        if let Some(step) = deepspeed_step(line) {
            return self.deepspeed_number(step);
        }
        let text = super::measures::after(line, "datetime: ").and_then(|text| text.get(..19));
        let time = text.and_then(|text| timestamp::parse(std::str::from_utf8(text).ok()?));
        if let Some(time) = time {
            self.steps.tick(time);
        }
    }

    fn iteration(&mut self, line: &IterationLine) {
        self.reports.close();
        self.block = None;
        let differs = self.setup.differs(&self.run_setup);
        let course = self.steps.course(line, differs && self.steps.current.is_some());
        if course == Course::Repeated {
            self.counts.repeated_lines += 1;
            return;
        }
        if let Course::Begins { job } = course {
            self.end_run();
            self.steps.enter(line, course);
            self.begin_run(job);
        } else {
            self.steps.enter(line, course);
            if let Some(rows) = self.first_block.take()
                && self.steps.first_block_is_partial(&self.run_setup)
            {
                self.builder.truncate(rows);
                self.counts.partial_blocks += 1;
            }
        }
        self.counts.iteration_lines += 1;
        self.held.drop_all(&mut self.counts);
        self.builder.set_subname(INTERVAL_TIME);
        let at = self.here();
        self.builder
            .push(Kind::Summary, None, at, &[line.seconds, line.seconds]);
        self.flush_deepspeed(Some(line.iteration));
        if self.steps.is_first_line() {
            self.first_block = Some(self.builder.len());
        }
    }

    fn begin_run(&mut self, job: bool) {
        self.run_setup = self.setup.clone();
        let name = match self.steps.job {
            0 | 1 => self.name.clone(),
            number => format!("{}-{number}", self.name),
        };
        self.counts.jobs = self.counts.jobs.max(self.steps.job);
        self.counts.runs += 1;
        self.builder.name(name, format!("run-{}", self.steps.run));
        self.builder.set_world(self.run_setup.world);
        let _ = job;
        let at = self.here();
        for (group, positions) in self.run_setup.positions() {
            self.builder.set_subname(group);
            for (rank, position) in positions.into_iter().enumerate() {
                self.builder
                    .push(Kind::Group, Some(rank as u32), at, &[position as f64]);
            }
        }
    }

    /// Says of the run that ends how many iterations its lines are the means of.
    fn end_run(&mut self) {
        self.first_block = None;
        if self.steps.current.is_none() {
            return;
        }
        self.flush_deepspeed(None);
        let interval = self.steps.interval(&self.run_setup).unwrap_or(1);
        if interval > 1 {
            self.builder.set_subname(LOG_INTERVAL);
            let at = self.here();
            self.builder
                .push(Kind::Summary, None, at, &[interval as f64, interval as f64]);
        }
    }

    /// Where the rows at hand lie.
    pub(super) fn here(&self) -> At {
        At {
            iteration: self.steps.current.map_or(0, |step| step.iteration),
            time: match self.steps.current {
                Some(step) => Some(step.time),
                None => self.steps.known_time(),
            },
        }
    }

    /// Ends a file: its last line has no rest.
    pub fn end_of_file(&mut self) {
        let open = std::mem::take(&mut self.open);
        self.take(&open, true);
        self.block = None;
        self.reports.close();
    }

    /// Ends the last file.
    pub fn end(&mut self) {
        self.flush_deepspeed(None);
        if self.counts.iteration_lines == 0 {
            self.number_held_blocks();
        }
        self.end_run();
    }

    /// Whether a batch may end here.
    pub fn may_be_cut(&self) -> bool {
        self.first_block.is_none() || self.builder.len() > super::placing::MOST_HELD
    }

    /// Rows in the batch.
    pub fn rows(&self) -> usize {
        self.builder.len()
    }

    /// Takes the batch.
    pub fn take_rows(&mut self) -> Rows {
        self.first_block = None;
        self.builder.take()
    }

    /// Whether no line said anything of a step or a rank.
    pub fn saw_nothing(&self) -> bool {
        self.counts.iteration_lines == 0 && self.counts.times == 0 && self.counts.reported == 0
    }

    /// What was noticed, for the report.
    pub fn notes(&self) -> Vec<String> {
        self.counts.notes(self.steps.has_clock, &self.held)
    }
}

/// Whether a line begins something of its own, so that it is no rest of another.
fn begins_an_event(line: &[u8]) -> bool {
    let dotted = memmem::find(line, b" ....").is_some();
    rank_row(line).is_some()
        || header(line).is_some()
        || dotted
        || is_one_line(line)
        || iteration_line(line).is_some()
        || line.starts_with(b"[Rank ")
}

/// Whether the rest of a line may follow.
fn is_open(line: &[u8], iteration: Option<&Iteration>) -> bool {
    match iteration {
        Some(Iteration::Open) => return true,
        Some(Iteration::Whole(_)) => return false,
        None => {}
    }
    is_one_line(line) || is_open_spread(line) || is_open_world_line(line)
}

/// Whether a line can be the rest of an open one.
fn is_rest_of(open: &[u8], rest: &[u8]) -> bool {
    !is_one_line(open) || goes_on(open, rest)
}

/// Whether a line may be of a report, by a word that all of them have.
fn may_be_of_a_report(line: &[u8]) -> bool {
    [&b"/Rnk:"[..], b"^^^^ ", b"traggler", b"TRAGGLER", b" performance:"]
        .iter()
        .any(|word| memmem::find(line, word).is_some())
}

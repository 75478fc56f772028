//! Times -> rows of the step that they belong to, or of none.

use super::builder::{At, Kind};
use super::counts::Counts;
use super::grammar::Layout;
use super::one_line::{OneLine, is_of_rank_0};
use super::reading::Reading;
use super::reports::Reported;
use super::steps::Mend;
use crate::contract::timers::is_outside_of_steps;

/// Values that are kept back while no iteration line was seen.
pub(super) const MOST_HELD: usize = 1 << 22;

/// A timer block at hand.
#[derive(Debug)]
pub(super) struct Block {
    pub layout: Layout,
    /// What becomes of its values, once a timer of the step was seen.
    place: Option<Place>,
    /// The timer whose ranks follow, and whether it belongs to no step; none where its name was cut.
    timer: Option<(String, bool)>,
    last_rank: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    /// Of the current step; values times the factor.
    Step(f64),
    /// Of no known step.
    Nowhere,
    /// Part of the next block.
    Partial,
    /// Of a step that has no number yet.
    Held,
}

impl Block {
    pub fn new(layout: Layout) -> Self {
        Self {
            layout,
            place: None,
            timer: None,
            last_rank: None,
        }
    }

    /// Whether its rows have the least and the greatest.
    pub fn is_spread(&self) -> bool {
        self.layout == Layout::Spread
    }

    /// Forgets the timer: its name was cut, and ranks that follow must not go to the one before.
    pub fn lose_timer(&mut self) {
        self.timer = None;
    }
}

/// Times of a block.
type HeldTimes = Vec<(String, Option<u32>, Vec<f64>)>;

/// Blocks of a log in which no iteration line was seen yet.
#[derive(Debug, Default)]
pub(super) struct Held {
    pub blocks: Vec<HeldTimes>,
    values: usize,
    pub numbered: u64,
}

impl Held {
    pub fn push(&mut self, name: &str, rank: Option<u32>, values: &[f64], counts: &mut Counts) {
        if self.values >= MOST_HELD {
            counts.without_iteration += 1;
            return;
        }
        self.values += 1;
        if let Some(block) = self.blocks.last_mut() {
            block.push((name.to_owned(), rank, values.to_vec()));
        }
    }

    /// An iteration line came: what was before it is of a step that is not told.
    pub fn drop_all(&mut self, counts: &mut Counts) {
        counts.without_iteration += self.values as u64;
        (self.blocks, self.values) = (Vec::new(), 0);
    }
}

impl Reading {
    /// Names the timer of the ranks that follow.
    pub(super) fn begin_timer(&mut self, name: &str) {
        let outside = is_outside_of_steps(name);
        if !outside {
            self.place_block();
        }
        if let Some(block) = &mut self.block {
            block.timer = Some((name.to_owned(), outside));
            block.last_rank = None;
            self.builder.set_subname(name);
        }
    }

    pub(super) fn rank_row(&mut self, rank: u32, seconds: f64) {
        let Some(block) = &mut self.block else {
            self.counts.nameless += 1;
            return;
        };
        // Ranks ascend: one that does not belongs to another timer, whose name is lost.
        if block.last_rank.is_some_and(|last| rank <= last) {
            block.lose_timer();
        }
        block.last_rank = Some(rank);
        let Some((name, outside)) = &block.timer else {
            self.counts.nameless += 1;
            return;
        };
        if seconds.is_nan() {
            self.counts.nan += 1;
            return;
        }
        self.counts.times += 1;
        if *outside {
            self.counts.outside += 1;
            let at = self.here();
            return self.builder.push(Kind::Outside, Some(rank), at, &[seconds]);
        }
        match block.place {
            Some(Place::Step(factor)) => {
                let at = self.here();
                self.builder.push(Kind::Timer, Some(rank), at, &[seconds * factor]);
            }
            Some(Place::Held) => self.held.push(name, Some(rank), &[seconds], &mut self.counts),
            Some(Place::Partial) => {}
            Some(Place::Nowhere) | None => self.counts.without_iteration += 1,
        }
    }

    pub(super) fn spread(&mut self, name: &str, least: Option<f64>, most: f64) {
        let values = [least.unwrap_or(f64::NAN), most];
        if values.iter().all(|value| value.is_nan()) {
            self.counts.nan += 1;
            return;
        }
        let outside = is_outside_of_steps(name);
        if !outside {
            self.place_block();
        }
        self.put(name, outside, None, &values);
    }

    /// Appends the time of a line that is whole in itself.
    fn put(&mut self, name: &str, outside: bool, rank: Option<u32>, values: &[f64]) {
        self.counts.times += 1;
        let place = self.block.as_ref().and_then(|block| block.place);
        let kind = match (outside, rank) {
            (true, _) => Kind::Outside,
            (false, Some(_)) => Kind::Timer,
            (false, None) => Kind::Summary,
        };
        let at = self.here();
        let factor = match (outside, place) {
            (true, _) => {
                self.counts.outside += 1;
                1.0
            }
            (false, Some(Place::Step(factor))) => factor,
            (false, Some(Place::Held)) => return self.held.push(name, rank, values, &mut self.counts),
            (false, Some(Place::Partial)) => return,
            (false, Some(Place::Nowhere) | None) => {
                self.counts.without_iteration += 1;
                return;
            }
        };
        self.builder.set_subname(name);
        if factor == 1.0 {
            return self.builder.push(kind, rank, at, values);
        }
        let scaled: Vec<f64> = values.iter().map(|value| value * factor).collect();
        self.builder.push(kind, rank, at, &scaled);
    }

    /// Decides whose the block at hand is, at the first of its timers that belongs to a step.
    fn place_block(&mut self) {
        let Some(block) = &mut self.block else { return };
        if block.place.is_some() {
            return;
        }
        let place = match &mut self.steps.current {
            None => {
                self.held.blocks.push(Vec::new());
                Place::Held
            }
            Some(step) if step.has_block => Place::Nowhere,
            Some(step) => {
                step.has_block = true;
                match self.steps.mend(&self.run_setup) {
                    Mend::Keep => Place::Step(1.0),
                    Mend::Scale(factor) => {
                        self.counts.scaled_blocks += 1;
                        Place::Step(factor)
                    }
                    Mend::Drop => {
                        self.counts.partial_blocks += 1;
                        Place::Partial
                    }
                }
            }
        };
        block.place = Some(place);
    }

    /// One rank's own times, of Megatron-LM until August 2022.
    pub(super) fn one_line(&mut self, line: &OneLine) {
        let rank = if is_of_rank_0(line) {
            Some(0)
        } else {
            self.run_setup_or_setup().last_rank()
        };
        self.block = Some(Block::new(Layout::Spread));
        for &(name, seconds) in &line.times {
            if seconds.is_nan() {
                self.counts.nan += 1;
                continue;
            }
            let outside = is_outside_of_steps(name);
            if !outside {
                self.place_block();
            }
            self.put(name, outside, rank, &[seconds]);
        }
        self.block = None;
    }

    fn run_setup_or_setup(&self) -> &super::setup::Setup {
        if self.steps.current.is_some() {
            &self.run_setup
        } else {
            &self.setup
        }
    }

    /// No iteration line in the whole log: its blocks are numbered.
    pub(super) fn number_held_blocks(&mut self) {
        self.held.values = 0;
        for block in std::mem::take(&mut self.held.blocks)
            .into_iter()
            .filter(|block| !block.is_empty())
        {
            self.held.numbered += 1;
            let number = self.held.numbered as i64;
            self.steps.number(number);
            let at = self.here();
            for (name, rank, values) in block {
                let kind = if rank.is_some() { Kind::Timer } else { Kind::Summary };
                self.builder.set_subname(&name);
                self.builder.push(kind, rank, at, &values);
            }
        }
    }

    pub(super) fn report(&mut self, rows: Vec<Reported>) {
        for row in rows {
            self.counts.reported += 1;
            self.builder.set_subname(&row.measure);
            let here = self.here();
            let number = if self.steps.current.is_some() {
                here.iteration
            } else {
                self.reports.count as i64
            };
            let at = At {
                iteration: row.step.unwrap_or(number),
                time: here.time,
            };
            match &row.node {
                Some(node) => self.builder.push_on(Kind::Report, row.rank, at, &[row.value], node),
                None => self.builder.push(Kind::Report, Some(row.rank), at, &[row.value]),
            }
        }
    }
}

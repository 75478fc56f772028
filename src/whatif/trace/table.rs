//! From rows to a table: a column an operation and replica, step after step; what is lost is known and counted.

use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Serialize;

use super::kind::Kind;
use super::read::OpRows;
use crate::whatif::error::WhatIfError;

/// A step in which a worker lost more of its operations than this is left out, as long as others are whole.
const MOST_LOST: f64 = 0.05;
/// An operation that a worker lacks in this share of its steps is one that it does not run.
const ABSENT: f64 = 0.9;

/// One operation of a replica's step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Op {
    /// Pipeline stage.
    pub stage: usize,
    /// Type.
    pub kind: Kind,
    /// Number among those of its type on its worker.
    pub sequence: i32,
    /// Model chunk among the worker's; negative where it has none.
    pub chunk: i16,
    /// Model chunk among all; negative where it has none.
    pub global_chunk: i16,
    /// Start in the replica and step after which the schedule is built.
    pub start: f64,
    /// End there.
    pub end: f64,
}

/// What was read, used, and left out or made up.
#[derive(Debug, Default, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TraceQuality {
    /// Rows that stand for an operation.
    pub rows: u64,
    /// Operations of the replayed steps.
    pub operations: u64,
    /// Rows without a replica, stage, step, type or number.
    pub unplaced_rows: u64,
    /// Rows of types that the model does not know.
    pub unknown_rows: u64,
    /// Those types.
    pub unknown_types: Vec<String>,
    /// Rows of calls that post several transfers, each taken as one operation a transfer.
    pub fused_rows: u64,
    /// Rows whose start or duration is no number, infinite, or whose duration is negative: taken as lost.
    pub bad_rows: u64,
    /// Rows that repeat an operation; the first counts.
    pub repeated_rows: u64,
    /// Rows of operations that most replicas do not have.
    pub stray_rows: u64,
    /// Operations of the replayed steps that are lost; their durations were filled in.
    pub filled_operations: u64,
    /// Operations that a replica never runs while the others do: it is shorter; they take no time there.
    pub absent_operations: u64,
    /// Steps that were left out because a worker is missing in them or lost many of its operations.
    pub steps_left_out: Vec<i64>,
    /// Workers without any row in a step of those, or in all of them.
    pub missing_workers: u64,
}

/// The operations of all replicas and steps.
#[derive(Debug, Clone)]
pub struct OpTable {
    /// The operations of a replica, by stage, type and number.
    pub ops: Vec<Op>,
    /// The steps, ascending.
    pub steps: Vec<i64>,
    /// The replicas, ascending: a lane each.
    pub replicas: Vec<u32>,
    /// Number of stages.
    pub stages: usize,
    /// Rank of each worker, stage after stage; negative where it is not told.
    pub ranks: Vec<i32>,
    /// What was read and left out.
    pub quality: TraceQuality,
    /// Starts, `[step][operation][lane]`; NaN where lost.
    pub(super) start: Vec<f64>,
    /// Durations, likewise.
    pub(super) seconds: Vec<f64>,
    /// Whether a lane never runs an operation, `[operation][lane]`.
    pub(super) absent: Vec<bool>,
}

impl OpTable {
    /// Lays rows out; their order does not matter.
    ///
    /// # Errors
    /// No row that can be used.
    pub fn new(rows: OpRows) -> Result<Self, WhatIfError> {
        let mut quality = TraceQuality {
            rows: rows.len() as u64,
            unplaced_rows: rows.unplaced,
            unknown_rows: rows.unknown,
            unknown_types: rows.unknown_kinds.clone(),
            fused_rows: rows.fused,
            ..TraceQuality::default()
        };
        quality.unknown_types.sort();
        let (steps, step_of) = numbered(&rows.step);
        let (replicas, lane_of) = numbered(&rows.replica);
        let lanes = replicas.len();
        let (mut ops, op_of) = operations(&rows, steps.len() * lanes, &mut quality);
        if ops.is_empty() {
            return Err(WhatIfError::NothingToReplay(format!(
                "{} rows name none of the known types",
                rows.len() as u64 + rows.unplaced + rows.unknown
            )));
        }
        let stages = ops.iter().map(|op| op.stage + 1).max().unwrap_or(1);
        let mut ranks = vec![-1; stages * lanes];
        let size = ops.len() * lanes;
        let mut start = vec![f64::NAN; size * steps.len()];
        let mut seconds = start.clone();
        for row in 0..rows.len() {
            let op = op_of[row] as usize;
            if op_of[row] == STRAY {
                continue;
            }
            let lane = lane_of[row] as usize;
            let (from, took) = (rows.start[row], rows.seconds[row]);
            ranks[ops[op].stage * lanes + lane] = rows.rank[row];
            if !(from.is_finite() && took.is_finite() && took >= 0.0) {
                quality.bad_rows += 1;
                continue;
            }
            let cell = (step_of[row] as usize * ops.len() + op) * lanes + lane;
            if start[cell].is_nan() {
                (start[cell], seconds[cell]) = (from, took);
            } else {
                quality.repeated_rows += 1;
            }
        }
        drop(rows);
        let mut table = Self {
            absent: vec![false; size],
            steps,
            replicas,
            stages,
            ranks,
            quality,
            start,
            seconds,
            ops: Vec::new(),
        };
        table.find_absent(&ops);
        table.leave_out_steps(&ops);
        table.refer(&mut ops);
        table.ops = ops;
        let cells = table.seconds.len() as u64;
        table.quality.operations = cells - table.quality.absent_operations * table.steps.len() as u64;
        Ok(table)
    }

    /// Number of replicas.
    #[must_use]
    pub fn lanes(&self) -> usize {
        self.replicas.len()
    }

    /// Whether an operation is known in a step and lane.
    fn known(&self, ops: usize, step: usize, op: usize, lane: usize) -> bool {
        !self.start[(step * ops + op) * self.lanes() + lane].is_nan()
    }

    /// Marks what a replica never runs: it has fewer microbatches than the others. A type that a worker lacks
    /// altogether is lost, not absent.
    fn find_absent(&mut self, ops: &[Op]) {
        let lanes = self.lanes();
        let workers = self.stages * lanes;
        let mut steps_of = vec![0_usize; workers];
        let mut runs = vec![0_usize; ops.len() * lanes];
        let mut types = vec![false; workers * Kind::ALL.len()];
        let mut seen = vec![false; workers];
        for step in 0..self.steps.len() {
            seen.fill(false);
            for (number, op) in ops.iter().enumerate() {
                for lane in 0..lanes {
                    if self.known(ops.len(), step, number, lane) {
                        runs[number * lanes + lane] += 1;
                        seen[op.stage * lanes + lane] = true;
                    }
                }
            }
            for (steps, seen) in steps_of.iter_mut().zip(&seen) {
                *steps += usize::from(*seen);
            }
        }
        let rare = |op: &Op, number: usize, lane: usize| {
            let steps = steps_of[op.stage * lanes + lane];
            steps > 0 && (runs[number * lanes + lane] as f64) <= (1.0 - ABSENT) * steps as f64
        };
        for (number, op) in ops.iter().enumerate() {
            for lane in 0..lanes {
                let place = (op.stage * lanes + lane) * Kind::ALL.len() + op.kind as usize;
                types[place] |= !rare(op, number, lane);
            }
        }
        for (number, op) in ops.iter().enumerate() {
            for lane in 0..lanes {
                let place = (op.stage * lanes + lane) * Kind::ALL.len() + op.kind as usize;
                self.absent[number * lanes + lane] = types[place] && rare(op, number, lane);
            }
        }
        self.quality.absent_operations = self.absent.iter().filter(|absent| **absent).count() as u64;
    }

    /// Leaves out the steps in which a worker is missing or lost many operations, unless that is so in all.
    fn leave_out_steps(&mut self, ops: &[Op]) {
        let lanes = self.lanes();
        let size = ops.len() * lanes;
        let mut whole = Vec::new();
        let mut missing = 0;
        for step in 0..self.steps.len() {
            let mut of_worker = vec![(0_usize, 0_usize); self.stages * lanes];
            for (number, op) in ops.iter().enumerate() {
                for lane in 0..lanes {
                    if !self.absent[number * lanes + lane] {
                        let (all, lost) = &mut of_worker[op.stage * lanes + lane];
                        *all += 1;
                        *lost += usize::from(!self.known(ops.len(), step, number, lane));
                    }
                }
            }
            missing += of_worker.iter().filter(|(all, lost)| *all > 0 && all == lost).count() as u64;
            if of_worker
                .iter()
                .all(|&(all, lost)| lost as f64 <= MOST_LOST * all as f64)
            {
                whole.push(step);
            }
        }
        self.quality.missing_workers = missing;
        if !whole.is_empty() && whole.len() < self.steps.len() {
            for (to, &from) in whole.iter().enumerate() {
                for column in [&mut self.start, &mut self.seconds] {
                    column.copy_within(from * size..(from + 1) * size, to * size);
                }
            }
            self.start.truncate(whole.len() * size);
            self.seconds.truncate(whole.len() * size);
            let kept: Vec<i64> = whole.iter().map(|&step| self.steps[step]).collect();
            let all = std::mem::replace(&mut self.steps, kept);
            self.quality.steps_left_out = all.into_iter().filter(|step| !self.steps.contains(step)).collect();
        }
    }

    /// Takes the schedule from the first replica of the first step in which nothing is lost; where there is none from the
    /// fullest, with the median start of what it lacks.
    fn refer(&self, ops: &mut [Op]) {
        let lanes = self.lanes();
        let lost = |step: usize, lane: usize| {
            (0..ops.len())
                .filter(|&op| !self.known(ops.len(), step, op, lane))
                .count()
        };
        let mut best = (usize::MAX, 0, 0);
        'search: for step in 0..self.steps.len() {
            for lane in 0..lanes {
                best = best.min((lost(step, lane), step, lane));
                if best.0 == 0 {
                    break 'search;
                }
            }
        }
        let (_, step, lane) = best;
        let size = ops.len();
        for (number, op) in ops.iter_mut().enumerate() {
            let cell = (step * size + number) * lanes + lane;
            (op.start, op.end) = (self.start[cell], self.start[cell] + self.seconds[cell]);
            if op.start.is_nan() {
                let cells = (0..self.steps.len())
                    .flat_map(|step| (0..lanes).map(move |lane| (step * size + number) * lanes + lane))
                    .filter(|&cell| !self.start[cell].is_nan());
                let middle =
                    |of: &dyn Fn(usize) -> f64| crate::whatif::middle(cells.clone().map(of)).unwrap_or_default();
                op.start = middle(&|cell| self.start[cell]);
                op.end = middle(&|cell| self.start[cell] + self.seconds[cell]);
            }
        }
    }
}

/// The different values, ascending, and the place of each row's value among them.
fn numbered<T: Copy + Ord + std::hash::Hash>(values: &[T]) -> (Vec<T>, Vec<u32>) {
    let mut places: FxHashMap<T, u32> = FxHashMap::default();
    let mut last: Option<(T, u32)> = None;
    let mut order: Vec<T> = Vec::new();
    let mut of: Vec<u32> = Vec::with_capacity(values.len());
    for &value in values {
        let place = match last {
            Some((known, place)) if known == value => place,
            _ => *places.entry(value).or_insert_with(|| {
                order.push(value);
                order.len() as u32 - 1
            }),
        };
        last = Some((value, place));
        of.push(place);
    }
    let mut sorted = order.clone();
    sorted.sort_unstable();
    let moved: Vec<u32> = order
        .iter()
        .map(|value| sorted.binary_search(value).unwrap_or_default() as u32)
        .collect();
    for place in &mut of {
        *place = moved[*place as usize];
    }
    (sorted, of)
}

/// No operation: a row of one that most replicas do not have.
const STRAY: u32 = u32::MAX;

/// The operations of a replica's step, and which one each row is; `cells` is replicas times steps.
fn operations(rows: &OpRows, cells: usize, quality: &mut TraceQuality) -> (Vec<Op>, Vec<u32>) {
    let mut places: FxHashMap<u64, u32> = FxHashMap::default();
    let mut found: Vec<(u64, usize, usize)> = Vec::new();
    let mut of = Vec::with_capacity(rows.len());
    for row in 0..rows.len() {
        let key =
            u64::from(rows.stage[row]) << 40 | (rows.kind[row] as u64) << 32 | u64::from(rows.sequence[row] as u32);
        let place = *places.entry(key).or_insert_with(|| {
            found.push((key, row, 0));
            found.len() as u32 - 1
        });
        found[place as usize].2 += 1;
        of.push(place);
    }
    // Half of the replicas and steps in which the stage has rows at all: a missing stage takes nothing with it.
    let mut most: FxHashMap<u64, usize> = FxHashMap::default();
    for (key, _, count) in &found {
        let most = most.entry(key >> 40).or_default();
        *most = (*most).max(*count);
    }
    let usual = |key: u64, count: usize| 2 * count >= most.get(&(key >> 40)).copied().unwrap_or(cells).min(cells);
    let mut order: Vec<usize> = (0..found.len())
        .filter(|&place| usual(found[place].0, found[place].2))
        .collect();
    order.sort_unstable_by_key(|&place| found[place].0);
    let mut moved = vec![STRAY; found.len()];
    for (to, &from) in order.iter().enumerate() {
        moved[from] = to as u32;
    }
    for place in &mut of {
        *place = moved[*place as usize];
    }
    quality.stray_rows = of.iter().filter(|place| **place == STRAY).count() as u64;
    let ops = order
        .into_iter()
        .map(|place| {
            let row = found[place].1;
            Op {
                stage: usize::from(rows.stage[row]),
                kind: rows.kind[row],
                sequence: rows.sequence[row],
                chunk: rows.chunk[row],
                global_chunk: rows.global_chunk[row],
                start: f64::NAN,
                end: f64::NAN,
            }
        })
        .collect();
    (ops, of)
}

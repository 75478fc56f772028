//! Rows of a log, gathered into a batch. The words of a batch are looked up once, not once a row.

use std::sync::Arc;

use super::nodes::NodeMap;
use crate::contract::metrics::{GROUPS, OUTSIDE, REPORT, SUMMARY, TIMERS};
use crate::source::columns::Columns;
use crate::source::rows::{Rows, TextColumn};
use crate::source::timestamp::Micros;

/// The kinds of rows that a log gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A rank's time in a step.
    Timer,
    /// Least and greatest of the job in a step.
    Summary,
    /// A time that belongs to no step: set-up, evaluation, checkpoints.
    Outside,
    /// What a report says of a rank.
    Report,
    /// A rank's position in a group.
    Group,
}

const KINDS: [&str; 5] = [TIMERS, SUMMARY, OUTSIDE, REPORT, GROUPS];

/// The rank of rows about no rank.
pub(super) const NO_RANK: i64 = -1;

/// Where a row lies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct At {
    pub iteration: i64,
    /// When; `None` before the log tells any time.
    pub time: Option<Micros>,
}

pub(super) struct Builder {
    rows: Rows,
    columns: Columns,
    nodes: Option<Arc<NodeMap>>,
    world: Option<usize>,
    /// Code of each rank's node, where it was looked up.
    node_codes: Vec<u32>,
    job: (String, u32),
    run: (String, u32),
    kinds: [u32; KINDS.len()],
    subname: (String, u32),
}

/// A word that the batch does not hold yet.
const UNKNOWN: u32 = u32::MAX - 1;

impl Builder {
    pub fn new(columns: Columns, nodes: Option<Arc<NodeMap>>) -> Self {
        Self {
            rows: empty(columns),
            columns,
            nodes,
            world: None,
            node_codes: Vec::new(),
            job: (String::new(), UNKNOWN),
            run: (String::new(), UNKNOWN),
            kinds: [UNKNOWN; KINDS.len()],
            subname: (String::new(), UNKNOWN),
        }
    }

    /// Rows in the batch.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Names what follows.
    pub fn name(&mut self, job: String, run: String) {
        self.job = (job, UNKNOWN);
        self.run = (run, UNKNOWN);
    }

    /// Says how many ranks the job has: nodes are counted by it.
    pub fn set_world(&mut self, world: Option<usize>) {
        self.world = world;
        self.node_codes.clear();
    }

    /// Takes the batch.
    pub fn take(&mut self) -> Rows {
        self.job.1 = UNKNOWN;
        self.run.1 = UNKNOWN;
        self.subname.1 = UNKNOWN;
        self.kinds = [UNKNOWN; KINDS.len()];
        self.node_codes.clear();
        std::mem::replace(&mut self.rows, empty(self.columns))
    }

    /// Takes the last rows back.
    pub fn truncate(&mut self, rows: usize) {
        self.rows.truncate(rows);
    }

    /// Names the timer of the rows that follow.
    pub fn set_subname(&mut self, name: &str) {
        if self.subname.0 != name || self.subname.1 == UNKNOWN {
            self.subname.0.clear();
            self.subname.0.push_str(name);
            self.subname.1 = self.rows.subname.code(name);
        }
    }

    /// Appends a row of the timer named last. A NaN among the values is one that is not told.
    pub fn push(&mut self, kind: Kind, rank: Option<u32>, at: At, values: &[f64]) {
        let node = rank.map_or(TextColumn::MISSING, |rank| self.node_code(rank));
        self.push_with_node(kind, rank, at, values, node);
    }

    /// Appends a row of a rank whose node the log names.
    pub fn push_on(&mut self, kind: Kind, rank: u32, at: At, values: &[f64], node: &str) {
        let node = self
            .rows
            .node
            .as_mut()
            .map_or(TextColumn::MISSING, |nodes| nodes.code(node));
        self.push_with_node(kind, Some(rank), at, values, node);
    }

    fn push_with_node(&mut self, kind: Kind, rank: Option<u32>, at: At, values: &[f64], node: u32) {
        let rows = &mut self.rows;
        let known = |(word, code): &mut (String, u32), column: &mut TextColumn| {
            if *code == UNKNOWN {
                *code = column.code(word);
            }
            column.codes.push(*code);
        };
        known(&mut self.job, &mut rows.job);
        known(&mut self.subname, &mut rows.subname);
        if let Some(runs) = &mut rows.rerun_uuid {
            known(&mut self.run, runs);
        }
        let metric = &mut self.kinds[kind as usize];
        if *metric == UNKNOWN {
            *metric = rows.metric_name.code(KINDS[kind as usize]);
        }
        rows.metric_name.codes.push(*metric);
        rows.timestamp.push(at.time);
        rows.rank.push(Some(rank.map_or(NO_RANK, i64::from)));
        rows.iteration.push(Some(at.iteration));
        rows.value.push(values.first().copied().filter(|value| !value.is_nan()));
        let keeps = self.columns.all() || kind == Kind::Summary;
        rows.calls.push(values.iter().copied().filter(|_| keeps));
        if let Some(nodes) = &mut rows.node {
            nodes.codes.push(node);
        }
        if self.columns.all() {
            for column in [&mut rows.cluster, &mut rows.attributes].into_iter().flatten() {
                column.codes.push(TextColumn::MISSING);
            }
        }
    }

    fn node_code(&mut self, rank: u32) -> u32 {
        let Some(map) = &self.nodes else {
            return TextColumn::MISSING;
        };
        let place = rank as usize;
        if let Some(&code) = self.node_codes.get(place)
            && code != UNKNOWN
        {
            return code;
        }
        let name = map.node(rank, self.world);
        let code = match (name, &mut self.rows.node) {
            (Some(name), Some(nodes)) => nodes.code(&name),
            _ => TextColumn::MISSING,
        };
        // What is no rank of any job is looked up each time.
        if place < 1 << 20 {
            if self.node_codes.len() <= place {
                self.node_codes.resize(place + 1, UNKNOWN);
            }
            self.node_codes[place] = code;
        }
        code
    }
}

fn empty(columns: Columns) -> Rows {
    let stored = || columns.all().then(TextColumn::default);
    Rows {
        node: Some(TextColumn::default()),
        rerun_uuid: Some(TextColumn::default()),
        cluster: stored(),
        attributes: stored(),
        ..Rows::default()
    }
}

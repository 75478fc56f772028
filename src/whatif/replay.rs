//! The engine: operations with durations, who waits for whom, and who leaves together; played through in columns.
//!
//! A [`Program`] is the work of one replica in one step. It is played for many replicas at once: a time is a row with
//! one number a *lane* (replica), so that each operation is a handful of loops over plain numbers. No operation is a
//! struct where millions of them are played.
//!
//! Cost: `O((operations + waits) x lanes)` a step. Every step and every scenario is independent of the others.

use super::error::WhatIfError;

/// Number of an operation in its program.
pub type Node = u32;

/// What the operations take, when a program is played.
pub trait Durations {
    /// Adds what an operation takes to the times at which it starts, one a lane. In a rendezvous this is the transfer
    /// alone: the waiting comes out of the program.
    fn add(&self, node: usize, times: &mut [f64]);

    /// Adds the delay with which an operation starts after everything that it waits for is over.
    fn delay(&self, _node: usize, _times: &mut [f64]) {}
}

/// Which lanes meet in a collective over replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lanes {
    /// All of them: one job.
    Together,
    /// Lane `i` and lane `i + lanes / 2`: as many jobs as half the lanes, of two replicas each.
    Pairs,
}

/// Operations that start together: a rendezvous, or one alone.
#[derive(Debug, Clone, Copy)]
struct Group {
    begin: u32,
    end: u32,
    /// Over all replicas too.
    across: bool,
}

/// The work of one replica in one step, in an order in which it can be played.
#[derive(Debug, Clone)]
pub struct Program {
    /// Where the operations that each one waits for begin in `waits`.
    begins: Vec<u32>,
    waits: Vec<Node>,
    groups: Vec<Group>,
    members: Vec<Node>,
    /// The step is over with the last of these.
    lasts: Vec<Node>,
}

/// Collects the parts of a [`Program`].
#[derive(Debug, Clone, Default)]
pub struct Builder {
    waits: Vec<Vec<Node>>,
    groups: Vec<(Vec<Node>, bool)>,
}

impl Builder {
    /// A program of so many operations, none of which waits yet.
    #[must_use]
    pub fn new(nodes: usize) -> Self {
        Self {
            waits: vec![Vec::new(); nodes],
            groups: Vec::new(),
        }
    }

    /// Adds an operation and gives its number.
    pub fn push(&mut self) -> usize {
        self.waits.push(Vec::new());
        self.waits.len() - 1
    }

    /// `node` starts after `earlier` is over.
    pub fn after(&mut self, node: usize, earlier: usize) {
        let waits = &mut self.waits[node];
        if !waits.contains(&(earlier as Node)) {
            waits.push(earlier as Node);
        }
    }

    /// Each of the operations starts after the one before is over.
    pub fn chain(&mut self, nodes: &[usize]) {
        for pair in nodes.windows(2) {
            self.after(pair[1], pair[0]);
        }
    }

    /// The operations are one rendezvous: each ends its own transfer after the last of them has started. `across` all
    /// replicas, or within each. An operation takes part in one rendezvous at most.
    pub fn rendezvous(&mut self, nodes: &[usize], across: bool) {
        self.groups
            .push((nodes.iter().map(|&node| node as Node).collect(), across));
    }

    /// Whoever waits for one of the two waits for the other too: one call posted both.
    pub fn fuse(&mut self, one: usize, other: usize) {
        let (one, other) = (one as Node, other as Node);
        for waits in &mut self.waits {
            for (known, missing) in [(one, other), (other, one)] {
                if waits.contains(&known) && !waits.contains(&missing) {
                    waits.push(missing);
                }
            }
        }
    }

    /// Puts the operations into an order in which each comes after those that it waits for.
    ///
    /// # Errors
    /// Operations that wait for each other in a circle.
    pub fn finish(self, lasts: &[usize]) -> Result<Program, WhatIfError> {
        let nodes = self.waits.len();
        let mut group_of = vec![usize::MAX; nodes];
        let mut groups = self.groups;
        for (number, (members, _)) in groups.iter().enumerate() {
            for &member in members {
                group_of[member as usize] = number;
            }
        }
        for (node, group) in group_of.iter_mut().enumerate() {
            if *group == usize::MAX {
                *group = groups.len();
                groups.push((vec![node as Node], false));
            }
        }
        let mut successors = vec![Vec::new(); groups.len()];
        let mut open = vec![0_usize; groups.len()];
        for (node, waits) in self.waits.iter().enumerate() {
            for &earlier in waits {
                successors[group_of[earlier as usize]].push(group_of[node]);
                open[group_of[node]] += 1;
            }
        }
        let mut order: Vec<usize> = (0..groups.len()).filter(|&group| open[group] == 0).collect();
        let mut next = 0;
        while let Some(&group) = order.get(next) {
            next += 1;
            for &after in &successors[group] {
                open[after] -= 1;
                if open[after] == 0 {
                    order.push(after);
                }
            }
        }
        if order.len() < groups.len() {
            let stuck = open.iter().zip(&groups).filter(|(open, _)| **open > 0);
            return Err(WhatIfError::Circle {
                operations: stuck.map(|(_, (members, _))| members.len()).sum(),
            });
        }
        let mut program = Program {
            begins: Vec::with_capacity(nodes + 1),
            waits: Vec::new(),
            groups: Vec::with_capacity(order.len()),
            members: Vec::with_capacity(nodes),
            lasts: lasts.iter().map(|&node| node as Node).collect(),
        };
        for waits in &self.waits {
            program.begins.push(program.waits.len() as u32);
            program.waits.extend(waits);
        }
        program.begins.push(program.waits.len() as u32);
        for group in order {
            let (members, across) = &groups[group];
            let begin = program.members.len() as u32;
            program.members.extend(members);
            let end = program.members.len() as u32;
            program.groups.push(Group {
                begin,
                end,
                across: *across,
            });
        }
        Ok(program)
    }
}

impl Program {
    /// Number of operations.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.begins.len() - 1
    }

    /// What an operation waits for.
    #[must_use]
    pub fn waits(&self, node: usize) -> &[Node] {
        &self.waits[self.begins[node] as usize..self.begins[node + 1] as usize]
    }

    /// The operations that start together, with whether all replicas take part.
    pub fn groups(&self) -> impl Iterator<Item = (&[Node], bool)> {
        self.groups
            .iter()
            .map(|group| (&self.members[group.begin as usize..group.end as usize], group.across))
    }

    /// Plays a step; `ends` gets when each operation is over, a row a lane, operation after operation.
    pub fn play(&self, lanes: usize, meeting: Lanes, durations: &impl Durations, ends: &mut Vec<f64>) {
        // Every row is written before it is read: an operation comes after those that it waits for.
        ends.resize(self.nodes() * lanes, 0.0);
        let mut row = vec![0.0; lanes];
        let mut together = vec![0.0; lanes];
        for (members, across) in self.groups() {
            if let ([node], false) = (members, across) {
                let node = *node as usize;
                self.start(node, lanes, ends, durations, &mut row);
                durations.add(node, &mut row);
                ends[node * lanes..(node + 1) * lanes].copy_from_slice(&row);
                continue;
            }
            together.fill(f64::NEG_INFINITY);
            for &node in members {
                self.start(node as usize, lanes, ends, durations, &mut row);
                latest(&mut together, &row);
            }
            if across {
                meet(meeting, &mut together);
            }
            for &node in members {
                let node = node as usize;
                row.copy_from_slice(&together);
                durations.add(node, &mut row);
                ends[node * lanes..(node + 1) * lanes].copy_from_slice(&row);
            }
        }
    }

    /// When an operation can start, on every lane.
    fn start(&self, node: usize, lanes: usize, ends: &[f64], durations: &impl Durations, row: &mut [f64]) {
        row.fill(0.0);
        for &earlier in self.waits(node) {
            let earlier = earlier as usize;
            latest(row, &ends[earlier * lanes..(earlier + 1) * lanes]);
        }
        durations.delay(node, row);
    }

    /// When the step of each lane is over, from what [`Program::play`] gave.
    pub fn over(&self, lanes: usize, ends: &[f64], row: &mut [f64]) {
        row.fill(0.0);
        for &last in &self.lasts {
            let last = last as usize;
            latest(row, &ends[last * lanes..(last + 1) * lanes]);
        }
    }

    /// Length of the step of one job: plays it and takes the last end of all lanes.
    pub fn step(&self, lanes: usize, durations: &impl Durations, ends: &mut Vec<f64>) -> f64 {
        self.play(lanes, Lanes::Together, durations, ends);
        let mut over = vec![0.0; lanes];
        self.over(lanes, ends, &mut over);
        over.into_iter().fold(0.0, f64::max)
    }
}

fn latest(row: &mut [f64], other: &[f64]) {
    for (time, other) in row.iter_mut().zip(other) {
        // Not `f64::max`: it takes care of NaN, which no time is, and is not one instruction.
        *time = if *other > *time { *other } else { *time };
    }
}

fn meet(meeting: Lanes, row: &mut [f64]) {
    match meeting {
        Lanes::Together => {
            let last = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            row.fill(last);
        }
        Lanes::Pairs => {
            let (one, other) = row.split_at_mut(row.len() / 2);
            for (one, other) in one.iter_mut().zip(other) {
                let last = one.max(*other);
                (*one, *other) = (last, last);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One number an operation and lane.
    struct Table(Vec<Vec<f64>>);

    impl Durations for Table {
        fn add(&self, node: usize, times: &mut [f64]) {
            for (time, seconds) in times.iter_mut().zip(&self.0[node]) {
                *time += seconds;
            }
        }
    }

    #[test]
    fn a_rendezvous_waits_for_its_last_member() {
        // Two workers compute (0, 1) and meet (2, 3); replicas meet in 4.
        let mut builder = Builder::new(5);
        builder.after(2, 0);
        builder.after(3, 1);
        builder.after(4, 3);
        builder.rendezvous(&[2, 3], false);
        builder.rendezvous(&[4], true);
        let program = builder.finish(&[2, 4]).unwrap();
        let durations = Table(vec![
            vec![1.0, 2.0],
            vec![3.0, 1.0],
            vec![0.5, 0.5],
            vec![0.25, 0.5],
            vec![1.0, 1.0],
        ]);
        let mut ends = Vec::new();
        assert_eq!(program.step(2, &durations, &mut ends), 4.25);
        assert_eq!(ends, [1.0, 2.0, 3.0, 1.0, 3.5, 2.5, 3.25, 2.5, 4.25, 4.25]);
    }

    #[test]
    fn pairs_of_lanes_are_jobs_of_their_own() {
        let mut builder = Builder::new(1);
        builder.rendezvous(&[0], true);
        let program = builder.finish(&[0]).unwrap();
        struct Late;
        impl Durations for Late {
            fn add(&self, _: usize, _: &mut [f64]) {}
            fn delay(&self, _: usize, times: &mut [f64]) {
                times.copy_from_slice(&[1.0, 2.0, 5.0, 0.5]);
            }
        }
        let mut ends = Vec::new();
        program.play(4, Lanes::Pairs, &Late, &mut ends);
        assert_eq!(ends, [5.0, 2.0, 5.0, 2.0]);
        program.play(4, Lanes::Together, &Late, &mut ends);
        assert_eq!(ends, [5.0; 4]);
    }

    #[test]
    fn a_circle_is_refused() {
        let mut builder = Builder::new(2);
        builder.after(0, 1);
        builder.after(1, 0);
        assert!(matches!(
            builder.finish(&[0]),
            Err(WhatIfError::Circle { operations: 2 })
        ));
    }
}

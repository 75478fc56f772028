//! A pipeline's program: from the lists of its stages to operations that wait for each other and meet.

use std::ops::Range;

use super::{Direction, Half, Op};
use crate::whatif::error::WhatIfError;
use crate::whatif::replay::Builder;

/// What an operation of the program is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A pass of a stage, by its number in the lists.
    Pass {
        /// The stage.
        stage: usize,
        /// Which way.
        direction: Direction,
        /// Its number.
        pass: usize,
    },
    /// One end of a transfer.
    End {
        /// The transfer.
        half: Half,
        /// Whether it is the sender's.
        sent: bool,
    },
    /// A call that has nothing to send or receive.
    Nothing,
}

/// What the lists make; more may be added before the program is finished.
#[derive(Debug, Clone)]
pub struct Flow {
    /// The operations with who waits for whom, and the transfers as rendezvous.
    pub builder: Builder,
    /// What each operation is.
    pub parts: Vec<Part>,
    /// The operations of each stage's entries, `[stage][entry]`: several where a call posts several transfers.
    pub entries: Vec<Vec<Range<usize>>>,
    /// The two ends of each transfer, the sender's first, link by link, forward before backward.
    pub transfers: Vec<(Half, [usize; 2])>,
}

impl Flow {
    /// Puts the lists of all stages together; `together` where the lanes of a stage enter each pass together.
    ///
    /// # Errors
    /// A transfer of which one end is missing.
    pub fn new(lists: &[Vec<Op>], together: bool) -> Result<Self, WhatIfError> {
        let mut builder = Builder::default();
        let mut parts = Vec::new();
        let mut ends = Vec::<(Half, bool, usize)>::new();
        let mut entries = Vec::with_capacity(lists.len());
        for (stage, ops) in lists.iter().enumerate() {
            let mut ranges: Vec<Range<usize>> = Vec::with_capacity(ops.len());
            for op in ops {
                let begin = parts.len();
                match *op {
                    Op::Forward(pass) => parts.push(Part::Pass {
                        stage,
                        direction: Direction::Forward,
                        pass,
                    }),
                    Op::Backward(pass) => parts.push(Part::Pass {
                        stage,
                        direction: Direction::Backward,
                        pass,
                    }),
                    Op::Exchange { sends, recvs, .. } => {
                        for (halves, sent) in [(sends, true), (recvs, false)] {
                            for half in halves.into_iter().flatten() {
                                ends.push((half, sent, parts.len()));
                                parts.push(Part::End { half, sent });
                            }
                        }
                        if parts.len() == begin {
                            parts.push(Part::Nothing);
                        }
                    }
                }
                for node in begin..parts.len() {
                    builder.push();
                    for earlier in ranges.last().cloned().unwrap_or_default() {
                        builder.after(node, earlier);
                    }
                }
                if together && !matches!(op, Op::Exchange { .. }) {
                    builder.rendezvous(&[begin], true);
                }
                ranges.push(begin..parts.len());
            }
            entries.push(ranges);
        }
        ends.sort_by_key(|(half, sent, _)| (half.link, half.direction as usize, half.microbatch, !*sent));
        let mut transfers = Vec::with_capacity(ends.len() / 2);
        for pair in ends.chunk_by(|one, other| one.0 == other.0) {
            let [(half, true, send), (_, false, recv)] = *pair else {
                return Err(WhatIfError::Circle { operations: pair.len() });
            };
            builder.rendezvous(&[send, recv], false);
            transfers.push((half, [send, recv]));
        }
        Ok(Self {
            builder,
            parts,
            entries,
            transfers,
        })
    }

    /// The operations with which a stage is done.
    #[must_use]
    pub fn lasts(&self, stage: usize) -> Range<usize> {
        self.entries[stage].last().cloned().unwrap_or_default()
    }
}

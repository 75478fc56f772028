//! Where each rank stands in the job's parallel groups: from its rows, from flags, else inferred from its timers.

mod communicators;
mod flags;
mod inferred;
mod stated;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::timer_table::TimerTable;
pub use communicators::{Communicator, Group};
pub use flags::{TopologyError, TopologyFlags};
use stated::Positions;

/// Where one rank stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Pipeline stage.
    pub stage: u32,
    /// Replica: which pipeline (PP group).
    pub pipeline: u32,
    /// Number among the ranks of the same (stage, pipeline): tensor- and context-parallel peers. Peers of one number
    /// in neighbouring stages send to each other.
    pub member: u32,
}

/// How the topology is known.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum TopologyOrigin {
    /// The job's `megatron_parallel_group_rank` rows.
    Rows,
    /// The caller's flags.
    Flags,
    /// Which timers fire where, and which ranks are equally fast.
    Inferred {
        /// 0..1: share of ranks and of neighbours that fit, less for few iterations.
        sure: f64,
        /// From what, in words.
        from: String,
    },
    /// Nothing known: one stage, every rank its own pipeline.
    Unknown,
}

/// Sizes of the parallel groups and each rank's place in them.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Topology {
    /// Group name (`pp`, `dp`, `tp`, ...) -> ranks in such a group. An inferred `tp` counts context-parallel peers too.
    pub sizes: BTreeMap<String, u32>,
    /// How it is known.
    pub origin: TopologyOrigin,
    /// Place of each rank, parallel to the job's ranks; no two are the same.
    #[serde(skip)]
    pub places: Vec<Place>,
}

/// A topology with the number of ranks whose place had to be made up.
#[derive(Debug)]
pub(super) struct Resolved {
    pub topology: Topology,
    pub not_placed: u64,
}

impl Topology {
    /// Number of pipeline stages.
    #[must_use]
    pub fn pipeline_stages(&self) -> u32 {
        self.sizes.get("pp").copied().unwrap_or(1)
    }

    /// Number of pipeline stages that rows or flags state: what the classic rules go by; 1 where it is inferred.
    #[must_use]
    pub fn stated_pipeline_stages(&self) -> u32 {
        match self.origin {
            TopologyOrigin::Rows | TopologyOrigin::Flags => self.pipeline_stages(),
            TopologyOrigin::Inferred { .. } | TopologyOrigin::Unknown => 1,
        }
    }

    /// Pipeline stage of the rank at a position in the job's ranks; `None` where stages are not known.
    #[must_use]
    pub fn stage(&self, rank: usize) -> Option<u32> {
        self.sizes
            .contains_key("pp")
            .then(|| self.places.get(rank).map(|place| place.stage))?
    }

    /// The topology of `ranks` (ascending) from (group, rank, position) rows, flags and timer tables, in this order
    /// of trust.
    ///
    /// # Errors
    /// Flags that contradict the rows or do not fit the number of ranks.
    pub(super) fn resolve(
        ranks: &[u32],
        positions: impl Iterator<Item = (String, u32, u32)>,
        flags: &TopologyFlags,
        timers: &[TimerTable],
    ) -> Result<Resolved, TopologyError> {
        if ranks.is_empty() {
            return Ok(Resolved {
                topology: Self::unknown(ranks),
                not_placed: 0,
            });
        }
        let rows = Positions::new(positions);
        if rows.is_empty() && flags.is_empty() {
            let mut topology = inferred::infer(ranks, timers).unwrap_or_else(|| Self::unknown(ranks));
            // Groups without an axis of the grid, such as `ep`.
            topology.sizes.extend(rows.sizes);
            return Ok(Resolved {
                topology,
                not_placed: 0,
            });
        }
        stated::resolve(ranks, rows, flags)
    }

    pub(super) fn unknown(ranks: &[u32]) -> Self {
        let alone = |pipeline| Place {
            stage: 0,
            pipeline,
            member: 0,
        };
        Self {
            sizes: BTreeMap::new(),
            origin: TopologyOrigin::Unknown,
            places: (0..).map(alone).take(ranks.len()).collect(),
        }
    }
}

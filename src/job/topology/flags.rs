//! What the caller states of the parallel groups, and how it can fail to fit the job.

use thiserror::Error;

use crate::contract::rank_order::{DEFAULT_ORDER, Layout, ORDERS, OrderError, Sizes};

/// Sizes and order of the parallel groups as the caller states them; `None` where it does not.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct TopologyFlags {
    /// Tensor-parallel size.
    pub tp: Option<u32>,
    /// Pipeline-parallel size.
    pub pp: Option<u32>,
    /// Data-parallel size.
    pub dp: Option<u32>,
    /// Context-parallel size.
    pub cp: Option<u32>,
    /// Expert-parallel size; it belongs to a grid of its own and moves no rank.
    pub ep: Option<u32>,
    /// Axes in the rank number, fastest first.
    pub order: Option<String>,
}

impl TopologyFlags {
    /// Whether nothing is stated.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Checks the words of the order.
    ///
    /// # Errors
    /// An unknown or repeated axis.
    pub fn check_order(&self) -> Result<(), OrderError> {
        let ones = Sizes {
            tp: 1,
            cp: 1,
            ep: 1,
            dp: 1,
            pp: 1,
        };
        let order = self.order.as_deref().unwrap_or(DEFAULT_ORDER);
        Layout::new(order, ones).map(|_| ())
    }

    /// The stated sizes with their group names.
    pub(super) fn sizes(&self) -> [(&'static str, Option<u32>); 5] {
        [
            ("tp", self.tp),
            ("cp", self.cp),
            ("dp", self.dp),
            ("pp", self.pp),
            ("ep", self.ep),
        ]
    }
}

/// Topology flags that do not fit the job.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TopologyError {
    /// A size that the rows contradict.
    #[error("{group} {flag} was asked for, but the job's megatron_parallel_group_rank rows say {group} {rows}")]
    Size {
        /// The group.
        group: &'static str,
        /// Its size by the flag.
        flag: u32,
        /// Its size by the rows.
        rows: u32,
    },
    /// A rank that the rows place elsewhere.
    #[error(
        "the order {order} puts rank {rank} at {group} {flags} but the job's megatron_parallel_group_rank \
         rows say {group} {rows}"
    )]
    Position {
        /// The order.
        order: String,
        /// The first such rank.
        rank: u32,
        /// The group.
        group: &'static str,
        /// Its position by the flags.
        flags: u32,
        /// Its position by the rows.
        rows: u32,
    },
    /// Sizes that do not make up the number of ranks.
    #[error("{sizes} does not fit the job's {world} ranks (0 to the last that wrote rows)")]
    World {
        /// The sizes with their product.
        sizes: String,
        /// Number of ranks, by the last of them.
        world: u64,
    },
    /// A data-parallel size alone where several sizes could make up for the rest.
    #[error("dp {dp} leaves {rest} ranks to each replica of the job's {world}; tp or pp is needed too")]
    Open {
        /// The stated size.
        dp: u32,
        /// Ranks of a replica, over its context-parallel size.
        rest: u64,
        /// Number of ranks, by the last of them.
        world: u64,
    },
    /// An order or expert-parallel size for a job of which no size is known.
    #[error("an order and ep place no rank by themselves; tp, pp, dp or cp is needed too")]
    NoSizes,
    /// An order that does not fit the sizes.
    #[error("the order does not fit: {0} (allowed: {allowed})", allowed = ORDERS)]
    Order(#[from] OrderError),
}

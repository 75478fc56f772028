//! The flags that state a job's parallel groups.

use clap::{Args, value_parser};

use super::exit::ArgumentError;
use crate::contract::rank_order::ORDERS;
use crate::job::TopologyFlags;

/// Sizes of the parallel groups, as typed.
#[derive(Debug, Args)]
pub(super) struct TopologyArgs {
    /// Tensor-parallel size [default: 1]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    tp: Option<u32>,
    /// Pipeline-parallel size (stages) [default: 1]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    pp: Option<u32>,
    /// Data-parallel size [default: number of ranks / (tp cp pp)]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    dp: Option<u32>,
    /// Context-parallel size [default: 1]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    cp: Option<u32>,
    /// Expert-parallel size; experts lie across the other axes and move no rank
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    ep: Option<u32>,
    /// Order of the axes in the rank number, fastest first; with --use-tp-pp-dp-mapping it is tp-cp-ep-pp-dp
    /// [default: tp-cp-ep-dp-pp, Megatron-LM's own]
    #[arg(long, value_name = "AXES")]
    order: Option<String>,
}

impl TopologyArgs {
    /// The checked flags; whether they fit the job is for [`crate::job::load`] to say.
    ///
    /// # Errors
    /// An order with an unknown or repeated axis.
    pub(super) fn flags(&self) -> Result<TopologyFlags, ArgumentError> {
        let flags = TopologyFlags {
            tp: self.tp,
            pp: self.pp,
            dp: self.dp,
            cp: self.cp,
            ep: self.ep,
            order: self.order.clone(),
        };
        flags
            .check_order()
            .map_err(|error| ArgumentError::new("--order", format!("{error} (allowed: {ORDERS})")))?;
        Ok(flags)
    }
}

//! Megatron-LM's communicators: which ranks each of its collectives waits for.
//!
//! | timers | group |
//! |---|---|
//! | gradients' reduction, parameters' gathering | data-parallel with context-parallel: a stage's ranks of one tensor-parallel position |
//! | embedding's gradients | first and last stage of each pipeline's lane |
//! | gradients that tensor-parallel peers share | tensor-parallel |
//! | conditional embedders' gradients | all stages of a pipeline's lane |
//! | gradients' norm | model-parallel (a pipeline); everybody with the distributed optimizer |
//!
//! Expert parameters are reduced over groups of their own inside the same timer (the ranks of a stage with the same
//! expert- and expert-tensor-parallel position). A rank leaves the timer when both are done, so that lanes which an
//! expert group joins wait for each other: they count as one group. With several distributed-optimizer instances the
//! reduction goes over part of a group and then between the parts, which makes the members of the whole wait for
//! each other all the same; the gathering stays inside the parts ([`Topology::instances`]).
//!
//! Source: `megatron/core/parallel_state.py` (`initialize_model_parallel`), `distributed/finalize_model_grads.py`.

use std::collections::BTreeMap;

use super::{Topology, TopologyOrigin};
use crate::contract::timers::{
    BACKWARD_EMBEDDING_ALL_REDUCE, COLLECTIVES, CONDITIONAL_EMBEDDER_GRADS_ALL_REDUCE, EMBEDDING_GRADS_ALL_REDUCE,
    LAYERNORM_GRADS_ALL_REDUCE, NON_TENSOR_PARALLEL_GRADS_ALL_REDUCE, OPTIMIZER_CLIP_MAIN_GRAD,
};

/// A kind of communicator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Communicator {
    /// Data- with context-parallel peers of a stage, and those whom their expert groups join to them.
    DataParallel,
    /// Ranks of a stage with the same experts: they reduce the experts' gradients.
    ExpertDataParallel,
    /// First and last stage.
    Embedding,
    /// The ranks that share each layer.
    TensorParallel,
    /// All stages of a lane.
    Pipeline,
    /// All ranks of a pipeline, which hold one copy of the model.
    ModelParallel,
    /// Everybody.
    World,
}

impl Communicator {
    /// The communicator of a collective's timer; `None` for other timers. With the distributed optimizer the gradients'
    /// norm is summed up over everybody.
    #[must_use]
    pub fn of_timer(timer: &str, distributed_optimizer: bool) -> Option<Self> {
        match timer {
            timer if COLLECTIVES.contains(&timer) => Some(Self::DataParallel),
            EMBEDDING_GRADS_ALL_REDUCE | BACKWARD_EMBEDDING_ALL_REDUCE => Some(Self::Embedding),
            NON_TENSOR_PARALLEL_GRADS_ALL_REDUCE | LAYERNORM_GRADS_ALL_REDUCE => Some(Self::TensorParallel),
            CONDITIONAL_EMBEDDER_GRADS_ALL_REDUCE => Some(Self::Pipeline),
            OPTIMIZER_CLIP_MAIN_GRAD if distributed_optimizer => Some(Self::World),
            OPTIMIZER_CLIP_MAIN_GRAD => Some(Self::ModelParallel),
            _ => None,
        }
    }

    /// What people call such a group.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::DataParallel => "data-parallel",
            Self::ExpertDataParallel => "expert-data-parallel",
            Self::Embedding => "embedding",
            Self::TensorParallel => "tensor-parallel",
            Self::Pipeline => "pipeline-parallel",
            Self::ModelParallel => "model-parallel",
            Self::World => "whole-job",
        }
    }
}

/// Ranks that a collective makes wait for each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Stage of all of its ranks; `None` where it spans several.
    pub stage: Option<u32>,
    /// Positions of its ranks, ascending.
    pub members: Vec<usize>,
    /// Whether all of its ranks wrote rows, as far as the sizes tell.
    pub complete: bool,
}

/// A stage, then what else tells groups apart.
type Key = (Option<u32>, u32, u32);

impl Topology {
    /// Whether the lanes of a stage are known to be tensor-parallel positions. Inferred ones may be context-parallel
    /// positions, whose ranks reduce their gradients together; so may those that rows don't tell apart.
    #[must_use]
    pub fn tells_lanes(&self) -> bool {
        let lanes = u64::from(self.size("tp")) * u64::from(self.size("cp"));
        match self.origin {
            TopologyOrigin::Rows | TopologyOrigin::Flags => {
                self.places.iter().all(|place| u64::from(place.member) < lanes)
            }
            TopologyOrigin::Inferred { .. } | TopologyOrigin::Unknown => {
                self.places.iter().all(|place| place.member == 0)
            }
        }
    }

    /// The groups of a communicator, by stage; with `every_lane` each number in the stage counts as a tensor-parallel
    /// position of its own also where that is not known. `O(ranks log ranks)`.
    #[must_use]
    pub fn groups(&self, communicator: Communicator, every_lane: bool) -> Vec<Group> {
        let known = self.tells_lanes();
        let (tensor, context) = (self.size("tp"), self.size("cp"));
        let position = |member: u32| match (known, every_lane) {
            (true, _) if self.is_stated() => member % tensor,
            (_, true) => member,
            _ => 0,
        };
        let last = self.pipeline_stages().saturating_sub(1);
        let experts = self
            .size("ep")
            .saturating_mul(self.sizes.get("etp").copied().unwrap_or(tensor));
        // An expert group holds ranks whose numbers in the stage differ by multiples of `experts`, a lane those that
        // differ by multiples of `tensor`: what both join differs by multiples of their common divisor.
        let joined = if self.size("ep") > 1 {
            common_divisor(tensor, experts)
        } else {
            tensor
        };
        let lane = |member: u32| {
            if known {
                position(member) % joined
            } else {
                position(member)
            }
        };
        let mut groups = BTreeMap::<Key, Vec<usize>>::new();
        for (rank, place) in self.places.iter().enumerate() {
            let at_ends = place.stage == 0 || place.stage == last;
            let in_stage = u64::from(place.member) + u64::from(tensor) * u64::from(context) * u64::from(place.pipeline);
            let key: Option<Key> = match communicator {
                Communicator::DataParallel => Some((Some(place.stage), lane(place.member), 0)),
                Communicator::ExpertDataParallel => {
                    let expert = in_stage % u64::from(experts.max(1));
                    known.then_some((Some(place.stage), u32::try_from(expert).unwrap_or(0), 0))
                }
                Communicator::Embedding => (at_ends && last > 0).then_some((None, place.pipeline, place.member)),
                Communicator::TensorParallel => {
                    known.then_some((Some(place.stage), place.pipeline, place.member / tensor))
                }
                Communicator::Pipeline => Some((None, place.pipeline, place.member)),
                Communicator::ModelParallel => Some((None, place.pipeline, 0)),
                Communicator::World => Some((None, 0, 0)),
            };
            if let Some(key) = key {
                groups.entry(key).or_default().push(rank);
            }
        }
        let whole = self.ranks_of(communicator, tensor / joined.max(1), experts);
        let group = |((stage, ..), members): (Key, Vec<usize>)| Group {
            stage,
            complete: members.len() > 1 && whole.is_none_or(|whole| members.len() as u64 >= whole),
            members,
        };
        groups.into_iter().map(group).collect()
    }

    /// The parts of a data-parallel group inside which `instances` distributed optimizers gather their parameters: runs of
    /// neighbours; none where they would not be of equal size.
    #[must_use]
    pub fn instances(group: &Group, instances: usize) -> Vec<Group> {
        let size = group.members.len() / instances.max(1);
        if size == 0 || !group.members.len().is_multiple_of(instances) {
            return Vec::new();
        }
        let part = |members: &[usize]| Group {
            stage: group.stage,
            members: members.to_vec(),
            complete: group.complete,
        };
        group.members.chunks(size).map(part).collect()
    }

    /// Ranks of such a group where the sizes are stated; a group of lanes that can't be told apart has at least so many.
    fn ranks_of(&self, communicator: Communicator, joined_lanes: u32, experts: u32) -> Option<u64> {
        if !self.is_stated() {
            return None;
        }
        let [tensor, context, data, stages] = ["tp", "cp", "dp", "pp"].map(|axis| u64::from(self.size(axis)));
        Some(match communicator {
            // Where one rank of each tensor-parallel group wrote rows, a lane is whole all the same.
            Communicator::DataParallel => data * context * if self.is_sampled() { 1 } else { u64::from(joined_lanes) },
            Communicator::ExpertDataParallel => (data * context * tensor / u64::from(experts.max(1))).max(1),
            Communicator::Embedding => 2,
            Communicator::TensorParallel => tensor,
            Communicator::Pipeline => stages,
            Communicator::ModelParallel => stages * tensor * context,
            Communicator::World => stages * tensor * context * data,
        })
    }

    fn is_stated(&self) -> bool {
        matches!(self.origin, TopologyOrigin::Rows | TopologyOrigin::Flags)
    }

    /// Whether some tensor-parallel positions have no rank with rows.
    fn is_sampled(&self) -> bool {
        let tensor = self.size("tp");
        let highest = self.places.iter().map(|place| place.member % tensor).max().unwrap_or(0);
        highest + 1 < tensor
    }

    /// Size of an axis (`tp`, `ep`, ...); 1 where nothing tells it.
    #[must_use]
    pub fn size(&self, axis: &str) -> u32 {
        self.sizes.get(axis).copied().unwrap_or(1).max(1)
    }
}

fn common_divisor(a: u32, b: u32) -> u32 {
    let (mut a, mut b) = (a, b);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

#[cfg(test)]
#[path = "communicators_tests.rs"]
mod tests;

//! Megatron-LM's timers by name, and what each measures.
//!
//! Source: `megatron/core/timers.py`, `pipeline_parallel/{schedules,p2p_communication}.py`, `distributed/finalize_model_grads.py`.

/// The whole step; equal on all ranks.
pub const INTERVAL_TIME: &str = "interval-time";

/// Forward passes of all microbatches; holds `batch-generator`.
pub const FORWARD_COMPUTE: &str = "forward-compute";
/// Backward passes of all microbatches.
pub const BACKWARD_COMPUTE: &str = "backward-compute";
/// Nearly pure matrix work between two kernels: a rank's own even inside a tensor-parallel group.
pub const ATTENTION_QKV: &str = "self-attention-linear-qkv";
/// Waiting for the data loader, inside `forward-compute`.
pub const BATCH_GENERATOR: &str = "batch-generator";

/// Plain transfers of the warm-up and the cool-down of a 1F1B schedule.
pub const FORWARD_SEND: &str = "forward-send";
/// The other end of [`FORWARD_SEND`].
pub const FORWARD_RECV: &str = "forward-recv";
/// Gradients to the stage before.
pub const BACKWARD_SEND: &str = "backward-send";
/// The other end of [`BACKWARD_SEND`].
pub const BACKWARD_RECV: &str = "backward-recv";
/// The steady state, towards the next stage.
pub const FORWARD_SEND_BACKWARD_RECV: &str = "forward-send-backward-recv";
/// The steady state, towards the stage before.
pub const BACKWARD_SEND_FORWARD_RECV: &str = "backward-send-forward-recv";
/// Interleaved schedules: to the next stage and from the one before.
pub const FORWARD_SEND_FORWARD_RECV: &str = "forward-send-forward-recv";
/// Interleaved schedules: to the stage before and from the next one.
pub const BACKWARD_SEND_BACKWARD_RECV: &str = "backward-send-backward-recv";
/// Interleaved schedules: all four transfers in one call.
pub const ALL_TRANSFERS_FUSED: &str = "forward-backward-send-forward-backward-recv";

/// Everything from the first forward to the gradients' reduction.
pub const FORWARD_BACKWARD: &str = "forward-backward";
/// The gradients' reduction over data-parallel groups.
pub const ALL_GRADS_SYNC: &str = "all-grads-sync";
/// The same under the names that it had before September 2023.
pub const GRADS_REDUCE_SCATTER: &str = "grads-reduce-scatter";
/// Where the optimizer was not distributed.
pub const GRADS_ALL_REDUCE: &str = "grads-all-reduce";
/// The oldest name of the gradients' reduction (v2.x).
pub const BACKWARD_PARAMS_ALL_REDUCE: &str = "backward-params-all-reduce";
/// The distributed optimizer's gathering of parameters over data-parallel groups.
pub const PARAMS_ALL_GATHER: &str = "params-all-gather";
/// The same in v2.x.
pub const BACKWARD_GATHER_MODEL_PARAMS: &str = "backward-gather-model-params";
/// The shared embedding's gradients, between the first and the last stage.
pub const EMBEDDING_GRADS_ALL_REDUCE: &str = "embedding-grads-all-reduce";
/// The same in v2.x.
pub const BACKWARD_EMBEDDING_ALL_REDUCE: &str = "backward-embedding-all-reduce";
/// Gradients of what every tensor-parallel peer holds whole.
pub const NON_TENSOR_PARALLEL_GRADS_ALL_REDUCE: &str = "non-tensor-parallel-grads-all-reduce";
/// The same until June 2025.
pub const LAYERNORM_GRADS_ALL_REDUCE: &str = "layernorm-grads-all-reduce";
/// Gradients of embedders that every stage holds, over a pipeline.
pub const CONDITIONAL_EMBEDDER_GRADS_ALL_REDUCE: &str = "conditional-embedder-grads-all-reduce";
/// The optimizer with its parts.
pub const OPTIMIZER: &str = "optimizer";
/// The gradients' norm over the model-parallel group.
pub const OPTIMIZER_CLIP_MAIN_GRAD: &str = "optimizer-clip-main-grad";

/// The passes of a step.
pub const PASSES: [&str; 2] = [FORWARD_COMPUTE, BACKWARD_COMPUTE];
/// The timers of a rank's own computing.
pub const COMPUTING: [&str; 3] = [FORWARD_COMPUTE, BACKWARD_COMPUTE, ATTENTION_QKV];
/// The transfers that are one send or one receive.
pub const PLAIN_TRANSFERS: [&str; 4] = [FORWARD_SEND, FORWARD_RECV, BACKWARD_SEND, BACKWARD_RECV];
/// The timers around sends and receives between pipeline stages, plain ones first.
pub const TRANSFERS: [&str; 9] = [
    FORWARD_SEND,
    FORWARD_RECV,
    BACKWARD_SEND,
    BACKWARD_RECV,
    FORWARD_SEND_BACKWARD_RECV,
    BACKWARD_SEND_FORWARD_RECV,
    FORWARD_SEND_FORWARD_RECV,
    BACKWARD_SEND_BACKWARD_RECV,
    ALL_TRANSFERS_FUSED,
];
/// The timers whose single calls are kept: those around transfers, and the passes.
pub const TRACED: [&str; TRANSFERS.len() + PASSES.len()] = {
    let mut traced = [""; TRANSFERS.len() + PASSES.len()];
    let mut at = 0;
    while at < traced.len() {
        traced[at] = if at < TRANSFERS.len() {
            TRANSFERS[at]
        } else {
            PASSES[at - TRANSFERS.len()]
        };
        at += 1;
    }
    traced
};
/// Those that only interleaved schedules have.
pub const INTERLEAVED_TRANSFERS: [&str; 3] = [
    FORWARD_SEND_FORWARD_RECV,
    BACKWARD_SEND_BACKWARD_RECV,
    ALL_TRANSFERS_FUSED,
];
/// Collectives over a data-parallel group, the better one to compare groups by first.
pub const COLLECTIVES: [&str; 6] = [
    ALL_GRADS_SYNC,
    GRADS_REDUCE_SCATTER,
    GRADS_ALL_REDUCE,
    BACKWARD_PARAMS_ALL_REDUCE,
    PARAMS_ALL_GATHER,
    BACKWARD_GATHER_MODEL_PARAMS,
];
/// Collectives over other groups, those that tell the most first.
pub const OTHER_COLLECTIVES: [&str; 6] = [
    EMBEDDING_GRADS_ALL_REDUCE,
    BACKWARD_EMBEDDING_ALL_REDUCE,
    NON_TENSOR_PARALLEL_GRADS_ALL_REDUCE,
    LAYERNORM_GRADS_ALL_REDUCE,
    CONDITIONAL_EMBEDDER_GRADS_ALL_REDUCE,
    OPTIMIZER_CLIP_MAIN_GRAD,
];

/// Whether a timer is around a collective, of whatever group.
#[must_use]
pub fn is_collective(timer: &str) -> bool {
    COLLECTIVES.contains(&timer) || OTHER_COLLECTIVES.contains(&timer)
}

/// Whether a timer is around transfers between pipeline stages.
#[must_use]
pub fn is_transfer(timer: &str) -> bool {
    TRANSFERS.contains(&timer)
}

/// Whether the single calls of a timer are kept.
#[must_use]
pub fn is_traced(timer: &str) -> bool {
    TRACED.contains(&timer)
}

/// Timers of no step: set-up, evaluation, checkpoints. They are printed like those of a step.
const OUTSIDE_OF_STEPS: [&str; 12] = [
    "model-and-optimizer-setup",
    "train/valid/test-data-iterators-setup",
    "train/valid/test-data-iterators",
    "load-checkpoint",
    "save-checkpoint",
    "save-checkpoint-non-persistent",
    "evaluate",
    "eval-time",
    "gpu-sniff-test",
    "all-reduce-start-timestamps-tensor",
    "model and optimizer",
    "train/valid/test data iterators",
];

/// Whether a timer belongs to no step.
#[must_use]
pub fn is_outside_of_steps(timer: &str) -> bool {
    let part_of_one =
        timer.starts_with("startup-") || timer.starts_with("save-checkpoint") || timer.ends_with("-setup");
    part_of_one || OUTSIDE_OF_STEPS.contains(&timer)
}

/// What a timer measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The whole step.
    Step,
    /// A rank's own computing, and inside it what its tensor-parallel peers make it wait.
    Computing,
    /// The data loader.
    Loader,
    /// Sends and receives between pipeline stages, with the waiting for the other end.
    Transfer,
    /// A collective over a data-parallel group.
    Collective,
    /// Anything else: the optimizer's parts, timers that hold others, timers that are not Megatron's.
    Other,
}

impl Role {
    /// The role of a timer by its name.
    #[must_use]
    pub fn of(timer: &str) -> Self {
        match timer {
            INTERVAL_TIME => Self::Step,
            BATCH_GENERATOR => Self::Loader,
            timer if COMPUTING.contains(&timer) => Self::Computing,
            timer if is_transfer(timer) => Self::Transfer,
            timer if COLLECTIVES.contains(&timer) => Self::Collective,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_follow_from_names() {
        assert_eq!(Role::of("interval-time"), Role::Step);
        assert_eq!(Role::of("self-attention-linear-qkv"), Role::Computing);
        assert_eq!(Role::of("batch-generator"), Role::Loader);
        assert!(
            INTERLEAVED_TRANSFERS
                .iter()
                .all(|timer| Role::of(timer) == Role::Transfer)
        );
        assert_eq!(Role::of("params-all-gather"), Role::Collective);
        assert_eq!(Role::of("grads-reduce-scatter"), Role::Collective);
        assert!(is_collective("embedding-grads-all-reduce") && !is_collective("optimizer"));
        assert_eq!(Role::of("forward-backward"), Role::Other);
        assert_eq!(Role::of(""), Role::Other);
    }
}

//! The timers that a simulated rank reports.

use crate::contract::timers;
/// A timer; the order is the order of the rows in an iteration (by name).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(usize)]
pub enum Timer {
    /// Gradient reduction over the data-parallel group, with the wait for its last member.
    AllGradsSync,
    /// Backward passes.
    BackwardCompute,
    /// Gradient of a cool-down microbatch from the next stage.
    BackwardRecv,
    /// Gradient of a cool-down microbatch to the previous stage.
    BackwardSend,
    /// Interleaved: gradient to the previous stage, gradient from the next.
    BackwardSendBackwardRecv,
    /// Steady state: gradient to the previous stage, activation from it.
    BackwardSendForwardRecv,
    /// Loading and broadcasting a microbatch, inside `forward-compute`.
    BatchGenerator,
    /// All microbatches and the gradient reduction.
    ForwardBackward,
    /// Interleaved, steady state: activation and gradient out, activation and gradient in.
    ForwardBackwardSendForwardBackwardRecv,
    /// Forward passes.
    ForwardCompute,
    /// Activation of a warm-up microbatch from the previous stage.
    ForwardRecv,
    /// Activation of a warm-up microbatch to the next stage.
    ForwardSend,
    /// Steady state: activation to the next stage, gradient from it.
    ForwardSendBackwardRecv,
    /// Interleaved: activation to the next stage, activation from the previous.
    ForwardSendForwardRecv,
    /// The whole step; equal on all ranks.
    IntervalTime,
    /// The optimizer step, gather of the parameters included.
    Optimizer,
    /// Gradient norm over all ranks and clipping.
    OptimizerClipMainGrad,
    /// Master weights back to the model's precision.
    OptimizerCopyMainToModelParams,
    /// Gradients to the optimizer's precision.
    OptimizerCopyToMainGrad,
    /// Count of the zero gradients.
    OptimizerCountZeros,
    /// The update itself.
    OptimizerInnerStep,
    /// Loss unscaling and the search for infinities.
    OptimizerUnscaleAndCheckInf,
    /// Gather of the updated parameters over the data-parallel group.
    ParamsAllGather,
    /// The rank's own matrix work in the attention's QKV projection; no waiting in it.
    SelfAttentionLinearQkv,
}

impl Timer {
    /// Every timer, in row order.
    pub const ALL: [Self; 24] = [
        Self::AllGradsSync,
        Self::BackwardCompute,
        Self::BackwardRecv,
        Self::BackwardSend,
        Self::BackwardSendBackwardRecv,
        Self::BackwardSendForwardRecv,
        Self::BatchGenerator,
        Self::ForwardBackward,
        Self::ForwardBackwardSendForwardBackwardRecv,
        Self::ForwardCompute,
        Self::ForwardRecv,
        Self::ForwardSend,
        Self::ForwardSendBackwardRecv,
        Self::ForwardSendForwardRecv,
        Self::IntervalTime,
        Self::Optimizer,
        Self::OptimizerClipMainGrad,
        Self::OptimizerCopyMainToModelParams,
        Self::OptimizerCopyToMainGrad,
        Self::OptimizerCountZeros,
        Self::OptimizerInnerStep,
        Self::OptimizerUnscaleAndCheckInf,
        Self::ParamsAllGather,
        Self::SelfAttentionLinearQkv,
    ];

    /// The `subname` of its rows.
    pub fn name(self) -> &'static str {
        match self {
            Self::AllGradsSync => timers::ALL_GRADS_SYNC,
            Self::BackwardCompute => timers::BACKWARD_COMPUTE,
            Self::BackwardRecv => timers::BACKWARD_RECV,
            Self::BackwardSend => timers::BACKWARD_SEND,
            Self::BackwardSendBackwardRecv => timers::BACKWARD_SEND_BACKWARD_RECV,
            Self::BackwardSendForwardRecv => timers::BACKWARD_SEND_FORWARD_RECV,
            Self::BatchGenerator => timers::BATCH_GENERATOR,
            Self::ForwardBackward => timers::FORWARD_BACKWARD,
            Self::ForwardBackwardSendForwardBackwardRecv => timers::ALL_TRANSFERS_FUSED,
            Self::ForwardCompute => timers::FORWARD_COMPUTE,
            Self::ForwardRecv => timers::FORWARD_RECV,
            Self::ForwardSend => timers::FORWARD_SEND,
            Self::ForwardSendBackwardRecv => timers::FORWARD_SEND_BACKWARD_RECV,
            Self::ForwardSendForwardRecv => timers::FORWARD_SEND_FORWARD_RECV,
            Self::IntervalTime => timers::INTERVAL_TIME,
            Self::Optimizer => timers::OPTIMIZER,
            Self::OptimizerClipMainGrad => timers::OPTIMIZER_CLIP_MAIN_GRAD,
            Self::OptimizerCopyMainToModelParams => "optimizer-copy-main-to-model-params",
            Self::OptimizerCopyToMainGrad => "optimizer-copy-to-main-grad",
            Self::OptimizerCountZeros => "optimizer-count-zeros",
            Self::OptimizerInnerStep => "optimizer-inner-step",
            Self::OptimizerUnscaleAndCheckInf => "optimizer-unscale-and-check-inf",
            Self::ParamsAllGather => timers::PARAMS_ALL_GATHER,
            Self::SelfAttentionLinearQkv => timers::ATTENTION_QKV,
        }
    }

    /// Whether its single calls can be traced (compute and point-to-point timers).
    pub fn traced(self) -> bool {
        matches!(
            self,
            Self::BackwardCompute
                | Self::BackwardRecv
                | Self::BackwardSend
                | Self::BackwardSendBackwardRecv
                | Self::BackwardSendForwardRecv
                | Self::ForwardBackwardSendForwardBackwardRecv
                | Self::ForwardCompute
                | Self::ForwardRecv
                | Self::ForwardSend
                | Self::ForwardSendBackwardRecv
                | Self::ForwardSendForwardRecv
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_order_is_by_name_and_matches_the_index() {
        assert!(Timer::ALL.windows(2).all(|w| w[0].name() < w[1].name()));
        assert!(Timer::ALL.iter().enumerate().all(|(i, t)| *t as usize == i));
    }
}

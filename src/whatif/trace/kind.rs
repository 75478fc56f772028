//! Types of operations in an op trace.

/// What an operation does; the order is that of the names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Backward pass of a microbatch.
    BackwardCompute,
    /// Gradient from the next stage.
    BackwardRecv,
    /// Gradient to the stage before.
    BackwardSend,
    /// Gradients of the embedding, first and last stage.
    EmbeddingAllReduce,
    /// Forward pass of a microbatch.
    ForwardCompute,
    /// Activation from the stage before.
    ForwardRecv,
    /// Activation to the next stage.
    ForwardSend,
    /// Garbage collection.
    Gc,
    /// Gradients over the replicas.
    GradsReduceScatter,
    /// Gradients of what tensor-parallel ranks hold alike.
    LayernormAllReduce,
    /// Optimizer step.
    Optimizer,
    /// Gradient norm over all ranks.
    OptimizerClip,
    /// Parameters over the replicas.
    ParamsAllGather,
    /// Gradients over the replicas, where they are reduced beside the passes.
    SeparateAllReduce,
}

impl Kind {
    /// Every type, in order.
    pub const ALL: [Self; 14] = [
        Self::BackwardCompute,
        Self::BackwardRecv,
        Self::BackwardSend,
        Self::EmbeddingAllReduce,
        Self::ForwardCompute,
        Self::ForwardRecv,
        Self::ForwardSend,
        Self::Gc,
        Self::GradsReduceScatter,
        Self::LayernormAllReduce,
        Self::Optimizer,
        Self::OptimizerClip,
        Self::ParamsAllGather,
        Self::SeparateAllReduce,
    ];

    /// The `optype` of its rows.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BackwardCompute => "backward-compute",
            Self::BackwardRecv => "backward-recv",
            Self::BackwardSend => "backward-send",
            Self::EmbeddingAllReduce => "embedding-grads-all-reduce",
            Self::ForwardCompute => "forward-compute",
            Self::ForwardRecv => "forward-recv",
            Self::ForwardSend => "forward-send",
            Self::Gc => "gc",
            Self::GradsReduceScatter => "grads-reduce-scatter",
            Self::LayernormAllReduce => "layernorm-grads-all-reduce",
            Self::Optimizer => "optimizer",
            Self::OptimizerClip => "optimizer-clip-main-grad",
            Self::ParamsAllGather => "params-all-gather",
            Self::SeparateAllReduce => "separate-grads-all-reduce",
        }
    }

    /// Name under which its slowdown is reported: transfers of one direction are one.
    #[must_use]
    pub const fn reported(self) -> &'static str {
        match self {
            Self::ForwardSend | Self::ForwardRecv => "forward-pp-comm",
            Self::BackwardSend | Self::BackwardRecv => "backward-pp-comm",
            other => other.name(),
        }
    }

    /// Whether it is one end of a transfer between stages.
    #[must_use]
    pub const fn is_transfer(self) -> bool {
        matches!(
            self,
            Self::BackwardRecv | Self::BackwardSend | Self::ForwardRecv | Self::ForwardSend
        )
    }

    /// Whether it waits for others, so that its transfer counts and not its duration.
    #[must_use]
    pub const fn meets_others(self) -> bool {
        self.is_transfer()
            || matches!(
                self,
                Self::EmbeddingAllReduce
                    | Self::GradsReduceScatter
                    | Self::OptimizerClip
                    | Self::ParamsAllGather
                    | Self::SeparateAllReduce
            )
    }

    /// Whether all replicas take part.
    #[must_use]
    pub const fn over_replicas(self) -> bool {
        matches!(
            self,
            Self::GradsReduceScatter | Self::OptimizerClip | Self::ParamsAllGather | Self::SeparateAllReduce
        )
    }

    /// Whether its ideal is the mean of all; else the median, which a few that waited do not move.
    #[must_use]
    pub const fn ideal_is_mean(self) -> bool {
        matches!(
            self,
            Self::BackwardCompute | Self::ForwardCompute | Self::Gc | Self::Optimizer
        )
    }

    /// The type or, of a call that posts two transfers, the types that a name stands for; empty where it is unknown.
    #[must_use]
    pub fn of_name(name: &str) -> &'static [Self] {
        const FUSED: [(&str, &[Kind]); 5] = [
            ("forward-send-backward-recv", &[Kind::ForwardSend, Kind::BackwardRecv]),
            ("backward-send-forward-recv", &[Kind::BackwardSend, Kind::ForwardRecv]),
            ("forward-send-forward-recv", &[Kind::ForwardSend, Kind::ForwardRecv]),
            ("backward-send-backward-recv", &[Kind::BackwardSend, Kind::BackwardRecv]),
            (
                "forward-backward-send-forward-backward-recv",
                &[
                    Kind::ForwardSend,
                    Kind::BackwardSend,
                    Kind::ForwardRecv,
                    Kind::BackwardRecv,
                ],
            ),
        ];
        if let Some(place) = Self::ALL.iter().position(|kind| kind.name() == name) {
            return &Self::ALL[place..=place];
        }
        FUSED
            .iter()
            .find(|(fused, _)| *fused == name)
            .map_or(&[], |(_, kinds)| kinds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_the_names() {
        assert!(Kind::ALL.windows(2).all(|pair| pair[0].name() < pair[1].name()));
        assert!(
            Kind::ALL
                .iter()
                .enumerate()
                .all(|(place, kind)| *kind as usize == place)
        );
    }

    #[test]
    fn names_are_read_back_and_fused_ones_split() {
        for kind in Kind::ALL {
            assert_eq!(Kind::of_name(kind.name()), [kind]);
        }
        assert_eq!(
            Kind::of_name("backward-send-forward-recv"),
            [Kind::BackwardSend, Kind::ForwardRecv]
        );
        assert!(Kind::of_name("backward").is_empty());
    }
}

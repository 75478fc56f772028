"""An attention with a qkv projection, as `megatron.core.transformer.attention` has one."""

import simulated_clock as clock
import torch
from megatron.core.tensor_parallel.layers import ColumnParallelLinear


class SelfAttention(torch.nn.Module):
    def __init__(self, config, product_seconds):
        super().__init__()
        self.config = config
        self.linear_qkv = ColumnParallelLinear(config, product_seconds)

    def forward(self):
        self.linear_qkv()
        # The rest of the layer.
        clock.advance(0.0005)

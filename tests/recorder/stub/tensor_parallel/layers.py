"""A column-parallel layer that gathers its input under sequence parallelism, as Megatron's does."""

import simulated_clock as clock
import torch

dist_all_gather_func = torch.distributed.all_gather_into_tensor


class ColumnParallelLinear(torch.nn.Module):
    def __init__(self, config, product_seconds):
        super().__init__()
        self.config = config
        self.product_seconds = product_seconds

    def forward(self):
        if self.config.sequence_parallel:
            dist_all_gather_func()
        clock.advance(self.product_seconds())

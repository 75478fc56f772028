"""A training script as Megatron-LM's looks to a recorder, on a simulated clock, with the real timers.

    RANK=3 WORLD_SIZE=8 MEGATRON_CORE=FOLDER python train.py '{"slow": {"5": 1.3}, "iterations": 40}'
"""

from __future__ import annotations

import json
import os
import sys
import types

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "stub")]

import simulated_clock as clock  # noqa: E402  (before whatever takes the time)

import megatron_core  # noqa: E402
import torch  # noqa: E402
from schedule import LOADING, SYNC, Job, own_factor, step  # noqa: E402

megatron_core.install(os.environ["MEGATRON_CORE"])
if "mt_recorder" not in sys.modules and os.environ.get("RECORD", "1") == "1":
    import mt_recorder  # noqa: F401

from megatron.core import parallel_state  # noqa: E402
from megatron.core.timers import Timers  # noqa: E402
from megatron.core.transformer.attention import SelfAttention  # noqa: E402
from megatron.training import global_vars  # noqa: E402

DEFAULTS = {
    "tp": 1,
    "dp": 4,
    "pp": 2,
    "cp": 1,
    "ep": 1,
    "vpp": None,
    "slow": {},
    "first": 1,
    "iterations": 40,
    "log_level": 0,
    "barrier": False,
    "evaluate_every": 0,
    "layers": 2,
    "sequence_parallel": False,
    "hidden_gather": False,
}
rank = int(os.environ["RANK"])
_TRAIN_START_TIME = 1_767_254_000.0 + rank


def pretrain(asked: dict) -> None:
    global _TRAIN_START_TIME
    start = torch.tensor([_TRAIN_START_TIME], dtype=torch.double, device="cuda")
    torch.distributed.all_reduce(start, op=torch.distributed.ReduceOp.MIN)
    _TRAIN_START_TIME = start.item()
    initialise(asked)
    train(asked, Timers(asked["log_level"], "minmax"))


def initialise(asked: dict) -> None:
    sizes = {
        "tensor_model_parallel_size": asked["tp"],
        "pipeline_model_parallel_size": asked["pp"],
        "virtual_pipeline_model_parallel_size": asked["vpp"],
        "context_parallel_size": asked["cp"],
        "expert_model_parallel_size": asked["ep"],
    }
    parallel_state.initialize_model_parallel(**sizes)


def train(asked: dict, timers: Timers) -> None:
    slow = {int(rank): factor for rank, factor in asked["slow"].items()}
    # Ranks that share a sequence play as replicas: their places are the same.
    job = Job(tp=asked["tp"], dp=asked["dp"] * asked["cp"], pp=asked["pp"], slow=slow)
    arguments = global_vars._GLOBAL_ARGS
    config = types.SimpleNamespace(
        sequence_parallel=asked["sequence_parallel"], tensor_model_parallel_size=asked["tp"], timers=timers
    )
    where = [0, 0]
    attentions = [
        SelfAttention(config, lambda: 0.002 * own_factor(job, rank, *where)) for _ in range(asked["layers"])
    ]
    if asked["hidden_gather"]:
        # The gathering is fused into the product: nothing of Megatron's is called.
        for attention in attentions:
            attention.linear_qkv.config = types.SimpleNamespace(sequence_parallel=False)
    timers("train/valid/test-data-iterators-setup", log_level=0).start()
    timers("train/valid/test-data-iterators-setup").stop()
    timers("interval-time", log_level=0).start(barrier=True)
    for iteration in range(asked["first"] - 1, asked["first"] - 1 + asked["iterations"]):
        arguments.curr_iteration = iteration
        played, over = step(job, iteration, clock.now())
        mine = played[rank]
        timers("forward-backward", log_level=1).start(barrier=asked["barrier"])
        number = 0
        for timer, begins, ends in mine.calls:
            if timer == "all-grads-sync":
                torch.distributed.barrier_until = max(one.calls[-1][1] for one in played)
                timers(timer, log_level=1).start(barrier=asked["barrier"])
                clock.set_to(max(ends, clock.now() + SYNC if asked["barrier"] else ends))
                timers(timer).stop()
                continue
            clock.set_to(begins)
            timers(timer, log_level=2).start()
            if timer == "forward-compute":
                timers("batch-generator", log_level=2).start()
                clock.advance(LOADING)
                timers("batch-generator").stop()
                number += 1
                where[:] = [iteration, 2 * number]
                torch.distributed.gather_seconds = 0.0
                for attention in attentions:
                    if asked["tp"] > 1:
                        # The slower of the two keeps the other one waiting.
                        pair = [rank - rank % asked["tp"] + member for member in range(asked["tp"])]
                        slowest = max(own_factor(job, member, *where) for member in pair)
                        torch.distributed.gather_seconds = 0.003 * (slowest - own_factor(job, rank, *where))
                    attention()
            clock.set_to(max(ends, clock.now()))
            timers(timer).stop()
        timers("forward-backward").stop()
        timers("optimizer", log_level=1).start(barrier=asked["barrier"])
        clock.set_to(max(over, clock.now()))
        timers("optimizer").stop()
        # training_log
        timers("interval-time").elapsed(barrier=True)
        if asked["evaluate_every"] and (iteration + 1) % asked["evaluate_every"] == 0:
            evaluate(timers)


def evaluate(timers: Timers) -> None:
    timers("interval-time").stop()
    timers("evaluate", log_level=0).start(barrier=True)
    clock.advance(30.0)
    timers("evaluate").stop()
    timers("interval-time", log_level=0).start(barrier=True)


if __name__ == "__main__":
    torch.distributed.rank, torch.distributed.world_size = rank, int(os.environ["WORLD_SIZE"])
    torch.distributed.reduced = 1_767_254_000.0
    pretrain({**DEFAULTS, **json.loads(sys.argv[1] if len(sys.argv) > 1 else "{}")})
    if os.environ.get("COUNT"):
        print(json.dumps({"synchronisations": torch.cuda.synchronisations, "events": torch.cuda.Event.made}))

"""When each timer of each rank runs in a training step: 1F1B over the stages, data-parallel replicas, an optimizer.

Every process works out all ranks' times from the same seed and plays its own, so that who waits for whom is right
without any process waiting for another one.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

FORWARD, BACKWARD, TRANSFER = 0.020, 0.040, 0.001
LOADING, SYNC, OPTIMIZER = 0.0005, 0.004, 0.006


@dataclass
class Job:
    """Sizes, and how much slower than the others some ranks compute."""

    tp: int = 1
    dp: int = 4
    pp: int = 2
    microbatches: int = 4
    # Rank -> factor.
    slow: dict[int, float] = field(default_factory=dict)

    @property
    def world(self) -> int:
        return self.tp * self.dp * self.pp

    def rank(self, tp: int, dp: int, pp: int) -> int:
        """Megatron's default order."""
        return tp + self.tp * (dp + self.dp * pp)


Call = tuple[str, float, float]


@dataclass
class Played:
    """One rank's step: calls in the order of their starts, without those inside another one."""

    calls: list[Call]
    end: float


def step(job: Job, iteration: int, begin: float) -> tuple[list[Played], float]:
    """All ranks' calls of an iteration, and when it is over for everybody."""
    played: list[Played | None] = [None] * job.world
    for dp in range(job.dp):
        passes = [[_passes(job, iteration, dp, stage, kind) for kind in (0, 1)] for stage in range(job.pp)]
        for stage, calls in enumerate(_pipeline(job, passes, begin)):
            for tp in range(job.tp):
                end = calls[-1][2]
                played[job.rank(tp, dp, stage)] = Played(list(calls), end)
    whole = [one for one in played if one is not None]
    for stage in range(job.pp):
        peers = [job.rank(tp, dp, stage) for tp in range(job.tp) for dp in range(job.dp)]
        done = max(whole[rank].end for rank in peers) + SYNC
        for rank in peers:
            whole[rank].calls.append(("all-grads-sync", whole[rank].end, done))
            whole[rank].end = done
    over = max(one.end for one in whole)
    return whole, over + OPTIMIZER


def own_factor(job: Job, rank: int, iteration: int, microbatch: int) -> float:
    """A rank's own speed: a little unevenness, and its fault."""
    noise = random.Random(f"{rank}-{iteration}-{microbatch}").gauss(1.0, 0.004)
    return noise * job.slow.get(rank, 1.0)


def _passes(job: Job, iteration: int, dp: int, stage: int, kind: int) -> list[float]:
    """Durations of a stage's passes: tensor-parallel ranks wait for their slowest."""
    members = [job.rank(tp, dp, stage) for tp in range(job.tp)]
    base = (FORWARD, BACKWARD)[kind]
    return [
        base * max(own_factor(job, rank, iteration, 2 * number + kind) for rank in members)
        for number in range(job.microbatches)
    ]


def _program(stage: int, stages: int, microbatches: int) -> list[tuple[str, list[tuple[str, int, int]]]]:
    """A stage's operations: a timer, and the messages (kind, from-stage, number) that it waits for."""
    first, last = stage == 0, stage == stages - 1
    warm = min(stages - 1 - stage, microbatches)
    operations: list[tuple[str, list[tuple[str, int, int]]]] = []
    received = returned = 0
    forward = backward = 0

    def receive_forward() -> list[tuple[str, int, int]]:
        nonlocal received
        received += 1
        return [("activation", stage - 1, received)]

    def receive_backward() -> list[tuple[str, int, int]]:
        nonlocal returned
        returned += 1
        return [("gradient", stage + 1, returned)]

    def operate(timer: str, messages: list[tuple[str, int, int]]) -> None:
        operations.append((timer, messages))

    for _ in range(warm):
        if not first:
            operate("forward-recv", receive_forward())
        operate("forward-compute", [])
        forward += 1
        if not last:
            operate("forward-send", [("activation", stage, forward)])
    steady = microbatches - warm
    if steady and not first:
        operate("forward-recv", receive_forward())
    for number in range(steady):
        operate("forward-compute", [])
        forward += 1
        if not last:
            operate("forward-send-backward-recv", [("activation", stage, forward), *receive_backward()])
        operate("backward-compute", [])
        backward += 1
        if not first:
            sent = [("gradient", stage, backward)]
            if number == steady - 1:
                operate("backward-send", sent)
            else:
                operate("backward-send-forward-recv", sent + receive_forward())
    for _ in range(warm):
        operate("backward-recv", receive_backward())
        operate("backward-compute", [])
        backward += 1
        if not first:
            operate("backward-send", [("gradient", stage, backward)])
    return operations


def _pipeline(job: Job, passes: list[list[list[float]]], begin: float) -> list[list[Call]]:
    """Plays the stages of one pipeline: a transfer is over for both ends at once, after the later one has come."""
    programs = [_program(stage, job.pp, job.microbatches) for stage in range(job.pp)]
    calls: list[list[Call]] = [[] for _ in programs]
    now = [begin] * job.pp
    at = [0] * job.pp
    done = [[0, 0] for _ in programs]
    posted: dict[tuple[str, int, int], list[float]] = {}
    entered = [False] * job.pp
    while any(at[stage] < len(program) for stage, program in enumerate(programs)):
        moved = False
        for stage, program in enumerate(programs):
            while at[stage] < len(program):
                timer, messages = program[at[stage]]
                if not messages:
                    kind = 0 if timer.startswith("forward") else 1
                    ends = now[stage] + passes[stage][kind][done[stage][kind]]
                    done[stage][kind] += 1
                else:
                    if not entered[stage]:
                        for message in messages:
                            posted.setdefault(message, []).append(now[stage])
                        entered[stage] = True
                    if any(len(posted[message]) < 2 for message in messages):
                        break
                    ends = max(max(posted[message]) for message in messages) + TRANSFER
                calls[stage].append((timer, now[stage], ends))
                now[stage], entered[stage], moved = ends, False, True
                at[stage] += 1
        assert moved, "the stages wait for each other"
    return calls

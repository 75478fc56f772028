#!/usr/bin/env python3
"""What the recorder costs: microseconds a timer pair (start and stop), and the work of its thread an iteration.

    python recorder/bench.py                        # with torch and megatron-core: real events, real synchronisation
    MEGATRON_CORE=FOLDER python recorder/bench.py   # without: real timers of an unpacked wheel, a device that costs nothing

An iteration is 64 microbatches of 5 timers on one rank: forward, data, backward, two transfers. Each variant runs in a
process of its own; the figures are the medians over iterations.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import types

HERE = os.path.dirname(os.path.abspath(__file__))
MICROBATCHES, ITERATIONS = 64, 200
NAMES = ("forward-compute", "batch-generator", "backward-compute", "forward-send-backward-recv", "forward-recv")
PAIRS = MICROBATCHES * len(NAMES)
# Name, level of the job, settings of the recorder; without settings there is no recorder.
VARIANTS = (
    ("Megatron at level 2, no recorder", 2, None),
    ("Megatron at level 2, read by the recorder", 2, {}),
    ("Megatron at level 0, no recorder", 0, None),
    ("Megatron at level 0, timers added by the recorder", 0, {}),
    ("  the same, without single calls", 0, {"MT_RECORDER_TRACE_EVERY": "0"}),
)


def stand_in(folder: str) -> None:
    """A torch whose device is always done, and the package around the real timers."""

    class Event:
        def __init__(self, enable_timing: bool = False) -> None:
            self.at = 0.0

        def record(self) -> None:
            self.at = time.perf_counter()

        def query(self) -> bool:
            return True

        def elapsed_time(self, end: "Event") -> float:
            return (end.at - self.at) * 1000.0

    def nothing(*_: object, **__: object) -> bool:
        return False

    def module(name: str, **content: object) -> types.ModuleType:
        made = types.ModuleType(name)
        vars(made).update(content)
        sys.modules[name] = made
        return made

    cuda = module("torch.cuda", Event=Event, synchronize=nothing, is_available=lambda: True, current_device=lambda: 0)
    vars(cuda).update(set_device=nothing, is_current_stream_capturing=nothing)
    gather = {"all_gather_into_tensor": nothing, "_all_gather_base": nothing}
    distributed = module("torch.distributed", is_available=nothing, is_initialized=nothing, **gather)
    module("torch", cuda=cuda, distributed=distributed)
    module("megatron", __path__=[])
    module("megatron.core", __path__=[os.path.join(folder, "megatron", "core")])
    module("megatron.core.utils", is_torch_min_version=lambda *_: True)


def measure(level: int, recorded: bool) -> None:
    if folder := os.environ.get("MEGATRON_CORE"):
        stand_in(folder)
    if recorded:
        import mt_recorder
    from megatron.core.timers import Timers

    timers = Timers(level, "minmax")

    def iteration() -> float:
        began = time.perf_counter()
        timers("forward-backward", log_level=1).start()
        for _ in range(MICROBATCHES):
            for name in NAMES:
                timers(name, log_level=2).start()
                timers(name).stop()
        timers("forward-backward").stop()
        spent = time.perf_counter() - began
        # As a step: the thread has its turn, and the timers are reset when they are logged.
        time.sleep(0.02)
        return spent

    for _ in range(10):
        iteration()
    before = time.process_time() - time.thread_time()
    spent = statistics.median(iteration() for _ in range(ITERATIONS))
    others = (time.process_time() - time.thread_time() - before) / ITERATIONS
    if recorded:
        assert mt_recorder._recorder.active, "the recorder switched itself off"
    print(json.dumps({"pair_us": spent / PAIRS * 1e6, "thread_ms": others * 1e3}))


def main() -> None:
    print(f"{'':52}{'µs a pair':>10}{'thread, ms an iteration':>26}")
    for name, level, settings in VARIANTS:
        with tempfile.TemporaryDirectory() as folder:
            kept = {key: value for key, value in os.environ.items() if not key.startswith("MT_RECORDER")}
            environment = kept | {"MT_RECORDER_DIR": folder} | (settings or {})
            command = [sys.executable, os.path.abspath(__file__), "measure", str(level), str(int(settings is not None))]
            ran = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
        figures = json.loads(ran.stdout)
        print(f"{name:52}{figures['pair_us']:>10.2f}{figures['thread_ms']:>26.2f}")


if __name__ == "__main__":
    sys.path.insert(0, HERE)
    if sys.argv[1:2] == ["measure"]:
        measure(int(sys.argv[2]), sys.argv[3] == "1")
    else:
        main()

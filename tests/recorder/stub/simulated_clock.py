"""A clock that moves when it is told to: what is measured with it is the same on a machine that does much else.

To be imported before whatever takes `time.time` or `time.perf_counter`. `time.monotonic` stays real: threads wait by it.
"""

import time

# 2026-01-01 08:00:00 UTC.
START = 1_767_254_400.0
_now = 0.0


def now() -> float:
    return _now


def set_to(seconds: float) -> None:
    global _now
    assert seconds >= _now - 1e-12, f"the clock would go back from {_now} to {seconds}"
    _now = max(seconds, _now)


def advance(seconds: float) -> None:
    set_to(_now + seconds)


time.time = lambda: START + _now
time.perf_counter = now

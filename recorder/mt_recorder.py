"""Records Megatron's timers, rank by rank and iteration by iteration, as rows that mt-detector reads.

    import mt_recorder                              # in the training script, anywhere before the training begins
    torchrun ... -m mt_recorder pretrain_gpt.py ... # or this, with the script unchanged

One file, Python 3.9 or later, no dependency beyond what training has. It needs no flag of Megatron: timers above the
job's `--timing-log-level` are added by CUDA events, which wait for nothing; those that Megatron runs itself are read
where it reads its clock. Rows go to files (one or several a rank, NDJSON, gzip once they are full), to ClickHouse over
HTTP, or both. Training is never held up and never broken: what is measured passes through a bounded queue to a thread;
what finds the queue full is counted and told; an error switches the recorder off with one line on standard error.

Environment (all may be left out):

    MT_RECORDER                          0: off
    MT_RECORDER_LEVEL                    highest level of timers, 0 to 2 as --timing-log-level has them       [2]
    MT_RECORDER_QKV                      attention layers of this rank whose qkv projection is timed: a
                                         number or `all`; it tells tensor-parallel ranks apart                [0]
    MT_RECORDER_TRACE_EVERY              every n-th iteration with each call's start and end, 0: never        [1]
    MT_RECORDER_JOB                      job id                     [SLURM_JOB_ID, else torchrun's --rdzv-id, else `megatron`]
    MT_RECORDER_RERUN                    id of this start of the job, the same on all ranks
                                         [the start time that Megatron's ranks agree on, else Slurm's job, step and
                                         restart, else torchrun's --rdzv-id]
    MT_RECORDER_NODE                     name of this machine                       [SLURMD_NODENAME, NODE_NAME, else the host name]
    MT_RECORDER_CLUSTER                  name of the cluster                                                  []
    MT_RECORDER_QUEUE                    iterations that may wait to be written                               [512]
    MT_RECORDER_FLUSH_SECONDS            longest time until rows are written or posted                        [5; posts: 30]
    MT_RECORDER_EXIT_SECONDS             longest time that the end of training waits for what is left         [20]
    MT_RECORDER_DIR                      folder of the files                        [mt_recorder, without a ClickHouse URL; else none]
    MT_RECORDER_ROTATE_MB                size at which a file is closed and the next one begun                [64]
    MT_RECORDER_GZIP                     0: leave closed files as they are                                    [1]
    MT_RECORDER_KEEP_FILES               closed files kept for each rank, the newest; 0: all                  [0]
    MT_RECORDER_CLICKHOUSE_URL           http://host:8123 or https://host:8443
    MT_RECORDER_CLICKHOUSE_USER          user that may INSERT                                                 [the server's default]
    MT_RECORDER_CLICKHOUSE_PASSWORD_FILE file whose first line is the password
    MT_RECORDER_CLICKHOUSE_DATABASE      database                                                             [the user's own]
    MT_RECORDER_CLICKHOUSE_TABLE         table, made by `mt-detector schema`                                  [megatron_metrics]
    MT_RECORDER_CLICKHOUSE_CA_FILE       PEM file of the authority behind https                               [the system's]

Rows are those of the table `megatron_metrics`: `megatron_timers` (seconds in the iteration, calls summed),
`megatron_timers_trace` (start, end, start, end, ... of each call), `megatron_parallel_group_rank` (the rank's position
in tp, cp, dp, pp, ep, etp) and `megatron_recorder` (`lost_iterations`, `lost_rows`, `lost_calls`: totals since the
start, written only where something was lost).
"""

from __future__ import annotations

import atexit
import dis
import functools
import gzip
import http.client
import importlib.abc
import importlib.util
import json
import multiprocessing
import os
import queue
import re
import shutil
import socket
import ssl
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import weakref
from collections import deque
from typing import Any, Callable, Optional

__version__ = "1"

# As the clock was when this module was loaded.
_clock = time.perf_counter
_now = time.time

_ITERATION = "forward-backward"
_STEP = "interval-time"
_QKV = "self-attention-linear-qkv"
# Work of the host: the stream's events would not see it where the host runs ahead.
_HOST_TIMERS = ("batch-generator",)
# Roles of a timer.
_IGNORED, _RECORDED, _MARKS_ITERATION, _IS_STEP = range(4)
# How long the thread waits for events of an iteration that the GPU has not reached; a hang is longer.
_EVENT_SECONDS = 60.0
# Text that may wait for a server, and text that a post carries.
_PENDING_BYTES = 64 << 20
_POST_BYTES = 4 << 20
_POST_SECONDS = 30.0
_LONGEST_BACKOFF = 60.0


class Settings:
    """What the environment asks for. A value that can't be used is a ValueError that names its variable."""

    def __init__(self, environment: "os._Environ[str] | dict[str, str]") -> None:
        def text(name: str, default: str = "") -> str:
            return environment.get("MT_RECORDER_" + name, "").strip() or default

        def number(name: str, default: float, least: float, most: float = 1e12) -> float:
            given = text(name)
            try:
                value = float(given) if given else default
            except ValueError:
                value = float("nan")
            if not least <= value <= most:
                limits = f"at least {least:g}" if most == 1e12 else f"{least:g} to {most:g}"
                raise ValueError(f"MT_RECORDER_{name} is {given!r}, not a number ({limits})")
            return value

        self.level = int(number("LEVEL", 2, 0, 2))
        layers = text("QKV", "0")
        self.qkv_layers = sys.maxsize if layers == "all" else int(number("QKV", 0, 0))
        self.trace_every = int(number("TRACE_EVERY", 1, 0))
        self.job = text("JOB")
        self.rerun = text("RERUN")
        self.node = text("NODE")
        self.cluster = text("CLUSTER")
        self.queue = int(number("QUEUE", 512, 1))
        self.exit_seconds = number("EXIT_SECONDS", 20, 0)
        self.url = text("CLICKHOUSE_URL")
        self.folder = text("DIR", "" if self.url else "mt_recorder")
        self.file_seconds = number("FLUSH_SECONDS", 5, 0)
        self.post_seconds = number("FLUSH_SECONDS", 30, 0)
        self.rotate_bytes = int(number("ROTATE_MB", 64, 0.001) * (1 << 20))
        self.gzip = text("GZIP", "1") != "0"
        self.keep_files = int(number("KEEP_FILES", 0, 0))
        self.user = text("CLICKHOUSE_USER")
        self.password_file = text("CLICKHOUSE_PASSWORD_FILE")
        self.database = text("CLICKHOUSE_DATABASE")
        self.table = text("CLICKHOUSE_TABLE", "megatron_metrics")
        self.ca_file = text("CLICKHOUSE_CA_FILE")


class Step:
    """What one iteration measured, in the order of the calls."""

    __slots__ = ("iteration", "began", "stamp", "calls", "events", "anchor", "paused", "seconds", "traced")

    def __init__(self, iteration: int, began: float, stamp: float, traced: bool) -> None:
        self.iteration = iteration
        self.began = began
        self.stamp = stamp
        self.traced = traced
        # Timer -> start, end, start, end, ... by the host's clock.
        self.calls: dict[str, list[float]] = {}
        # Timer, start event, end event, events around what does not count.
        self.events: list[tuple[str, Any, Any, tuple[tuple[Any, Any], ...]]] = []
        # The event at the host's time `began`.
        self.anchor: Any = None
        # Seconds in which the step's own timer stood still: evaluation, checkpoints.
        self.paused = 0.0
        # Unknown for an iteration that no other one follows.
        self.seconds: Optional[float] = None

    def rows(self) -> int:
        """How many rows it makes."""
        names = set(self.calls).union(name for name, *_ in self.events)
        traces = len(names - {_QKV}) if self.traced else 0
        return len(names) + traces + (self.seconds is not None)


class AddedTimer:
    """A timer that Megatron leaves out at the job's level: by CUDA events, without barrier or synchronisation."""

    def __init__(self, name: str, recorder: "Recorder", role: int, silent: bool) -> None:
        self.name = name
        self._recorder = recorder
        self._role = role
        # Marks iterations only: its level was not asked for.
        self._silent = silent
        self._host = name in _HOST_TIMERS
        self._began: Any = None

    def start(self, barrier: bool = False) -> None:
        recorder = self._recorder
        if not recorder.active:
            return
        try:
            if self._role == _MARKS_ITERATION:
                recorder.begin_iteration(_clock())
            if self._silent or recorder.step is None:
                return
            self._began = _clock() if self._host else recorder.event()
        except Exception as error:
            recorder.disable(error)

    def stop(self, barrier: bool = False) -> None:
        recorder = self._recorder
        began, self._began = self._began, None
        if began is None or not recorder.active:
            return
        try:
            step = recorder.step
            if step is None or recorder.paused_at is not None:
                return
            if self._host:
                step.calls.setdefault(self.name, []).extend((began, _clock()))
            else:
                ended = recorder.event()
                if ended is not None:
                    step.events.append((self.name, began, ended, ()))
        except Exception as error:
            recorder.disable(error)

    def reset(self) -> None:
        """Megatron never logs this timer: there is nothing to reset."""

    def elapsed(self, reset: bool = True, barrier: bool = False) -> float:
        return 0.0

    def active_time(self) -> float:
        return 0.0

    def set_barrier_group(self, barrier_group: Any) -> None:
        """No barrier is waited for."""

    def set_elapsed(self, value: float) -> None:
        """Nothing is added up here."""


class Recorder:
    """Hooks Megatron's timers and hands over what an iteration measured to a thread."""

    def __init__(self) -> None:
        self.active = False
        self.settings: Any = None
        self.step: Optional[Step] = None
        self.paused_at: Optional[float] = None
        self.lost_iterations = 0
        self.lost_rows = 0
        self.writer: Optional[Writer] = None
        self._queue: Any = None
        self._iteration_of: Optional[Callable[[], int]] = None
        self._count = 0
        self._last: Optional[int] = None
        self._restarts = 0
        self._torch: Any = None
        self._events: deque[Any] = deque()
        self._added_to: Any = weakref.WeakKeyDictionary()
        # Of the last `Timers` that was used; nearly always there is one.
        self._timers: Any = None
        self._added: dict[str, AddedTimer] = {}
        self._attentions: list[Any] = []
        self._layers: list[tuple[Any, list[Any]]] = []
        self._gathers: Optional[list[tuple[Any, Any]]] = None
        self._pid = os.getpid()

    def say(self, text: str) -> None:
        """One line for people; where standard error is gone, none."""
        try:
            sys.stderr.write(f"mt_recorder: rank {_rank()}: {text}\n")
            sys.stderr.flush()
        except Exception:
            pass

    def say_once(self, text: str) -> None:
        """A line about what is alike on all ranks, from one of them."""
        if _rank() == 0:
            self.say(text)

    def disable(self, error: BaseException) -> None:
        """Ends recording for good. Training must not notice."""
        if not self.active:
            return
        self.active = False
        self.say(f"switched off, training goes on: {type(error).__name__}: {error}")
        self.step = None
        if self._queue is not None:
            self.lose(_put(self._queue, None))

    def lose(self, lost: Any) -> None:
        """Counts an iteration that found the queue full."""
        if isinstance(lost, Step):
            self.lost_iterations += 1
            self.lost_rows += lost.rows()

    # What the hooks call.

    def role(self, name: str, level: Any) -> int:
        """What a timer is to the recorder. Level 0 is set-up, evaluation and checkpoints but for the step's own timer."""
        if name == _STEP:
            return _IS_STEP
        if name == _ITERATION:
            return _MARKS_ITERATION
        return _RECORDED if isinstance(level, int) and 1 <= level <= self.settings.level else _IGNORED

    def seen(self, timers: Any, name: str, log_level: Optional[int], timer: Any) -> Any:
        """What `timers(name, log_level)` gives: Megatron's timer, or one of ours in the place of its dummy."""
        if "_mt_role" in timer.__dict__:
            return timer
        if timer is not timers.__dict__.get("_dummy_timer"):
            timer._mt_role = self.role(name, timers._log_levels.get(name))
            timer._mt_silent = timer._mt_role == _MARKS_ITERATION and self.settings.level < 1
            return timer
        # Kept apart from `timers`, which lie in a config that may be copied or pickled.
        if timers is not self._timers:
            self._timers, self._added = timers, self._added_to.setdefault(timers, {})
        known = self._added.get(name)
        if known is None:
            level = 2 if log_level is None else log_level
            if level > self.settings.level and name != _ITERATION:
                return timer
            role = self.role(name, level)
            if role == _IGNORED:
                return timer
            known = self._added[name] = AddedTimer(name, self, role, level > self.settings.level)
        return known

    def started(self, timer: Any, role: int) -> None:
        """A timer of Megatron's has started; the device is synchronised."""
        now = _clock()
        if role == _MARKS_ITERATION:
            self.begin_iteration(now)
            now = _clock()
        elif role == _IS_STEP and self.paused_at is not None:
            if self.step is not None:
                self.step.paused += now - self.paused_at
            self.paused_at = None
        timer._mt_began = now

    def stopped(self, timer: Any, role: int) -> None:
        """A timer of Megatron's has stopped; the device is synchronised."""
        now = _clock()
        if role == _IS_STEP:
            self.paused_at = now
            return
        began = timer.__dict__.pop("_mt_began", None)
        # While the step's timer stands still, Megatron evaluates or saves.
        if began is None or self.step is None or self.paused_at is not None or timer._mt_silent:
            return
        calls = self.step.calls.get(timer.name)
        if calls is None:
            self.step.calls[timer.name] = [began, now]
        else:
            calls += (began, now)

    def begin_iteration(self, now: float) -> None:
        """A forward-backward begins: the iteration before it is over, unless this is another pass of the same one."""
        before = self.step
        if before is None and self.writer is None:
            self._first()
        elif self.paused_at is not None:
            # An evaluation runs. Where the number has moved on, the loop never started the step's timer again.
            if self._iteration_of is None or before is None or self._iteration() == before.iteration:
                return
        self._count += 1
        number = self._iteration()
        if before is not None and before.iteration == number:
            return
        if self.paused_at is not None:
            if before is not None:
                before.paused += now - self.paused_at
            self.paused_at = None
        if before is not None:
            before.seconds = now - before.began - before.paused
            self._hand_over(before)
        if self._last is not None and number <= self._last:
            # Restarted within the process: the iterations that follow are run once more.
            self._restarts += 1
            _put(self._queue, f"{self._rerun}-{self._restarts}")
        self._last = number
        every = self.settings.trace_every
        self.step = Step(number, now, _now(), every > 0 and number % every == 0)
        if self._torch is not None:
            self._check_layers()
            self.step.anchor = self.event()

    def _iteration(self) -> int:
        """The number that Megatron's log will print for the iteration that begins."""
        if self._iteration_of is None:
            return self._count
        return int(self._iteration_of())

    def _hand_over(self, step: Optional[Step]) -> None:
        self.lose(_put(self._queue, step))

    def event(self) -> Any:
        """A CUDA event that the current stream records now; nothing inside a graph's capture."""
        cuda = self._torch.cuda
        if cuda.is_current_stream_capturing():
            return None
        try:
            event = self._events.pop()
        except IndexError:
            event = cuda.Event(enable_timing=True)
        event.record()
        return event

    # What happens once, when the first iteration begins.

    def _first(self) -> None:
        state = _training_state()
        if self._iteration_of is None:
            self._iteration_of = state.iteration
        torch = sys.modules.get("torch")
        cuda = getattr(torch, "cuda", None)
        device = None
        if cuda is not None and cuda.is_available():
            self._torch = torch
            device = cuda.current_device()
        elif self.settings.level > 0:
            self.say_once("no CUDA device: only the timers that Megatron runs itself are recorded")
        identity = Identity(self.settings, state.started)
        self._rerun = identity.rerun
        self.writer = Writer(self, identity, _group_positions(), device)
        self._queue = self.writer.queue
        self.writer.start()
        if identity.rank == 0:
            self.say(f"version {__version__} records job {identity.job}, run {identity.rerun}, to {self.writer.targets()}")
        if not self.writer.groups:
            self.say_once("parallel groups are not known: tell `analyze` the sizes (--tp, --pp, ...)")
        self._attach_layers()

    # The attention's qkv projection.

    def built(self, attention: Any) -> None:
        """An attention was built. Hooks wait for the first iteration, when whoever else hooks the layer has done so."""
        if len(self._attentions) < self.settings.qkv_layers:
            self._attentions.append(weakref.ref(attention))

    def _attach_layers(self) -> None:
        if not self.settings.qkv_layers:
            return
        attentions = [attention for attention in (reference() for reference in self._attentions) if attention is not None]
        for attention in attentions:
            layer = getattr(attention, "linear_qkv", None)
            if layer is not None and self._torch is not None:
                self._layers.append((layer, []))
                self._hook(*self._layers[-1], gathers=_gathers_input(attention))
        if not self._layers:
            self.say_once(f"{_QKV} is not recorded: no attention with a linear_qkv was built, or there is no CUDA device")

    def _hook(self, layer: Any, handles: list[Any], gathers: bool) -> None:
        running: list[Any] = []

        def before(*_: Any) -> None:
            if not self.active:
                return
            try:
                if self.step is not None and self.paused_at is None:
                    running[:] = [self.event()]
                    self._gathers = []
            except Exception as error:
                self.disable(error)

        def after(*_: Any) -> None:
            gathered, self._gathers = self._gathers, None
            if not running or not self.active:
                return
            try:
                began, ended = running.pop(), self.event()
                if began is None or ended is None or self.step is None:
                    return
                if gathers and not gathered:
                    self._forget_layers()
                    return
                self.step.events.append((_QKV, began, ended, tuple(gathered or ())))
            except Exception as error:
                self.disable(error)

        layer._mt_gathers = gathers
        handles[:] = [layer.register_forward_pre_hook(before), layer.register_forward_hook(after)]

    def _forget_layers(self) -> None:
        """The input's gathering waits for the other tensor-parallel ranks: with it the timer would hide who is slow."""
        for _, handles in self._layers:
            for handle in handles:
                handle.remove()
        self._layers.clear()
        if self.step is not None:
            self.step.events = [event for event in self.step.events if event[0] != _QKV]
        self.say_once(f"{_QKV} is not recorded: its input is gathered where that can't be told from the product")

    def _check_layers(self) -> None:
        """Keeps our hook behind all others: that of the parameters' gathering, which waits, may be set anew."""
        for layer, handles in self._layers:
            hooks = getattr(layer, "_forward_pre_hooks", None)
            if hooks and next(reversed(hooks)) != handles[0].id:
                for handle in handles:
                    handle.remove()
                self._hook(layer, handles, layer._mt_gathers)

    def around_gather(self, gather: Callable[..., Any]) -> Callable[..., Any]:
        """Times a gathering of a layer's input while a qkv projection runs."""

        @functools.wraps(gather)
        def timed(*arguments: Any, **named: Any) -> Any:
            if self._gathers is None or not self.active:
                return gather(*arguments, **named)
            try:
                began = self.event()
            except Exception as error:
                began = None
                self.disable(error)
            result = gather(*arguments, **named)
            try:
                if began is not None and self.active and self._gathers is not None:
                    self._gathers.append((began, self.event()))
            except Exception as error:
                self.disable(error)
            return result

        return timed

    # The end.

    def stop(self) -> None:
        """Hands over the last iteration, without its step time, and waits for the thread as long as is allowed."""
        if os.getpid() != self._pid:
            return
        writer, step, was_active = self.writer, self.step, self.active
        self.step = None
        if was_active and step is not None:
            self._hand_over(step)
        self.active = False
        if writer is None:
            # Workers of a data loader import the script too.
            if was_active and _saw_timers() and multiprocessing.parent_process() is None:
                self.say_once("no forward-backward timer was started (config.timers is not set?): nothing was recorded")
            return
        self.writer = None
        writer.finish(self.settings.exit_seconds)
        lost = writer.losses()
        if any(lost.values()):
            told = ", ".join(f"{value} {name.replace('lost_', '')}" for name, value in lost.items() if value)
            self.say(f"lost in this run: {told}")


def _put(waiting: "queue.Queue[Any]", item: Any) -> Any:
    """Puts without waiting; gives back what found no room."""
    try:
        waiting.put_nowait(item)
    except queue.Full:
        return item
    return None


class Identity:
    """What stands in every row of this process."""

    def __init__(self, settings: Settings, started: str) -> None:
        environment = os.environ
        self.rank = _rank()
        self.job = settings.job or environment.get("SLURM_JOB_ID") or _torchrun_id() or "megatron"
        by_launcher = environment.get("SLURMD_NODENAME") or environment.get("NODE_NAME")
        self.node = settings.node or by_launcher or socket.gethostname()
        self.cluster = settings.cluster
        self.rerun = settings.rerun or started or _scheduler_run() or _torchrun_id() or "run"


class Writer(threading.Thread):
    """Turns iterations into rows and gives them to the sinks."""

    def __init__(self, recorder: Recorder, identity: Identity, groups: list[tuple[str, int, int]], device: Any) -> None:
        super().__init__(name="mt_recorder", daemon=True)
        settings = recorder.settings
        self.queue: queue.Queue[Any] = queue.Queue(settings.queue)
        self.lost_calls = 0
        self._recorder = recorder
        self._identity = identity
        self.groups = groups
        self._device = device
        self._iteration = 0
        self._told: dict[str, int] = {}
        self._deadline: Optional[float] = None
        self._end = threading.Event()
        self._use_rerun(identity.rerun)
        self._sinks: list[Any] = []
        if settings.folder:
            self._sinks.append(Files(settings, identity, recorder.say))
        if settings.url:
            self._sinks.append(ClickHouse(settings, identity.rank, recorder.say))

    def targets(self) -> str:
        """Where the rows go, for people."""
        return " and ".join(sink.target for sink in self._sinks)

    def losses(self) -> dict[str, int]:
        """Totals of what was lost."""
        return {
            "lost_iterations": self._recorder.lost_iterations,
            "lost_rows": self._recorder.lost_rows + sum(sink.lost_rows for sink in self._sinks),
            "lost_calls": self.lost_calls,
        }

    def finish(self, seconds: float) -> None:
        """Waits until everything is written, or the time is over."""
        self._deadline = time.monotonic() + seconds
        self._end.set()
        # The thread may be waiting for an iteration.
        _put(self.queue, None)
        # The thread gives up by itself when the time is over, and counts what that loses.
        self.join(seconds + 1.0)
        if self.is_alive():
            left = self.queue.qsize()
            self._recorder.say(f"{seconds:g} s are over: about {left} iterations and what was still to be sent are given up")

    def run(self) -> None:
        try:
            if self._device is not None:
                self._recorder._torch.cuda.set_device(self._device)
            self._work()
        except Exception as error:
            self._recorder.disable(error)
            for sink in self._sinks:
                sink.flush(True, time.monotonic() + 1.0)

    def _work(self) -> None:
        new = True
        while True:
            wait = min((sink.due() for sink in self._sinks), default=1.0)
            try:
                item = self.queue.get(timeout=min(max(wait, 0.05), 60.0))
            except queue.Empty:
                item = False
            if isinstance(item, Step):
                rows = self._rows(item)
                if new:
                    rows = self._group_rows(item) + rows
                    new = False
                self._write(rows)
            elif isinstance(item, str):
                self._use_rerun(item)
                new = True
            for sink in self._sinks:
                sink.flush(False)
            ended = self._end.is_set() or not self._recorder.active
            if ended and self.queue.empty():
                break
        self._write(self._loss_rows(_now()))
        deadline = self._deadline or time.monotonic() + self._recorder.settings.exit_seconds
        for sink in self._sinks:
            sink.flush(True, deadline)

    def _write(self, rows: list[str]) -> None:
        for sink in self._sinks:
            sink.add(rows)

    # Rows.

    def _use_rerun(self, rerun: str) -> None:
        identity = self._identity
        self._middle = f',"rank":{identity.rank},"iteration":'
        rest = {"node": identity.node, "cluster": identity.cluster, "rerun_uuid": rerun}
        self._tail = "," + json.dumps(rest, separators=(",", ":"))[1:-1] + ',"metric_values":['
        self._job = json.dumps(identity.job)

    def _row(self, stamp: float, kind: str, name: str, iteration: int, values: str, attributes: str = "") -> str:
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(stamp))
        return (
            f'{{"timestamp":"{when}","job":{self._job},"metric_name":"{kind}","subname":{json.dumps(name)}'
            f"{self._middle}{iteration}{self._tail}{values}]{attributes}}}\n"
        )

    def _group_rows(self, step: Step) -> list[str]:
        rows = []
        for name, position, size in self.groups:
            attributes = "," + json.dumps({"attributes": {"size": size, "recorder": __version__}}, separators=(",", ":"))[1:-1]
            rows.append(
                self._row(step.stamp, "megatron_parallel_group_rank", name, step.iteration, str(position), attributes)
            )
        for sink in self._sinks:
            sink.heading = rows
        return rows

    def _loss_rows(self, stamp: float) -> list[str]:
        """The totals that have grown since they were last written."""
        rows = []
        for name, total in self.losses().items():
            if total > self._told.get(name, 0):
                self._told[name] = total
                rows.append(self._row(stamp, "megatron_recorder", name, self._iteration, str(total)))
        return rows

    def _rows(self, step: Step) -> list[str]:
        self._iteration = step.iteration
        offset = step.stamp - step.began
        sums: dict[str, float] = {}
        traces: dict[str, list[float]] = {}
        for name, calls in step.calls.items():
            sums[name] = sum(calls[1::2]) - sum(calls[::2])
            if step.traced:
                traces[name] = [time + offset for time in calls]
        self._resolve(step, sums, traces)
        if step.seconds is not None:
            sums[_STEP] = step.seconds
        rows = []
        for name, seconds in sums.items():
            rows.append(self._row(step.stamp, "megatron_timers", name, step.iteration, repr(round(max(seconds, 0.0), 9))))
        for name, times in traces.items():
            values = ",".join([f"{time:.6f}" for time in times])
            rows.append(self._row(step.stamp, "megatron_timers_trace", name, step.iteration, values))
        return rows + self._loss_rows(step.stamp)

    def _reached(self, event: Any, patience: float) -> bool:
        while not event.query():
            if time.monotonic() > patience or (self._deadline is not None and time.monotonic() > self._deadline):
                return False
            time.sleep(0.005)
        return True

    def _resolve(self, step: Step, sums: dict[str, float], traces: dict[str, list[float]]) -> None:
        """Reads the events of an iteration, waiting for the GPU to reach them."""
        patience = time.monotonic() + _EVENT_SECONDS
        free = self._recorder._events
        unknown = set()
        for name, began, ended, without in step.events:
            if not (self._reached(ended, patience) and self._reached(began, patience)):
                # Not put back: the GPU may still be on its way to it.
                self.lost_calls += 1
                unknown.add(name)
                continue
            seconds = began.elapsed_time(ended) / 1000.0
            for first, last in without:
                seconds -= first.elapsed_time(last) / 1000.0
                free.extend((first, last))
            sums[name] = sums.get(name, 0.0) + seconds
            if step.traced and step.anchor is not None and name != _QKV:
                start = step.stamp + step.anchor.elapsed_time(began) / 1000.0
                traces.setdefault(name, []).extend((start, start + seconds))
            free.extend((began, ended))
        for name in unknown:
            # A part of the calls would look like a fast rank.
            sums.pop(name, None)
            traces.pop(name, None)
        if step.anchor is not None and step.anchor.query():
            free.append(step.anchor)


class Files:
    """Rows of one rank in files: the open one is plain text of whole lines, closed ones are gzipped."""

    def __init__(self, settings: Settings, identity: Identity, say: Callable[[str], None]) -> None:
        self._folder = os.path.join(settings.folder, _file_name(identity.job), _file_name(identity.rerun))
        self.target = self._folder
        self.lost_rows = 0
        # Rows that every file begins with, so that each is whole in itself.
        self.heading: list[str] = []
        self._settings = settings
        self._stem = f"rank-{identity.rank:05d}"
        self._say = say
        self._number = 0
        self._path = ""
        self._file = -1
        self._size = 0
        self._waiting: list[str] = []
        self._since = 0.0
        self._closed: deque[str] = deque()
        self._broken = False

    def add(self, rows: list[str]) -> None:
        if self._broken:
            self.lost_rows += len(rows)
        elif rows:
            if not self._waiting:
                self._since = time.monotonic()
            self._waiting += rows

    def due(self) -> float:
        """Seconds until something is to be written."""
        if not self._waiting:
            return 60.0
        return self._since + self._settings.file_seconds - time.monotonic()

    def flush(self, last: bool, deadline: float = 0.0) -> None:
        try:
            if self._waiting and (last or self.due() <= 0):
                self._write()
            if self._file >= 0 and (last or self._size >= self._settings.rotate_bytes):
                self._close()
        except OSError as error:
            self._broken = True
            self.lost_rows += len(self._waiting)
            self._waiting = []
            self._say(f"writes no more files, training goes on: {error}")

    def _write(self) -> None:
        if self._file < 0:
            self._open()
        text = "".join(self._waiting).encode()
        written = 0
        try:
            while written < len(text):
                written += os.write(self._file, text[written:])
        except OSError:
            # A line that is cut would make the file unreadable.
            os.ftruncate(self._file, self._size)
            raise
        self._size += len(text)
        self._waiting = []

    def _open(self) -> None:
        os.makedirs(self._folder, exist_ok=True)
        # A process that was started again under the same name goes on behind the files that are there.
        while True:
            self._number += 1
            self._path = os.path.join(self._folder, f"{self._stem}-{self._number:04d}.ndjson")
            if os.path.exists(self._path + ".gz"):
                continue
            try:
                self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
                break
            except FileExistsError:
                continue
        self._size = 0
        if self._number > 1 and self._waiting[: len(self.heading)] != self.heading:
            self._waiting = self.heading + self._waiting

    def _close(self) -> None:
        os.close(self._file)
        self._file = -1
        path = self._path
        if self._settings.gzip:
            beside = os.path.join(self._folder, f".{os.path.basename(path)}.gz.tmp")
            with open(path, "rb") as plain, gzip.open(beside, "wb", compresslevel=6) as packed:
                shutil.copyfileobj(plain, packed, 1 << 20)
            os.replace(beside, path + ".gz")
            os.unlink(path)
            path += ".gz"
        self._closed.append(path)
        while self._settings.keep_files and len(self._closed) > self._settings.keep_files:
            os.unlink(self._closed.popleft())


class Refused(Exception):
    """The server will not take these rows, however often they are sent."""


class ClickHouse:
    """Rows posted to a table in batches, over HTTP. The server puts inserts of many ranks together (async_insert)."""

    def __init__(self, settings: Settings, rank: int, say: Callable[[str], None]) -> None:
        url = urllib.parse.urlsplit(settings.url)
        try:
            port = f":{url.port}" if url.port else ""
        except ValueError:
            # Its message may hold a part of a password.
            port = None
        if url.scheme not in ("http", "https") or not url.hostname or port is None:
            raise ValueError("MT_RECORDER_CLICKHOUSE_URL is no URL such as http://host:8123")
        host = f"[{url.hostname}]" if ":" in url.hostname else url.hostname
        place = f"{url.scheme}://{host}{port}"
        names = [name for name in (settings.database, settings.table) if name]
        table = ".".join("`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`" for name in names)
        asked = {
            "query": f"INSERT INTO {table} FORMAT JSONEachRow",
            "async_insert": "1",
            "wait_for_async_insert": "1",
            "input_format_skip_unknown_fields": "1",
            # Times end in Z, whatever the server's zone.
            "date_time_input_format": "best_effort",
        }
        if settings.database:
            asked["database"] = settings.database
        self.target = f"{place}, table {'.'.join(names)}"
        self.lost_rows = 0
        self.heading: list[str] = []
        self._address = f"{place}{url.path.rstrip('/')}/?" + urllib.parse.urlencode(asked)
        self._headers = {"Content-Type": "application/x-ndjson", "Content-Encoding": "gzip"}
        self._headers["User-Agent"] = f"mt_recorder/{__version__}"
        user = settings.user or urllib.parse.unquote(url.username or "")
        if user:
            self._headers["X-ClickHouse-User"] = _header(user)
        key = urllib.parse.unquote(url.password or "")
        if settings.password_file:
            with open(settings.password_file, encoding="utf-8") as file:
                key = file.readline().rstrip("\r\n")
        if key:
            self._headers["X-ClickHouse-Key"] = _header(key)
        self._tls = ssl.create_default_context(cafile=settings.ca_file or None) if url.scheme == "https" else None
        self._say = say
        self._every = settings.post_seconds
        # Ranks that began together do not post together.
        self._next = time.monotonic() + self._every * (0.5 + 0.5 * ((rank * 0.6180339887) % 1.0))
        self._pending: deque[str] = deque()
        self._bytes = 0
        self._failures = 0
        self._broken = False

    def add(self, rows: list[str]) -> None:
        for row in rows:
            if self._broken or self._bytes + len(row) > _PENDING_BYTES:
                self.lost_rows += 1
            else:
                self._pending.append(row)
                self._bytes += len(row)

    def due(self) -> float:
        """Seconds until something is to be posted."""
        if not self._pending:
            return 60.0
        if self._bytes >= _POST_BYTES and not self._failures:
            return 0.0
        return self._next - time.monotonic()

    def flush(self, last: bool, deadline: float = 0.0) -> None:
        # Before the end one post at a time: the files' turn comes between two of them.
        while self._pending and (last or self.due() <= 0):
            left = deadline - time.monotonic() if last else _POST_SECONDS
            if left <= 0:
                break
            self._post_one(min(left, _POST_SECONDS))
            if not last or self._broken:
                break
            if self._failures:
                time.sleep(max(min(1.0, deadline - time.monotonic()), 0.0))
        if last and self._pending:
            self.lost_rows += len(self._pending)
            self._pending.clear()

    def _post_one(self, seconds: float) -> None:
        batch, size = [], 0
        while self._pending and size < _POST_BYTES:
            batch.append(self._pending.popleft())
            size += len(batch[-1])
        try:
            self._send(gzip.compress("".join(batch).encode(), 1), seconds)
        except Refused as error:
            self._broken = True
            self.lost_rows += len(batch) + len(self._pending)
            self._pending.clear()
            self._say(f"posts no more rows, training goes on: {error}")
            return
        except (OSError, http.client.HTTPException) as error:
            self._pending.extendleft(reversed(batch))
            self._failures += 1
            wait = min(2.0 ** (self._failures - 1), _LONGEST_BACKOFF)
            self._next = time.monotonic() + wait
            if self._failures == 1:
                self._say(f"rows wait, {self.target.split(',')[0]} does not take them: {error}")
            return
        self._bytes -= size
        self._next = time.monotonic() + self._every
        if self._failures:
            self._say(f"rows are taken again after {self._failures} attempts")
            self._failures = 0

    def _send(self, body: bytes, seconds: float) -> None:
        request = urllib.request.Request(self._address, data=body, headers=self._headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=seconds, context=self._tls) as answer:
                text = answer.read(1 << 16)
            if answer.headers.get("X-ClickHouse-Exception-Code"):
                raise OSError(_first_line(text))
        except urllib.error.HTTPError as error:
            told = f"HTTP {error.code}: {_first_line(error.read(1 << 12))}"
            if 400 <= error.code < 500 and error.code not in (408, 425, 429):
                raise Refused(told) from None
            raise OSError(told) from None


def _first_line(text: bytes) -> str:
    return text.decode("utf-8", "replace").strip().split("\n")[0][:300]


def _header(text: str) -> str:
    if any(ord(letter) < 32 for letter in text):
        # What http.client says of it would show it.
        raise ValueError("the user or password for ClickHouse has control characters in it")
    # ClickHouse reads UTF-8; http.client writes Latin-1.
    return text.encode().decode("latin-1")


def _file_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._+-]", "_", text).lstrip(".") or "_"


# What is known of the process and the job.


def _rank() -> int:
    torch = sys.modules.get("torch")
    distributed = getattr(torch, "distributed", None)
    try:
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            return int(distributed.get_rank())
    except Exception:
        pass
    for name in ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"):
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return 0


def _torchrun_id() -> str:
    name = os.environ.get("TORCHELASTIC_RUN_ID", "")
    return "" if name == "none" else name


def _scheduler_run() -> str:
    """Slurm's name of this start: the same on all ranks, another one for each start."""
    names = ("SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT")
    parts = [os.environ.get(name, "") for name in names]
    return "-".join(part or "0" for part in parts) if parts[0] and parts[1] else ""


class TrainingState:
    """What the training loop that called us knows."""

    def __init__(self) -> None:
        # The number of the iteration that runs, as its log prints it.
        self.iteration: Optional[Callable[[], int]] = None
        # When the run began, agreed on by all ranks.
        self.started = ""


def _training_state() -> TrainingState:
    """Megatron-LM's and Megatron-Bridge's state, from the functions that led to the first forward-backward."""
    state = TrainingState()
    for name in ("megatron.training.global_vars", "megatron.global_vars"):
        arguments = getattr(sys.modules.get(name), "_GLOBAL_ARGS", None)
        if arguments is not None and hasattr(arguments, "curr_iteration"):
            state.iteration = lambda: arguments.curr_iteration + 1
            break
    frame: Any = sys._getframe(1)
    while frame is not None:
        values = frame.f_globals
        if state.iteration is None and str(values.get("__name__", "")).startswith("megatron.bridge."):
            bridge = frame.f_locals.get("global_state")
            train_state = getattr(bridge, "train_state", None)
            if hasattr(train_state, "step"):
                state.iteration = lambda: bridge.train_state.step + 1
                state.started = _run_id(getattr(bridge, "start_time", None))
        if frame.f_code.co_name == "pretrain" and not state.started:
            state.started = _agreed_start(frame)
        frame = frame.f_back
    return state


def _agreed_start(frame: Any) -> str:
    """Megatron-LM's start time, where `pretrain` has put the smallest of all ranks in its place."""
    code = frame.f_code
    if "all_reduce" not in code.co_names:
        return ""
    stored = {step.argval for step in dis.get_instructions(code) if step.opname == "STORE_GLOBAL"}
    for name in ("_LEGACY_TRAIN_START_TIME", "_TRAIN_START_TIME"):
        if name in stored:
            return _run_id(frame.f_globals.get(name))
    return ""


def _run_id(seconds: Any) -> str:
    if not isinstance(seconds, float):
        return ""
    return time.strftime("%Y%m%dT%H%M%S", time.gmtime(seconds)) + f".{int(seconds % 1 * 1000):03d}"


def _group_positions() -> list[tuple[str, int, int]]:
    """(group, this rank's position, size) of the parallel groups; those of size 1 that few jobs have are left out."""
    groups = sys.modules.get("megatron.core.parallel_state")
    if groups is None or not groups.model_parallel_is_initialized():
        return []
    found = []

    def add(name: str, stem: str, always: bool) -> None:
        rank = getattr(groups, f"get_{stem}_rank", None)
        size = getattr(groups, f"get_{stem}_world_size", None)
        if rank is None or size is None:
            return
        if always or size() > 1:
            found.append((name, int(rank()), int(size())))

    add("tp", "tensor_model_parallel", True)
    add("cp", "context_parallel", False)
    add("dp", "data_parallel", True)
    add("pp", "pipeline_model_parallel", True)
    add("ep", "expert_model_parallel", False)
    if any(name == "ep" for name, *_ in found):
        add("etp", "expert_tensor_parallel", True)
    return found


def _gathers_input(attention: Any) -> bool:
    config = getattr(attention, "config", None)
    return bool(getattr(config, "sequence_parallel", False)) and getattr(config, "tensor_model_parallel_size", 1) > 1


def _saw_timers() -> bool:
    return any(name in sys.modules for name in ("megatron.core.timers", "megatron.timers"))


# Hooks, set when the module that they belong to has been loaded.

_recorder = Recorder()


def _hook_timers(module: Any) -> None:
    timer_class, timers_class = module.Timer, module.Timers
    start, stop, call = timer_class.start, timer_class.stop, timers_class.__call__
    recorder = _recorder

    @functools.wraps(start)
    def started(self: Any, barrier: bool = False) -> None:
        start(self, barrier)
        role = self.__dict__.get("_mt_role", _IGNORED)
        if role and recorder.active:
            try:
                recorder.started(self, role)
            except Exception as error:
                recorder.disable(error)

    @functools.wraps(stop)
    def stopped(self: Any, barrier: bool = False) -> None:
        stop(self, barrier)
        role = self.__dict__.get("_mt_role", _IGNORED)
        if role and recorder.active:
            try:
                recorder.stopped(self, role)
            except Exception as error:
                recorder.disable(error)

    @functools.wraps(call)
    def called(self: Any, name: str, log_level: Optional[int] = None) -> Any:
        timer = call(self, name, log_level)
        if recorder.active:
            try:
                return recorder.seen(self, name, log_level, timer)
            except Exception as error:
                recorder.disable(error)
        return timer

    timer_class.start, timer_class.stop, timers_class.__call__ = started, stopped, called


def _hook_attention(module: Any) -> None:
    attention = module.SelfAttention
    initialise = attention.__init__

    @functools.wraps(initialise)
    def initialised(self: Any, *arguments: Any, **named: Any) -> None:
        initialise(self, *arguments, **named)
        if _recorder.active:
            try:
                _recorder.built(self)
            except Exception as error:
                _recorder.disable(error)

    attention.__init__ = initialised


def _hook_gather(name: str, module: Any) -> None:
    gather = getattr(module, name, None)
    if gather is not None:
        setattr(module, name, _recorder.around_gather(gather))


_HOOKS: dict[str, Callable[[Any], None]] = {
    "megatron.core.timers": _hook_timers,
    "megatron.timers": _hook_timers,
}
_QKV_HOOKS: dict[str, Callable[[Any], None]] = {
    "megatron.core.transformer.attention": _hook_attention,
    "megatron.core.tensor_parallel.layers": functools.partial(_hook_gather, "dist_all_gather_func"),
    "transformer_engine.pytorch.module.layernorm_linear": functools.partial(_hook_gather, "gather_along_first_dim"),
    "transformer_engine.pytorch.module.linear": functools.partial(_hook_gather, "gather_along_first_dim"),
}


class _WhenLoaded(importlib.abc.MetaPathFinder):
    """Calls a hook when its module has been loaded, without loading anything itself."""

    def __init__(self, hooks: dict[str, Callable[[Any], None]]) -> None:
        self._hooks = hooks
        self._asking = threading.local()

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        hook = self._hooks.get(fullname)
        if hook is None or getattr(self._asking, "name", None) == fullname:
            return None
        self._asking.name = fullname
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._asking.name = None
        loader = getattr(spec, "loader", None)
        execute = getattr(loader, "exec_module", None)
        if execute is None:
            return spec

        def executed(module: Any) -> None:
            execute(module)
            # A loader may load others too.
            if module.__name__ == fullname:
                _set_hook(hook, module)

        try:
            loader.exec_module = executed
        except Exception as error:
            _recorder.disable(error)
        return spec


def _set_hook(hook: Callable[[Any], None], module: Any) -> None:
    try:
        hook(module)
    except Exception as error:
        _recorder.disable(error)


def _forget_in_child() -> None:
    """A forked child, such as a worker of the data loader, records nothing."""
    _recorder.active = False
    _recorder.writer = None


def _install() -> None:
    if os.environ.get("MT_RECORDER", "").strip() == "0":
        return
    _recorder.active = True
    try:
        _recorder.settings = Settings(os.environ)
        hooks = dict(_HOOKS)
        if _recorder.settings.qkv_layers:
            hooks.update(_QKV_HOOKS)
        for name in [name for name in hooks if name in sys.modules]:
            _set_hook(hooks.pop(name), sys.modules[name])
        sys.meta_path.insert(0, _WhenLoaded(hooks))
        atexit.register(stop)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_forget_in_child)
    except Exception as error:
        _recorder.disable(error)


def iteration_from(number: Callable[[], int]) -> None:
    """Sets where the number of the running iteration comes from, for loops other than Megatron-LM's and Bridge's.

    Without it iterations are counted from 1 in each process, and a resumed job's numbers begin anew.
    """
    _recorder._iteration_of = number


def stop() -> None:
    """Writes what is left and ends recording; the end of the process does so too."""
    try:
        _recorder.stop()
    except Exception as error:
        _recorder.say(f"not everything was written: {type(error).__name__}: {error}")


def main(arguments: list[str]) -> None:
    """Runs a training script, or with -m a module, with the recorder in place."""
    import runpy

    as_module = arguments[:1] == ["-m"]
    rest = arguments[1:] if as_module else arguments
    if not rest or rest[0].startswith("-"):
        sys.exit("usage: python -m mt_recorder train.py ARGUMENTS...   or   python -m mt_recorder -m MODULE ARGUMENTS...")
    sys.argv = rest
    if as_module:
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(rest[0]))
        runpy.run_path(rest[0], run_name="__main__")


if __name__ == "__main__":
    # The hooks are those of the module that training would import, not of this copy of it.
    import mt_recorder

    mt_recorder.main(sys.argv[1:])
else:
    _install()

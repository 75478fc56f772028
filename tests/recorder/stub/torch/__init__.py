"""As much of torch as Megatron's timers and parallel groups touch, on a clock that only moves when it is told to."""

from __future__ import annotations

import sys
import types
from collections import OrderedDict
from typing import Any

import simulated_clock as clock

__version__ = "2.6.0"


class _Distributed(types.ModuleType):
    """One process of a world; groups know their members, collectives wait for nobody."""

    rank, world_size = 0, 1
    # Where the clock stands when a barrier is left.
    barrier_until = 0.0
    # What a reduction over all ranks gives.
    reduced = 0.0
    ReduceOp = types.SimpleNamespace(MIN="min")

    class Group:
        def __init__(self, ranks: list[int]) -> None:
            self.ranks = list(ranks)

        def rank(self) -> int:
            return self.ranks.index(distributed.rank) if distributed.rank in self.ranks else -1

        def size(self) -> int:
            return len(self.ranks)

    def is_available(self) -> bool:
        return True

    def is_initialized(self) -> bool:
        return True

    def get_rank(self, group: Any = None) -> int:
        return group.rank() if group else self.rank

    def get_world_size(self, group: Any = None) -> int:
        return group.size() if group else self.world_size

    def new_group(self, ranks: Any = None, **_: Any) -> Any:
        return self.Group(list(range(self.world_size)) if ranks is None else list(ranks))

    def barrier(self, *_: Any, **__: Any) -> None:
        clock.set_to(max(clock.now(), self.barrier_until))

    def all_reduce(self, tensor: Any, **_: Any) -> None:
        tensor.value = self.reduced

    def all_gather_into_tensor(self, *_: Any, **__: Any) -> None:
        """The gathering of a layer's input: it waits for the slowest member."""
        clock.advance(self.gather_seconds)

    _all_gather_base = all_gather_into_tensor
    gather_seconds = 0.0


distributed = _Distributed("torch.distributed")
distributed.ProcessGroup = distributed.Group
distributed.ProcessGroupNCCL = types.SimpleNamespace(Options=object)
distributed.distributed_c10d = types.SimpleNamespace(_world=types.SimpleNamespace(pg_map={}))
_C = types.SimpleNamespace(_distributed_c10d=distributed)


class Event:
    """A CUDA event that the device has always reached, unless `hung` says that it never will."""

    hung = False
    made = 0

    def __init__(self, enable_timing: bool = False) -> None:
        assert enable_timing
        Event.made += 1

    def record(self) -> None:
        self.at = clock.now()

    def query(self) -> bool:
        return not Event.hung

    def elapsed_time(self, end: "Event") -> float:
        return (end.at - self.at) * 1000.0


class _Cuda(types.ModuleType):
    Event = Event
    available = True
    synchronisations = 0

    def is_available(self) -> bool:
        return self.available

    def current_device(self) -> int:
        return 0

    def set_device(self, device: int) -> None:
        assert device == 0

    def is_current_stream_capturing(self) -> bool:
        return False

    def synchronize(self) -> None:
        self.synchronisations += 1


cuda = _Cuda("torch.cuda")


class Tensor:
    def __init__(self, value: float) -> None:
        self.value = value

    def item(self) -> float:
        return self.value


def tensor(values: list[float], **_: Any) -> Tensor:
    return Tensor(values[0])


class _Handle:
    next_id = 0

    def __init__(self, hooks: dict[int, Any]) -> None:
        self.id = _Handle.next_id
        _Handle.next_id += 1
        self._hooks = hooks

    def remove(self) -> None:
        del self._hooks[self.id]


class Module:
    """Calls hooks in the order in which they were registered, as torch does."""

    def __init__(self) -> None:
        self._forward_pre_hooks: OrderedDict[int, Any] = OrderedDict()
        self._forward_hooks: OrderedDict[int, Any] = OrderedDict()

    def register_forward_pre_hook(self, hook: Any) -> _Handle:
        handle = _Handle(self._forward_pre_hooks)
        self._forward_pre_hooks[handle.id] = hook
        return handle

    def register_forward_hook(self, hook: Any) -> _Handle:
        handle = _Handle(self._forward_hooks)
        self._forward_hooks[handle.id] = hook
        return handle

    def __call__(self, *arguments: Any) -> Any:
        for hook in list(self._forward_pre_hooks.values()):
            hook(self, arguments)
        result = self.forward(*arguments)
        for hook in list(self._forward_hooks.values()):
            hook(self, arguments, result)
        return result


nn = types.ModuleType("torch.nn")
nn.Module = Module
for _module in (distributed, cuda, nn):
    sys.modules[_module.__name__] = _module
double = "double"

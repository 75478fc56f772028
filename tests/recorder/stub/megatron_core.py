"""Real `timers.py` and `parallel_state.py` of an unpacked megatron-core, in a package whose other modules are stubs."""

from __future__ import annotations

import os
import sys
import types

HERE = os.path.dirname(os.path.abspath(__file__))


def _module(name: str, **content: object) -> types.ModuleType:
    module = types.ModuleType(name)
    vars(module).update(content)
    sys.modules[name] = module
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], last, module)
    return module


def install(unpacked: str) -> None:
    """Makes `megatron.core` importable from the folder of an unpacked wheel."""
    core = os.path.join(unpacked, "megatron", "core")
    for name in ("timers.py", "parallel_state.py"):
        if not os.path.isfile(os.path.join(core, name)):
            raise SystemExit(f"{core} has no {name}")
    _module("megatron", __path__=[])
    _module("megatron.core", __path__=[core])
    buffers = {"GlobalMemoryBuffer": dict, "GlobalSymmetricMemoryBuffer": dict}
    _module("megatron.core.utils", is_torch_min_version=lambda *_, **__: True, **buffers)
    _module("megatron.core.inference", __path__=[])
    _module("megatron.core.inference.symmetric_memory", SymmetricMemoryManager=object)
    _module("megatron.core.transformer", __path__=[os.path.join(HERE, "transformer")])
    _module("megatron.core.tensor_parallel", __path__=[os.path.join(HERE, "tensor_parallel")])
    _module("megatron.training", __path__=[])
    _module("megatron.training.global_vars", _GLOBAL_ARGS=types.SimpleNamespace())
    try:
        import numpy  # noqa: F401
    except ImportError:
        _module("numpy")

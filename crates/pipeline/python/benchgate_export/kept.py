"""Tensors that a call leaves behind in the model: torch.export drops their computation."""

from __future__ import annotations

import collections
import sys
import types

from .source import stays

# A Python object may refer to the whole process.
DEEPEST = 4


def tensors(torch, model) -> dict:
    """The tensors in the attributes of each of the model's modules, of their classes, and of the Python modules that the
    source loaded, by their names. Items of a list or a dict have the name of the list or dict."""
    found: dict = {}
    seen: set = set()

    def walk(name: str, value, depth: int) -> None:
        if isinstance(value, torch.Tensor):
            found.setdefault(name, []).append(value)
            return
        if depth > DEEPEST or id(value) in seen or isinstance(value, (torch.nn.Module, type, str, bytes, int, float)):
            return
        seen.add(id(value))
        if isinstance(value, dict):
            items = list(value.values())
        elif isinstance(value, (list, tuple, set, frozenset, collections.deque)):
            items = list(value)
        else:
            items = [] if callable(value) else list(_attributes(value).values())
        for item in items:
            walk(name, item, depth + 1)

    def attributes(prefix: str, values: dict) -> None:
        for name, value in list(values.items()):
            if name in ("_buffers", "_parameters"):
                attributes(prefix, value)
            elif not name.startswith("__") and name != "_modules" and not isinstance(value, types.ModuleType):
                walk(prefix + name, value, 0)

    for path, module in model.named_modules():
        attributes(path and f"{path}.", vars(module))
        for kind in type(module).__mro__:
            if not kind.__module__.startswith("torch."):
                attributes(f"{kind.__name__}.", vars(kind))
    for name, module in list(sys.modules.items()):
        if isinstance(module, types.ModuleType) and not stays(name, module):
            attributes("", vars(module))
    return found


def _attributes(value) -> dict:
    try:
        # An object's own __getattr__ may raise anything.
        return object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}


def changed(before: dict, after: dict) -> list[str]:
    """The names whose tensors are others than before."""
    return sorted(name for name, values in after.items() if [id(t) for t in values] != [id(t) for t in before.get(name, [])])

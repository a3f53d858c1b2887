"""Loading the user's Python: one file, executed anew for every request, so that no model sees another's leftovers."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import os
import sys

from .protocol import Failure, Request


def load(path: str):
    if not os.path.isfile(path):
        raise Failure("import", "SOURCE_NOT_FOUND", f"no such file: {path}")
    _forget_siblings()
    name = "benchgate_model_" + hashlib.sha256(path.encode()).hexdigest()[:12]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise Failure("import", "IMPORT_FAILED", f"not a Python source: {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickles of the source look themselves up here
    directory = os.path.dirname(path)
    sys.path[:] = [p for p in sys.path if p != _added[0]]
    _added[0] = directory
    sys.path.insert(0, directory)
    try:
        spec.loader.exec_module(module)
    except Failure:
        raise
    except KeyboardInterrupt:
        raise
    except BaseException as e:
        raise Failure("import", "IMPORT_FAILED", f"{type(e).__name__}: {e}") from e
    return module


_added: list[str | None] = [None]


def _forget_siblings() -> None:
    """Drops what the last source imported from its own folder: the next one's `utils` may be another file."""
    directory = _added[0]
    if directory is None:
        return
    inside = (directory + os.sep, os.path.realpath(directory) + os.sep)
    # A virtual environment may well lie in the project's folder; it stays.
    keep = (sys.prefix + os.sep, sys.base_prefix + os.sep, os.path.dirname(os.path.abspath(__file__)) + os.sep)
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and file.startswith(inside) and not file.startswith(keep):
            del sys.modules[name]


def construct(module, request: Request):
    """Calls the symbol: returns (torch.nn.Module, inputs)."""
    make = module
    for part in request.symbol.split("."):
        make = getattr(make, part, None)
    if make is None:
        names = sorted(n for n, v in vars(module).items() if callable(v) and not n.startswith("_") and _own(v, module))
        raise Failure(
            "construct",
            "SYMBOL_NOT_FOUND",
            f"{request.source} defines no {request.symbol!r}; it defines {', '.join(names) or 'nothing callable'}",
        )
    if not callable(make):
        raise Failure("construct", "SYMBOL_NOT_FOUND", f"{request.symbol!r} is not callable")
    options = dict(request.options)
    if request.preset is not None:
        options["preset"] = request.preset
    try:
        inspect.signature(make).bind(**options)
    except TypeError as e:
        given = ", ".join(sorted(options)) or "no options"
        raise Failure("construct", "BAD_OPTIONS", f"{request.symbol} cannot be called with {given}: {e}") from None
    except ValueError:
        pass  # no signature to look at
    try:
        return make(**options)
    except KeyboardInterrupt:
        raise
    except BaseException as e:
        raise Failure("construct", "CONSTRUCT_FAILED", f"{type(e).__name__}: {e}") from e


def _own(value, module) -> bool:
    return getattr(value, "__module__", None) == module.__name__

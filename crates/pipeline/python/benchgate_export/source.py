"""Loading the user's Python: one file, executed anew for every request, so that models can't affect each other."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Sequence

from .protocol import TORCHBENCH, ZOO, Failure, Request, Unsupported
from .trace import of_environment


def load(path: str, torchbench: str | None = None, folder: str | None = None, path_entries: Sequence[str] = ()):
    """The module of a source: the user's file, one of the zoo's, or what stands for a saved model or one of torchbench's.

    A file finds its siblings, the package that it is in, and the packages in `folder`, that of the suite's sources,
    and in `path_entries`."""
    if path.startswith(ZOO):
        return _load_zoo(path.removeprefix(ZOO))
    if path.startswith(TORCHBENCH):
        from . import torchbench_model

        _start_anew()
        return torchbench_model.load(path.removeprefix(TORCHBENCH), torchbench or "")
    if not os.path.isfile(path):
        raise Failure("import", "SOURCE_NOT_FOUND", f"no such file: {path}")
    _start_anew()
    if path.endswith(".pt2"):
        from . import pt2_model

        return pt2_model.load(path)
    package, root = _package(path)
    own = "benchgate_model_" + hashlib.sha256(path.encode()).hexdigest()[:12]
    name = ".".join((*package, own))
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise Failure("import", "IMPORT_FAILED", f"not a Python source: {path}")
    if package and package[0] in sys.modules:
        raise Failure("import", "IMPORT_FAILED", f"the package {package[0]!r} of {path} has the same name as an installed package")
    sys.path[:0] = [os.path.dirname(path)] + ([root] if package else [])
    # Last: a folder of the suite does not hide an installed package.
    sys.path.extend([*([folder] if folder else []), *path_entries])
    try:
        if package:
            importlib.import_module(".".join(package))  # relative imports look their package up
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # dataclasses and pickles of the source look themselves up here
        spec.loader.exec_module(module)
    except Failure:
        raise
    except KeyboardInterrupt:
        raise
    except BaseException as e:
        # A package of another project; its own parts are not what is missing.
        where = "; `requirements` in [python] adds packages, `path` folders" if isinstance(e, ModuleNotFoundError) else ""
        raise Failure("import", "IMPORT_FAILED", f"{type(e).__name__}: {e}{where}") from e
    return module


def _package(path: str) -> tuple[list[str], str]:
    """The packages that a file is in, outermost first, and the folder that holds them."""
    folder, names = os.path.dirname(path), []
    while os.path.isfile(os.path.join(folder, "__init__.py")) and os.path.basename(folder).isidentifier():
        folder, name = os.path.split(folder)
        names.insert(0, name)
    return names, folder


def check_weights(source: str, preset: str | None, options: dict) -> None:
    """Refuses a model of the zoo whose published weights can't be had. Imports nothing heavy, so that the answer takes
    seconds."""
    published = options.get("preset", preset) == "full" and options.get("weights", "hub") == "hub"
    if not source.startswith(ZOO) or not published:
        return
    with open(_zoo_file(source.removeprefix(ZOO)), encoding="utf-8") as f:
        hub = re.search(r'^HUB = "(.+)"$', f.read(), re.MULTILINE)
    if hub is None:
        return
    from .zoo import _weights

    try:
        _weights.check_hub(hub[1], options.get("revision"))
    except (ConnectionError, ValueError) as e:
        raise Failure("construct", "CONSTRUCT_FAILED", f"{type(e).__name__}: {e}") from e


def _zoo_file(key: str) -> str:
    name = key.replace("-", "_")
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "zoo", f"{name}.py")
    if not name.isidentifier() or name.startswith("_") or not os.path.isfile(path):
        raise Failure("import", "SOURCE_NOT_FOUND", f"the zoo has no model {key!r}")
    return path


def _load_zoo(key: str):
    _start_anew()
    name = os.path.basename(_zoo_file(key)).removesuffix(".py")
    try:
        return importlib.import_module(f"benchgate_export.zoo.{name}")
    except KeyboardInterrupt:
        raise
    except BaseException as e:
        raise Failure("import", "IMPORT_FAILED", f"{type(e).__name__}: {e}") from e


_pristine: tuple | None = None


def _start_anew() -> None:
    """Undoes the last source's changes to the interpreter: its modules, wherever they are, its paths, its current folder and
    its variables. Otherwise the next source could get another one's `utils`, and its trace would lack that file."""
    global _pristine
    # All decisions first: the path of a namespace package is computed from its parent, which must still be there.
    gone = [name for name, module in list(sys.modules.items()) if not stays(name, module)]
    for name in gone:
        del sys.modules[name]
    if _pristine is None:
        _pristine = (os.getcwd(), dict(os.environ), list(sys.path), list(sys.meta_path), list(sys.path_hooks))
    folder, variables, paths, finders, hooks = _pristine
    os.chdir(folder)
    for name in set(os.environ) - set(variables):
        del os.environ[name]
    os.environ.update(variables)
    sys.path[:], sys.meta_path[:], sys.path_hooks[:] = paths, finders, hooks
    # Folders are listed again, so that the trace records them.
    sys.path_importer_cache.clear()
    importlib.invalidate_caches()


def stays(name: str, module) -> bool:
    """Modules of the environment stay; importing torch costs seconds."""
    if name == "__main__" or name.split(".")[0] in ("benchgate_export", "benchgate_backends"):
        return True
    file = getattr(module, "__file__", None)
    if isinstance(file, str):
        return of_environment(os.path.abspath(file))
    try:
        paths = list(getattr(module, "__path__", ()))
    except Exception:
        return True
    # Built in, or a package without a file of its own.
    return all(of_environment(os.path.abspath(str(path)) + os.sep) for path in paths)


def construct(module, request: Request):
    """Calls the symbol: returns (torch.nn.Module, inputs)."""
    make = module
    for part in (request.symbol or "make").split("."):
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
    if request.source.startswith(ZOO):
        # The zoo's weights may be in the folder of the user's configuration.
        weights = options.get("weights")
        if isinstance(weights, str) and weights not in ("random", "hub") and request.folder is not None:
            options["weights"] = os.path.join(request.folder, weights)
    if request.preset is not None:
        options["preset"] = request.preset
    try:
        inspect.signature(make).bind(**options)
    except TypeError as e:
        given = ", ".join(sorted(options)) or "no options"
        raise Failure("construct", "BAD_OPTIONS", f"{request.symbol or request.source} cannot be called with {given}: {e}") from None
    except ValueError:
        pass  # no signature
    try:
        with _inputs_apart(request.seed):
            return make(**options)
    except (KeyboardInterrupt, Unsupported):
        raise
    except BaseException as e:
        raise Failure("construct", "CONSTRUCT_FAILED", f"{type(e).__name__}: {e}") from e


# Functions of torch and of its tensors that draw random numbers.
_DRAWS = {"bernoulli", "multinomial", "normal", "poisson", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm"}
_DRAWS |= {f"{name}_" for name in ("bernoulli", "cauchy", "exponential", "geometric", "log_normal", "normal", "random", "uniform")}


@contextlib.contextmanager
def _inputs_apart(seed: int):
    """Gives the inputs random numbers of their own, so that one layer more, which draws its weights first, leaves them as
    they are. Everything that is neither drawn in a module's method nor for a parameter counts as an input."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    from torch.overrides import TorchFunctionMode

    # Another seed than the weights', which would otherwise be the same numbers.
    inputs = torch.Generator().manual_seed(seed + 2**32).get_state()
    usual = torch.initial_seed()

    class Apart(TorchFunctionMode):
        def __torch_function__(self, call, types, args=(), kwargs=None):
            nonlocal inputs
            kwargs = kwargs or {}
            is_draw = getattr(call, "__name__", None) in _DRAWS and kwargs.get("generator") is None
            into_parameter = any(isinstance(value, torch.nn.Parameter) for value in (*args, *kwargs.values()))
            # A model that seeds torch itself gets the numbers of its own seed.
            if not is_draw or into_parameter or torch.initial_seed() != usual or _in_method(torch.nn.Module):
                return call(*args, **kwargs)
            weights = torch.get_rng_state()
            torch.set_rng_state(inputs)
            try:
                return call(*args, **kwargs)
            finally:
                inputs = torch.get_rng_state()
                torch.set_rng_state(weights)

    with Apart():
        yield


def _in_method(kind: type) -> bool:
    """Whether one of the callers is a method of such an object."""
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_varnames[:1] == ("self",) and isinstance(frame.f_locals.get("self"), kind):
            return True
        frame = frame.f_back
    return False


def _own(value, module) -> bool:
    return getattr(value, "__module__", None) == module.__name__

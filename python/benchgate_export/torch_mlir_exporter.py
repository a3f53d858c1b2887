"""One model through torch-mlir: import, construct, run eagerly (the reference), export, write."""

from __future__ import annotations

import contextlib
import copy
import os
import random
import time

from . import source
from .protocol import Failure, Request
from .tensors import flatten, to_numpy, write_atomically


def export(request: Request, enter) -> dict:
    """Returns the answer's fields; `enter(stage, **extra)` announces what comes next."""
    seconds: dict[str, float] = {}
    started = time.perf_counter()

    @contextlib.contextmanager
    def timed(name):
        begin = time.perf_counter()
        try:
            yield
        finally:
            seconds[name] = round(time.perf_counter() - begin, 4)

    attempts: list[dict] = []
    try:
        result = _export(request, enter, timed, attempts)
    except Failure as e:
        e.extra.setdefault("attempts", attempts)
        e.extra.setdefault("seconds", seconds)
        raise
    seconds["total"] = round(time.perf_counter() - started, 4)
    return {**result, "attempts": attempts, "seconds": seconds}


def _export(request: Request, enter, timed, attempts: list[dict]) -> dict:
    enter("import")
    with timed("torch"):
        try:
            import numpy as np
            import torch
            import torch_mlir.fx  # noqa: F401
        except Exception as e:
            raise Failure("import", "EXPORTER_MISSING", f"the export environment is incomplete: {e}") from e
        _reset(torch)
    with timed("import"):
        _seed(torch, np, request.seed)
        module = source.load(request.source)

    enter("construct")
    with timed("construct"):
        _seed(torch, np, request.seed)
        model, inputs = _construct(torch, module, request)

    with torch.no_grad():
        enter("eager")
        with timed("eager"):
            expected = _eager(torch, model, inputs)
        with timed("eager64"):
            expected64, expected64_error = _eager64(torch, model, inputs, expected)
        lowered, output_type = _lower(torch, model, inputs, len(expected), request, enter, timed, attempts)

    enter("write")
    with timed("write"):
        try:
            return {
                **_write(np, request, lowered, inputs, expected, expected64),
                "expected64-error": expected64_error,
                "output-type": output_type,
            }
        except OSError as e:
            raise Failure("write", "WRITE_FAILED", f"{e.strerror}: {e.filename or request.out}") from e


def _reset(torch) -> None:
    """What a model may have changed for the whole process goes back to torch's defaults."""
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    torch.set_float32_matmul_precision("highest")
    torch.use_deterministic_algorithms(False)
    # One thread: the order of a sum, and so the reference's last bits, must not depend on the number of cores.
    torch.set_num_threads(1)
    torch._dynamo.reset()
    torch.hub.load = _no_hub


def _no_hub(*_args, **_kwargs):
    raise RuntimeError("torch.hub.load runs code from elsewhere; benchgate exports only code that is in the repository")


def _seed(torch, np, seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def _construct(torch, module, request: Request):
    made = source.construct(module, request)
    if not (isinstance(made, (tuple, list)) and len(made) == 2 and isinstance(made[0], torch.nn.Module)):
        kind = f"a {type(made).__name__}"
        if isinstance(made, (tuple, list)):
            kind += " of " + ", ".join(type(m).__name__ for m in made)
        raise Failure("construct", "BAD_MODEL", f"{request.symbol} must return (torch.nn.Module, inputs), not {kind}")
    model, inputs = made
    inputs = (inputs,) if isinstance(inputs, torch.Tensor) else inputs
    if not isinstance(inputs, (tuple, list)) or not all(isinstance(t, torch.Tensor) for t in inputs):
        raise Failure("construct", "BAD_INPUTS", f"the inputs that {request.symbol} returns must be a tuple of tensors")
    inputs = tuple(t.detach().cpu().contiguous() for t in inputs)
    model = model.cpu().eval()
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    for m in model.modules():
        # Otherwise torch-mlir finds no "state mapping for buffer" (rotary embeddings and the like).
        m._non_persistent_buffers_set = set()
    return model, inputs


def _run(model, inputs, stage_code: str = "EAGER_FAILED") -> list:
    # Clones: a model may write into its inputs.
    try:
        value = model(*(t.clone() for t in inputs))
    except KeyboardInterrupt:
        raise
    except BaseException as e:
        raise Failure("eager", stage_code, f"{type(e).__name__}: {e}") from e
    outputs = flatten(value, "eager")
    if not outputs:
        raise Failure("eager", stage_code, "the model returned no tensor")
    return [t.detach().clone() for t in outputs]


def _eager(torch, model, inputs) -> list:
    """The reference. Two runs, with the random state moving on and the model keeping its own: equal bits, or no
    reference at all."""
    first, second = _run(model, inputs), _run(model, inputs)
    if len(first) != len(second):
        raise Failure("eager", "NONDETERMINISTIC_EAGER_RUN", f"{len(first)} outputs, then {len(second)}")
    for i, (a, b) in enumerate(zip(first, second)):
        if a.shape != b.shape or a.dtype != b.dtype:
            raise Failure("eager", "NONDETERMINISTIC_EAGER_RUN", f"output {i} changed its shape or dtype between two eager runs")
        same = (a == b) | ((a != a) & (b != b))
        if not bool(same.all()):
            n = int((~same).sum())
            raise Failure(
                "eager",
                "NONDETERMINISTIC_EAGER_RUN",
                f"two eager runs on the same input differ in {n} of {a.numel()} values of output {i}",
            )
    return first


def _eager64(torch, model, inputs, expected):
    """The same in fp64, if the model can: what base's and head's own errors are measured against. Never fatal."""
    try:
        doubled = copy.deepcopy(model).double()
        wide = tuple(_double(torch, t) for t in inputs)
        outputs = _run(doubled, wide)
    except Failure as e:
        return None, str(e)[:500]
    except KeyboardInterrupt:
        raise
    except BaseException as e:
        return None, f"{type(e).__name__}: {e}"[:500]
    if [tuple(t.shape) for t in outputs] != [tuple(t.shape) for t in expected]:
        return None, "the fp64 run has other output shapes"
    for i, (wide_output, narrow) in enumerate(zip(outputs, expected)):
        if (narrow.is_floating_point() or narrow.is_complex()) and wide_output.dtype not in (torch.float64, torch.complex128):
            return None, f"output {i} is {wide_output.dtype} in the fp64 run: the model casts inside"
    return outputs, None


def _double(torch, t):
    return t.to(torch.complex128) if t.is_complex() else t.double() if t.is_floating_point() else t


def _lower(torch, model, inputs, outputs: int, request: Request, enter, timed, attempts):
    """torch.export once, then the first output type that works."""

    class Function(torch.nn.Module):
        """The model as the function that MLIR can have: the tensors of the output and nothing else, inputs unchanged."""

        def __init__(self, keep_inputs=False):
            super().__init__()
            self.model, self.keep_inputs = model, keep_inputs

        def forward(self, *inputs):
            inputs = [t.clone() for t in inputs] if self.keep_inputs else inputs
            return tuple(flatten(self.model(*inputs), "export"))

    from torch_mlir.extras.fx_decomp_util import get_decomposition_table

    def functional(function):
        return torch.export.export(function, inputs, strict=False).run_decompositions(get_decomposition_table())

    enter("export")
    with timed("torch-export"):
        try:
            program = functional(Function())
            if program.graph_signature.user_inputs_to_mutate:
                # Otherwise each input that is written to becomes one more result.
                program = functional(Function(keep_inputs=True))
        except KeyboardInterrupt:
            raise
        except BaseException as e:
            raise Failure("export", "TORCH_EXPORT_FAILED", f"torch.export: {type(e).__name__}: {_short(e)}") from e
    last = None
    for output_type in request.output_types:
        enter("export", **{"output-type": output_type})
        begin = time.perf_counter()
        error, lowered = None, None
        diagnostics: list[str] = []
        try:
            lowered = _import(program, inputs, output_type, request.function, diagnostics)
            results = _results(lowered, request.function)
            if results != outputs:
                error = f"the MLIR function has {results} results, the eager run {outputs} output tensors"
        except KeyboardInterrupt:
            raise
        except BaseException as e:
            # torch-mlir's exception says only which pipeline failed; MLIR's first complaint says why.
            why = diagnostics[0] if diagnostics else str(e)
            error, last = f"{type(e).__name__}: {_short(why)}", e
        attempts.append(
            {"output-type": output_type, "ok": error is None, "error": error, "seconds": round(time.perf_counter() - begin, 4)}
        )
        if error is None:
            return lowered, output_type
    tried = "; ".join(f"{a['output-type']}: {a['error']}" for a in attempts)
    raise Failure("export", "EXPORT_FAILED", f"no output type works: {tried}") from last


def _import(program, inputs, output_type, function, diagnostics: list[str]):
    from torch_mlir import fx, ir
    from torch_mlir.dialects import torch as torch_dialect
    from torch_mlir.extras.fx_importer import FxImporter

    context = ir.Context()
    torch_dialect.register_dialect(context)

    def note(diagnostic) -> bool:
        if diagnostic.severity == ir.DiagnosticSeverity.ERROR and len(diagnostics) < 20:
            diagnostics.append(f"{diagnostic.location}: {diagnostic.message}")
        return False  # and let it be printed too

    handler = context.attach_diagnostic_handler(note)
    try:
        return fx.export_and_import(
            program,
            *inputs,
            output_type=output_type,
            func_name=function,
            fx_importer=FxImporter(context=context),
            decomposition_table={},  # done, once for all output types
        )
    finally:
        handler.detach()


def _results(module, function: str) -> int | None:
    for op in module.body.operations:
        if op.operation.name == "func.func" and op.name.value == function:
            return len(op.type.results)
    return None


def _short(e: BaseException | str) -> str:
    return " ".join(str(e).split())[:600]


def _write(np, request: Request, lowered, inputs, expected, expected64) -> dict:
    os.makedirs(request.out, exist_ok=True)

    def arrays(tensors, pattern, what):
        described = []
        for i, tensor in enumerate(tensors):
            array = to_numpy(tensor, f"{what} {i}")
            name = pattern.format(i)
            write_atomically(os.path.join(request.out, name), lambda f: np.save(f, array, allow_pickle=False))
            entry = {"path": name, "shape": list(array.shape), "dtype": array.dtype.name}
            if array.dtype.kind in "fc":
                entry["non-finite"] = int(array.size - np.isfinite(array).sum())
            described.append(entry)
        return described

    inputs_, expected_ = arrays(inputs, "input{}.npy", "input"), arrays(expected, "expected{}.npy", "output")
    wide = arrays(expected64, "expected64_{}.npy", "output") if expected64 is not None else None
    # Hook: weights stay in the MLIR text (hexadecimal, twice their size). Moving large ones to an .irpa archive
    # would happen here, on `lowered`, before it is printed.
    mlir = f"{request.function}.mlir"
    # Last: where it is, everything is.
    write_atomically(os.path.join(request.out, mlir), lambda f: lowered.operation.print(file=f, binary=True))
    return {"mlir": mlir, "inputs": inputs_, "expected": expected_, "expected64": wide}

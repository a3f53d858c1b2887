"""One model: import, construct, run eagerly (the reference), lower, write."""

from __future__ import annotations

import contextlib
import os
import random
import time

from . import exporters, kept, onnx_model, source
from .function import with_written
from .notation import read_input
from .parameters import SCOPE, write_archive
from .parameters import raw as raw_bytes
from .protocol import OUTPUT_TYPES, ZOO, Failure, Request, Unsupported
from .tensors import flatten, raw_type, to_numpy, write_atomically


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
        export_one = onnx_model.export if request.source.endswith(".onnx") else _export
        result = export_one(request, enter, timed, attempts)
    except Failure as e:
        e.extra.setdefault("attempts", attempts)
        e.extra.setdefault("seconds", seconds)
        raise
    seconds["total"] = round(time.perf_counter() - started, 4)
    return {**result, "attempts": attempts, "seconds": seconds}


def _export(request: Request, enter, timed, attempts: list[dict]) -> dict:
    enter("import")
    source.check_weights(request.source, request.preset, request.options)
    with timed("torch"):
        try:
            import numpy as np
            import torch
        except Exception as e:
            raise Failure("import", "EXPORTER_MISSING", f"the export environment is incomplete: {e}") from e
        exporter = exporters.load(request.exporter)
        _reset(torch)
    with timed("import"):
        _seed(torch, np, request.seed)
        module = source.load(request.source, request.torchbench, request.folder, request.path)
    declared = getattr(module, "UNSUPPORTED", {}) if request.source.startswith(ZOO) else {}
    if request.exporter in declared:
        raise Unsupported(declared[request.exporter])

    enter("construct")
    with timed("construct"):
        _seed(torch, np, request.seed)
        model, inputs = _construct(torch, module, request)

    with torch.no_grad():
        enter("eager")
        with timed("eager"):
            model, expected, problem, left_out = _eager(torch, model, inputs)
        with timed("eager64"):
            expected64, expected64_error = _eager64(torch, model, inputs, expected)
        os.makedirs(request.out, exist_ok=True)
        job = exporters.Job(
            model,
            inputs,
            len(expected),
            request.function,
            request.output_types or getattr(module, "OUTPUT_TYPES", OUTPUT_TYPES),
            enter,
            request.out,
            attempts,
        )
        enter("export")
        with timed("export"):
            lowered = exporter.lower(job)

    enter("write")
    with timed("write"):
        try:
            return {
                **_write(torch, np, request, lowered, inputs, expected, expected64),
                "code": problem and "NONDETERMINISTIC_EAGER_RUN",
                "error": problem,
                "expected64-error": expected64_error,
                "left-out": left_out,
                "exporter": request.exporter,
                "output-type": lowered.output_type,
            }
        except OSError as e:
            raise Failure("write", "WRITE_FAILED", f"{e.strerror}: {e.filename or request.out}") from e


def _reset(torch) -> None:
    """What a model may have changed for the whole process goes back to torch's defaults."""
    torch.set_default_dtype(torch.float32)
    if torch.get_default_device().type != "cpu":
        torch.set_default_device("cpu")
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
    dtype = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}.get(request.dtype)
    if dtype is not None and request.source.startswith(ZOO):
        # Large models never exist in another precision: that would take twice the memory.
        torch.set_default_dtype(dtype)
    try:
        made = source.construct(module, request)
    finally:
        torch.set_default_dtype(torch.float32)
    name = request.symbol or request.source
    if not (isinstance(made, (tuple, list)) and len(made) == 2 and isinstance(made[0], torch.nn.Module)):
        kind = f"a {type(made).__name__}"
        if isinstance(made, (tuple, list)):
            kind += " of " + ", ".join(type(m).__name__ for m in made)
        raise Failure("construct", "BAD_MODEL", f"{name} must return (torch.nn.Module, inputs), not {kind}")
    model, inputs = made
    inputs = (inputs,) if isinstance(inputs, torch.Tensor) else inputs
    if not isinstance(inputs, (tuple, list)) or not all(isinstance(t, torch.Tensor) for t in inputs):
        raise Failure("construct", "BAD_INPUTS", f"the inputs that {name} returns must be a tuple of tensors")
    inputs = tuple(t.detach().cpu().contiguous() for t in _given(torch, request, inputs))
    model = model.cpu().eval()
    if dtype is not None:
        model = model.to(dtype)
        inputs = tuple(t.to(dtype) if t.is_floating_point() else t for t in inputs)
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    for m in model.modules():
        # Otherwise torch-mlir finds no "state mapping for buffer" (rotary embeddings and the like).
        m._non_persistent_buffers_set = set()
    return model, inputs


def _given(torch, request: Request, inputs):
    """The inputs that the suite gives instead of the model's own."""
    if not request.inputs:
        return inputs
    import numpy as np

    arrays = [read_input(np, text) for text in request.inputs]
    given = [torch.from_numpy(a.view("u2").copy()).view(torch.bfloat16) if a.dtype.name == "bfloat16" else torch.from_numpy(a.copy()) for a in arrays]
    found, wanted = [[(tuple(t.shape), t.dtype) for t in tensors] for tensors in (given, inputs)]
    if len(found) != len(wanted) or any(a[1] != b[1] for a, b in zip(found, wanted)):
        raise Failure("construct", "BAD_INPUTS", f"the model was saved for inputs {wanted}, the suite gives {found}")
    return tuple(given)


def _run(model, inputs, stage_code: str = "EAGER_FAILED", called: list | None = None) -> list:
    # Clones: a model may write into its inputs.
    called = [] if called is None else called
    called.extend(t.clone() for t in inputs)
    try:
        value = model(*called)
    except KeyboardInterrupt:
        raise
    except BaseException as e:
        raise Failure("eager", stage_code, f"{type(e).__name__}: {e}") from e
    outputs = flatten(value, "eager")
    if not outputs:
        raise Failure("eager", stage_code, "the model returned no tensor")
    return [t.detach().clone() for t in outputs]


def _eager(torch, model, inputs) -> tuple:
    """The model, its reference, why that is worth nothing where two runs, with the random state moving on and the model
    keeping its own, differ in a bit, and the names of what a call leaves in the model. Inputs that the model writes to become
    outputs: an export has no other place for them."""
    called: list = []
    first = _run(model, inputs, called=called)
    written = [i for i, (before, after) in enumerate(zip(inputs, called)) if before.shape != after.shape or not bool(_same(before, after).all())]
    if written:
        model = with_written(torch, model, written)
        first = _run(model, inputs)
    # What only the first call makes, such as a table of positions, is a constant of the export.
    before = kept.tensors(torch, model)
    second = _run(model, inputs)
    return model, first, _unlike(first, second), kept.changed(before, kept.tensors(torch, model))


def _same(a, b):
    if a.is_floating_point() and a.element_size() == 1:
        # torch can't compare numbers of eight bits on a processor.
        a, b = a.float(), b.float()
    return (a == b) | ((a != a) & (b != b))


def _unlike(first, second) -> str | None:
    if len(first) != len(second):
        return f"{len(first)} outputs in one eager run, {len(second)} in another"
    for i, (a, b) in enumerate(zip(first, second)):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"output {i} changed its shape or dtype between two eager runs"
        same = _same(a, b)
        if not bool(same.all()):
            n = int((~same).sum())
            return f"two eager runs on the same input differ in {n} of {a.numel()} values of output {i}"
    return None


def _eager64(torch, model, inputs, expected):
    """The same in fp64, if the model can: what base's and head's own errors are measured against. Never fatal."""
    try:
        # Here, because it imports torch, which may be missing.
        from .reference64 import widened

        wide = tuple(_double(torch, t) for t in inputs)
        with widened(model) as doubled:
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


def _write(torch, np, request: Request, lowered, inputs, expected, expected64) -> dict:
    def arrays(tensors, pattern, what):
        described = []
        for i, tensor in enumerate(tensors):
            if raw := raw_type(tensor):
                # The type is part of the name: the bytes do not say what they are.
                name = pattern.format(i).removesuffix(".npy") + f".{raw}.bin"
                data = raw_bytes(torch, tensor).tobytes()
                write_atomically(os.path.join(request.out, name), lambda f: f.write(data))
                lost = int((~torch.isfinite(tensor)).sum())
                described.append({"path": name, "shape": list(tensor.shape), "dtype": "bfloat16", "non-finite": lost})
                continue
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
    archive = lowered.archive
    if lowered.parameters:
        archive = write_archive(torch, request.out, lowered.parameters)
    mlir = f"{request.function}.mlir"
    # Last: where it is, everything is.
    write_atomically(os.path.join(request.out, mlir), lowered.write)
    parameters = [{"scope": SCOPE, "path": archive}] if archive else []
    return {"mlir": mlir, "parameters": parameters, "inputs": inputs_, "expected": expected_, "expected64": wide}

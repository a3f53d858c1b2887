"""A saved ONNX model: ONNX Runtime gives the reference and iree-import-onnx the MLIR. Needs no torch.

The reference is that of the model as it was saved: upgrading its opset is part of what is verified."""

from __future__ import annotations

import os
import shutil
import tempfile
import time

from . import onnx_wide
from .onnx_wide import session
from .exporters import short
from .exporters.onnx_exporter import imported
from .notation import read_input
from .parameters import SCOPE
from .protocol import Failure, Request
from .tensors import write_atomically

# The oldest opset that IREE's importer supports; older models are upgraded to it.
OPSET = 17

# A protocol buffer can't be larger than 2 GiB.
LARGEST_MESSAGE = (2 << 30) - (1 << 20)


def export(request: Request, enter, timed, attempts: list[dict]) -> dict:
    enter("import")
    with timed("import"):
        try:
            import numpy as np
            import onnx.reference
            import onnx.version_converter
            import onnxruntime
            from iree.compiler.tools.import_onnx import __main__ as importer
        except Exception as e:
            raise Failure("import", "EXPORTER_MISSING", f"the export environment is incomplete: {e}") from e
        os.makedirs(request.out, exist_ok=True)
        folder = tempfile.mkdtemp(prefix=".tmp-onnx-", dir=request.out)
    try:
        with timed("load"):
            model, data = _load(onnx, request.source)
            # Next to the model that is made here: ONNX Runtime reads no data from elsewhere.
            for location in data:
                _bring(os.path.dirname(request.source), location, folder)

        enter("construct")
        with timed("construct"):
            inputs = _inputs(np, onnx, model, request)
            path = os.path.join(folder, "model.onnx")
            onnx.save(model, path)

        enter("eager")
        with timed("eager"):
            expected, problem = _reference(np, onnxruntime, path, inputs)
        with timed("eager64"):
            expected64, no_fp64 = onnx_wide.run(np, onnx, onnxruntime, model, folder, inputs, expected)

        enter("export", **{"output-type": "onnx"})
        with timed("export"):
            text, archive = _import(onnx, importer, model, data, folder, request, attempts)

        enter("write")
        with timed("write"):
            try:
                return {
                    **_write(np, request, text, archive, inputs, expected, expected64),
                    "code": problem and "NONDETERMINISTIC_EAGER_RUN",
                    "error": problem,
                    "expected64-error": no_fp64,
                    "exporter": request.exporter,
                    "output-type": "onnx",
                }
            except OSError as e:
                raise Failure("write", "WRITE_FAILED", f"{e.strerror}: {e.filename or request.out}") from e
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _load(onnx, path: str):
    """The model without its external data, and the files that hold it."""
    if not os.path.isfile(path):
        raise Failure("import", "SOURCE_NOT_FOUND", f"no such file: {path}")
    try:
        # Through Python, so that the trace of this export has it.
        with open(path, "rb") as f:
            model = onnx.load_model_from_string(f.read())
        locations = sorted({_location(t) for t in onnx.external_data_helper._get_all_tensors(model) if _location(t)})
    except Exception as e:
        raise Failure("import", "IMPORT_FAILED", f"{type(e).__name__}: {short(e)}") from e
    return model, locations


def _location(tensor) -> str | None:
    if tensor.data_location != tensor.EXTERNAL:
        return None
    return next((entry.value for entry in tensor.external_data if entry.key == "location"), None)


def _bring(base: str, location: str, folder: str) -> None:
    """Puts a file of external data into `folder`, under the name that the model has for it."""
    source = os.path.realpath(os.path.join(base, location))
    if os.path.isabs(location) or os.path.commonpath([source, os.path.realpath(base)]) != os.path.realpath(base):
        raise Failure("import", "IMPORT_FAILED", f"external data {location!r} is outside of the model's folder")
    if not os.path.isfile(source):
        raise Failure("import", "IMPORT_FAILED", f"external data {location!r} does not exist")
    # Opened here so that the trace has it: the libraries that read it are native code.
    open(os.path.join(base, location), "rb").close()
    target = os.path.join(folder, location)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    # A copy, because onnx refuses links.
    shutil.copyfile(source, target)


def _inputs(np, onnx, model, request: Request) -> dict:
    """The inputs by name; sizes that the model leaves open are fixed in it. Given ones, or seeded random numbers."""
    graph = model.graph
    stored = {tensor.name for tensor in graph.initializer}
    wanted = [value for value in graph.input if value.name not in stored]
    if not wanted:
        raise Failure("construct", "BAD_MODEL", "the model has no input")
    if request.inputs and len(request.inputs) != len(wanted):
        names = ", ".join(value.name for value in wanted)
        raise Failure("construct", "BAD_INPUTS", f"the model has {len(wanted)} inputs ({names}), the suite gives {len(request.inputs)}")
    given = [read_input(np, text) for text in request.inputs]
    sizes = _sizes(wanted, given, request.options)
    del graph.value_info[:]
    for value in (*wanted, *graph.output):
        for dimension in value.type.tensor_type.shape.dim:
            if dimension.dim_param in sizes:
                dimension.dim_value = sizes[dimension.dim_param]
    numbers = np.random.default_rng(request.seed)
    rows = _rows_of_tables(graph)
    found = {}
    for index, value in enumerate(wanted):
        if not value.type.HasField("tensor_type"):
            raise Failure("construct", "BAD_MODEL", f"input {value.name} is not a tensor")
        kind = value.type.tensor_type.elem_type
        try:
            dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind))
        except KeyError:
            dtype = np.dtype(object)
        if dtype.kind not in "fiub":
            name = onnx.TensorProto.DataType.Name(kind)
            raise Failure("construct", "UNSUPPORTED_DTYPE", f"input {value.name} has type {name}, which can't be passed to ONNX Runtime as an array")
        if given:
            found[value.name] = _fitting(value, given[index], dtype)
            for dimension, size in zip(value.type.tensor_type.shape.dim, given[index].shape):
                dimension.dim_value = size
            continue
        shape = []
        for axis, dimension in enumerate(value.type.tensor_type.shape.dim):
            if dimension.dim_value <= 0:
                name = dimension.dim_param
                how = f"set options = {{ {name} = 1 }}" if name.isidentifier() else "give `inputs`"
                raise Failure("construct", "BAD_INPUTS", f"size {axis} of input {value.name} is open ({name or 'unnamed'}): {how}")
            shape.append(dimension.dim_value)
        # Flags and counts: 0 and 1 are valid for almost all of them.
        count = rows.get(value.name, 2)
        if dtype.kind in "iu":
            count = min(count, int(np.iinfo(dtype).max) + 1)
        found[value.name] = (numbers.standard_normal(shape) if dtype.kind == "f" else numbers.integers(0, count, shape)).astype(dtype)
    return found


# Operations whose output has the values of their first input, and those for which any value is valid.
PASSED_ON = {"Cast", "Expand", "Flatten", "Identity", "Reshape", "Slice", "Squeeze", "Tile", "Transpose", "Unsqueeze"}
HARMLESS = {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Shape", "Size"}


def _rows_of_tables(graph) -> dict[str, int]:
    """For each input that only selects rows of stored tables, such as token IDs, the number of rows of the smallest one: with 0
    and 1 alone, an output would not depend on most of an embedding."""
    shapes = {tensor.name: tensor.dims for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant":
            shapes.update({node.output[0]: it.t.dims for it in node.attribute if it.name == "value"})
    origins = {value.name: value.name for value in graph.input}
    rows: dict[str, int] = {}
    used_otherwise = set()
    for node in graph.node:
        selects = node.op_type == "Gather" and node.input[0] in shapes and node.input[1] in origins
        if selects:
            axis = next((it.i for it in node.attribute if it.name == "axis"), 0)
            dims, selected = shapes[node.input[0]], origins[node.input[1]]
            if -len(dims) <= axis < len(dims):
                rows[selected] = min(max(dims[axis], 1), rows.get(selected, dims[axis]))
        elif node.op_type in ("Cast", "DequantizeLinear", "Identity") and node.input[0] in shapes:
            shapes[node.output[0]] = shapes[node.input[0]]
        elif node.op_type in PASSED_ON and node.input and node.input[0] in origins:
            origins[node.output[0]] = origins[node.input[0]]
        elif node.op_type not in HARMLESS:
            used_otherwise.update(origins[name] for name in node.input if name in origins)
        # Graphs in a node, of a loop or a condition, may use any tensor.
        if any(getattr(it, "g", None) is not None and it.g.node for it in node.attribute):
            return {}
    # An output, or an operation for which large values may be out of its range.
    used_otherwise.update(origins[value.name] for value in graph.output if value.name in origins)
    return {name: count for name, count in rows.items() if name not in used_otherwise}


def _sizes(wanted, given, options: dict) -> dict[str, int]:
    """The size of each named dimension: from the options, or from the inputs that are given."""
    names = {d.dim_param for value in wanted for d in value.type.tensor_type.shape.dim if d.dim_param}
    for name, size in options.items():
        if name not in names:
            known = ", ".join(sorted(names)) or "none"
            raise Failure("construct", "BAD_OPTIONS", f"the model has no dimension {name!r}; its named dimensions: {known}")
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise Failure("construct", "BAD_OPTIONS", f"dimension {name}: expected a positive integer, found {size!r}")
    sizes = dict(options)
    for value, array in zip(wanted, given):
        dimensions = value.type.tensor_type.shape.dim
        for dimension, size in zip(dimensions, array.shape):
            if dimension.dim_param and sizes.setdefault(dimension.dim_param, size) != size:
                raise Failure("construct", "BAD_INPUTS", f"dimension {dimension.dim_param} is {sizes[dimension.dim_param]} and {size}")
    return sizes


def _fitting(value, array, dtype):
    sizes = [d.dim_value if d.dim_value > 0 else None for d in value.type.tensor_type.shape.dim]
    fits = len(sizes) == array.ndim and all(size in (None, other) for size, other in zip(sizes, array.shape))
    if not fits or array.dtype != dtype:
        wanted = "x".join([*("?" if size is None else str(size) for size in sizes), dtype.name])
        found = "x".join([*map(str, array.shape), array.dtype.name])
        raise Failure("construct", "BAD_INPUTS", f"input {value.name}: expected {wanted}, found {found}")
    return array


def _reference(np, onnxruntime, path: str, inputs: dict):
    """The outputs of ONNX Runtime, and why they can't be the reference where two runs differ in a bit."""
    try:
        made = session(onnxruntime, path)
        first, second = made.run(None, inputs), made.run(None, inputs)
    except Exception as e:
        raise Failure("eager", "EAGER_FAILED", f"ONNX Runtime: {type(e).__name__}: {short(e)}") from e
    for index, (a, b) in enumerate(zip(first, second)):
        if not isinstance(a, np.ndarray) or a.dtype.kind not in "fiub":
            raise Failure("eager", "UNSUPPORTED_VALUE", f"output {index} is not a tensor of numbers")
        if a.shape != b.shape or a.tobytes() != b.tobytes():
            return first, f"two runs of ONNX Runtime on the same input differ in output {index}"
    return first, None


def _import(onnx, importer, model, data, folder: str, request: Request, attempts: list[dict]):
    opset = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), OPSET)
    # The graph's name becomes the function's.
    model.graph.name = request.function
    ways = [("onnx", lambda: model)]
    if opset < OPSET:
        ways.insert(0, (f"onnx, opset {opset} upgraded to {OPSET}", lambda: _upgraded(onnx, model, folder)))
    last = None
    for way, make in ways:
        begin, error, result = time.perf_counter(), None, None
        try:
            result = imported(onnx, importer, make(), folder, request.out)
        except KeyboardInterrupt:
            raise
        except BaseException as e:  # the importer's own sys.exit() too
            error, last = f"{type(e).__name__}: {short(e)}", e
        seconds = round(time.perf_counter() - begin, 4)
        attempts.append({"output-type": way, "ok": error is None, "error": error, "seconds": seconds})
        if result is not None:
            return result
    tried = "; ".join(f"{a['output-type']}: {a['error']}" for a in attempts)
    raise Failure("export", "EXPORT_FAILED", f"iree-import-onnx: {tried}") from last


def _upgraded(onnx, model, folder: str):
    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    onnx.load_external_data_for_model(whole, folder)
    if whole.ByteSize() > LARGEST_MESSAGE:
        raise ValueError("models larger than 2 GiB can't be upgraded")
    return onnx.version_converter.convert_version(whole, OPSET)


def _write(np, request: Request, text: bytes, archive: str | None, inputs: dict, expected, expected64) -> dict:
    def arrays(values, pattern):
        described = []
        for index, array in enumerate(values):
            name = pattern.format(index)
            write_atomically(os.path.join(request.out, name), lambda f: np.save(f, array, allow_pickle=False))
            described.append({"path": name, "shape": list(array.shape), "dtype": array.dtype.name})
        return described

    mlir = f"{request.function}.mlir"
    written = {
        "inputs": arrays(inputs.values(), "input{}.npy"),
        "expected": arrays(expected, "expected{}.npy"),
        "expected64": arrays(expected64, "expected64_{}.npy") if expected64 is not None else None,
    }
    # Last: where it is, everything is.
    write_atomically(os.path.join(request.out, mlir), lambda f: f.write(text))
    return {"mlir": mlir, "parameters": [{"scope": SCOPE, "path": archive}] if archive else [], **written}

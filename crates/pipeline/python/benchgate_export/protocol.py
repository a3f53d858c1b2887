"""The line protocol between benchgate and the interpreter that exports for it.

Both directions are JSON objects, one a line, ASCII, LF. The interpreter speaks first:

    {"hello": "benchgate-export/3", "python": "3.11.7", "torch": "2.15.0" | null, "torch-mlir": … | null, …}

A request (`?` marks what may be left out; any other key is refused):

    {"id": any JSON value, echoed, "source": "/abs/models.py" with "symbol": "make_mlp", or "zoo:bert", or
     "torchbench:resnet18" with "torchbench": "/abs/checkout", or a saved model "/abs/model.onnx", "/abs/model.pt2",
     "out": "/abs/dir", "exporter"?: "torch-mlir" | "torch-xla" | "iree-turbine" | "onnx",
     "folder"?: "/abs/dir" that relative options of the zoo start at, "path"?: ["/abs/dir"] to import from, "dtype"?: "bf16", "preset"?: "small" | null, "options"?: {…},
     "inputs"?: ["/abs/x.npy", "1x3xf32=@/abs/x.bin", "1x3xf32=1"] of a saved model,
     "output-type"?: "stablehlo" | ["linalg-on-tensors", …], "function"?: "main", "seed"?: 0}

Each request is answered by these lines, in this order, each flushed before the work that it announces, so that
after a crash the last line shows what the process was doing:

    {"id": …, "status": "started"}
    {"id": …, "status": "stage", "stage": "import"}          and so on through STAGES;
                                                             "export" adds "output-type", once an attempt
    {"id": …, "status": "ok" | "failed" | "unsupported", …}  the answer: see `answer`

The `trace` of an export says what it may be reused for: the files that it read and the folders that it listed, without those
of the environment, whose folders are in `environment`, and in `opaque` what it did that leaves no trace. Before each answer,
the process looks for the file BENCHGATE_END_OF_SECTION, which shows an observer what belongs to the request.

End of input ends the process with exit 0. A line that is not a request is answered with stage "request".
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field
from typing import Any

STAGES = ("request", "import", "construct", "eager", "export", "write")

EXPORTERS = ("torch-mlir", "torch-xla", "iree-turbine", "onnx")

# The order in which output types are tried when neither the request nor the model names one.
OUTPUT_TYPES = ("linalg-on-tensors", "stablehlo", "torch")

# What a model may be cast to.
DTYPES = ("f64", "f32", "f16", "bf16")

ZOO = "zoo:"
TORCHBENCH = "torchbench:"

# Models that are files of their own, not code.
SAVED = (".onnx", ".pt2")

TRACEBACK_LIMIT = 20_000
ERROR_LIMIT = 2_000


class Failure(Exception):
    """A model's failure: where (`stage`), which (`code`) and, in one short text, why."""

    def __init__(self, stage: str, code: str, message: str, **extra: Any):
        super().__init__(message)
        assert stage in STAGES
        self.stage, self.code, self.extra = stage, code, extra


class Unsupported(Exception):
    """Known not to work, or not possible here, with the reason: no failure, and no success."""


@dataclass(frozen=True)
class Request:
    id: Any
    source: str
    out: str
    symbol: str | None = None
    exporter: str = "torch-mlir"
    folder: str | None = None
    path: list[str] = field(default_factory=list)
    """Folders to import from, after the suite's own."""
    preset: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    """Of a saved model, in the suite's notation with absolute paths."""
    torchbench: str | None = None
    """The checkout, where the model is one of its."""
    output_types: tuple[str, ...] | None = None
    """None where the model's own order counts."""
    dtype: str | None = None
    function: str = "main"
    seed: int = 0


def _need(condition: bool, message: str) -> None:
    if not condition:
        raise Failure("request", "BAD_REQUEST", message)


def parse_request(line: str) -> Request:
    """Reads one request line. A Failure carries the request's id, where one could be read, in `extra`."""
    try:
        raw = json.loads(line)
    except (ValueError, RecursionError) as e:
        raise Failure("request", "BAD_REQUEST", f"not JSON: {e}", id=None) from None
    try:
        return _request(raw)
    except Failure as e:
        e.extra["id"] = raw.get("id") if isinstance(raw, dict) else None
        raise


def _request(raw: Any) -> Request:
    _need(isinstance(raw, dict), "a request is a JSON object")
    known = {"id", "source", "symbol", "exporter", "folder", "preset", "options", "out", "output-type", "function", "seed", "dtype"}
    known |= {"inputs", "torchbench", "path"}
    unknown = sorted(set(raw) - known)
    _need(not unknown, f"unknown key {unknown[0]!r}" if unknown else "")
    source = raw.get("source") if isinstance(raw.get("source"), str) else ""
    by_name, saved = source.startswith((ZOO, TORCHBENCH)), source.endswith(SAVED)
    for key in ("id", "source", "out") if by_name or saved else ("id", "source", "symbol", "out"):
        _need(raw.get(key) is not None, f"{key!r} is missing")
    for key in ("source", "symbol", "out", "folder", "torchbench"):
        value = raw.get(key)
        _need(value is None or (isinstance(value, str) and value != ""), f"{key!r} must be a string")
    _need(not ((by_name or saved) and raw.get("symbol")), "'symbol' is for Python sources only")
    _need(source.startswith(TORCHBENCH) == bool(raw.get("torchbench")), "'torchbench' goes with a model of torchbench")
    for key in ("out", "folder", "torchbench") if by_name else ("source", "out", "folder"):
        _need(raw.get(key) is None or os.path.isabs(raw[key]), f"{key!r} must be an absolute path: {raw.get(key)!r}")
    exporter = raw.get("exporter", "torch-mlir")
    _need(exporter in EXPORTERS, f"exporter {exporter!r} is not one of {', '.join(EXPORTERS)}")
    preset = raw.get("preset")
    _need(preset is None or isinstance(preset, str), "'preset' must be a string or null")
    options = raw.get("options")
    options = {} if options is None else options
    _need(isinstance(options, dict), "'options' must be an object")
    _need("preset" not in options or preset is None, "'preset' is also among the options")
    inputs = raw.get("inputs") or []
    _need(isinstance(inputs, list) and all(isinstance(i, str) for i in inputs), "'inputs' must be a list of strings")
    _need(saved or not inputs, "'inputs' is for saved models only")
    path = raw.get("path") or []
    _need(isinstance(path, list) and all(isinstance(p, str) and os.path.isabs(p) for p in path), "'path' must be a list of absolute paths")
    types = raw.get("output-type")
    types = (types,) if isinstance(types, str) else types
    named = types is None or (isinstance(types, (list, tuple)) and len(types) > 0)
    _need(named, "'output-type' must be a name or a list of names")
    for t in types or ():
        _need(t in OUTPUT_TYPES, f"output type {t!r} is not one of {', '.join(OUTPUT_TYPES)}")
    _need(raw.get("dtype") in (None, *DTYPES), f"dtype {raw.get('dtype')!r} is not one of {', '.join(DTYPES)}")
    function = raw.get("function", "main")
    # It becomes an MLIR symbol and a file name.
    _need(isinstance(function, str) and function.isidentifier() and function.isascii(), f"bad function name {function!r}")
    seed = raw.get("seed", 0)
    _need(isinstance(seed, int) and not isinstance(seed, bool) and 0 <= seed < 2**32, "'seed' must be in 0..2^32")
    return Request(
        id=raw["id"],
        source=raw["source"],
        symbol=raw.get("symbol"),
        out=raw["out"],
        exporter=exporter,
        folder=raw.get("folder"),
        preset=preset,
        options=options,
        inputs=inputs,
        torchbench=raw.get("torchbench"),
        path=path,
        output_types=None if types is None else tuple(types),
        dtype=raw.get("dtype"),
        function=function,
        seed=seed,
    )


def answer(
    request_id: Any,
    result: dict[str, Any] | None = None,
    failure: Failure | None = None,
    unsupported: Unsupported | None = None,
) -> dict[str, Any]:
    """The last line for a request. Every key is always there; what does not apply is null (lists: empty).

    An answer with status "ok" has a code and an error where the model was exported but its reference is worth
    nothing."""
    body: dict[str, Any] = {
        "id": request_id,
        "status": "failed" if failure else "unsupported" if unsupported else "ok",
        "stage": failure.stage if failure else None,
        "code": failure.code if failure else None,
        "error": str(failure or unsupported)[:ERROR_LIMIT] if failure or unsupported else None,
        "traceback": None,
        "exporter": None,
        "mlir": None,
        "parameters": [],
        "inputs": [],
        "expected": [],
        "expected64": None,
        "expected64-error": None,
        "left-out": [],
        "output-type": None,
        "attempts": [],
        "seconds": {},
        "trace": None,
    }
    extra = dict(failure.extra) if failure else {}
    extra.pop("id", None)
    if extra.get("traceback"):
        # The end of a traceback says what happened, the beginning only how we got there.
        extra["traceback"] = extra["traceback"][-TRACEBACK_LIMIT:]
    for source in (result or {}, extra):
        unknown = set(source) - set(body)
        assert not unknown, unknown
        body.update(source)
    return body


class Channel:
    """The protocol's own pair of file descriptors.

    A model may print to stdout (from Python or from C++) and read stdin; neither may touch the protocol. So the real
    descriptors move away, where child processes do not inherit them; 1 becomes stderr and 0 is empty."""

    def __init__(self, read_fd: int, write_fd: int):
        self._in = os.fdopen(read_fd, "r", encoding="utf-8", newline="\n")
        self._out_fd = write_fd

    @classmethod
    def take_stdio(cls) -> Channel:
        sys.stdout.flush()
        read_fd, write_fd = os.dup(0), os.dup(1)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        os.dup2(2, 1)
        sys.stdin = open(0, "r", closefd=False)
        sys.stdout = open(1, "w", buffering=1, errors="backslashreplace", closefd=False)
        return cls(read_fd, write_fd)

    def lines(self):
        for line in self._in:
            if line.strip():
                yield line

    def send(self, message: dict[str, Any]) -> None:
        data = (json.dumps(message, ensure_ascii=True, allow_nan=False, separators=(",", ":")) + "\n").encode("ascii")
        while data:
            data = data[os.write(self._out_fd, data) :]

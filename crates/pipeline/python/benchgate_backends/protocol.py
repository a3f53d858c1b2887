"""The protocol between benchgate and one process.

The request is a JSON object in a file. The answer is a file of JSON lines, each written before the work that it
announces, so that after a crash the last line shows what the process was doing:

    {"hello": "benchgate-backends/1", "python": "3.11.7"}
    {"stage": "import"}                                       and so on through STAGES
    {"status": "ok" | "unsupported" | "failed", …}            the answer: see `answer`

It is a file because stdout and stderr belong to the model and its compilers, and go to the log.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field, fields
from typing import Any

STAGES = ("request", "import", "construct", "eager", "compile", "verify", "warmup", "measure", "dump")
BACKENDS = ("eager", "torchscript", "inductor", "onnxruntime", "xla-lazy", "xla-dynamo", "tensorrt")
TESTS = ("eval", "train")
DTYPES = ("f64", "f32", "f16", "bf16", "amp")
PRECISIONS = ("highest", "high", "medium")
# The last four are taken while XLA compiles, in a process that measures nothing.
DUMPS = ("profile", "trace", "dynamo-counters", "xla-metrics", "xla-ir", "xla-hlo", "xla-stablehlo", "xla-compiled-hlo")
COMPILER_DUMPS = DUMPS[4:]
COLLECTED = ("dynamo-counters", "profile", "operators")

ERROR_LIMIT = 2_000
TRACEBACK_LIMIT = 20_000


class Unsupported(Exception):
    """The backend declares that it can't do this; not a failure."""


class Failed(Exception):
    """A failure with its own verification code."""

    def __init__(self, message: str, code: str | None = None):
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Request:
    """One process of one experiment. `None` is always the model's own, or the library's own."""

    source: str
    backend: str
    # Existing folder for outputs, references and the compilers' caches.
    out: str
    # None for a model of the zoo, whose source is `zoo:KEY`, one of torchbench and a saved program.
    symbol: str | None = None
    # The checkout of `torchbench:NAME`.
    torchbench: str | None = None
    # Where relative options of the zoo's models start.
    folder: str | None = None
    # Folders to import from, after that one.
    path: list[str] = field(default_factory=list)
    test: str = "eval"
    device: str = "cpu"
    preset: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    # Inputs written by the exporter; the compiled module uses the same ones.
    inputs: list[str] = field(default_factory=list)
    batch_size: int | None = None
    dtype: str | None = None
    matmul_precision: str | None = None
    seed: int = 0
    # False for a process that only compiles, for a dump of COMPILER_DUMPS.
    measure: bool = True
    verify: bool = True
    warmup_seconds: float = 0.02
    repetitions: int = 8
    # Of one repetition; without it, as many as fill `min_time_seconds`.
    iterations: int | None = None
    min_time_seconds: float = 0.04
    dump: list[str] = field(default_factory=list)
    dump_dir: str | None = None
    collect: list[str] = field(default_factory=list)
    label: str = "model"


def parse_request(text: str) -> Request:
    raw = json.loads(text)
    if not isinstance(raw, dict):
        raise ValueError("a request is a JSON object")
    raw = {key.replace("-", "_"): value for key, value in raw.items()}
    known = {f.name for f in fields(Request)}
    unknown = sorted(set(raw) - known)
    if unknown:
        raise ValueError(f"unknown key {unknown[0]!r}")
    source = str(raw.get("source"))
    without_symbol = source.startswith(("zoo:", "torchbench:")) or source.endswith(".pt2")
    for key in ("source", "backend", "out", *(() if without_symbol else ("symbol",))):
        if not isinstance(raw.get(key), str) or not raw[key]:
            raise ValueError(f"{key!r} is missing")
    request = Request(**raw)
    for value, choices, what in (
        (request.backend, BACKENDS, "backend"),
        (request.test, TESTS, "test"),
        (request.dtype, (None, *DTYPES), "dtype"),
        (request.matmul_precision, (None, *PRECISIONS), "matmul precision"),
        *((dump, DUMPS, "dump") for dump in request.dump),
        *((what, COLLECTED, "collect") for what in request.collect),
    ):
        if value not in choices:
            raise ValueError(f"{what} {value!r} is not one of {', '.join(str(c) for c in choices if c)}")
    if request.repetitions < 1 or (request.iterations is not None and request.iterations < 1):
        raise ValueError("repetitions and iterations must be at least 1")
    if request.dump and not request.dump_dir:
        raise ValueError("'dump-dir' is missing")
    of_compiler = [dump for dump in request.dump if dump in COMPILER_DUMPS]
    if request.measure and of_compiler:
        raise ValueError(f"a process that measures can't dump {of_compiler[0]}: it would change what is timed")
    if not request.measure and (len(of_compiler), len(request.dump), len(request.collect)) != (1, 1, 0):
        raise ValueError(f"a process that does not measure takes one dump of {', '.join(COMPILER_DUMPS)}")
    return request


def answer(status: str, **given: Any) -> dict[str, Any]:
    """The last line. Every key is always there; what does not apply is null or empty."""
    body: dict[str, Any] = {
        "status": status,
        "stage": None,
        "error": None,
        "code": None,
        "traceback": None,
        # Nanoseconds of one iteration, one value a repetition, in the order taken.
        "samples": [],
        "iterations": None,
        # From the uncompiled model to the end of its first call; null if nothing is compiled.
        "compile-seconds": None,
        # Whether the backend's own cache was empty: only then is that a compile time.
        "cold": True,
        # One value a repetition, by name, in seconds or counts as the name says.
        "metrics": {},
        "versions": {},
        # What was verified: the number of tensors written as actual{i}.npy, expected{i}.npy and, where the model can, expected64_{i}.npy.
        "outputs": None,
        "references64": 0,
        # [[seconds since start, host bytes, device bytes | null, stage]]
        "memory": [],
        "dumped": [],
        # What was asked for by `collect`, under the field names of run.json; null if nothing was.
        "collected": None,
    }
    unknown = set(given) - {key.replace("-", "_") for key in body}
    assert not unknown, unknown
    for key, value in given.items():
        body[key.replace("_", "-")] = value
    for key, limit in (("error", ERROR_LIMIT), ("traceback", TRACEBACK_LIMIT)):
        if body[key]:
            # The end of a traceback shows the error, the beginning only the callers.
            body[key] = body[key][:limit] if key == "error" else body[key][-limit:]
    return body


class Answers:
    """The answer file. Each line is flushed before the work continues."""

    def __init__(self, path: str):
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)

    def send(self, message: dict[str, Any]) -> None:
        data = (json.dumps(message, ensure_ascii=True, allow_nan=False, separators=(",", ":")) + "\n").encode("ascii")
        while data:
            data = data[os.write(self._fd, data) :]

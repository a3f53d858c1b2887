"""Handles one request: reads it from its file and writes the answer."""

from __future__ import annotations

import faulthandler
import os
import platform
import sys
import time
import traceback

from benchgate_export import source
from benchgate_export.protocol import Failure as ExportFailure

from . import PROTOCOL, graphs, reference, timing
from .memory import Memory
from .protocol import Answers, Failed, Request, Unsupported, answer, parse_request


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print("usage: python -m benchgate_backends REQUEST.json ANSWER.jsonl", file=sys.stderr)
        return 2
    faulthandler.enable(file=sys.stderr)
    answers = Answers(arguments[1])
    answers.send({"hello": PROTOCOL, "python": platform.python_version()})
    stage = "request"
    memory = Memory()

    def enter(name: str) -> None:
        nonlocal stage
        memory.note(stage)
        stage = name
        answers.send({"stage": name})

    try:
        with open(arguments[0], encoding="utf-8") as f:
            request = parse_request(f.read())
        result = measure(request, enter, memory)
        memory.note(stage)
        last = answer("ok", **result, memory=memory.points)
    except Unsupported as e:
        last = answer("unsupported", stage=stage, error=str(e))
    except KeyboardInterrupt:
        raise
    except BaseException as e:  # a model's own sys.exit() too
        text = str(e) if isinstance(e, (Failed, ValueError)) else f"{type(e).__name__}: {e}"
        code = getattr(e, "code", None) if isinstance(e, Failed) else None
        trace = "".join(traceback.format_exception(e))
        print(trace, file=sys.stderr)
        last = answer("failed", stage=stage, error=text, code=code, traceback=trace, memory=memory.points)
    answers.send(last)
    sys.stdout.flush()
    sys.stderr.flush()
    # Skip the interpreter's teardown: compilers and their threads crash there, and it is not measured.
    os._exit(0)


def backend_for(name: str):
    if name == "onnxruntime":
        from .onnx_backend import OnnxRuntime

        return OnnxRuntime
    if name.startswith("xla-"):
        from . import xla_backend

        return xla_backend.XlaLazy if name == "xla-lazy" else xla_backend.XlaDynamo
    from . import torch_backends as t

    return {"eager": t.Eager, "torchscript": t.TorchScript, "inductor": t.Inductor, "tensorrt": t.TensorRT}[name]


def guard_environment() -> None:
    """Prevents accidents, like the export package."""
    os.environ["TORCH_FORCE_WEIGHTS_ONLY_LOAD"] = "1"
    os.environ.pop("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", None)
    os.environ["HF_MODULES_CACHE"] = os.path.join(os.devnull, "remote-code-is-not-run")
    # A pool of compilers would still be running during the measurement.
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    sys.dont_write_bytecode = True
    # After the environment's own packages, so that backends that consist only of a runtime share one copy of torch.
    from benchgate_export.trace import PACKAGES

    sys.path.extend(PACKAGES)


def measure(request: Request, enter, memory: Memory) -> dict:
    enter("import")
    guard_environment()
    if not request.measure:
        graphs.prepare(request)
    try:
        source.check_weights(request.source, request.preset, request.options)
    except ExportFailure as e:
        raise Failed(str(e)) from e
    try:
        import torch
    except Exception as e:
        raise Unsupported(f"torch does not import: {type(e).__name__}: {e}") from e
    # The processors that the process is pinned to, which some builds ignore.
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    if request.matmul_precision is not None:
        torch.set_float32_matmul_precision(request.matmul_precision)
    backend = backend_for(request.backend)(torch, request)
    backend.check()
    versions = backend.versions()
    memory.device = backend.device_memory()

    enter("construct")
    from .case import construct

    case = construct(torch, request)

    expected, wide, code = [], [], None
    if request.verify:
        enter("eager")
        case.to(request.device if request.device.startswith("cuda") and not request.backend.startswith("xla-") else "cpu")
        expected = reference.eager(case)
        if expected:
            wide = reference.eager64(case, expected)
        else:
            code = "NONDETERMINISTIC_EAGER_RUN"

    enter("compile")
    cache = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    cold = not (cache and os.path.isdir(cache) and os.listdir(cache))
    begin = time.perf_counter()
    backend.build(case)
    if not request.measure:
        # As it is measured, and not `first`, whose inputs are copies that would be part of the graph.
        backend.run(1)
        enter("dump")
        return {"versions": versions, "dumped": graphs.keep(request)}
    actual = backend.first()
    compiled = time.perf_counter() - begin if backend.compiles else None

    outputs = None
    if request.verify and code is None:
        enter("verify")
        for tensors, pattern in ((actual, "actual{}.npy"), (expected, "expected{}.npy"), (wide, "expected64_{}.npy")):
            reference.write(tensors, request.out, pattern)
        outputs = len(expected)
        if len(actual) != len(expected):
            raise Failed(f"{len(actual)} outputs, but eager has {len(expected)}", code="FAIL")
    del actual, expected
    references64 = len(wide)
    del wide

    enter("warmup")
    last = timing.warm_up(backend.run, request.warmup_seconds)
    iterations = request.iterations or timing.iterations_for(last, request.min_time_seconds)

    enter("measure")
    samples, metrics = timing.repeat(backend.run, request.repetitions, iterations, around=_around(backend))

    taken = {}
    if request.dump or request.collect:
        enter("dump")
        from . import after

        taken = after.take(torch, backend, request, iterations)
    return {
        "samples": samples,
        "iterations": iterations,
        "compile_seconds": compiled,
        "cold": cold,
        "metrics": metrics,
        "versions": versions,
        "outputs": outputs,
        "references64": references64,
        "code": code,
        **taken,
    }


def _around(backend):
    """The backend's own metrics, if any. Looked up once, so that other backends have no overhead."""
    return backend.around if type(backend).around is not _plain() else None


def _plain():
    from .torch_backends import Eager

    return Eager.around

"""The loop: one request after another in one interpreter, so that torch is imported once."""

from __future__ import annotations

import faulthandler
import importlib.metadata
import os
import platform
import sys
import traceback

from . import PROTOCOL, trace
from .protocol import Channel, Failure, Request, Unsupported, answer, parse_request


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def hello() -> dict:
    # From the metadata: importing torch takes seconds and belongs to the first model's time.
    return {
        "hello": PROTOCOL,
        "python": platform.python_version(),
        "torch": _version("torch"),
        **{name: _version(name) for name in ("torch-mlir", "torch-xla", "iree-turbine", "onnx")},
    }


def guard_environment() -> None:
    """Rails against accidents, not a sandbox: the sources that are exported are code and run as such."""
    os.environ["TORCH_FORCE_WEIGHTS_ONLY_LOAD"] = "1"
    os.environ.pop("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", None)
    # Where transformers would put (and import from) code that came with a model from a hub.
    os.environ["HF_MODULES_CACHE"] = os.path.join(os.devnull, "remote-code-is-not-run")
    os.environ.update(trace.FIXED)
    # After the environment's own packages, whose versions they were chosen to fit.
    sys.path.extend(trace.PACKAGES)
    # Sources may lie in a checkout that is read-only, or hashed.
    sys.dont_write_bytecode = True


def serve(channel: Channel, export) -> None:
    _say(channel, hello())
    for line in channel.lines():
        try:
            request = parse_request(line)
        except Failure as e:
            _say(channel, answer(e.extra.get("id"), failure=e))
            continue
        channel.send({"id": request.id, "status": "started"})
        _say(channel, _one(channel, export, request))
        # What the model left unflushed belongs to its own part of the log.
        sys.stdout.flush()
        sys.stderr.flush()


def _say(channel: Channel, last: dict) -> None:
    trace.end_section()
    channel.send(last)


def _one(channel: Channel, export, request: Request) -> dict:
    stage = "import"

    def enter(name: str, **extra) -> None:
        nonlocal stage
        stage = name
        channel.send({"id": request.id, "status": "stage", "stage": name, **extra})

    heard = trace.begin(tuple(folder for folder in (request.out, os.environ.get("TMPDIR")) if folder))
    try:
        return answer(request.id, result={**export(request, enter), "trace": heard.answer()})
    except KeyboardInterrupt:
        raise
    except Unsupported as e:
        return answer(request.id, unsupported=e)
    except Failure as e:
        cause = e.__cause__
        if cause is not None and "traceback" not in e.extra:
            e.extra["traceback"] = "".join(traceback.format_exception(cause))
        return answer(request.id, failure=e)
    except BaseException as e:  # a model's own sys.exit() too: it must not take the other models along
        text = "".join(traceback.format_exception(e))
        failure = Failure(stage, "EXPORTER_ERROR", f"{type(e).__name__}: {e}", traceback=text)
        return answer(request.id, failure=failure)
    finally:
        trace.end()


def main() -> int:
    faulthandler.enable(file=sys.stderr)
    channel = Channel.take_stdio()
    guard_environment()
    from .exporting import export  # does not import torch yet

    try:
        serve(channel, export)
    except BrokenPipeError:
        os._exit(0)  # benchgate is gone, so there is no reader
    except KeyboardInterrupt:
        os._exit(130)
    sys.stdout.flush()
    sys.stderr.flush()
    # Not through the teardown of the interpreter: torch's and MLIR's is slow, and a crash in it would be no model's.
    os._exit(0)

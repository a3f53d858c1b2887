"""What lowers a model: one module for each exporter, with

    PACKAGES    what it needs, by the name that is imported
    lower(job)  the model of a `Job` as a `Lowered`, or a Failure

Nothing here is imported before a model asks for it: each brings a compiler along.
"""

from __future__ import annotations

import importlib
import time
from dataclasses import dataclass, field
from typing import Any, Callable

from ..protocol import EXPORTERS, Failure


@dataclass
class Job:
    """One model that ran eagerly and is now to be lowered."""

    model: Any
    inputs: tuple
    outputs: int
    """How many tensors the eager run returned."""
    function: str
    output_types: tuple[str, ...]
    enter: Callable
    """Announces where the exporter is."""
    out: str
    """The folder that receives the files."""
    attempts: list[dict] = field(default_factory=list)


@dataclass
class Lowered:
    output_type: str
    write: Callable
    """Writes the MLIR to a binary file."""
    parameters: dict[str, Any] = field(default_factory=dict)
    """Tensors that the MLIR names and does not contain."""
    archive: str | None = None
    """The parameter archive, where the exporter wrote it itself."""


def load(name: str):
    """The module of an exporter, with everything that it needs."""
    module = importlib.import_module(f".{name.replace('-', '_')}_exporter", __name__)
    for package in module.PACKAGES:
        try:
            importlib.import_module(package)
        except Exception as e:
            raise Failure("import", "EXPORTER_MISSING", f"the environment of {name} is incomplete: {e}") from e
    return module


def attempt(job: Job, output_type: str, lower: Callable[[], Lowered]) -> Lowered:
    """The one attempt of an exporter that knows one output type."""
    job.enter("export", **{"output-type": output_type})
    begin = time.perf_counter()
    error = None
    try:
        return lower()
    except (KeyboardInterrupt, Failure):
        raise
    except BaseException as e:
        error = f"{type(e).__name__}: {short(e)}"
        raise Failure("export", "EXPORT_FAILED", error) from e
    finally:
        job.attempts.append(
            {"output-type": output_type, "ok": error is None, "error": error, "seconds": round(time.perf_counter() - begin, 4)}
        )


def short(e: BaseException | str) -> str:
    return " ".join(str(e).split())[:600]


__all__ = ["EXPORTERS", "Job", "Lowered", "attempt", "load", "short"]

"""`--dump` and `--collect`: taken after the last repetition, because a profiler would affect the measurement."""

from __future__ import annotations

import json
import os

from .profiling import Profile


def take(torch, backend, request, iterations: int) -> dict:
    """The answer's `dumped` and `collected`."""
    # Before the profiler, which runs the model again.
    counters = backend.counters()
    wanted = {"profile", "trace"} & set(request.dump) or {"profile", "operators"} & set(request.collect)
    profile = Profile(torch, backend, request, iterations) if wanted else None
    return {
        "dumped": dump(backend, request, profile, counters),
        "collected": collect(backend, request, profile, counters) if request.collect else None,
    }


def collect(backend, request, profile, counters: dict) -> dict:
    collected = {}
    if "dynamo-counters" in request.collect:
        # A counter that is not a number can't be added up.
        collected["dynamo_counters"] = {
            group: {str(name): count for name, count in values.items() if isinstance(count, int)}
            for group, values in counters.items()
        }
    if "profile" in request.collect:
        collected["profile"] = profile.totals()
    if "operators" in request.collect:
        collected["operators"] = profile.operators(backend.fallback_operators())
    return collected


def dump(backend, request, profile, counters: dict) -> list[str]:
    written = []

    def path(pattern: str) -> str:
        name = pattern.format(request.label)
        written.append(name)
        return os.path.join(request.dump_dir, name)

    if request.dump:
        os.makedirs(request.dump_dir, exist_ok=True)
    if "profile" in request.dump:
        with open(path("pytorch-profile-{}.txt"), "w") as f:
            f.write(f"{profile.table()}\n")
    if "trace" in request.dump:
        profile.profiler.export_chrome_trace(path("trace-{}.json"))
    if "dynamo-counters" in request.dump and counters:
        with open(path("dynamo-counters-{}.json"), "w") as f:
            json.dump(counters, f, indent=2, sort_keys=True, default=str)
            f.write("\n")
    if "xla-metrics" in request.dump and hasattr(backend, "xla"):
        import torch_xla.debug.metrics as metrics

        with open(path("pytorch-xla-metrics-{}.txt"), "w") as f:
            f.write(metrics.metrics_report())
    return written

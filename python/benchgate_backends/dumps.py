"""Dumps for later inspection. Taken after the last repetition, because a profiler would affect the measurement."""

from __future__ import annotations

import json
import os


def dump(torch, backend, request) -> list[str]:
    os.makedirs(request.dump_dir, exist_ok=True)
    written = []

    def path(pattern: str) -> str:
        name = pattern.format(request.label)
        written.append(name)
        return os.path.join(request.dump_dir, name)

    iterations = request.iterations or 10
    if {"profile", "trace"} & set(request.dump):
        activities = [torch.profiler.ProfilerActivity.CPU]
        if request.device.startswith("cuda"):
            activities.append(torch.profiler.ProfilerActivity.CUDA)
        with torch.profiler.profile(activities=activities) as profile:
            backend.run(iterations)
        if "profile" in request.dump:
            table = profile.key_averages().table(sort_by="self_cpu_time_total", row_limit=100, max_name_column_width=100)
            with open(path("pytorch-profile-{}.txt"), "w") as f:
                f.write(f"{table}\n")
        if "trace" in request.dump:
            profile.export_chrome_trace(path("trace-{}.json"))
    if "dynamo-counters" in request.dump and (counters := backend.counters()):
        with open(path("dynamo-counters-{}.json"), "w") as f:
            json.dump(counters, f, indent=2, sort_keys=True, default=str)
            f.write("\n")
    if "xla-metrics" in request.dump and hasattr(backend, "xla"):
        import torch_xla.debug.metrics as metrics

        with open(path("pytorch-xla-metrics-{}.txt"), "w") as f:
            f.write(metrics.metrics_report())
    return written

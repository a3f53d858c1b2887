"""torch's profiler over a few iterations, for `--dump profile,trace` and `--collect profile,operators`."""

from __future__ import annotations

# Unless the request names a number: a fast model runs thousands of iterations a repetition, and the profiler keeps
# each event in memory.
MOST_ITERATIONS = 10


class Profile:
    def __init__(self, torch, backend, request, iterations: int):
        self.iterations = request.iterations or min(iterations, MOST_ITERATIONS)
        activities = [torch.profiler.ProfilerActivity.CPU]
        if request.device.startswith("cuda"):
            activities.append(torch.profiler.ProfilerActivity.CUDA)
        with torch.profiler.profile(activities=activities) as self.profiler:
            backend.run(self.iterations)
        self.events = self.profiler.key_averages()

    def table(self) -> str:
        return self.events.table(sort_by="self_cpu_time_total", row_limit=100, max_name_column_width=100)

    def totals(self) -> dict:
        """Each kernel once: its time is also part of the operator that launched it."""
        cuda = sum(_device(e, "self_{}_time_total") for e in self.events if str(e.device_type).endswith("CUDA"))
        cpu = sum(e.self_cpu_time_total for e in self.events)
        return {"iterations": self.iterations, "cpu_seconds": cpu / 1e6, "cuda_seconds": cuda / 1e6}

    def operators(self, names: set[str] | None) -> dict:
        """By name, of these operators or of all."""
        found = {}
        for event in self.events:
            if not event.key.startswith("aten::") or (names is not None and event.key not in names):
                continue
            found[event.key] = {
                "calls": event.count,
                "self_cpu_seconds": event.self_cpu_time_total / 1e6,
                "cpu_seconds": event.cpu_time_total / 1e6,
                "self_cuda_seconds": _device(event, "self_{}_time_total") / 1e6,
                "cuda_seconds": _device(event, "{}_time_total") / 1e6,
            }
        return found


def _device(event, pattern: str) -> float:
    # torch 2.4 renamed the device's times, and some versions between have both names.
    for kind in ("device", "cuda"):
        value = getattr(event, pattern.format(kind), None)
        if value is not None:
            return value
    return 0.0

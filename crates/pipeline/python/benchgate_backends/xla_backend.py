"""PyTorch/XLA, lazily and through dynamo's `openxla`."""

from __future__ import annotations

import os
import time

from .protocol import Failed, Unsupported
from .torch_backends import Eager, dynamo_counters

# results.jsonl of the torchbench runner takes these two of torch_xla's own metrics, by these names.
METRICS = ("CompileTime", "ExecuteTime")


class XlaLazy(Eager):
    compiles = True
    # Whether a repetition has reported what the compiler did before it.
    reported = False

    def check(self) -> None:
        os.environ.setdefault("PJRT_DEVICE", "CUDA" if self.request.device.startswith("cuda") else "CPU")
        try:
            import torch_xla  # noqa: F401
        except Exception as e:
            raise Unsupported(f"torch_xla does not import: {type(e).__name__}: {e}") from e
        if self.request.device not in ("cpu", "cuda"):
            raise Unsupported(f"PJRT has no device {self.request.device}")
        # Before any backward: autograd makes its queues for the devices that are known at its first one.
        torch_xla.device()

    def versions(self) -> dict[str, str]:
        import torch_xla

        return {**super().versions(), "torch-xla": torch_xla.__version__}

    def build(self, case) -> None:
        import torch_xla

        self.xla, self.case, self.tracing = torch_xla, case, 0.0
        case.to(torch_xla.device())
        # Before the clock of the first call: moving the weights is not part of compiling.
        torch_xla.sync(wait=True)
        self.call = case.model

    def run(self, iterations: int) -> None:
        for _ in range(iterations):
            started = time.perf_counter()
            # Held until the graph has run: what nothing refers to any more is never computed.
            value = self.case.step(self.call)
            self.tracing += time.perf_counter() - started
            self.xla.sync()
            del value
        self.wait()

    def wait(self) -> None:
        import torch_xla.core.xla_model as xm

        self.xla.sync()
        xm.wait_device_ops()

    def device_memory(self):
        return None

    def around(self):
        import torch_xla.debug.metrics as metrics

        # The graph was compiled before the first repetition, which would otherwise report none.
        earlier, self.reported = None if self.reported else metrics.metric_data("CompileTime"), True
        metrics.clear_all()
        self.tracing = 0.0

        def after(iterations: int) -> dict[str, float]:
            found = {"trace_total_time": self.tracing, "trace_per_iter_time": self.tracing / iterations}
            for name in METRICS:
                # (count, total in nanoseconds, samples); absent where nothing of it happened.
                data = metrics.metric_data(name)
                known = "ExecutionTime" if name == "ExecuteTime" else name
                both = [each for each in (data, earlier if name == "CompileTime" else None) if each]
                found[f"xla_{known}_time_s"] = sum(each[1] for each in both) / 1e9
                found[f"xla_{known}_number"] = sum(each[0] for each in both)
            if not found["xla_ExecutionTime_number"]:
                raise Failed("no graph was executed, so only tracing was timed")
            return found

        return after

    def fallback_operators(self) -> set[str]:
        import torch_xla.debug.metrics as metrics

        # torch_xla counts an operator by its name only where it has no lowering for it.
        return {name for name in metrics.counter_names() if name.startswith("aten::")}


class XlaDynamo(XlaLazy):
    def build(self, case) -> None:
        super().build(case)
        self.call = self.torch.compile(case.model, backend="openxla")

    def counters(self) -> dict:
        return dynamo_counters()

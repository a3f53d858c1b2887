"""The backends that run a torch callable: eager, TorchScript, torch.compile, TensorRT."""

from __future__ import annotations

import os
import shutil

from .protocol import Request, Unsupported


class Eager:
    """Also the shape of every backend: `build` makes what is timed, `run` times it, `results` is what is verified."""

    compiles = False

    def __init__(self, torch, request: Request):
        self.torch, self.request = torch, request

    def check(self) -> None:
        if self.request.device.startswith("cuda") and not self.torch.cuda.is_available():
            raise Unsupported("this torch sees no CUDA device")

    def versions(self) -> dict[str, str]:
        return {"torch": self.torch.__version__}

    def build(self, case) -> None:
        self.case, self.call = case, case.model
        case.to(self.request.device)

    def first(self) -> list:
        """The first iteration, which compiles, on inputs of its own; and its results."""
        self.case.reset()
        value = self.case.step(self.call, self.case.fresh_inputs())
        self.wait()
        return self.case.results(value)

    def run(self, iterations: int) -> None:
        for _ in range(iterations):
            self.case.step(self.call)
        self.wait()

    def wait(self) -> None:
        if self.request.device.startswith("cuda"):
            self.torch.cuda.synchronize()

    def device_memory(self):
        if self.request.device.startswith("cuda"):
            return lambda: self.torch.cuda.memory_allocated()
        return None

    def around(self):
        """A repetition's own metrics; see `timing.repeat`."""
        return None

    def counters(self) -> dict:
        return {}

    def fallback_operators(self) -> set[str] | None:
        """The operators that the backend left to eager, by name; `None` where that is not a question."""
        return None


class TorchScript(Eager):
    compiles = True

    def build(self, case) -> None:
        super().build(case)
        torch = self.torch
        with torch.set_grad_enabled(case.train):
            # Outputs may be dictionaries, which strict tracing refuses. Its own check runs the model twice more;
            # benchgate's verification is the check.
            self.call = torch.jit.trace(case.model, case.fresh_inputs(), strict=False, check_trace=False)
            if not case.train:
                self.call = torch.jit.freeze(self.call)


class Inductor(Eager):
    compiles = True

    def check(self) -> None:
        super().check()
        if self.request.device == "cpu" and cxx_compiler() is None:
            raise Unsupported("torch.compile needs a C++ compiler, but neither $CXX nor g++ nor clang++ was found")

    def build(self, case) -> None:
        super().build(case)
        import torch._inductor.config as inductor

        # The random numbers of eager, so that two runs with dropout can be compared.
        inductor.fallback_random = True
        self.call = self.torch.compile(case.model, backend="inductor")

    def counters(self) -> dict:
        return dynamo_counters()


class TensorRT(Eager):
    compiles = True

    def check(self) -> None:
        if not self.request.device.startswith("cuda"):
            raise Unsupported("TensorRT runs on CUDA devices only")
        try:
            import torch_tensorrt  # noqa: F401
        except Exception as e:
            raise Unsupported(f"torch_tensorrt does not import: {type(e).__name__}: {e}") from e
        super().check()
        if self.request.test == "train":
            raise Unsupported("TensorRT supports inference only")

    def versions(self) -> dict[str, str]:
        import torch_tensorrt

        return {**super().versions(), "torch-tensorrt": torch_tensorrt.__version__}

    def build(self, case) -> None:
        super().build(case)
        import torch_tensorrt

        self.call = torch_tensorrt.compile(case.model, ir="dynamo", inputs=list(case.fresh_inputs()))


def cxx_compiler() -> str | None:
    for name in (os.environ.get("CXX"), "g++", "clang++"):
        found = name and shutil.which(name)
        if found:
            return found
    return None


def dynamo_counters() -> dict:
    from torch._dynamo.utils import counters

    return {group: dict(values) for group, values in counters.items() if values}

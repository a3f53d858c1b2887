"""ONNX Runtime: the model goes through torch.onnx, and NumPy arrays go in and out."""

from __future__ import annotations

import os

from .protocol import Failed, Unsupported
from .torch_backends import Eager


class OnnxRuntime(Eager):
    compiles = True

    def check(self) -> None:
        if self.request.test == "train":
            raise Unsupported("the onnxruntime package supports inference only")
        if self.request.dtype == "bf16":
            raise Unsupported("onnxruntime takes NumPy arrays, which don't support bf16")
        for module in ("onnx", "onnxscript", "onnxruntime"):
            try:
                __import__(module)
            except Exception as e:
                raise Unsupported(f"{module} does not import: {type(e).__name__}: {e}") from e
        import onnxruntime

        self.provider = "CUDAExecutionProvider" if self.request.device.startswith("cuda") else "CPUExecutionProvider"
        # Without it, onnxruntime would quietly measure the CPU.
        if self.provider not in onnxruntime.get_available_providers():
            raise Unsupported(f"this onnxruntime has no {self.provider}")

    def versions(self) -> dict[str, str]:
        import onnx
        import onnxruntime

        return {**super().versions(), "onnx": onnx.__version__, "onnxruntime": onnxruntime.__version__}

    def build(self, case) -> None:
        import onnxruntime

        self.case = case
        path = os.path.join(self.request.out, "model.onnx")
        with self.torch.no_grad():
            self.torch.onnx.export(case.model, case.fresh_inputs(), path, dynamo=True, verbose=False)
        options = onnxruntime.SessionOptions()
        threads = len(os.sched_getaffinity(0))
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(path, options, providers=[self.provider])
        if self.provider not in self.session.get_providers():
            raise Failed(f"onnxruntime fell back from {self.provider}")
        self.names = [i.name for i in self.session.get_inputs()]
        # The exporter keeps the order of the arguments and leaves out those that nothing reads.
        if len(self.names) != len(case.inputs):
            raise Failed(f"the ONNX model has {len(self.names)} inputs, the module {len(case.inputs)}")
        self.feeds = {name: t.numpy() for name, t in zip(self.names, case.inputs)}

    def first(self) -> list:
        return [self.torch.from_numpy(a) for a in self.session.run(None, self.feeds)]

    def run(self, iterations: int) -> None:
        for _ in range(iterations):
            self.session.run(None, self.feeds)

    def device_memory(self):
        return None

"""A model with its inputs, set up for an experiment: dtype, batch size, eval or train."""

from __future__ import annotations

import dataclasses
import itertools
import random
from types import SimpleNamespace

from .protocol import Failed, Request, Unsupported

BATCH_OPTIONS = ("batch_size", "batch")


def seed(torch, value: int) -> None:
    import numpy as np

    random.seed(value)
    np.random.seed(value)
    torch.manual_seed(value)


def torch_dtype(torch, name: str):
    return {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[name]


class Case:
    def __init__(self, torch, model, inputs, test: str, seed: int):
        self.torch, self.model, self.inputs, self.test, self.seed = torch, model, inputs, test, seed
        self._weights = None
        # Train mode changes batch statistics, so a verified run starts from the same state as the reference.
        self._buffers = {name: buffer.detach().clone() for name, buffer in model.named_buffers()}

    @property
    def train(self) -> bool:
        return self.test == "train"

    def parameters(self):
        return [p for p in self.model.parameters() if p.requires_grad]

    def fresh_inputs(self):
        # A model may write into its inputs.
        return tuple(t.clone() for t in self.inputs)

    def reset(self) -> None:
        """The random state and the buffers of the first run: two verified runs see the same dropout."""
        with self.torch.no_grad():
            for name, buffer in self.model.named_buffers():
                if name in self._buffers:
                    buffer.copy_(self._buffers[name].to(buffer.device))
        seed(self.torch, self.seed)

    def to(self, device) -> None:
        self.model = self.model.to(device)
        self.inputs = tuple(t.to(device) for t in self.inputs)
        self._weights = None

    def loss(self, value):
        """One number whose gradient reaches every output. The weights differ from element to element: the plain mean
        of a layer norm, or of its square, is constant, and its gradient only rounding."""
        torch = self.torch
        outputs = [t for t in tensors(value) if t.is_floating_point()]
        if not outputs:
            raise Unsupported("the model has no floating-point output to train on")
        if self._weights is None:
            # Made on the host: the same numbers on every device.
            self._weights = [
                torch.cos(torch.arange(t.numel(), dtype=torch.float64)).reshape(t.shape).to(t.dtype).to(t.device)
                for t in outputs
            ]
        return sum((t * w).sum() / t.numel() ** 0.5 for t, w in zip(outputs, self._weights))

    def step(self, call, inputs=None):
        """One iteration: a forward without gradients, or forward, loss and backward. No optimiser."""
        inputs = self.inputs if inputs is None else inputs
        if not self.train:
            with self.torch.no_grad():
                return call(*inputs)
        for parameter in self.model.parameters():
            parameter.grad = None
        loss = self.loss(call(*inputs))
        loss.backward()
        return loss

    def results(self, value) -> list:
        """The verified results of an iteration: the outputs, or the loss and every parameter's gradient."""
        if not self.train:
            return [t.detach() for t in tensors(value)]
        gradients = [p.grad for p in self.model.parameters()]
        return [value.detach()] + [g.detach() for g in gradients if g is not None]


def tensors(value) -> list:
    """Depth first, as the exporter orders them."""
    from benchgate_export.tensors import flatten

    return flatten(value, "eager")


def construct(torch, request: Request) -> Case:
    from benchgate_export import source
    from benchgate_export import protocol
    from benchgate_export.protocol import Failure

    def make(options):
        seed(torch, request.seed)
        module = source.load(request.source, request.torchbench, request.folder, request.path)
        seed(torch, request.seed)
        wanted = SimpleNamespace(**{**dataclasses.asdict(request), "options": options, "function": "main", "id": 0})
        return source.construct(module, wanted)

    try:
        made = _with_batch(make, request, Failure)
    except Failure as e:
        raise Failed(str(e)) from e
    except protocol.Unsupported as e:
        raise Unsupported(str(e)) from e
    name = request.symbol or request.source
    if not (isinstance(made, (tuple, list)) and len(made) == 2 and isinstance(made[0], torch.nn.Module)):
        raise Failed(f"{name} must return (torch.nn.Module, inputs)")
    model, inputs = made
    inputs = (inputs,) if isinstance(inputs, torch.Tensor) else tuple(inputs)
    if not all(isinstance(t, torch.Tensor) for t in inputs):
        raise Failed(f"the inputs that {name} returns must be tensors")
    inputs = tuple(t.detach().cpu().contiguous() for t in inputs)
    if request.inputs and request.batch_size is None:
        inputs = _exported(torch, request.inputs, inputs)
    model = model.cpu()
    if request.dtype == "amp":
        model = autocast(torch, model, request.device)
    elif request.dtype is not None:
        dtype = torch_dtype(torch, request.dtype)
        model = model.to(dtype)
        inputs = tuple(t.to(dtype) if t.is_floating_point() else t for t in inputs)
    train = request.test == "train"
    model.train(train)
    for parameter in model.parameters():
        parameter.requires_grad_(train and (parameter.is_floating_point() or parameter.is_complex()))
    if train and not any(p.requires_grad for p in model.parameters()):
        raise Unsupported("the model has no parameter to train")
    return Case(torch, model, inputs, request.test, request.seed)


def autocast(torch, model, device: str):
    """The model under automatic mixed precision, which covers the forward and so the loss's inputs, as torchbench runs it."""
    dtype = torch.float16 if device.startswith("cuda") else torch.bfloat16

    class Amp(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, *inputs):
            # Of the tensors: the reference runs on the CPU, and under the CPU's autocast XLA's tensors stay as they are.
            kind = next(itertools.chain(inputs, self.parameters())).device.type
            with torch.autocast(kind, dtype=dtype):
                return self.model(*inputs)

    return Amp()


def _with_batch(make, request: Request, failure):
    if request.batch_size is None:
        return make(dict(request.options))
    for name in BATCH_OPTIONS:
        try:
            return make({**request.options, name: request.batch_size})
        except failure as e:
            if getattr(e, "code", None) != "BAD_OPTIONS":
                raise
    raise Unsupported(f"{request.symbol or request.source} takes no batch size: it has no parameter {' or '.join(BATCH_OPTIONS)}")


def _exported(torch, paths, constructed):
    """The inputs of the compiled module, so that both compute the same."""
    import numpy as np

    def load(path):
        if path.endswith(".bin"):
            # The exporter writes raw files of bf16 alone, which .npy can't hold: `input0.4x8xbf16.bin`.
            shape = [int(size) for size in path.split(".")[-2].split("x")[:-1]]
            with open(path, "rb") as f:
                return torch.frombuffer(bytearray(f.read()), dtype=torch.bfloat16).reshape(shape)
        return torch.from_numpy(np.load(path, allow_pickle=False).copy())

    if len(paths) != len(constructed):
        raise Failed(f"the export has {len(paths)} inputs, the constructor {len(constructed)}")
    arrays = [load(path) for path in paths]
    shapes = [tuple(a.shape) for a in arrays]
    if shapes != [tuple(t.shape) for t in constructed]:
        raise Failed(f"the exported inputs are {shapes}, the constructor's {[tuple(t.shape) for t in constructed]}")
    return tuple(a.to(t.dtype) for a, t in zip(arrays, constructed))

"""A model that torch.export saved (`.pt2`), as a source: its program, called with the example inputs that were saved with it."""

from __future__ import annotations

from types import SimpleNamespace

from .exporters import short
from .protocol import Failure


def load(path: str):
    import torch

    try:
        # Opened here so that the trace has it: torch reads archives in native code.
        open(path, "rb").close()
        program = torch.export.load(path)
    except Exception as e:
        raise Failure("import", "IMPORT_FAILED", f"torch.export.load: {type(e).__name__}: {short(e)}") from e
    return SimpleNamespace(make=lambda: _made(torch, program))


def _made(torch, program):
    if program.example_inputs is None:
        raise ValueError("the program was saved without its example inputs: pass them to torch.export.export")
    leaves, form = torch.utils._pytree.tree_flatten(program.example_inputs)
    tensors = [at for at, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    class Saved(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.program = program.module()

        def train(self, mode=True):
            # A program was saved in one mode and refuses to change it.
            return self

        def forward(self, *inputs):
            values = list(leaves)
            for at, tensor in zip(tensors, inputs):
                values[at] = tensor
            arguments, keywords = torch.utils._pytree.tree_unflatten(values, form)
            return self.program(*arguments, **keywords)

    return Saved(), tuple(leaves[at] for at in tensors)

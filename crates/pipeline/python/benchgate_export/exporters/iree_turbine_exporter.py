"""iree-turbine: torch.export to the torch dialect, with IREE's own bindings."""

from __future__ import annotations

from ..function import program
from ..parameters import SCOPE, leaves_text
from . import Job, Lowered, attempt

PACKAGES = ("iree.turbine.aot",)


def lower(job: Job) -> Lowered:
    return attempt(job, "torch", lambda: _lower(job))


def _lower(job: Job) -> Lowered:
    import torch
    from iree.turbine import aot
    from iree.turbine.aot import decompositions
    from iree.turbine.aot.tensor_traits import ExternalTensorTrait

    # Its own table leaves operators of masks (new_ones, __and__) as they are, and IREE can't legalise those.
    table = torch.export.default_decompositions()
    table.update(decompositions.current_aot_decompositions())
    exported = program(torch, job, table)
    weights: dict = {}
    for name, tensor in {**exported.state_dict, **exported.constants}.items():
        if isinstance(tensor, torch.Tensor) and leaves_text(tensor):
            name = name.removeprefix("model.")
            weights[name] = tensor
            ExternalTensorTrait(external_scope=SCOPE, external_name=name).set(tensor)
    module = aot.export(exported, function_name=job.function).mlir_module

    def write(file):
        module.print(file=file, binary=True)

    return Lowered("torch", write, weights)

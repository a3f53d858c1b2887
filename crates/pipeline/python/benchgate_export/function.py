"""A model as the function that MLIR can have, and its torch.export."""

from __future__ import annotations

from .exporters import Job, short
from .protocol import Failure
from .tensors import flatten


def function(torch, model, keep_inputs: bool = False):
    """The tensors of the output and nothing else; inputs unchanged where `keep_inputs`."""

    class Function(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, *inputs):
            inputs = [t.clone() for t in inputs] if keep_inputs else inputs
            return tuple(flatten(self.model(*inputs), "export"))

    return Function().eval()


def with_written(torch, model, written: list[int]):
    """The model with the inputs that it writes to as further outputs."""

    class Written(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, *inputs):
            inputs = [t.clone() for t in inputs]
            outputs = flatten(self.model(*inputs), "eager")
            return (*outputs, *(inputs[i] for i in written))

    return Written().train(model.training)


def program(torch, job: Job, table=None):
    """torch.export, decomposed by a table where one is given."""

    def exported(keep_inputs: bool):
        made = torch.export.export(function(torch, job.model, keep_inputs), job.inputs, strict=False)
        return made if table is None else made.run_decompositions(table)

    job.enter("export")
    try:
        made = exported(False)
        if _mutated(made):
            # Otherwise each input that is written to becomes one more result.
            made = exported(True)
        return made
    except KeyboardInterrupt:
        raise
    except BaseException as e:
        raise Failure("export", "TORCH_EXPORT_FAILED", f"torch.export: {type(e).__name__}: {short(e)}") from e


def _mutated(made) -> bool:
    # Undecomposed programs do not list what they write to: their operators' names end with an underscore.
    if made.graph_signature.user_inputs_to_mutate:
        return True
    return any(
        node.op == "call_function" and str(getattr(node.target, "_schema", "")).split("(")[0].split(".")[0].endswith("_")
        for node in made.graph.nodes
    )

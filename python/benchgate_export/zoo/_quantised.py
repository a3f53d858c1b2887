"""Four-bit weights as the published Llama checkpoints of that kind have them: groups of 32 with a scale each; the output
layer in eight bits. torchao does it.

The published ones also quantise activations to eight bits while they run. `full` does that; `small` keeps them in
float unless activations = "int8" asks for it: there a sum that rounds to the other side of a step moves an output by more
than any fp32 tolerance, so that verifying could not tell a fault from a tie."""

from __future__ import annotations

import torch

from ..protocol import Unsupported

GROUP = 32


def quantise(model, preset: str, activations: str | None):
    """Quantises the linear layers of a causal language model, in place."""
    activations = activations or ("int8" if preset == "full" else "float")
    if activations not in ("float", "int8"):
        raise ValueError(f"activations {activations!r} are none of float, int8")
    try:
        from torchao.quantization import (
            Int8DynamicActivationIntxWeightConfig,
            IntxWeightOnlyConfig,
            PerAxis,
            PerGroup,
            quantize_,
        )
    except Exception as e:
        raise Unsupported(f"torchao can't be imported here: {type(e).__name__}: {e}") from e

    def config(weight_type, granularity):
        if activations == "float":
            return IntxWeightOnlyConfig(weight_dtype=weight_type, granularity=granularity)
        return Int8DynamicActivationIntxWeightConfig(weight_dtype=weight_type, weight_granularity=granularity)

    quantize_(model.model, config(torch.int4, PerGroup(GROUP)))
    # Tied to the embedding, which stays as it is: the output layer gets weights of its own.
    model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
    quantize_(model.lm_head, config(torch.int8, PerAxis(0)))
    return model


def plain(weights: str):
    """The published four-bit checkpoints are in ExecuTorch's own format, which nothing here reads."""
    if weights == "hub":
        raise Unsupported(
            "the published four-bit checkpoint is in ExecuTorch's format; use weights = 'random', or the folder of the "
            "unquantised model, which is quantised here"
        )
    return weights

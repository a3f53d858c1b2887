"""INT4_EO8, the scheme of the quantised Llama 3.2 releases, from their model card (github.com/meta-llama/llama-models,
models/llama3_2/MODEL_CARD.md, "Quantization Scheme"):

- linear layers of the transformer blocks: 4-bit weights in groups of 32, with a scale for each group
- output layer: 8-bit weights, with a scale for each output
- embedding: 8 bits, with a scale for each token
- inputs of all these linear layers: 8 bits, quantised for each token while the model runs

The releases were made with torchao, and the arithmetic here is the same to the bit. It is written out because torchao's functions
reject fp64, so a model made of them has no fp64 reference.

`full` quantises activations. `small` does so only with `activations = "int8"`: a sum that rounds to the other side of a step moves an
output by more than the fp32 tolerance, and then only the fp64 reference can tell rounding from a fault."""

from __future__ import annotations

import torch
from torch import nn

from ..protocol import Unsupported

GROUP = 32


class QuantisedLinear(nn.Module):
    """A linear layer without bias, made from one in floating point. Each 4-bit weight takes a byte, because torch has no 4-bit
    tensors to compute with."""

    def __init__(self, linear, bits: int, group: int | None, activations: str):
        super().__init__()
        self.in_features, self.out_features, self.activations = linear.in_features, linear.out_features, activations
        values, scales = quantised(linear.weight, bits, group or linear.in_features)
        # Parameters, not buffers, because the fp64 reference copies buffers.
        self.values, self.scales = (nn.Parameter(t, requires_grad=False) for t in (values, scales))

    def forward(self, x):
        weight = self.values.unflatten(1, (self.scales.shape[1], -1)).to(self.scales.dtype) * self.scales.unsqueeze(-1)
        return nn.functional.linear(per_token(x) if self.activations == "int8" else x, weight.flatten(1))


class QuantisedEmbedding(nn.Module):
    def __init__(self, embedding):
        super().__init__()
        values, scales = quantised(embedding.weight, 8, embedding.embedding_dim)
        self.values, self.scales = (nn.Parameter(t, requires_grad=False) for t in (values, scales))

    def forward(self, ids):
        return nn.functional.embedding(ids, self.values).to(self.scales.dtype) * nn.functional.embedding(ids, self.scales)


def quantised(weight, bits: int, group: int):
    """Integers and their scales, symmetric around zero: the rows of a matrix in groups of columns."""
    groups = weight.detach().float().unflatten(1, (-1, group))
    limit = 2 ** (bits - 1)
    scales = (groups.abs().amax(-1) / (limit - 0.5)).clamp(min=torch.finfo(torch.float32).eps)
    values = (groups * (1 / scales.unsqueeze(-1))).round_().clamp_(-limit, limit - 1)
    return values.flatten(1).to(torch.int8), scales.to(torch.get_default_dtype())


def per_token(x):
    """The activations rounded to 256 steps between the smallest and the largest value of their token. Zero is one of the steps."""
    low, high = x.amin(-1, keepdim=True).clamp(max=0), x.amax(-1, keepdim=True).clamp(min=0)
    scale = ((high - low) / 255).clamp(min=torch.finfo(torch.float32).eps)
    zero = (-128 - (low / scale).round()).clamp(-128, 127)
    steps = ((x * (1 / scale)).round() + zero).clamp(-128, 127).to(torch.int8)
    return (steps.to(x.dtype) - zero) * scale


def quantise(model, preset: str, activations: str | None):
    """Quantises a causal language model of Hugging Face in place, layer by layer, so that the model never exists twice."""
    activations = activations or ("int8" if preset == "full" else "float")
    if activations not in ("float", "int8"):
        raise ValueError(f"activations: expected float or int8, found {activations!r}")
    model.lm_head = QuantisedLinear(model.lm_head, 8, None, activations)
    model.model.embed_tokens = QuantisedEmbedding(model.model.embed_tokens)
    replace(model.model.layers, nn.Linear, lambda linear: QuantisedLinear(linear, 4, GROUP, activations))
    # The rest was constructed in bf16 (`_llama.half`).
    return model.to(torch.get_default_dtype())


def replace(model, kind, make):
    """Puts `make(module)` in the place of every module of this kind."""
    for parent in list(model.modules()):
        for name, child in parent.named_children():
            if isinstance(child, kind):
                setattr(parent, name, make(child))


def plain(weights: str):
    """The published four-bit checkpoints are in ExecuTorch's own format, which nothing here reads."""
    if weights == "hub":
        raise Unsupported(
            "the published four-bit checkpoint is in ExecuTorch's format; use weights = 'random', or the folder of the "
            "unquantised model, which is quantised here"
        )
    return weights

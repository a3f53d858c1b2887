"""Llama 3.2 3B with the four-bit weights of its SpinQuant release (INT4_EO8): rotated before they are quantised.

Of SpinQuant's rotations the one that costs time when the model runs is modelled: a Hadamard matrix before the
down projection, undone in its weights. The others are merged into neighbouring weights and leave no trace."""

import torch
from torch import nn

from . import _llama, _quantised, _weights
from ._language import Tokens


def hadamard(size: int):
    """The orthogonal Hadamard matrix of a power of two."""
    matrix = torch.ones(1, 1)
    while matrix.shape[0] < size:
        matrix = torch.cat([torch.cat([matrix, matrix], 1), torch.cat([matrix, -matrix], 1)], 0)
    return matrix / size**0.5


class Rotated(nn.Module):
    """A linear layer whose input is rotated, and whose weights undo that."""

    def __init__(self, linear):
        super().__init__()
        rotation = hadamard(linear.in_features)
        self.register_buffer("rotation", rotation)
        linear.weight = nn.Parameter(linear.weight.detach() @ rotation)
        self.linear = linear

    def forward(self, x):
        return self.linear(x @ self.rotation)


def make(preset="small", weights=None, length=None, activations=None):
    weights = _quantised.plain(_weights.choose(preset, weights))
    model = _llama.model(preset, weights, "", None).eval()
    for layer in model.model.layers:
        layer.mlp.down_proj = Rotated(layer.mlp.down_proj)
    return Tokens(_quantised.quantise(model, preset, activations), "logits"), _llama.inputs(preset, length)

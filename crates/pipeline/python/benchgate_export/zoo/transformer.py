"""A transformer encoder of torch.nn, normalising first."""

import torch
from torch import nn

from . import _weights

# `template` has the sizes of the usual compile benchmark of PyTorch backends.
SIZES = {"small": (2, 64, 128, 4, 2), "full": (2, 512, 768, 12, 12), "template": (2, 128, 256, 4, 2)}


def make(preset="small", weights=None):
    weights = _weights.choose(preset, weights, hub=False, presets=SIZES)
    batch, tokens, width, heads, layers = SIZES[preset]
    layer = nn.TransformerEncoderLayer(
        width, heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
    )
    encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
    for parameter in encoder.parameters():
        # The layers are copies of one: without this each would have the same weights.
        if parameter.dim() > 1:
            nn.init.xavier_uniform_(parameter)
    return _weights.own(encoder, weights), (torch.randn(batch, tokens, width),)

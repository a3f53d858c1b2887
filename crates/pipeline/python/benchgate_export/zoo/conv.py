"""Two convolutions with ReLU: the kernel that everything else is compared with."""

import torch
from torch import nn

from . import _weights

# `template` has the sizes of the usual compile benchmark of PyTorch backends.
SIZES = {"small": (4, 16, 64), "full": (16, 64, 224), "template": (4, 16, 128)}


def make(preset="small", weights=None):
    weights = _weights.choose(preset, weights, hub=False, presets=SIZES)
    batch, channels, side = SIZES[preset]
    block = nn.Sequential(
        nn.Conv2d(3, channels, 3, padding=1), nn.ReLU(), nn.Conv2d(channels, channels, 3, padding=1), nn.ReLU()
    )
    if preset == "template":
        block.append(nn.Conv2d(channels, 10, 1))
    return _weights.own(block, weights), (torch.randn(batch, 3, side, side),)

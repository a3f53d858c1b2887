"""Two convolutions with ReLU: the kernel that everything else is compared with."""

import torch
from torch import nn

from . import _weights

SIZES = {"small": (4, 16, 64), "full": (16, 64, 224)}


def make(preset="small", weights=None):
    batch, channels, side = SIZES[preset]
    block = nn.Sequential(
        nn.Conv2d(3, channels, 3, padding=1), nn.ReLU(), nn.Conv2d(channels, channels, 3, padding=1), nn.ReLU()
    )
    return _weights.own(block, _weights.choose(preset, weights, hub=False)), (torch.randn(batch, 3, side, side),)

"""Three linear layers with GELU: matrix products and nothing else."""

import torch
from torch import nn

from . import _weights

SIZES = {"small": (16, 256, 512), "full": (64, 1024, 4096)}


def make(preset="small", weights=None):
    batch, width, hidden = SIZES[preset]
    layers = [nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, width)]
    return _weights.own(nn.Sequential(*layers), _weights.choose(preset, weights, hub=False)), (torch.randn(batch, width),)

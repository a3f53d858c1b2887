"""Three linear layers with GELU: matrix products and nothing else."""

import torch
from torch import nn

from . import _weights

# `template` has the sizes of the usual compile benchmark of PyTorch backends.
SIZES = {"small": (16, 256, 512), "full": (64, 1024, 4096), "template": (4, 256, 512)}


def make(preset="small", weights=None):
    weights = _weights.choose(preset, weights, hub=False, presets=SIZES)
    batch, width, hidden = SIZES[preset]
    layers = [nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, width)]
    return _weights.own(nn.Sequential(*layers), weights), (torch.randn(batch, width),)

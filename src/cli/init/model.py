"""A model for benchgate: a function that returns a torch module and its inputs.

benchgate seeds torch before it calls `make` (inputs have a seed of their own, so a layer more does not change them), puts
the module into eval mode, runs it once for the reference that outputs are held against, and exports it. Keyword arguments
come from `options` of the [[model]] table.
"""

import torch
from torch import nn


def make(batch=8, width=256):
    module = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
    return module, (torch.randn(batch, width),)

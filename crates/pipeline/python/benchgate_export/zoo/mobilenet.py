"""MobileNet v3 small of torchvision: depthwise convolutions, squeeze and excitation, hard swish."""

import torch
from torchvision import models

from . import _weights


def make(preset="small", weights=None):
    weights = _weights.choose(preset, weights)
    small = {"num_classes": 10} if preset == "small" else {}
    published = models.MobileNet_V3_Small_Weights.IMAGENET1K_V1
    model = _weights.torchvision(models.mobilenet_v3_small, published, weights, **small)
    side = 64 if preset == "small" else 224
    inputs = (torch.randn(1, 3, side, side),)
    return _weights.settled(model, inputs, weights), inputs

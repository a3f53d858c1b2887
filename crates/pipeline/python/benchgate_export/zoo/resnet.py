"""ResNet-18 of torchvision; `small` has one block a stage and small images."""

import torch
from torchvision import models
from torchvision.models.resnet import BasicBlock, ResNet

from . import _weights


def make(preset="small", weights=None):
    weights = _weights.choose(preset, weights)
    if preset == "full":
        model = _weights.torchvision(models.resnet18, models.ResNet18_Weights.IMAGENET1K_V1, weights)
        return model, (torch.randn(1, 3, 224, 224),)
    return _weights.own(ResNet(BasicBlock, [1, 1, 1, 1], num_classes=10), weights), (torch.randn(1, 3, 64, 64),)

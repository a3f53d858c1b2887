"""Vision transformer of torchvision: ViT-B/16, and a small one of two layers."""

import torch
from torchvision import models
from torchvision.models.vision_transformer import VisionTransformer

from . import _weights


def make(preset="small", weights=None):
    weights = _weights.choose(preset, weights)
    if preset == "full":
        size = 224
        model = _weights.torchvision(models.vit_b_16, models.ViT_B_16_Weights.IMAGENET1K_V1, weights)
    else:
        size = 64
        small = VisionTransformer(
            image_size=size, patch_size=16, num_layers=2, num_heads=4, hidden_dim=128, mlp_dim=256, num_classes=10
        )
        model = _weights.own(small, weights)
    if weights == "random":
        # torchvision starts the last layer at zero, and zeros hide every fault.
        torch.nn.init.normal_(model.heads.head.weight, std=0.02)
    return model, (torch.randn(1, 3, size, size),)

"""Three small torch models that take a batch size. A symbol returns (module, inputs); benchgate seeds torch before it calls it."""

import torch
from torch import nn


def mlp(batch=16):
    """Matrix products and nothing else."""
    layers = [nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 256)]
    return nn.Sequential(*layers), (torch.randn(batch, 256),)


def convnet(batch=2):
    """Convolutions with batch normalisation: in training its statistics move on."""

    def block(inside, outside, stride):
        return [nn.Conv2d(inside, outside, 3, stride, 1, bias=False), nn.BatchNorm2d(outside), nn.ReLU()]

    body = [*block(3, 16, 1), *block(16, 32, 2), *block(32, 64, 2)]
    return nn.Sequential(*body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)), (torch.randn(batch, 3, 64, 64),)


class Block(nn.Module):
    """Causal self-attention and a feed-forward layer, normalising first."""

    def __init__(self, dim=128, heads=4):
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.feed = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(self.before(x)).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, n, c))
        return x + self.feed(self.between(x))


def transformer(batch=1):
    return nn.Sequential(Block(), Block()), (torch.randn(batch, 128, 128),)

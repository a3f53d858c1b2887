"""Two torch models for benchgate. A symbol returns (module, inputs); benchgate seeds torch before it calls it."""

import torch
from torch import nn

SIZES = {"small": (64, 256), "large": (256, 1024)}


def make_mlp(preset="large", batch=64):
    dim, hidden = SIZES[preset]
    module = nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, dim))
    return module, (torch.randn(batch, dim),)


class Attention(nn.Module):
    """Multi-head self-attention with a causal mask."""

    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(self.norm(x)).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.proj(y.transpose(1, 2).reshape(b, n, c))


def make_attention(dim=128, heads=4, tokens=256):
    return Attention(dim, heads), (torch.randn(1, tokens, dim),)

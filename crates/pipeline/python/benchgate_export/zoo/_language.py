"""Language models as functions of tensors: token ids and their mask in, logits or hidden states out."""

from __future__ import annotations

import torch
from torch import nn


class Tokens(nn.Module):
    """One forward pass without a cache: a prompt, or one training step's forward half."""

    def __init__(self, model, field: str):
        super().__init__()
        self.model, self.field = model, field

    def forward(self, ids, mask):
        return getattr(self.model(input_ids=ids, attention_mask=mask, use_cache=False), self.field)


class Encoded(Tokens):
    """An encoder: it knows no cache."""

    def forward(self, ids, mask):
        return getattr(self.model(input_ids=ids, attention_mask=mask), self.field)


def tokens(vocabulary: int, length: int, batch: int = 1):
    """Seeded ids, none of them padding."""
    ids = torch.randint(0, vocabulary, (batch, length))
    return ids, torch.ones(batch, length, dtype=torch.int64)

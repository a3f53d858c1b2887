"""Llama 3.2 3B: grouped-query attention, rotary positions, SwiGLU."""

from . import _llama, _weights
from ._language import Tokens

HUB = "meta-llama/Llama-3.2-3B"


def make(preset="small", weights=None, revision=None, length=None):
    model = _llama.model(preset, _weights.choose(preset, weights), HUB, revision)
    return Tokens(model, "logits"), _llama.inputs(preset, length)

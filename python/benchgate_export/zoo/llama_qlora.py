"""Llama 3.2 3B with the four-bit weights of its QLoRA release (INT4_EO8)."""

from . import _llama, _quantised, _weights
from ._language import Tokens


def make(preset="small", weights=None, length=None, activations=None):
    weights = _quantised.plain(_weights.choose(preset, weights))
    model = _llama.model(preset, weights, "", None).eval()
    return Tokens(_quantised.quantise(model, preset, activations), "logits"), _llama.inputs(preset, length)

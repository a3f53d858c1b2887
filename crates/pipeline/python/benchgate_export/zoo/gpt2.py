"""GPT-2, a decoder: gpt2-xl with 1.5 billion parameters."""

from transformers import GPT2Config, GPT2LMHeadModel

from . import _weights
from ._language import Tokens, tokens

HUB = "openai-community/gpt2-xl"


def make(preset="small", weights=None, revision=None, length=None):
    weights = _weights.choose(preset, weights)
    size = {"n_embd": 1600, "n_layer": 48, "n_head": 25}
    if preset == "small":
        size = {"n_embd": 128, "n_layer": 2, "n_head": 4, "vocab_size": 1024, "n_positions": 128}
    config = GPT2Config(**size, attn_implementation="eager")
    model = _weights.transformers(GPT2LMHeadModel, config, weights, HUB, revision)
    return Tokens(model, "logits"), tokens(config.vocab_size, length or (32 if preset == "small" else 128))

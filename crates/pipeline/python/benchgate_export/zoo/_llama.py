"""Llama 3.2 3B, for the models that start from it."""

from __future__ import annotations

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from . import _weights
from ._language import tokens

FULL = {
    "vocab_size": 128256,
    "hidden_size": 3072,
    "intermediate_size": 8192,
    "num_hidden_layers": 28,
    "num_attention_heads": 24,
    "num_key_value_heads": 8,
    "max_position_embeddings": 131072,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": True,
    "rope_parameters": {
        "rope_type": "llama3",
        "rope_theta": 500000.0,
        "factor": 32.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    },
}
SMALL = {
    "vocab_size": 1024,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
}


def model(preset: str, weights: str, hub: str, revision: str | None):
    config = LlamaConfig(**(SMALL if preset == "small" else FULL), use_cache=False, attn_implementation="eager")
    return _weights.transformers(LlamaForCausalLM, config, weights, hub, revision)


def half(preset: str, weights: str):
    """The model to be quantised: at full size in bf16, as it was published, because fp32 would take 13 GB."""
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16 if preset == "full" else default)
    try:
        return model(preset, weights, "", None).eval()
    finally:
        torch.set_default_dtype(default)


def inputs(preset: str, length: int | None):
    return tokens((SMALL if preset == "small" else FULL)["vocab_size"], length or (32 if preset == "small" else 128))

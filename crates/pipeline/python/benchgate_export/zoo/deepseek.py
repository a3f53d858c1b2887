"""DeepSeek-R1-Distill-Qwen-1.5B: Qwen2's architecture."""

from transformers import Qwen2Config, Qwen2ForCausalLM

from . import _weights
from ._language import Tokens, tokens

HUB = "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B"
FULL = {
    "vocab_size": 151936,
    "hidden_size": 1536,
    "intermediate_size": 8960,
    "num_hidden_layers": 28,
    "num_attention_heads": 12,
    "num_key_value_heads": 2,
    "max_position_embeddings": 131072,
    "rms_norm_eps": 1e-6,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
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


def make(preset="small", weights=None, revision=None, length=None):
    weights = _weights.choose(preset, weights)
    config = Qwen2Config(**(SMALL if preset == "small" else FULL), use_cache=False, attn_implementation="eager")
    model = _weights.transformers(Qwen2ForCausalLM, config, weights, HUB, revision)
    return Tokens(model, "logits"), tokens(config.vocab_size, length or (32 if preset == "small" else 128))

"""BERT, an encoder: bert-base-uncased."""

from transformers import BertConfig, BertModel

from . import _weights
from ._language import Encoded, tokens

HUB = "google-bert/bert-base-uncased"


def make(preset="small", weights=None, revision=None, length=None):
    weights = _weights.choose(preset, weights)
    # The defaults of BertConfig are those of bert-base-uncased.
    small = {"vocab_size": 1024, "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 256}
    config = BertConfig(**(small if preset == "small" else {}), attn_implementation="eager")
    model = _weights.transformers(BertModel, config, weights, HUB, revision)
    return Encoded(model, "last_hidden_state"), tokens(config.vocab_size, length or (32 if preset == "small" else 128))

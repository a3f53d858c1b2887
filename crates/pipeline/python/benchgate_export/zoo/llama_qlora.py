"""Llama 3.2 3B as in its QLoRA release: INT4_EO8 (`_quantised.py`), and a low-rank adapter for every linear layer of the
transformer blocks.

Sources: the Llama 3.2 model card, "Quantization-Aware Training and LoRA" (adapters in all layers of the transformer blocks, not
quantised), and ExecuTorch, which runs the release, for rank and scale (`-lora 16` in examples/models/llama/README.md, `scale` in
source_transformation/lora.py). There the adapters run in the model's own type, as they do here."""

from torch import nn

from . import _llama, _quantised, _weights
from ._language import Tokens

RANK = 16
SCALE = 2.0


class Adapted(nn.Module):
    """A quantised layer and its adapter, which reads the input before it is quantised."""

    def __init__(self, linear):
        super().__init__()
        self.linear = linear
        self.down = nn.Linear(linear.in_features, RANK, bias=False)
        self.up = nn.Linear(RANK, linear.out_features, bias=False)
        # LoRA starts `up` at zero. Here it keeps random weights, because zeros would hide every fault of the adapter.

    def forward(self, x):
        return self.linear(x) + SCALE * self.up(self.down(x))


def make(preset="small", weights=None, length=None, activations=None):
    weights = _quantised.plain(_weights.choose(preset, weights))
    model = _quantised.quantise(_llama.half(preset, weights), preset, activations)
    _quantised.replace(model.model.layers, _quantised.QuantisedLinear, Adapted)
    return Tokens(model, "logits"), _llama.inputs(preset, length)

"""Llama 3.2 3B as in its SpinQuant release: rotated, then quantised (INT4_EO8, `_quantised.py`).

Liu et al., "SpinQuant: LLM Quantization with Learned Rotations" (ICLR 2025, arXiv:2405.16406):

- R1 rotates the residual stream and R2 the values of each attention head. Both are merged into the weights.
- R4 rotates the input of the down projection while the model runs. Its inverse is merged.
- R3 rotates queries and keys. It is needed where the KV cache is quantised; the release doesn't quantise it and has no R3 (ExecuTorch,
  examples/models/llama/source_transformation/spin_quant.py).

The rotations are Hadamard matrices, from which the paper starts its optimisation. The release learned R1 and R2 and quantised with
GPTQ; both change the values of the weights, not the operations."""

import torch
from torch import nn

from . import _llama, _quantised, _weights
from ._language import Tokens


def hadamard(size: int):
    """The orthogonal, symmetric Hadamard matrix of a power of two, or 12 times one."""
    if size % 12 == 0:
        # Paley's second construction, from the squares modulo 5.
        core = torch.ones(6, 6) - torch.eye(6)
        core[1:, 1:] = torch.tensor([[(0, 1, -1, -1, 1)[(i - j) % 5] for j in range(5)] for i in range(5)])
        matrix = torch.kron(core, torch.tensor([[1.0, 1], [1, -1]])) + torch.kron(torch.eye(6), torch.tensor([[1.0, -1], [-1, -1]]))
    else:
        matrix = torch.ones(1, 1)
    while matrix.shape[0] < size:
        matrix = torch.kron(torch.tensor([[1.0, 1], [1, -1]]), matrix)
    if matrix.shape[0] != size:
        raise ValueError(f"there is no Hadamard matrix of order {size} here")
    return matrix / size**0.5


class Rotation(nn.Module):
    """Multiplies each part of `size` elements of a row by R, the Kronecker product of two smaller Hadamard matrices: at size 8192
    an element costs 192 multiplications, not 8192. R is symmetric, so it is its own inverse."""

    def __init__(self, size: int):
        super().__init__()
        right = 2 ** -(-(size.bit_length() - 1) // 2)
        self.register_buffer("left", hadamard(size // right).to(torch.get_default_dtype()))
        self.register_buffer("right", hadamard(right).to(torch.get_default_dtype()))

    def forward(self, x):
        blocks = x.unflatten(-1, (-1, self.left.shape[0], self.right.shape[0]))
        return (self.left @ (blocks @ self.right)).flatten(-3)


class Rotated(nn.Module):
    """A linear layer whose input is rotated, and whose weights undo that."""

    def __init__(self, linear, rotation):
        super().__init__()
        self.linear, self.rotation = linear, rotation

    def forward(self, x):
        return self.linear(self.rotation(x))


def _merge(layer, scale=None, inputs=None, outputs=None):
    """Merges the scale of the norm before a layer, the rotation of its inputs and the rotation of its outputs into its weights."""
    parts = []
    # The embedding and the output layer are rotated in parts, because all of either in fp32 would take 1.6 GB.
    for rows in layer.weight.detach().split(layer.weight.shape[0] if outputs else 8192):
        rows = rows.float()
        rows = rows if scale is None else rows * scale.float()
        rows = rows if inputs is None else inputs(rows)
        rows = rows if outputs is None else outputs(rows.T).T
        parts.append(rows.to(layer.weight.dtype))
    layer.weight = nn.Parameter(torch.cat(parts), requires_grad=False)


def rotate(model):
    """Rotates a Llama of Hugging Face in place; it still computes the same function."""
    config, base = model.config, model.model
    stream, head, hidden = (Rotation(size).float() for size in (config.hidden_size, config.head_dim, config.intermediate_size))
    # First, while the weights of the embedding, which may be shared, are still the original ones.
    _merge(model.lm_head, base.norm.weight, stream)
    _merge(base.embed_tokens, inputs=stream)
    for layer in base.layers:
        attention, mlp = layer.self_attn, layer.mlp
        for reader in (attention.q_proj, attention.k_proj, attention.v_proj):
            _merge(reader, layer.input_layernorm.weight, stream)
        for reader in (mlp.gate_proj, mlp.up_proj):
            _merge(reader, layer.post_attention_layernorm.weight, stream)
        _merge(attention.v_proj, outputs=head)
        _merge(attention.o_proj, None, head, stream)
        _merge(mlp.down_proj, None, hidden, stream)
        mlp.down_proj = Rotated(mlp.down_proj, Rotation(config.intermediate_size))
    for name, norm in base.named_modules():
        if name.endswith("norm"):
            # A rotation commutes with the normalisation but not with the scale, which is merged into the layers that read it.
            norm.weight = nn.Parameter(torch.ones_like(norm.weight), requires_grad=False)
    return model


def make(preset="small", weights=None, length=None, activations=None):
    weights = _quantised.plain(_weights.choose(preset, weights))
    model = rotate(_llama.half(preset, weights))
    return Tokens(_quantised.quantise(model, preset, activations), "logits"), _llama.inputs(preset, length)

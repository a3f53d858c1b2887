"""Runs a model in fp64 with the memory of the model and of one operand, instead of a second model of twice the size or more.

Weights are not cast in advance: while the model runs, each operator of torch gets its floating-point arguments in fp64, and the widened
copy of a weight is freed when the operator returns.

The result is the function that the model computes, without the rounding of its own types. A cast to f32, bf16 or f16 in the model's
code (in RMSNorm, in rotary positions, of the output) chooses a precision, so here it casts to fp64. If it stayed, the reference of an
f32 model would have the model's own error wherever the model casts. Rounding that belongs to the function stays: to integers and to
8-bit floats, which are the values of quantised models.

A run that would not be such a reference raises `NotWide`: an operator that returns f32 for fp64 arguments, random numbers (which differ
between f32 and fp64), a reinterpretation of bits, and a write into a parameter, whose widened copy would be lost."""

from __future__ import annotations

import contextlib
import copy

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

WIDE = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
}


class NotWide(Exception):
    """Why a run in fp64 would not be one."""


class _Parameter(torch.Tensor):
    """A parameter that reports fp64 and is widened when an operator reads it. Code that compares types, such as torch's LSTM, has to
    see the same type everywhere."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, narrow):
        made = torch.Tensor._make_wrapper_subclass(
            cls, narrow.size(), strides=narrow.stride(), dtype=WIDE[narrow.dtype], device=narrow.device
        )
        made.narrow = narrow
        return made

    @classmethod
    def __torch_dispatch__(cls, operator, types, args=(), kwargs=None):
        return _call(operator, args, kwargs or {})


class _Widening(TorchDispatchMode):
    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        if not {torch.Tensor, torch.nn.Parameter, _Parameter}.issuperset(types):
            # A tensor of a library's own type (torchao's quantised weights) first splits the operator into operators on plain tensors.
            return NotImplemented
        return _call(operator, args, kwargs or {})


def _call(operator, args, kwargs):
    if operator is torch.ops.aten.view.dtype:
        raise NotWide(f"{operator} reads the bits of a number")
    for argument, value in zip(operator._schema.arguments, args):
        if argument.is_write and any(_narrow(tensor) is not None for tensor in tree_leaves(value)):
            raise NotWide(f"{operator} writes into a parameter or a constant of the model")
    # The state decides, not the tag: attention has the tag and draws nothing without dropout.
    drawn = torch.get_rng_state() if torch.Tag.nondeterministic_seeded in operator.tags else None
    results = operator(*tree_map(_wide, args), **tree_map(_wide, kwargs))
    if drawn is not None and not torch.equal(drawn, torch.get_rng_state()):
        raise NotWide(f"{operator} draws random numbers, which are others in fp64")
    for tensor in tree_leaves(results):
        if isinstance(tensor, torch.Tensor) and tensor.dtype in WIDE:
            raise NotWide(f"{operator} returns {tensor.dtype} in an fp64 run")
    return results


def _narrow(value):
    """The narrow tensor that this value is or stands for, if any."""
    if isinstance(value, _Parameter):
        return value.narrow
    return value if isinstance(value, torch.Tensor) and value.dtype in WIDE else None


def _wide(value):
    if isinstance(value, torch.dtype):
        return WIDE.get(value, value)
    tensor = _narrow(value)
    return value if tensor is None else tensor.to(WIDE[tensor.dtype])


@contextlib.contextmanager
def widened(model):
    """A copy of the model that shares its parameters and computes in fp64 inside the `with` block."""
    memo = {}
    for parameter in model.parameters():
        plain = type(parameter) is torch.nn.Parameter and parameter.dtype in WIDE
        memo[id(parameter)] = _Parameter(parameter.detach()) if plain else parameter
    for buffer in model.buffers():
        # Real copies: a model may write into its buffers.
        if buffer.dtype in WIDE:
            memo[id(buffer)] = buffer.to(WIDE[buffer.dtype])
    wide = copy.deepcopy(model, memo)
    default = torch.get_default_dtype()
    # Integers divide to the default type.
    torch.set_default_dtype(torch.float64)
    try:
        with _Widening():
            yield wide
    finally:
        torch.set_default_dtype(default)

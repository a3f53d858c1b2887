"""Inputs as a suite writes them: `x.npy`, `1x3xf32=@x.bin`, `x.1x3xf32.bin`, `1x3xf32=1`, `4xi64=1 2 3 4`."""

from __future__ import annotations

import re

from .protocol import Failure

# bf16 has no array type of numpy's own; ml_dtypes has one.
ELEMENT = re.compile(r"(f|bf|i|si|ui)(\d+)")


def read_input(np, text: str):
    """The array that one input of a request stands for."""
    try:
        if "=@" in text:
            kind, path = text.split("=@", 1)
            return _raw(np, kind, path)
        if text.endswith(".npy"):
            return np.load(text, allow_pickle=False)
        if text.endswith(".bin"):
            return _raw(np, text.rsplit(".", 2)[1], text)
        kind, _, values = text.partition("=")
        shape, dtype = shape_and_type(np, kind)
        is_float = dtype.kind == "f" or dtype.name == "bfloat16"
        numbers = [(float if is_float else int)(word) for word in re.findall(r"[^\s,\[\]]+", values)]
        if len(numbers) <= 1:
            # One value fills the tensor; none means zeros, as for IREE's tools.
            return np.full(shape, numbers[0] if numbers else 0, dtype)
        return np.array(numbers, dtype).reshape(shape)
    except (OSError, ValueError) as e:
        raise Failure("construct", "BAD_INPUTS", f"input {text}: {e}") from e


def _raw(np, kind: str, path: str):
    shape, dtype = shape_and_type(np, kind)
    # Through Python, so that the trace of an export has it.
    with open(path, "rb") as f:
        data = f.read()
    return np.frombuffer(data, dtype).reshape(shape)


def shape_and_type(np, text: str):
    """`1x3xf32` as numpy's shape and type."""
    *sizes, element = text.split("x")
    found = ELEMENT.fullmatch(element)
    if found is None or not all(size.isdigit() for size in sizes):
        raise ValueError(f"{text!r} is not the type of a tensor")
    letters, bits = found.groups()
    if letters == "bf":
        import ml_dtypes

        dtype = ml_dtypes.bfloat16
    elif element == "i1":
        dtype = "bool"
    else:
        dtype = {"f": "float", "i": "int", "si": "int", "ui": "uint"}[letters] + bits
    return tuple(map(int, sizes)), np.dtype(dtype)

"""Weights outside the MLIR: which tensors are moved out of the text, and the archive that the runtime reads."""

from __future__ import annotations

import os
import tempfile

# Tensors from this size are moved out of the text. The compiler can fold and pack smaller constants, whose text is
# short. Larger ones are weights; two hexadecimal digits per byte are slow to print, hash and parse. 64 KiB is a matrix
# of 128 x 128 floats.
THRESHOLD = 64 * 1024

SCOPE = "model"
ARCHIVE = "parameters.irpa"


def leaves_text(tensor) -> bool:
    """bf16 tensors of any size: iree-compile rejects the bf16 constants that torch-mlir writes."""
    return str(tensor.dtype) == "torch.bfloat16" or tensor.numel() * tensor.element_size() >= THRESHOLD


def raw(torch, tensor):
    """The tensor's bytes as an array, for any element type (numpy knows no bfloat16)."""
    # Exporters call this while torch pretends that every tensor is fake.
    with torch.utils._python_dispatch._disable_current_modes():
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        return flat.view(torch.uint8).numpy()


def write_archive(torch, folder: str, tensors: dict) -> str:
    """Writes the tensors, in the order of their names, as the archive of `SCOPE`."""
    import iree.runtime as rt

    index = rt.ParameterIndex()
    for name in sorted(tensors):
        index.add_buffer(name, raw(torch, tensors[name]))
    fd, temporary = tempfile.mkstemp(prefix=".tmp-", suffix=".irpa", dir=folder)
    os.close(fd)
    try:
        index.create_archive_file(temporary)
        os.chmod(temporary, 0o644)
        os.replace(temporary, os.path.join(folder, ARCHIVE))
    except BaseException:
        os.unlink(temporary)
        raise
    return ARCHIVE


def global_op(name: str, builtin_type: str) -> str:
    """The line of MLIR that declares a parameter."""
    return f'util.global private @"{name}" = #flow.parameter.named<"{SCOPE}"::"{name}"> : {builtin_type}'

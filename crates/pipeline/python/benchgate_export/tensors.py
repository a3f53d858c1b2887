"""Outputs in one order, and tensors as files. Knows tensors only by what they can do, so it needs no torch."""

from __future__ import annotations

import os
import tempfile

from .protocol import Failure


def flatten(value, stage: str, what: str = "output") -> list:
    """The tensors in `value`, depth first: sequences by index, mappings (and Hugging Face ModelOutput) in the order of
    their keys as the model made them. That is torch.export's order too. None is skipped: it has no result in MLIR."""
    if value is None:
        return []
    if hasattr(value, "detach") and hasattr(value, "shape"):
        return [value]
    if hasattr(value, "keys") and hasattr(value, "values"):
        return [t for v in value.values() for t in flatten(v, stage, what)]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in flatten(v, stage, what)]
    raise Failure(stage, "UNSUPPORTED_VALUE", f"an {what} is a {type(value).__module__}.{type(value).__qualname__}, not a tensor")


def to_numpy(tensor, what: str):
    tensor = tensor.detach().cpu()
    try:
        return tensor.resolve_conj().resolve_neg().contiguous().numpy()
    except (TypeError, RuntimeError) as e:
        raise Failure("write", "UNSUPPORTED_DTYPE", f"{what} has dtype {tensor.dtype}, which .npy cannot hold: {e}") from None


def raw_type(tensor) -> str | None:
    """IREE's name of the type of a tensor that .npy can't hold and the runtime reads as raw bytes: `4x8xbf16`."""
    if str(tensor.dtype) != "torch.bfloat16":
        return None
    return "x".join([*(str(size) for size in tensor.shape), "bf16"])


def write_atomically(path: str, write) -> None:
    """`write` gets a binary file; `path` appears complete or not at all."""
    fd, temporary = tempfile.mkstemp(prefix=".tmp-", dir=os.path.dirname(path))
    try:
        with os.fdopen(fd, "wb") as f:
            write(f)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        try:
            os.unlink(temporary)
        except OSError:
            pass
        raise

"""Runs eager as the reference, and writes tensors as `.npy` files for benchgate's comparison."""

from __future__ import annotations

import copy
import os

from .protocol import Failed


def eager(case) -> list:
    """Runs eager twice. The results are a reference only if they are bit-identical."""
    runs = []
    for _ in range(2):
        case.reset()
        try:
            value = case.step(case.model, case.fresh_inputs())
            runs.append([t.clone() for t in case.results(value)])
        except KeyboardInterrupt:
            raise
        except Exception as e:
            if type(e).__name__ == "Unsupported":
                raise
            raise Failed(f"{type(e).__name__}: {e}", code="EAGER_FAILED") from e
    first, second = runs
    if not first:
        raise Failed("the model returned no tensor", code="EAGER_FAILED")
    same = len(first) == len(second) and all(_equal(a, b) for a, b in zip(first, second))
    case.reset()
    return [] if not same else first


def eager64(case, expected) -> list:
    """The same in fp64, if the model can run in it. The errors of the backend and of eager are relative to this."""
    torch = case.torch
    if any(p.dtype not in (torch.float32, torch.float16, torch.bfloat16) for p in case.model.parameters()):
        return []
    try:
        wide = copy.copy(case)
        wide.model = copy.deepcopy(case.model).double()
        wide.inputs = tuple(t.double() if t.is_floating_point() else t for t in case.inputs)
        wide._weights = None
        wide._buffers = {n: b.detach().clone() for n, b in wide.model.named_buffers()}
        wide.reset()
        outputs = [t.clone() for t in wide.results(wide.step(wide.model, wide.fresh_inputs()))]
    except KeyboardInterrupt:
        raise
    except Exception:
        # A model that casts inside can't run in fp64; it only has its fp32 reference.
        return []
    right = len(outputs) == len(expected) and all(
        a.shape == b.shape and (not b.is_floating_point() or a.dtype == torch.float64) for a, b in zip(outputs, expected)
    )
    return outputs if right else []


def _equal(a, b) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    return bool(((a == b) | ((a != a) & (b != b))).all())


def write(tensors, folder: str, pattern: str) -> None:
    import numpy as np

    for i, tensor in enumerate(tensors):
        np.save(os.path.join(folder, pattern.format(i)), to_numpy(tensor), allow_pickle=False)


def to_numpy(tensor):
    tensor = tensor.detach().cpu().contiguous()
    if str(tensor.dtype) == "torch.bfloat16":
        import torch

        # Two raw bytes, as ml_dtypes writes it.
        return tensor.view(torch.int16).numpy().view("V2")
    return tensor.numpy()

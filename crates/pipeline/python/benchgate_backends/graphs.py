"""The graphs that PyTorch/XLA compiles, as it writes them itself.

torch_xla reads its variables once and writes one format a process, and XLA's own dump slows compiling down. So these
dumps have a process of their own, which compiles and runs the model once and measures nothing."""

from __future__ import annotations

import glob
import os
import shutil

from .protocol import Failed

# By kind: torch_xla's name of the format, which is also the file's ending. `xla-compiled-hlo` is XLA's own.
FORMATS = {"xla-ir": "text", "xla-hlo": "hlo", "xla-stablehlo": "stablehlo"}


def prepare(request) -> None:
    """Before torch_xla is imported."""
    [kind] = request.dump
    if kind in FORMATS:
        os.environ["XLA_SAVE_TENSORS_FMT"] = FORMATS[kind]
        os.environ["XLA_SAVE_TENSORS_FILE"] = _staged(request)
    else:
        # The user's own flags stay: their effect may be what is looked for.
        flags = os.environ.get("XLA_FLAGS", "").split()
        os.environ["XLA_FLAGS"] = " ".join([*flags, f"--xla_dump_to={_staged(request)}"])


def keep(request) -> list[str]:
    """Moves what was written into the folder of the dumps, in place of what an earlier run left there."""
    [kind] = request.dump
    os.makedirs(request.dump_dir, exist_ok=True)
    if kind in FORMATS:
        name = f"dump-{request.label}.{FORMATS[kind]}"
        # torch_xla appends the number of the device.
        parts = sorted(glob.glob(f"{glob.escape(_staged(request))}*"))
        if not parts:
            raise Failed("PyTorch/XLA wrote no graph")
        with open(os.path.join(request.dump_dir, name), "wb") as whole:
            for part in parts:
                with open(part, "rb") as f:
                    shutil.copyfileobj(f, whole)
        return [name]
    if not os.path.isdir(_staged(request)):
        raise Failed("XLA wrote no module")
    target = os.path.join(request.dump_dir, "hlo")
    if os.path.isdir(target):
        shutil.rmtree(target)
    shutil.move(_staged(request), target)
    return ["hlo"]


def _staged(request) -> str:
    return os.path.join(request.out, "compiler-dump")

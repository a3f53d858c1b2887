"""ONNX: torch.onnx, then iree-import-onnx of the IREE compiler's wheel."""

from __future__ import annotations

import os
import shutil
import tempfile

from ..function import function
from ..parameters import ARCHIVE, SCOPE, THRESHOLD
from . import Job, Lowered, attempt

PACKAGES = ("onnx", "onnxscript", "iree.compiler.tools.import_onnx.__main__")

# iree-import-onnx counts elements, and a float has four bytes.
ELEMENTS = THRESHOLD // 4


def lower(job: Job) -> Lowered:
    return attempt(job, "onnx", lambda: _lower(job))


def _lower(job: Job) -> Lowered:
    import onnx
    import torch
    from iree.compiler.tools.import_onnx import __main__ as importer

    wrapped = function(torch, job.model)
    exported = torch.onnx.export(wrapped, job.inputs, dynamo=True, verbose=False)
    folder = tempfile.mkdtemp(prefix=".tmp-onnx-", dir=job.out)
    try:
        path = os.path.join(folder, "model.onnx")
        exported.save(path, external_data=False)
        proto = onnx.load(path)
        # The graph's name becomes the function's.
        proto.graph.name = job.function
        text, kept = imported(onnx, importer, proto, folder, job.out)
        return Lowered("onnx", lambda file: file.write(text), archive=kept)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def imported(onnx, importer, model, folder: str, out: str):
    """The model's MLIR, and the name of the archive in `out` that has its weights, if there is one."""
    path, mlir, archive = (os.path.join(folder, name) for name in ("import.onnx", "main.mlir", ARCHIVE))
    onnx.save(model, path)
    arguments = [path, "-o", mlir, "--externalize-params", f"--num-elements-threshold={ELEMENTS}"]
    arguments += [f"--params-scope={SCOPE}", f"--save-params-to={archive}"]
    importer.main(importer.parse_arguments(arguments))
    with open(mlir, "rb") as f:
        text = f.read()
    kept = None
    if os.path.exists(archive) and f'<"{SCOPE}"::'.encode() in text:
        kept = ARCHIVE
        os.replace(archive, os.path.join(out, ARCHIVE))
    return text, kept

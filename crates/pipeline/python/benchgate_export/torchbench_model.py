"""A model of a torchbench checkout, as a source: `torchbenchmark/models/NAME/__init__.py` with its class `Model`.

    options = { batch_size = 1, weights = "random" }

`batch_size` is torchbench's own argument. With `weights = "random"`, models that would download their weights keep the seeded
ones that they were constructed with."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from types import SimpleNamespace

from .protocol import Failure, Unsupported


def load(name: str, checkout: str):
    package = os.path.join(checkout, "torchbenchmark", "models", name)
    if not name.isidentifier() or not os.path.isfile(os.path.join(package, "__init__.py")):
        raise Failure("import", "SOURCE_NOT_FOUND", f"{checkout} has no model {name!r}: {package}/__init__.py does not exist")
    sys.path.insert(0, checkout)

    def make(batch_size=None, weights="published", test="eval"):
        import torch

        if weights not in ("published", "random"):
            raise ValueError(f"weights: expected published or random, found {weights!r}")
        # Before the weights are replaced, which looks at what the model imported.
        kind = _class(name, package)
        with _random_weights(torch) if weights == "random" else contextlib.nullcontext():
            try:
                model = kind(test=test, device="cpu", batch_size=batch_size)
            except OSError as e:
                # Downloads of urllib, requests and Hugging Face's hub all fail with one.
                if weights == "random":
                    raise
                raise ConnectionError(f"{type(e).__name__}: {e}; if it downloads its weights, use options = {{ weights = 'random' }}") from e
        module, inputs = model.get_module()
        if not isinstance(module, torch.nn.Module):
            raise Unsupported(f"get_module() of {name} does not return a torch.nn.Module")
        return _flat(torch, module, inputs)

    return SimpleNamespace(make=make)


def _class(name: str, package: str):
    try:
        module = importlib.import_module(f"torchbenchmark.models.{name}")
    except ModuleNotFoundError as e:
        # A package that this model needs, not one of its own.
        if e.name and not e.name.startswith("torchbenchmark"):
            raise Unsupported(f"{name} needs the Python package {e.name}, which is not installed; `benchgate tools pin` locks what its requirements.txt names") from e
        raise
    found = getattr(module, "Model", None)
    if found is None:
        raise Failure("construct", "SYMBOL_NOT_FOUND", f"{package}/__init__.py defines no class Model")
    return found


def _flat(torch, module, inputs):
    """The module as a function of tensors alone: inputs may be nested, and keywords."""
    leaves, form = torch.utils._pytree.tree_flatten(inputs)
    tensors = [at for at, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    class Flat(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = module

        def forward(self, *given):
            values = list(leaves)
            for at, tensor in zip(tensors, given):
                values[at] = tensor
            arguments = torch.utils._pytree.tree_unflatten(values, form)
            if hasattr(arguments, "keys"):
                return self.model(**arguments)
            return self.model(*arguments) if isinstance(arguments, (list, tuple)) else self.model(arguments)

    return Flat(), tuple(leaves[at] for at in tensors)


class _Kept(dict):
    """In the place of a downloaded state dict: loading it changes nothing."""


@contextlib.contextmanager
def _random_weights(torch):
    with contextlib.ExitStack() as undo:

        def replace(owner, name, other):
            undo.callback(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, other)

        loaded = torch.nn.Module.load_state_dict

        def load_state_dict(self, state, *arguments, **keywords):
            return None if isinstance(state, _Kept) else loaded(self, state, *arguments, **keywords)

        replace(torch.nn.Module, "load_state_dict", load_state_dict)
        replace(torch.hub, "load_state_dict_from_url", lambda *_, **__: _Kept())
        with contextlib.suppress(ImportError):
            from torchvision.models import _api

            replace(_api.WeightsEnum, "get_state_dict", lambda *_, **__: _Kept())
        if timm := sys.modules.get("timm.models._builder"):
            replace(timm, "load_pretrained", lambda *_, **__: None)
        yield

"""Where a model's weights come from.

    weights = "random"     seeded; the default of `small`, and the only choice where no weights were ever published
    weights = "hub"        the published ones, from torchvision's or Hugging Face's own cache, or the network
    weights = PATH         a state dict (`.pt`, `.pth`, `.safetensors`), or a folder as save_pretrained() writes it

The default of `full` is "hub". State dicts are loaded as weights only, folders without the code that they may bring.
"""

from __future__ import annotations

import os
from urllib.error import URLError

PRESETS = ("small", "full")


def choose(preset: str, weights: str | None, hub: bool = True, presets=PRESETS) -> str:
    """The choice for a preset, checked."""
    if preset not in presets:
        raise ValueError(f"preset {preset!r} is none of {', '.join(presets)}")
    weights = weights or ("hub" if preset == "full" and hub else "random")
    if weights == "hub" and not hub:
        raise ValueError("this model has no published weights: use weights = 'random', or a file")
    if weights == "hub" and preset == "small":
        raise ValueError("the published weights fit the preset full only")
    return weights


def load(module, path: str):
    """Puts a state dict from a file into the module: every key fits, or it is an error."""
    import torch

    if path.endswith(".safetensors"):
        from safetensors.torch import load_file

        state = load_file(path)
    else:
        state = torch.load(path, map_location="cpu", weights_only=True)
    module.load_state_dict(state)
    return module


def own(module, weights: str):
    """A module of ours: as it was seeded, or with the state dict of a file."""
    return module if weights == "random" else load(module, weights)


def settled(module, inputs, weights: str):
    """Random weights with the statistics that batch normalization would have learned from these inputs. With the initial ones
    the signal fades from layer to layer, down to outputs of 1e-10 that no tolerance tells from zero."""
    import torch

    if weights != "random":
        return module
    norms = [m for m in module.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = 1.0
        norm.train()
    with torch.no_grad():
        module(*inputs)
    for norm, momentum in zip(norms, momenta):
        norm.momentum = momentum
    return module.eval()


def torchvision(make, published, weights: str, **small):
    """A model of torchvision. `published` is the entry that names the weights and their hash."""
    if weights == "hub":
        try:
            return make(weights=published)
        except URLError as e:
            why = f"the published weights can't be downloaded ({e}); without them, use options = {{ weights = 'random' }}"
            raise ConnectionError(why) from e
    return own(make(weights=None, **small), weights)


def _reach_hub() -> None:
    """Fails at once where there is no hub: its library tries for half a minute."""
    from huggingface_hub import constants
    from huggingface_hub.utils import get_session

    try:
        get_session().head(constants.ENDPOINT, timeout=5)
    except Exception as e:
        why = f"{constants.ENDPOINT} can't be reached ({e}); without it, use options = {{ weights = 'random' }}"
        raise ConnectionError(why) from e


def transformers(model_class, config, weights: str, hub: str | None = None, revision: str | None = None):
    """A model of Hugging Face, made from a configuration, a folder, or the hub at a revision."""
    if weights == "random":
        return model_class(config)
    settings = {"trust_remote_code": False, "use_safetensors": True, "attn_implementation": "eager"}
    if weights == "hub":
        if revision is None:
            raise ValueError(f"say which revision of {hub}: options = {{ weights = 'hub', revision = '<commit>' }}")
        try:
            # A revision is a commit, so what the cache has of it is all there is.
            return model_class.from_pretrained(hub, revision=revision, local_files_only=True, **settings)
        except OSError:
            _reach_hub()
        return model_class.from_pretrained(hub, revision=revision, **settings)
    if not os.path.isdir(weights):
        return load(model_class(config), weights)
    return model_class.from_pretrained(weights, local_files_only=True, **settings)

"""Where a model's weights come from.

    weights = "random"     seeded; the default of `small`, and the only choice where no weights were ever published
    weights = "hub"        the published ones, from torchvision's or Hugging Face's own cache, or the network
    weights = PATH         a state dict (`.pt`, `.pth`, `.safetensors`), or a folder as save_pretrained() writes it

The default of `full` is "hub". State dicts are loaded as weights only, folders without the code that they may bring.
"""

from __future__ import annotations

import os
from urllib.request import Request, urlopen

PRESETS = ("small", "full")


def choose(preset: str, weights: str | None, hub: bool = True, presets=PRESETS) -> str:
    """The choice for a preset, checked."""
    if preset not in presets:
        raise ValueError(f"preset {preset!r} is not one of {', '.join(presets)}")
    weights = weights or ("hub" if preset == "full" and hub else "random")
    if weights == "hub" and not hub:
        raise ValueError("this model has no published weights: use weights = 'random', or a file")
    if weights == "hub" and preset == "small":
        raise ValueError("the published weights only fit the preset full")
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
        import torch

        try:
            if not os.path.isfile(os.path.join(torch.hub.get_dir(), "checkpoints", os.path.basename(published.url))):
                # The download itself would wait for minutes.
                urlopen(Request(published.url, method="HEAD"), timeout=5).close()
            return make(weights=published)
        except OSError as e:
            why = f"the published weights can't be downloaded ({e}); without them, use options = {{ weights = 'random' }}"
            raise ConnectionError(why) from e
    return own(make(weights=None, **small), weights)


def check_hub(hub: str, revision: str | None) -> None:
    """Fails within seconds if the weights of a repository can't be had: the hub's library tries for half a minute, after
    half a minute of imports."""
    if revision is None:
        raise ValueError(
            f"the weights of {hub} need a revision: options = {{ weights = 'hub', revision = '<commit>' }}; without the hub, "
            "use options = { weights = 'random' }"
        )
    from huggingface_hub import constants, try_to_load_from_cache
    from huggingface_hub.utils import get_session

    # A revision is a commit, so what the cache has of it is all there is.
    if isinstance(try_to_load_from_cache(hub, "config.json", revision=revision), str):
        return
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
        check_hub(hub, revision)
        try:
            return model_class.from_pretrained(hub, revision=revision, local_files_only=True, **settings)
        except OSError:
            return model_class.from_pretrained(hub, revision=revision, **settings)
    if not os.path.isdir(weights):
        return load(model_class(config), weights)
    return model_class.from_pretrained(weights, local_files_only=True, **settings)

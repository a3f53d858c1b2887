"""The model zoo: one file is one model, its name (with `_` for `-`) the key.

A model is a module with

    make(preset="small", weights=…, …) -> (torch.nn.Module, inputs)

    OUTPUT_TYPES = (…)                output types that torch-mlir tries, in order   (optional)
    UNSUPPORTED = {exporter: reason}  what is known not to work                      (optional)
    HUB = "owner/name"                Hugging Face's repository of the weights       (optional)

`small` takes minutes for all models on two cores: seeded random weights and a tiny configuration. `full` is the real
architecture, with weights as `_weights.py` says. Raise `Unsupported(reason)` in `make` if something
is missing that the model needs. A new file needs no registration.
"""

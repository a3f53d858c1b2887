"""The model zoo: one file is one model, its name (with `_` for `-`) the key.

A model is a module with

    make(preset="small", weights=…, …) -> (torch.nn.Module, inputs)

    OUTPUT_TYPES = (…)                what torch-mlir tries, in this order           (optional)
    UNSUPPORTED = {exporter: reason}  what is known not to work                      (optional)

`small` is minutes for all of them on two cores: seeded random weights and a tiny configuration. `full` is the real
architecture, with weights as `_weights.py` says. `raise Unsupported(reason)` in `make` is the answer where something
is missing that the model can't be made without. Nothing else has to be told about a new file.
"""

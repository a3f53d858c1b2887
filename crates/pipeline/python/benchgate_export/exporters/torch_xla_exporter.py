"""torch-xla: StableHLO by lazy tracing on XLA's CPU device.

Its function takes the weights as arguments before the inputs. Here they become parameters or constants, and the function
takes the inputs alone, in their order."""

from __future__ import annotations

import re

from ..function import program
from ..parameters import global_op, leaves_text, raw
from ..protocol import Failure
from . import Job, Lowered, attempt

PACKAGES = ("torch_xla.stablehlo",)


def lower(job: Job) -> Lowered:
    return attempt(job, "stablehlo", lambda: _lower(job))


def _lower(job: Job) -> Lowered:
    import torch
    from torch_xla import stablehlo

    # Decomposed: quantised weights are plain tensors then.
    exported = program(torch, job, torch.export.default_decompositions())
    # Its own copies of the weights are left on the XLA device; ours are those of the model.
    options = stablehlo.StableHLOExportOptions(export_weights=False)
    bundle = stablehlo.exported_program_to_stablehlo(exported, options)._bundle
    meta = bundle.stablehlo_funcs[0].meta
    text = known_words(bundle.stablehlo_funcs[0].text)
    state = {**exported.state_dict, **exported.constants}
    sources = []
    for location in meta.input_locations:
        if location.type_ == stablehlo.VariableType.INPUT_ARG:
            sources.append(location.position)
        elif location.type_ == stablehlo.VariableType.PARAMETER:
            sources.append((location.name, state[location.name]))
        else:
            constant = torch.as_tensor(bundle.additional_constants[location.position])
            sources.append((f"constant_{location.position}", constant))
    text, weights = without_weights(torch, text, job.function, sources, job.inputs)
    return Lowered("stablehlo", lambda file: file.write(text.encode()), weights)


def known_words(text: str) -> str:
    """XLA's own name of the error function, which no other reader of StableHLO knows, becomes CHLO's."""
    call = r"stablehlo\.custom_call @mhlo\.erf\((%\w+)\) \{[^}]*\{\}[^}]*\} : \((tensor<[^>]*>)\) -> (tensor<[^>]*>)"
    return re.sub(call, r"chlo.erf \1 : \2 -> \3", text)


def without_weights(torch, text: str, function: str, sources: list, inputs) -> tuple[str, dict]:
    """`text` with a function around its `@main` that takes the inputs only; `sources` says for each argument of
    `@main` which input (a number) or which weight (name and tensor) it is."""
    found = re.search(r"func\.func (?:public )?@main\((.*?)\)\s*->\s*(\([^{]*\)|\S+)(?= (?:attributes )?\{)", text, re.S)
    if found is None:
        raise Failure("export", "EXPORT_FAILED", "torch-xla's text has no function @main")
    arguments = dict(re.findall(r"%(arg\d+): (tensor<[^>]*>)", found.group(1)))
    types = list(arguments.values())
    if len(types) != len(sources):
        raise Failure("export", "EXPORT_FAILED", f"torch-xla's function takes {len(types)} arguments, its table names {len(sources)}")
    results = re.findall(r"tensor<[^>]*>", found.group(2))
    lines, declared, operands, weights = [], [], [], {}
    for index, (source, builtin) in enumerate(zip(sources, types)):
        if isinstance(source, int):
            operands.append(f"%in{source}")
            continue
        name, tensor = source
        operands.append(f"%w{index}")
        if leaves_text(tensor):
            name = re.sub(r"[^A-Za-z0-9_.]", "_", name.removeprefix("model."))
            if name not in weights:
                weights[name] = tensor
                declared.append("  " + global_op(name, builtin))
            lines.append(f'    %w{index} = util.global.load @"{name}" : {builtin}')
        else:
            lines.append(f"    %w{index} = stablehlo.constant {_dense(torch, tensor)} : {builtin}")
    input_types = [_builtin(torch, t) for t in inputs]
    for source, builtin in zip(sources, types):
        if isinstance(source, int):
            input_types[source] = builtin
    takes = ", ".join(f"%in{i}: {t}" for i, t in enumerate(input_types))
    gives = ", ".join(results)
    outer = [
        f"  func.func public @{function}({takes}) -> ({gives}) {{",
        *lines,
        f"    %r:{len(results)} = func.call @traced({', '.join(operands)}) : ({', '.join(types)}) -> ({gives})",
        "    return " + ", ".join(f"%r#{i}" for i in range(len(results))) + f" : {gives}",
        "  }",
    ]
    inner = text[: found.start()] + text[found.start() :].replace(
        found.group(0), re.sub(r"func\.func (?:public )?@main", "func.func private @traced", found.group(0)), 1
    )
    # Before the end of the module.
    end = inner.rindex("}")
    return inner[:end] + "\n".join([*declared, *outer]) + "\n" + inner[end:], weights


def _dense(torch, tensor) -> str:
    if tensor.dtype == torch.bool:
        values = tensor.reshape(-1).tolist()
        words = ["true" if v else "false" for v in values]
        if len(set(words)) == 1:
            return f"dense<{words[0]}>"
        return "dense<" + _nested(words, list(tensor.shape)) + ">"
    return f'dense<"0x{raw(torch, tensor).tobytes().hex().upper()}">'


def _nested(words: list[str], shape: list[int]) -> str:
    if not shape:
        return words[0]
    step = len(words) // shape[0]
    return "[" + ", ".join(_nested(words[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])) + "]"


def _builtin(torch, tensor) -> str:
    names = {torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32", torch.float64: "f64", torch.bool: "i1"}
    element = names.get(tensor.dtype) or f"i{tensor.element_size() * 8}"
    return "tensor<" + "".join(f"{d}x" for d in tensor.shape) + f"{element}>"

"""torch-mlir: torch.export once, then the first output type that works."""

from __future__ import annotations

import re
import time

from ..function import program
from ..parameters import SCOPE, leaves_text, raw
from ..protocol import Failure
from . import Job, Lowered, short

PACKAGES = ("torch_mlir.fx",)

# Operations that may hold a weight after lowering.
CONSTANTS = ("arith.constant", "stablehlo.constant", "torch.vtensor.literal")


def lower(job: Job) -> Lowered:
    import torch
    from torch_mlir.extras.fx_decomp_util import get_decomposition_table

    exported = program(torch, job, {**_of_libraries(torch), **get_decomposition_table()})
    last = None
    for output_type in job.output_types:
        job.enter("export", **{"output-type": output_type})
        begin = time.perf_counter()
        error, module = None, None
        weights: dict = {}
        diagnostics: list[str] = []
        try:
            module = _import(torch, exported, job, output_type, weights, diagnostics)
            results = _results(module, job.function)
            if results != job.outputs:
                error = f"the MLIR function has {results} results, the eager run {job.outputs} output tensors"
        except KeyboardInterrupt:
            raise
        except BaseException as e:
            # torch-mlir's exception says only which pipeline failed; MLIR's first complaint says why.
            why = diagnostics[0] if diagnostics else str(e)
            error, last = f"{type(e).__name__}: {short(why)}", e
        job.attempts.append(
            {"output-type": output_type, "ok": error is None, "error": error, "seconds": round(time.perf_counter() - begin, 4)}
        )
        if error is None:
            used = _externalise(module, weights)

            def write(file):
                module.operation.print(file=file, binary=True)

            return Lowered(output_type, write, used)
    tried = "; ".join(f"{a['output-type']}: {a['error']}" for a in job.attempts)
    raise Failure("export", "EXPORT_FAILED", f"no output type works: {tried}") from last


def _of_libraries(torch) -> dict:
    """Operators of other libraries (torchao's of quantised weights) that are functions of torch's own. Left out of a table they
    are kept or not by what the process has loaded, and torch-mlir knows none of them."""
    table = torch.export.default_decompositions()
    return {operator: table[operator] for operator in table if operator.namespace not in ("aten", "prims")}


def _import(torch, exported, job: Job, output_type: str, weights: dict, diagnostics: list[str]):
    from torch_mlir import compiler_utils, fx, ir
    from torch_mlir.dialects import torch as torch_dialect
    from torch_mlir.extras.fx_importer import FxImporter

    context = ir.Context()
    torch_dialect.register_dialect(context)

    def note(diagnostic) -> bool:
        if diagnostic.severity == ir.DiagnosticSeverity.ERROR and len(diagnostics) < 20:
            # Not where: that is a stack of files of this machine, and it is printed into the log.
            diagnostics.append(diagnostic.message)
        return False  # and let it be printed too

    handler = context.attach_diagnostic_handler(note)
    # torch-mlir's own function first prints the module for a report, weights included: twice their size for each pipeline.
    fx.run_pipeline_with_repro_report = compiler_utils.run_pipeline_with_repro_report = _run_pipeline
    try:
        return fx.export_and_import(
            exported,
            *job.inputs,
            output_type=output_type,
            func_name=job.function,
            fx_importer=FxImporter(context=context, hooks=_hooks(torch, weights)),
            decomposition_table={},  # done, once for all output types
        )
    finally:
        handler.detach()


def _run_pipeline(module, pipeline: str, description: str, enable_ir_printing: bool = False) -> None:
    from torch_mlir.passmanager import PassManager

    with module.context as context:
        context.emit_error_diagnostics = True
        PassManager.parse(pipeline).run(module.operation)


def _hooks(torch, weights: dict):
    """Imports large tensors under names of ours, which lowering keeps, and without torch-mlir's detour through
    Python lists, which takes minutes for a hundred megabytes."""
    from torch_mlir import ir
    from torch_mlir.extras.fx_importer import FxImporterHooks, create_mlir_tensor_type

    values: dict = {}

    class Hooks(FxImporterHooks):
        def resolve_literal(self, gni, literal, info):
            if not isinstance(literal, torch.Tensor) or literal.is_sparse or not leaves_text(literal):
                return None
            name = _name(literal, getattr(getattr(info, "input_spec", None), "target", None), weights)
            value = values.get(name)
            if value is None:
                value = ir.DenseResourceElementsAttr.get_from_buffer(
                    raw(torch, literal), name, create_mlir_tensor_type(literal)
                )
                # MLIR gives a name that is taken another ending, which could be the name of another weight.
                if _resource(value) != name:
                    raise ValueError(f"the weight {name} got the name {_resource(value)}")
                values[name] = value
            literal_type = gni._cc.tensor_to_vtensor_type(literal)
            return ir.Operation.create("torch.vtensor.literal", results=[literal_type], attributes={"value": value}).result

    return Hooks()


def _name(tensor, target: str | None, weights: dict) -> str:
    """The weight's name in its module, as MLIR and the archive can have it; tied weights have one."""
    for known, other in weights.items():
        if other is tensor:
            return known
    name = base = re.sub(r"[^A-Za-z0-9_.]", "_", (target or "constant").removeprefix("model."))
    if not name[0].isalpha():
        name = base = f"p_{base}"
    count = 1
    while name in weights:
        name, count = f"{base}_{count}", count + 1
    weights[name] = tensor
    return name


def _resource(value) -> str | None:
    """The name of the resource that a constant's value is."""
    found = re.match(r"dense_resource<([^>]+)>", str(value))
    return found and found.group(1)


def _externalise(module, weights: dict) -> dict:
    """Replaces every constant that is one of `weights` by a load of a parameter; returns those that were found."""
    from torch_mlir import ir

    context = module.context
    # `util` is IREE's dialect: torch-mlir prints it in the generic form, which every parser reads.
    context.allow_unregistered_dialects = True
    constants = []

    def visit(op):
        if op.name in CONSTANTS:
            name = _resource(op.attributes["value"])
            if name in weights:
                constants.append((op, name))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    used: dict = {}
    with context, ir.Location.unknown():
        for op, name in constants:
            # Torch's integers are signed in the type; a parameter's are plain.
            builtin = ir.Type.parse(re.sub(r"\bs(i\d+)>", r"\1>", str(op.attributes["value"].type)))
            with ir.InsertionPoint(op):
                value = ir.Operation.create(
                    "util.global.load", results=[builtin], attributes={"global": ir.FlatSymbolRefAttr.get(name)}
                ).result
                if op.name == "torch.vtensor.literal":
                    value = ir.Operation.create(
                        "torch_c.from_builtin_tensor", results=[op.results[0].type], operands=[value]
                    ).result
            op.results[0].replace_all_uses_with(value)
            op.erase()
            if name in used:
                continue
            used[name] = weights[name]
            parameter = ir.Attribute.parse(f'#flow.parameter.named<"{SCOPE}"::"{name}"> : {builtin}')
            ir.Operation.create(
                "util.global",
                attributes={
                    "sym_name": ir.StringAttr.get(name),
                    "sym_visibility": ir.StringAttr.get("private"),
                    "type": ir.TypeAttr.get(builtin),
                    "initial_value": parameter,
                },
                ip=ir.InsertionPoint.at_block_begin(module.body),
            )
    return used


def _results(module, function: str) -> int | None:
    for op in module.body.operations:
        if op.operation.name == "func.func" and op.name.value == function:
            return len(op.type.results)
    return None

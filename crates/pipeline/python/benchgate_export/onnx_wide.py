"""The same ONNX model in double precision: what base's and head's own errors are measured against. Never fatal."""

from __future__ import annotations

import os

# ONNX Runtime has double kernels for some operators only; onnx's own evaluator has all of them, in plain numpy. Beyond this many
# parameters it takes minutes.
MOST_PARAMETERS = 50_000_000


def session(onnxruntime, path: str):
    options = onnxruntime.SessionOptions()
    # One thread and no fusions: the reference must not depend on the machine's processors, nor on the optimizer's approximations.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def run(np, onnx, onnxruntime, model, folder: str, inputs: dict, expected):
    """The outputs, or None and the reason."""
    try:
        wide = _widened(np, onnx, model, folder)
        parameters = sum(int(np.prod(tensor.dims)) for tensor in wide.graph.initializer)
        feeds = {name: array.astype(np.float64) if array.dtype.kind == "f" else array for name, array in inputs.items()}
        try:
            path = os.path.join(folder, "wide.onnx")
            onnx.save(wide, path)
            outputs = session(onnxruntime, path).run(None, feeds)
        except Exception:
            if parameters > MOST_PARAMETERS:
                return None, f"ONNX Runtime can't run it in fp64, and {parameters} parameters are too many for onnx's evaluator"
            outputs = onnx.reference.ReferenceEvaluator(wide).run(None, feeds)
    except KeyboardInterrupt:
        raise
    except BaseException as e:
        return None, f"{type(e).__name__}: {e}"[:500]
    outputs = [np.asarray(output) for output in outputs]
    if [output.shape for output in outputs] != [output.shape for output in expected]:
        return None, "the fp64 run has other output shapes"
    if any(b.dtype.kind == "f" and a.dtype != np.float64 for a, b in zip(outputs, expected)):
        return None, "the model casts inside"
    return outputs, None


def _widened(np, onnx, model, folder: str):
    """A copy with double where the model has float or half."""
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    onnx.load_external_data_for_model(wide, folder)
    narrow = {onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16}

    def tensor(t):
        if t.data_type in narrow:
            t.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(t).astype(np.float64), t.name))

    def graph(g):
        for t in g.initializer:
            tensor(t)
        del g.value_info[:]
        for value in (*g.input, *g.output):
            if value.type.tensor_type.elem_type in narrow:
                value.type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
        for node in g.node:
            for attribute in node.attribute:
                if attribute.name in ("to", "dtype") and attribute.i in narrow:
                    attribute.i = onnx.TensorProto.DOUBLE
                if attribute.HasField("t"):
                    tensor(attribute.t)
                elif attribute.name == "value_float":
                    raise ValueError("a constant is a single float")
                if attribute.HasField("g"):
                    graph(attribute.g)
                for inner in attribute.graphs:
                    graph(inner)

    graph(wide.graph)
    return wide

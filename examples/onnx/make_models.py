"""Writes the models of this example: `pip install onnx numpy && python make_models.py`.

convnet.onnx is of opset 11, which IREE's importer does not read: benchgate upgrades it. encoder.onnx has its weights in a file of
external data, encoder.data, and a batch size that is open."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

random = np.random.default_rng(0)


def weight(name, *shape):
    scale = 1 / np.sqrt(np.prod(shape[1:]) if len(shape) > 1 else 1)
    return numpy_helper.from_array((random.standard_normal(shape) * scale).astype(np.float32), name)


def save(name, opset, nodes, inputs, outputs, weights, **options):
    def described(values):
        return [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in values]

    graph = helper.make_graph(nodes, name, described(inputs), described(outputs), weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, f"{name}.onnx", **options)


node = helper.make_node
save(
    "convnet",
    11,
    [
        node("Conv", ["x", "w0", "b0"], ["a"], pads=[1, 1, 1, 1]),
        node("Relu", ["a"], ["b"]),
        node("MaxPool", ["b"], ["c"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", ["c", "w1", "b1"], ["d"], pads=[1, 1, 1, 1]),
        node("Relu", ["d"], ["e"]),
        node("GlobalAveragePool", ["e"], ["f"]),
        # Axes are an attribute up to opset 12, and an input from 13 on.
        node("Squeeze", ["f"], ["g"], axes=[2, 3]),
        node("Gemm", ["g", "w2", "b2"], ["h"]),
        node("Softmax", ["h"], ["y"], axis=1),
    ],
    [("x", [1, 3, 64, 64])],
    [("y", [1, 10])],
    [weight("w0", 16, 3, 3, 3), weight("b0", 16), weight("w1", 32, 16, 3, 3), weight("b1", 32), weight("w2", 32, 10), weight("b2", 10)],
)
save(
    "encoder",
    17,
    [
        node("LayerNormalization", ["x", "scale", "shift"], ["n"], axis=-1),
        node("MatMul", ["n", "q"], ["queries"]),
        node("MatMul", ["n", "k"], ["keys"]),
        node("MatMul", ["n", "v"], ["values"]),
        node("Transpose", ["keys"], ["turned"], perm=[0, 2, 1]),
        node("MatMul", ["queries", "turned"], ["scores"]),
        node("Softmax", ["scores"], ["attention"], axis=-1),
        node("MatMul", ["attention", "values"], ["mixed"]),
        node("Add", ["x", "mixed"], ["y"]),
    ],
    [("x", ["batch", 32, 64])],
    [("y", ["batch", 32, 64])],
    [weight("scale", 64), weight("shift", 64), weight("q", 64, 64), weight("k", 64, 64), weight("v", 64, 64)],
    save_as_external_data=True,
    location="encoder.data",
    size_threshold=1024,
)

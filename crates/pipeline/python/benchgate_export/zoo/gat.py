"""Graph attention network of PyTorch Geometric."""

from torch_geometric.nn import GATConv

from . import _graph, _weights

UNSUPPORTED = {
    "torch-xla": "torch-xla 2.9 can't capture aten::scatter_reduce.two, the softmax over a node's neighbours",
    "onnx": "IREE 3.13 has no lowering of onnx.ScatterElements with reduction max, the softmax over a node's neighbours",
}


def make(preset="small", weights=None):
    *_, features, hidden, classes = _graph.SIZES[preset]
    settings = {"heads": 2, "concat": False, "add_self_loops": False}
    model = _graph.TwoLayers(GATConv(features, hidden, **settings), GATConv(hidden, classes, **settings))
    return _weights.own(model, _weights.choose(preset, weights, hub=False)), _graph.graph(preset)

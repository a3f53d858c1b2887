"""Graph convolutional network of PyTorch Geometric."""

from torch_geometric.nn import GCNConv

from . import _graph, _weights


def make(preset="small", weights=None):
    *_, features, hidden, classes = _graph.SIZES[preset]
    # Loops and their normalisation depend on the data: see _graph.py.
    settings = {"add_self_loops": False, "normalize": False}
    model = _graph.TwoLayers(GCNConv(features, hidden, **settings), GCNConv(hidden, classes, **settings))
    return _weights.own(model, _weights.choose(preset, weights, hub=False)), _graph.graph(preset)

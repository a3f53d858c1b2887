"""GraphSAGE of PyTorch Geometric: the node combined with the mean of its neighbours."""

from torch_geometric.nn import SAGEConv

from . import _graph, _weights


def make(preset="small", weights=None):
    *_, features, hidden, classes = _graph.SIZES[preset]
    model = _graph.TwoLayers(SAGEConv(features, hidden), SAGEConv(hidden, classes))
    return _weights.own(model, _weights.choose(preset, weights, hub=False)), _graph.graph(preset)

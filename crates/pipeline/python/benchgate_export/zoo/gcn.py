"""Graph convolutional network of PyTorch Geometric: Kipf and Welling, "Semi-Supervised Classification with Graph Convolutional
Networks" (ICLR 2017, arXiv:1609.02907), equation 2: self-loops and symmetric normalisation."""

from torch_geometric.nn import GCNConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from . import _graph, _weights


def make(preset="small", weights=None):
    *_, features, hidden, classes = _graph.SIZES[preset]
    # Loops and normalisation depend on the graph alone, so they are part of the data: GCNConv would look for loops when it runs,
    # which no exporter can trace.
    settings = {"add_self_loops": False, "normalize": False}
    model = _graph.TwoLayers(GCNConv(features, hidden, **settings), GCNConv(hidden, classes, **settings))
    nodes, edges = _graph.graph(preset)
    edges, factors = gcn_norm(edges, num_nodes=nodes.shape[0], add_self_loops=True)
    return _weights.own(model, _weights.choose(preset, weights, hub=False)), (nodes, edges, factors)

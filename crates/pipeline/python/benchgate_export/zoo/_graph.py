"""Graphs for the graph networks. A graph is given as data (`edges`, two rows of node numbers), as the seeds' suites do.

`small` is a random graph; `full` has the size of Cora (2708 nodes, 1433 features, 10556 edges, 7 classes). Its weights
are random: these networks are trained for each graph anew, so there are none to publish."""

from __future__ import annotations

import torch
from torch import nn

SIZES = {
    # nodes, edges, features, hidden, classes
    "small": (64, 256, 32, 32, 8),
    "full": (2708, 10556, 1433, 64, 7),
}


class TwoLayers(nn.Module):
    """The usual node classifier: convolution, ReLU, convolution."""

    def __init__(self, first, second):
        super().__init__()
        self.first, self.second = first, second

    def forward(self, x, *edges):
        return self.second(torch.relu(self.first(x, *edges)), *edges)


def graph(preset: str):
    """Node features, and edges without loops: layers that want a loop at each node add it when they run, which no exporter
    can trace (the number of edges would depend on the data)."""
    nodes, edges, features, *_ = SIZES[preset]
    source = torch.randint(0, nodes, (edges,))
    target = (source + torch.randint(1, nodes, (edges,))) % nodes
    return torch.randn(nodes, features), torch.stack([source, target])

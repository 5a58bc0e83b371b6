"""Graph attention in training: softmax over the edges that come in, messages added up by index."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class GraphAttention(torch.nn.Module):
    """One layer: every edge is scored by its two ends, every node takes a weighted sum of its neighbours."""

    def __init__(self, width: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.heads = heads
        self.project: torch.nn.Linear = torch.nn.Linear(width, heads * hidden, bias=False)
        self.source: torch.nn.Parameter = torch.nn.Parameter(torch.randn(heads, hidden) * hidden**-0.5)
        self.target: torch.nn.Parameter = torch.nn.Parameter(torch.randn(heads, hidden) * hidden**-0.5)

    def forward(self, nodes: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        """Return ``(nodes, heads * hidden)`` for ``(nodes, width)`` and ``(2, edges)``."""
        source, target = edges
        count = len(nodes)
        values = self.project(nodes).view(count, self.heads, -1)
        scores = (values * self.source).sum(-1)[source] + (values * self.target).sum(-1)[target]
        scores = torch.nn.functional.leaky_relu(scores, 0.2, inplace=True)
        highest = scores.new_full((count, self.heads), -1e9)
        index = target.unsqueeze(1).expand_as(scores)
        highest.scatter_reduce_(0, index, scores.detach(), "amax")
        weights = (scores - highest[target]).exp()
        total = torch.zeros_like(highest).index_add_(0, target, weights)
        weights = weights / total[target].clamp(min=1e-9)
        result = torch.zeros_like(values)
        result.index_add_(0, target, values[source] * weights.unsqueeze(-1))
        return torch.nn.functional.elu(result.flatten(1), inplace=True)


class Network(torch.nn.Module):
    """Layers of graph attention, and what is predicted of each node."""

    def __init__(self, layers: int, width: int, heads: int, hidden: int, classes: int) -> None:
        super().__init__()
        sizes = [width, *[heads * hidden] * (layers - 1)]
        self.layers: torch.nn.ModuleList = torch.nn.ModuleList(
            GraphAttention(size, heads, hidden) for size in sizes
        )
        self.classify: torch.nn.Linear = torch.nn.Linear(heads * hidden, classes)

    def forward(self, nodes: torch.Tensor, edges: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return the loss of all nodes."""
        for layer in self.layers:
            nodes = layer(nodes, edges)
        return torch.nn.functional.cross_entropy(self.classify(nodes), labels)


class Library(torch.nn.Module):
    """The same with PyTorch Geometric's layers."""

    def __init__(self, layers: int, width: int, heads: int, hidden: int, classes: int) -> None:
        from torch_geometric.nn import GATConv

        super().__init__()
        sizes = [width, *[heads * hidden] * (layers - 1)]
        self.layers: torch.nn.ModuleList = torch.nn.ModuleList(GATConv(size, hidden, heads) for size in sizes)
        self.classify: torch.nn.Linear = torch.nn.Linear(heads * hidden, classes)

    def forward(self, nodes: torch.Tensor, edges: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return the loss of all nodes."""
        for layer in self.layers:
            nodes = torch.nn.functional.elu(layer(nodes, edges), inplace=True)
        return torch.nn.functional.cross_entropy(self.classify(nodes), labels)


def training(
    device: str,
    *,
    library: bool,
    layers: int,
    width: int,
    heads: int,
    hidden: int,
    classes: int,
    nodes: int,
    edges: int,
) -> Program:
    """Return forward and backward of a graph's loss."""
    torch.manual_seed(0)
    with torch.device(device):
        model = (Library if library else Network)(layers, width, heads, hidden, classes)
        graph = torch.randint(0, nodes, (2, edges)), torch.randint(0, classes, (nodes,))
        return Program(model, (torch.randn(nodes, width), *graph))

"""Message passing on a graph: messages are added up at their targets, in buffers that begin as zeros."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Convolution(torch.nn.Module):
    """The mean of the messages that reach a node, and the largest of each feature."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.message: torch.nn.Linear = torch.nn.Linear(hidden, hidden)
        self.update: torch.nn.Linear = torch.nn.Linear(3 * hidden, hidden)

    def forward(self, nodes: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        """Return ``(nodes, hidden)``; ``edges`` is ``(2, edges)``, source above target."""
        source, target = edges.unbind()
        messages = torch.nn.functional.relu(self.message(nodes)[source])
        total = torch.zeros_like(nodes)
        total.index_add_(0, target, messages)
        degree = nodes.new_zeros(nodes.shape[0])
        degree.scatter_add_(0, target, nodes.new_ones(target.shape[0]))
        total.div_(degree.clamp(min=1).unsqueeze(1))
        largest = torch.zeros_like(nodes)
        largest.scatter_reduce_(0, target.unsqueeze(1).expand_as(messages), messages, "amax")
        output: torch.Tensor = self.update(torch.cat([nodes, total, largest], 1))
        return output


class Network(torch.nn.Module):
    """Convolutions with residual connections; what a node was given is added up over the layers."""

    def __init__(self, layers: int, hidden: int) -> None:
        super().__init__()
        self.layers: torch.nn.ModuleList = torch.nn.ModuleList(Convolution(hidden) for _ in range(layers))

    def forward(self, nodes: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        """Return the nodes after the last layer."""
        for layer in self.layers:
            nodes = nodes + layer(torch.nn.functional.layer_norm(nodes, nodes.shape[-1:]), edges)
        return nodes


def forward(device: str, *, layers: int, hidden: int, nodes: int, edges: int) -> Program:
    """Return ``layers`` convolutions of a random graph."""
    torch.manual_seed(0)
    with torch.device(device):
        model = Network(layers, hidden).eval()
        return Program(model, (torch.randn(nodes, hidden), torch.randint(0, nodes, (2, edges))))

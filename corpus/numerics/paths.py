"""Shortest paths by Floyd and Warshall: the matrix of distances is lowered once for each stop on the way."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Paths(torch.nn.Module):
    """Distances between all pairs of nodes, and the next stop on the way."""

    def forward(self, distances: torch.Tensor, following: torch.Tensor) -> torch.Tensor:
        """Return ``distances``, ``(graphs, nodes, nodes)``; ``following`` holds the next stop of each."""
        for k in range(distances.shape[1]):
            through = distances[:, :, k].unsqueeze(2) + distances[:, k].unsqueeze(1)
            shorter = through < distances
            following[:] = torch.where(shorter, following[:, :, k].unsqueeze(2), following)
            torch.minimum(distances, through, out=distances)
        return distances


def shortest(device: str, *, graphs: int, nodes: int) -> Program:
    """Return the distances of random graphs with ``nodes`` nodes."""
    torch.manual_seed(0)
    with torch.device(device):
        distances = torch.rand(graphs, nodes, nodes)
        distances.diagonal(dim1=1, dim2=2).zero_()
        return Program(Paths(), (distances, torch.arange(nodes).repeat(graphs, nodes, 1)))

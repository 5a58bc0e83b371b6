"""Shortest paths by Floyd and Warshall: the matrix of distances is lowered once for each stop on the way."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Paths(torch.nn.Module):
    """Distances between all pairs of nodes, and the next stop on the way."""

    def forward(self, distances: torch.Tensor, following: torch.Tensor) -> torch.Tensor:
        """Return ``distances``, ``(nodes, nodes)``; ``following`` holds the next stop of each pair."""
        for k in range(len(distances)):
            through = distances[:, k].unsqueeze(1) + distances[k].unsqueeze(0)
            shorter = through < distances
            following[:] = torch.where(shorter, following[:, k].unsqueeze(1), following)
            torch.minimum(distances, through, out=distances)
        return distances


def shortest(device: str, *, nodes: int) -> Program:
    """Return the distances of a random graph with ``nodes`` nodes."""
    torch.manual_seed(0)
    with torch.device(device):
        distances = torch.rand(nodes, nodes)
        distances.fill_diagonal_(0)
        return Program(Paths(), (distances, torch.arange(nodes).repeat(nodes, 1)))

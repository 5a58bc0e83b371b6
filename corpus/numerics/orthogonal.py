"""Orthogonal bases: modified Gram-Schmidt in place, Householder's reflections, Arnoldi's iteration."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class GramSchmidt(torch.nn.Module):
    """Makes the columns of a matrix orthonormal in place, as PowerSGD does with the factors that it sends."""

    def forward(self, matrices: torch.Tensor) -> torch.Tensor:
        """Return ``matrices``, ``(batch, rows, rank)``."""
        rank = matrices.shape[2]
        for i in range(rank):
            column = matrices[:, :, i : i + 1]
            column /= column.norm(dim=1, keepdim=True) + 1e-8
            if i + 1 < rank:
                rest = matrices[:, :, i + 1 :]
                rest -= (column * rest).sum(1, keepdim=True) * column
        return matrices


class Householder(torch.nn.Module):
    """Reflects a matrix to upper triangular form in place, and the right sides with it."""

    def forward(self, matrix: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        """Return the least-squares solution of ``(rows, columns)`` for ``right``, ``(rows, n)``."""
        columns = matrix.shape[1]
        for k in range(columns):
            vector = matrix[k:, k].clone()
            vector[0] += torch.copysign(vector.norm(), vector[0])
            vector /= vector.norm()
            matrix[k:, k:] -= 2 * torch.outer(vector, vector @ matrix[k:, k:])
            right[k:] -= 2 * torch.outer(vector, vector @ right[k:])
        solution: torch.Tensor = torch.linalg.solve_triangular(matrix[:columns], right[:columns], upper=True)
        return solution


class Arnoldi(torch.nn.Module):
    """Builds a basis of a Krylov space row by row, and the small matrix that stands for the large one."""

    def forward(self, matrix: torch.Tensor, basis: torch.Tensor, small: torch.Tensor) -> torch.Tensor:
        """Return ``small``, ``(steps + 1, steps)``; ``basis``, ``(steps + 1, size)``, has its first row."""
        for k in range(small.shape[1]):
            vector = matrix @ basis[k]
            for j in range(k + 1):
                small[j, k] = torch.dot(basis[j], vector)
                vector -= small[j, k] * basis[j]
            small[k + 1, k] = vector.norm()
            basis[k + 1] = vector / small[k + 1, k]
        return small


def schmidt(device: str, *, batch: int, rows: int, rank: int) -> Program:
    """Return orthonormal columns."""
    torch.manual_seed(0)
    with torch.device(device):
        return Program(GramSchmidt(), (torch.randn(batch, rows, rank),))


def householder(device: str, *, rows: int, columns: int, right: int) -> Program:
    """Return a solution of least squares."""
    torch.manual_seed(0)
    with torch.device(device):
        return Program(Householder(), (torch.randn(rows, columns), torch.randn(rows, right)))


def arnoldi(device: str, *, size: int, steps: int) -> Program:
    """Return Hessenberg's form of a matrix after ``steps`` products."""
    torch.manual_seed(0)
    with torch.device(device):
        matrix = torch.randn(size, size) * size**-0.5
        basis = torch.zeros(steps + 1, size)
        basis[0] = torch.nn.functional.normalize(torch.randn(size), dim=0)
        return Program(Arnoldi(), (matrix, basis, torch.zeros(steps + 1, steps)))

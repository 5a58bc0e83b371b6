"""Low-rank adapters of many requests: an autotuned Triton kernel adds each to a part of a projection."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Projection(torch.nn.Module):
    """Queries, keys and values in one product, each with the adapters of all requests."""

    def __init__(self, hidden: int, widths: list[int], adapters: int, rank: int) -> None:
        super().__init__()
        self.widths = widths
        self.weight: torch.nn.Linear = torch.nn.Linear(hidden, sum(widths), bias=False)
        self.reduce: torch.nn.Parameter = torch.nn.Parameter(
            torch.randn(len(widths), adapters, hidden, rank) * hidden**-0.5
        )
        self.expand: torch.nn.ParameterList = torch.nn.ParameterList(
            torch.randn(adapters, width, rank) * rank**-0.5 for width in widths
        )

    def forward(self, hidden: torch.Tensor, adapter: torch.Tensor) -> torch.Tensor:
        """Return ``(tokens, sum(widths))``; ``adapter`` says which one each token goes through."""
        from .lora_kernel import expand

        output: torch.Tensor = self.weight(hidden)
        tokens, rank = len(hidden), self.reduce.shape[-1]
        for part, reduce, weights in zip(output.split(self.widths, 1), self.reduce, self.expand, strict=True):
            reduced = torch.bmm(hidden[:, None], reduce[adapter]).squeeze(1)
            width = part.shape[1]

            def grid(meta: dict[str, int], width: int = width) -> tuple[int, int]:
                return tokens, -(-width // meta["BLOCK"])

            expand[grid](part, reduced, weights, adapter, output.stride(0), width, RANK=rank)
        return output


class Stack(torch.nn.Module):
    """Projections whose parts are mixed and projected back, with residual connections."""

    def __init__(self, layers: int, hidden: int, widths: list[int], adapters: int, rank: int) -> None:
        super().__init__()
        self.projections: torch.nn.ModuleList = torch.nn.ModuleList(
            Projection(hidden, widths, adapters, rank) for _ in range(layers)
        )
        self.back: torch.nn.ModuleList = torch.nn.ModuleList(
            torch.nn.Linear(sum(widths), hidden, bias=False) for _ in range(layers)
        )

    def forward(self, hidden: torch.Tensor, adapter: torch.Tensor) -> torch.Tensor:
        """Return the hidden states ``(tokens, hidden)`` of the last layer."""
        for projection, back in zip(self.projections, self.back, strict=True):
            normed = torch.nn.functional.rms_norm(hidden, hidden.shape[-1:])
            hidden = hidden + back(torch.nn.functional.silu(projection(normed, adapter)))
        return hidden


def forward(
    device: str,
    *,
    layers: int,
    hidden: int,
    widths: list[int],
    adapters: int,
    rank: int,
    tokens: int,
    dtype: str,
) -> Program:
    """Return ``layers`` layers on ``tokens`` tokens, one for each request; ``rank`` is a power of two."""
    torch.manual_seed(0)
    with torch.device(device):
        model = Stack(layers, hidden, widths, adapters, rank).to(getattr(torch, dtype)).eval()
        inputs = torch.randn(tokens, hidden, dtype=getattr(torch, dtype))
        adapter = torch.randint(0, adapters, (tokens,))
    return Program(model, (inputs, adapter))

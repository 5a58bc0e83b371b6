"""Causal convolutions over a stream: each keeps the end of what it has seen for the next chunk."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Appended(torch.nn.Module):
    """A convolution over its state and the chunk behind it; the end of both becomes the state."""

    def __init__(self, channels: int, window: int) -> None:
        super().__init__()
        self.convolution: torch.nn.Conv1d = torch.nn.Conv1d(channels, channels, window)

    def forward(self, chunk: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        """Return as many columns as ``(batch, channels, n)`` has; ``state`` has ``window - 1``."""
        longer = torch.cat([state, chunk], -1)
        state.copy_(longer[..., -state.shape[-1] :])
        output: torch.Tensor = self.convolution(longer)
        return output


class Rolled(torch.nn.Module):
    """A depthwise convolution over its state, whose columns move on to make room for the chunk."""

    def __init__(self, channels: int, window: int) -> None:
        super().__init__()
        self.convolution: torch.nn.Conv1d = torch.nn.Conv1d(channels, channels, window, groups=channels)

    def forward(self, chunk: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        """Return as many columns as ``(batch, channels, n)`` has; ``state`` has ``window - 1 + n``."""
        columns = chunk.shape[-1]
        state.copy_(state.roll(-columns, -1))
        state[..., -columns:] = chunk
        output: torch.Tensor = self.convolution(state)
        return output


class Stack(torch.nn.Module):
    """Convolutions with residual connections, each with a state of its own."""

    def __init__(self, layers: int, channels: int, window: int, rolled: bool) -> None:
        super().__init__()
        kind = Rolled if rolled else Appended
        self.layers: torch.nn.ModuleList = torch.nn.ModuleList(kind(channels, window) for _ in range(layers))

    def forward(self, chunk: torch.Tensor, states: list[torch.Tensor]) -> torch.Tensor:
        """Return the output of the last layer for ``(batch, channels, n)`` and move every state on."""
        for layer, state in zip(self.layers, states, strict=True):
            chunk = chunk + torch.nn.functional.elu(layer(chunk, state))
        return chunk


def step(
    device: str, *, layers: int, channels: int, window: int, chunk: int, batch: int, rolled: bool, dtype: str
) -> Program:
    """Return one chunk of ``chunk`` columns through ``layers`` convolutions over ``window`` columns."""
    torch.manual_seed(0)
    columns = window - 1 + (chunk if rolled else 0)
    with torch.device(device):
        model = Stack(layers, channels, window, rolled).to(getattr(torch, dtype)).eval()
        inputs = torch.randn(batch, channels, chunk, dtype=getattr(torch, dtype))
        states = [torch.randn(batch, channels, columns, dtype=inputs.dtype) for _ in range(layers)]
    return Program(model, (inputs, states))

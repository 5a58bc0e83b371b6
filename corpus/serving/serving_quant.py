"""MLP layers as a serving engine compiles them quantized: activations by token, weights by channel."""

from __future__ import annotations

import torch

from pytest_reinplace import Program

from . import quant_ops, serving_ops


class Linear(torch.nn.Module):
    """A quantized weight, and its scale for each output."""

    weight: torch.Tensor
    scale: torch.Tensor

    def __init__(self, inputs: int, outputs: int, quantized: torch.dtype) -> None:
        super().__init__()
        most = quant_ops.largest(quantized)
        dense = torch.rand(inputs, outputs) * 2 - 1
        exact = dense * most
        self.register_buffer(
            "weight", (exact if quantized.is_floating_point else exact.round()).to(quantized)
        )
        self.register_buffer("scale", torch.full((1, outputs), inputs**-0.5 / most))

    def forward(self, input: torch.Tensor, input_scale: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """Return the product ``(tokens, outputs)`` of quantized ``(tokens, inputs)`` in ``dtype``."""
        output = torch.empty(len(input), self.weight.shape[1], dtype=dtype, device=input.device)
        torch.ops.serving_quant.scaled_mm(output, input, self.weight, input_scale, self.scale, None)
        return output


class Layer(torch.nn.Module):
    """Norm and MLP; what goes into a product is quantized first, by the norm where there is one."""

    def __init__(self, hidden: int, intermediate: int, quantized: torch.dtype) -> None:
        super().__init__()
        self.quantized = quantized
        self.norm: torch.nn.Parameter = torch.nn.Parameter(torch.rand(hidden) + 0.5)
        self.gate_up: Linear = Linear(hidden, 2 * intermediate, quantized)
        self.down: Linear = Linear(intermediate, hidden, quantized)

    def forward(self, hidden: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        """Return the next hidden states ``(tokens, hidden)``; adds the given ones to ``residual``."""
        ops = torch.ops.serving_quant
        normed, scale = self._outputs(hidden)
        ops.rms_norm_dynamic_per_token_quant(normed, hidden, self.norm, scale, 1e-5, None, residual)
        gate_up = self.gate_up(normed, scale, hidden.dtype)
        activated = torch.empty_like(gate_up[:, : gate_up.shape[1] // 2])
        torch.ops.serving.silu_and_mul(activated, gate_up)
        inner, scale = self._outputs(activated)
        ops.dynamic_per_token_quant(inner, activated, scale, None)
        output: torch.Tensor = self.down(inner, scale, hidden.dtype)
        return output

    def _outputs(self, like: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return memory for what quantizing ``(tokens, width)`` gives, and for the scales."""
        scale = torch.empty(len(like), 1, dtype=torch.float32, device=like.device)
        return torch.empty(like.shape, dtype=self.quantized, device=like.device), scale


class Stack(torch.nn.Module):
    """Layers over one residual stream."""

    def __init__(self, layers: int, hidden: int, intermediate: int, quantized: torch.dtype) -> None:
        super().__init__()
        self.layers: torch.nn.ModuleList = torch.nn.ModuleList(
            Layer(hidden, intermediate, quantized) for _ in range(layers)
        )

    def forward(self, hidden: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        """Return the output of the last layer; ``residual`` is updated in place."""
        for layer in self.layers:
            hidden = layer(hidden, residual)
        return hidden


def forward(
    device: str,
    *,
    layers: int,
    hidden: int,
    intermediate: int,
    tokens: int,
    quantized: str,
    dtype: str,
) -> Program:
    """Return ``layers`` layers on ``tokens`` tokens, products of ``quantized``, all else in ``dtype``."""
    serving_ops.register()
    quant_ops.register()
    torch.manual_seed(0)
    with torch.device(device):
        model = Stack(layers, hidden, intermediate, getattr(torch, quantized)).eval()
        inputs, residual = torch.randn(2, tokens, hidden, dtype=getattr(torch, dtype)).unbind()
    return Program(model, (inputs.clone(), residual.clone()))

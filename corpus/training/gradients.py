"""What happens to gradients between backward and optimizer: accumulated and clipped, both in place."""

from __future__ import annotations

import math

import torch
from torch.func import functional_call, grad

from pytest_reinplace import Program


class Clipping(torch.nn.Module):
    """Gradients that are views of one bucket, as data-parallel training keeps them for its all-reduce."""

    bucket: torch.Tensor

    def __init__(self, shapes: list[tuple[int, ...]], dtype: torch.dtype, limit: float) -> None:
        super().__init__()
        self.shapes = shapes
        self.limit = limit
        self.register_buffer("bucket", torch.randn(sum(map(math.prod, shapes)), dtype=dtype))

    def gradients(self) -> list[torch.Tensor]:
        """Return one view of the bucket for each parameter."""
        parts = self.bucket.split([math.prod(shape) for shape in self.shapes])
        return [part.view(shape) for part, shape in zip(parts, self.shapes, strict=True)]

    def forward(self) -> torch.Tensor:
        """Bring the gradients under a common norm, as ``clip_grad_norm_`` does; return the norm they had."""
        gradients = self.gradients()
        norm: torch.Tensor = torch.nn.utils.get_total_norm(gradients, foreach=True)
        factor = (self.limit / (norm + 1e-6)).clamp(max=1.0)
        torch.ops.aten._foreach_mul_.Tensor(gradients, factor)
        return norm


class Network(torch.nn.Module):
    """Linear layers with residual connections."""

    def __init__(self, layers: int, hidden: int) -> None:
        super().__init__()
        self.layers: torch.nn.ModuleList = torch.nn.ModuleList(
            torch.nn.Linear(hidden, hidden) for _ in range(layers)
        )

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Return ``rows``, ``(rows, hidden)``, after all layers."""
        for layer in self.layers:
            rows = rows + torch.nn.functional.gelu(layer(rows))
        return rows


class Accumulation(torch.nn.Module):
    """A network whose gradients are added to views of one flat buffer of single precision."""

    main_grad: torch.Tensor

    def __init__(self, network: torch.nn.Module) -> None:
        super().__init__()
        self.network = network
        size = sum(parameter.numel() for parameter in network.parameters())
        self.register_buffer("main_grad", torch.zeros(size, dtype=torch.float32))

    def loss(
        self, parameters: dict[str, torch.Tensor], inputs: torch.Tensor, target: torch.Tensor
    ) -> torch.Tensor:
        """Return the square error of a row, the mean of all, with these ``parameters``."""
        outputs = functional_call(self.network, parameters, (inputs,))
        return torch.nn.functional.mse_loss(outputs, target, reduction="sum") / len(inputs)

    def forward(self, inputs: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Add the mean gradient of batches ``(batches, rows, hidden)`` to ``main_grad``; return its norm."""
        parameters: dict[str, torch.Tensor] = dict(self.network.named_parameters())
        for batch, expected in zip(inputs, target, strict=True):
            gradients = grad(self.loss)(parameters, batch, expected)
            start = 0
            for gradient in gradients.values():
                part = self.main_grad.narrow(0, start, gradient.numel()).view_as(gradient)
                part += gradient / len(inputs)
                start += gradient.numel()
        norm: torch.Tensor = self.main_grad.norm()
        return norm


def clip(device: str, *, layers: int, hidden: int, dtype: str) -> Program:
    """Return a call that clips the gradients of ``layers`` linear layers."""
    torch.manual_seed(0)
    shapes: list[tuple[int, ...]] = [
        shape for _ in range(layers) for shape in ((4 * hidden, hidden), (hidden, 4 * hidden), (hidden,))
    ]
    with torch.device(device):
        return Program(Clipping(shapes, getattr(torch, dtype), 1.0))


def accumulate(device: str, *, layers: int, hidden: int, batches: int, rows: int, dtype: str) -> Program:
    """Return forward and backward of ``batches`` small batches, accumulated into one gradient buffer."""
    torch.manual_seed(0)
    with torch.device(device):
        model = Accumulation(Network(layers, hidden).to(getattr(torch, dtype)))
        inputs, target = torch.randn(2, batches, rows, hidden, dtype=getattr(torch, dtype)).unbind()
    return Program(model, (inputs, target.clone()))

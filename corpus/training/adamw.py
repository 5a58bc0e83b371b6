"""The end of a training step: embedding gradients accumulated, then ``torch.optim.AdamW``."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Training:
    """Parameters with gradients, and their optimizer; the first parameter is the embedding."""

    def __init__(self, parameters: list[torch.nn.Parameter], foreach: bool) -> None:
        self.parameters = parameters
        self.optimizer: torch.optim.AdamW = torch.optim.AdamW(
            parameters, lr=1e-3, weight_decay=0.1, foreach=foreach, capturable=parameters[0].is_cuda
        )

    def step(self, tokens: torch.Tensor, gradients: torch.Tensor) -> None:
        """Add one gradient row per token to the embedding's, then update weights and moments in place."""
        embedding = self.parameters[0].grad
        assert embedding is not None
        embedding.index_add_(0, tokens, gradients)
        self.optimizer.step()


def step(
    device: str,
    *,
    layers: int,
    hidden: int,
    intermediate: int,
    vocab: int,
    tokens: int,
    foreach: bool = True,
) -> Program:
    """Return an update of an embedding and ``layers`` layers, after one that made the moments."""
    torch.manual_seed(0)
    layer = [
        (hidden,),
        (3 * hidden, hidden),
        (hidden, hidden),
        (2 * intermediate, hidden),
        (hidden, intermediate),
    ]
    shapes = [(vocab, hidden), *(shape for _ in range(layers) for shape in layer)]
    with torch.device(device):
        parameters = [torch.nn.Parameter(torch.randn(shape)) for shape in shapes]
        for parameter in parameters:
            parameter.grad = torch.randn_like(parameter)
        training = Training(parameters, foreach)
        batch = torch.randint(0, vocab, (tokens,)), torch.randn(tokens, hidden)
    training.step(*batch)
    return Program(training.step, batch)

"""Vector quantization: the codebook follows the vectors that choose its entries, as a moving average."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Quantizer(torch.nn.Module):
    """A codebook, and the moving averages that it is made of."""

    codebook: torch.Tensor
    counts: torch.Tensor
    sums: torch.Tensor
    chosen: torch.Tensor

    def __init__(self, codes: int, width: int, decay: float) -> None:
        super().__init__()
        self.decay = decay
        self.register_buffer("codebook", torch.randn(codes, width))
        self.register_buffer("counts", torch.ones(codes))
        self.register_buffer("sums", self.codebook.clone())
        self.register_buffer("chosen", torch.zeros(codes, dtype=torch.int64))

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        """Return the nearest entry for each of ``(rows, width)``, then move the codebook in place."""
        distance = self.codebook.square().sum(1) - 2 * vectors @ self.codebook.t()
        nearest = distance.argmin(1)
        quantized = self.codebook[nearest]
        counts = torch.zeros_like(self.counts).index_add_(0, nearest, vectors.new_ones(nearest.shape))
        sums = torch.zeros_like(self.sums).index_add_(0, nearest, vectors)
        self.counts.mul_(self.decay).add_(counts, alpha=1 - self.decay)
        self.sums.mul_(self.decay).add_(sums, alpha=1 - self.decay)
        self.chosen.index_add_(0, nearest, torch.ones_like(nearest))
        total = self.counts.sum()
        smoothed = (self.counts + 1e-5) / (total + len(self.counts) * 1e-5) * total
        self.codebook.copy_(self.sums / smoothed.unsqueeze(1))
        return quantized


class Residual(torch.nn.Module):
    """Quantizers that each see what the ones before have left over; their codebooks are apart."""

    def __init__(self, stages: int, codes: int, width: int, decay: float) -> None:
        super().__init__()
        self.stages: torch.nn.ModuleList = torch.nn.ModuleList(
            Quantizer(codes, width, decay) for _ in range(stages)
        )

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        """Return the sum of the chosen entries, of the shape of ``vectors``."""
        result = torch.zeros_like(vectors)
        for stage in self.stages:
            result += stage(vectors - result)
        return result


def quantize(device: str, *, stages: int, codes: int, width: int, rows: int, decay: float) -> Program:
    """Return the quantization of vectors that lie close to entries, so that rounding changes none."""
    torch.manual_seed(0)
    with torch.device(device):
        model = Residual(stages, codes, width, decay)
        vectors = torch.zeros(rows, width)
        for number, stage in enumerate(model.stages):
            scale = 4.0**-number
            assert isinstance(stage, Quantizer)
            for buffer in (stage.codebook, stage.sums):
                buffer.mul_(scale)
            vectors += stage.codebook[torch.randint(0, codes, (rows,))]
    return Program(model, (vectors,))

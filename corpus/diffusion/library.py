"""Models and schedulers of Hugging Face diffusers with random weights."""

from __future__ import annotations

from typing import Any

import torch

from pytest_reinplace import Program


class Denoising(torch.nn.Module):
    """A conditional U-Net and DDIM's arithmetic around it, with guidance; latents are stepped in place."""

    alphas: torch.Tensor

    def __init__(self, network: torch.nn.Module, alphas: torch.Tensor, guidance: float) -> None:
        super().__init__()
        self.network = network
        self.guidance = guidance
        self.register_buffer("alphas", alphas)

    def forward(self, latents: torch.Tensor, text: torch.Tensor, times: torch.Tensor) -> torch.Tensor:
        """Return ``latents``, ``(batch, channels, side, side)``; ``times`` holds this step and the next."""
        doubled = torch.cat([latents, latents])
        noise = self.network(doubled, times[0], encoder_hidden_states=text).sample
        plain, guided = noise.chunk(2)
        noise = plain + self.guidance * (guided - plain)
        now, following = self.alphas[times[0:1]], self.alphas[times[1:2]]
        image = (latents - (1 - now).sqrt() * noise) / now.sqrt()
        return latents.copy_(following.sqrt() * image + (1 - following).sqrt() * noise)


def unet(device: str, *, config: dict[str, Any], batch: int, tokens: int, dtype: str) -> Program:
    """Return one guided step of a ``UNet2DConditionModel``; ``config`` is diffusers' own."""
    from diffusers import DDIMScheduler, UNet2DConditionModel

    torch.manual_seed(0)
    kind = getattr(torch, dtype)
    with torch.device(device):
        network = UNet2DConditionModel(**config).to(kind).eval()
        side, channels = config["sample_size"], config["in_channels"]
        latents = torch.randn(batch, channels, side, side, dtype=kind)
        text = torch.randn(2 * batch, tokens, config["cross_attention_dim"], dtype=kind)
    alphas = DDIMScheduler().alphas_cumprod.to(device, kind)
    times = torch.tensor([900, 880], device=device)
    return Program(Denoising(network, alphas, 7.5), (latents, text, times))


class Decoding(torch.nn.Module):
    """The tiled decoder of an autoencoder, and its result scaled to images."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, latents: torch.Tensor) -> torch.Tensor:
        """Return ``(batch, 3, height, width)`` from 0 to 1."""
        image: torch.Tensor = self.model.decode(latents).sample
        return image.mul_(0.5).add_(0.5).clamp_(0, 1)


def tiled(device: str, *, config: dict[str, Any], batch: int, side: int, dtype: str) -> Program:
    """Return the tiled decoding of an ``AutoencoderKL``; ``config`` is diffusers' own."""
    from diffusers import AutoencoderKL

    torch.manual_seed(0)
    kind = getattr(torch, dtype)
    with torch.device(device):
        model = AutoencoderKL(**config).to(kind).eval()
        model.enable_tiling()
        latents = torch.randn(batch, config["latent_channels"], side, side, dtype=kind)
    return Program(Decoding(model), (latents,))

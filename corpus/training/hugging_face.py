"""Training steps of models from Hugging Face transformers with random weights: loss and gradients."""

from __future__ import annotations

from typing import Any

import torch

from pytest_reinplace import Program


class Loss(torch.nn.Module):
    """A model that is asked for nothing but its loss."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return the loss, one number."""
        loss: torch.Tensor = self.model(**inputs).loss
        return loss


class Masking(Loss):
    """A masked language model that chooses in each step, in the tokens themselves, what it hides."""

    def __init__(self, model: torch.nn.Module, mask: int, vocab: int) -> None:
        super().__init__(model)
        self.mask = mask
        self.vocab = vocab

    def forward(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return the loss of the tokens that are hidden, ``(batch, length)`` all in all."""
        tokens, chances = inputs["input_ids"], inputs["chances"]
        labels = tokens.clone()
        chosen = chances < 0.15
        labels.masked_fill_(~chosen, -100)
        tokens.masked_fill_(chosen & (chances < 0.12), self.mask)
        other = chosen & (chances >= 0.12) & (chances < 0.135)
        tokens.copy_(torch.where(other, (tokens * 7 + 3) % self.vocab, tokens))
        return super().forward({"input_ids": tokens, "labels": labels})


def masked(device: str, *, config: dict[str, Any], batch: int, length: int, dtype: str) -> Program:
    """Return a step of BERT; ``config`` is transformers' own."""
    from transformers import BertConfig, BertForMaskedLM

    torch.manual_seed(0)
    configuration = BertConfig(**config)
    with torch.device(device):
        model = BertForMaskedLM(configuration).to(getattr(torch, dtype)).train()
        tokens = torch.randint(4, configuration.vocab_size, (batch, length))
        inputs = {"input_ids": tokens, "chances": torch.rand(batch, length)}
    return Program(Masking(model, 3, configuration.vocab_size), (inputs,))


def causal(
    device: str, *, model_type: str, config: dict[str, Any], batch: int, length: int, dtype: str
) -> Program:
    """Return a step of a causal model of that type; ``config`` is transformers' own."""
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(0)
    configuration = AutoConfig.for_model(model_type, **config)
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(configuration, dtype=getattr(torch, dtype)).train()
        tokens = torch.randint(0, configuration.vocab_size, (batch, length))
    return Program(Loss(model), ({"input_ids": tokens, "labels": tokens.clone(), "use_cache": False},))


def images(device: str, *, config: dict[str, Any], batch: int, dtype: str) -> Program:
    """Return a step of a vision transformer; ``config`` is transformers' own."""
    from transformers import ViTConfig, ViTForImageClassification

    torch.manual_seed(0)
    configuration = ViTConfig(**config)
    kind = getattr(torch, dtype)
    with torch.device(device):
        model = ViTForImageClassification(configuration).to(kind).train()
        side: Any = configuration.image_size
        pixels = torch.randn(batch, 3, side, side, dtype=kind)
        labels = torch.randint(0, 2, (batch,))
    return Program(Loss(model), ({"pixel_values": pixels, "labels": labels},))

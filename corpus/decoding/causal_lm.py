"""Decoder-only models from Hugging Face transformers with random weights: one step into a static cache."""

from __future__ import annotations

from typing import Any

import torch

from pytest_reinplace import Program


class Decoding(torch.nn.Module):
    """A model that decodes its next token at one and the same place of the cache however often it is called.

    Layers with a sliding window count their tokens in a Python number, too; left to grow it would make every
    call another program.
    """

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: torch.Tensor, position: torch.Tensor, cache: Any) -> torch.Tensor:
        """Return the logits of ``(batch, 1)`` tokens; writes them into ``cache``, a ``StaticCache``."""
        sliding = [layer for layer in cache.layers if layer.is_sliding]
        lengths = [layer.cumulative_length_int for layer in sliding]
        result = self.model(input_ids=tokens, position_ids=position, past_key_values=cache, use_cache=True)
        for layer, length in zip(sliding, lengths, strict=True):
            layer.cumulative_length_int = length
        logits: torch.Tensor = result.logits
        return logits


def decode_step(
    device: str,
    *,
    model_type: str,
    config: dict[str, Any],
    batch: int,
    prompt: int,
    cache_length: int,
    dtype: str,
) -> Program:
    """Return one decode step of a ``model_type`` after ``prompt`` tokens; ``config`` is transformers' own."""
    from transformers import AutoConfig, AutoModelForCausalLM, StaticCache

    torch.manual_seed(0)
    configuration = AutoConfig.for_model(model_type, **config)
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(configuration, dtype=getattr(torch, dtype)).eval()
        tokens = torch.randint(0, configuration.vocab_size, (batch, prompt + 1))
        position = torch.full((batch, 1), prompt)
    cache = StaticCache(config=configuration, max_cache_len=cache_length)
    with torch.no_grad():
        model(tokens[:, :prompt], past_key_values=cache, use_cache=True)
    return Program(Decoding(model), (tokens[:, prompt:].clone(), position, cache))

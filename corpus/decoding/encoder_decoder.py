"""Encoder-decoder models from Hugging Face transformers with random weights: one step of the decoder."""

from __future__ import annotations

from typing import Any

import torch

from pytest_reinplace import Program


class Decoding(torch.nn.Module):
    """The decoder of a model; what it attends to across lies in the cache already."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: torch.Tensor, encoded: torch.Tensor, cache: Any) -> torch.Tensor:
        """Return the logits of ``(batch, 1)`` tokens; writes them into ``cache``'s self-attention half."""
        result = self.model(
            decoder_input_ids=tokens, encoder_outputs=(encoded,), past_key_values=cache, use_cache=True
        )
        logits: torch.Tensor = result.logits
        return logits


def decode_step(
    device: str,
    *,
    model_type: str,
    auto_class: str,
    config: dict[str, Any],
    batch: int,
    source: int,
    prompt: int,
    cache_length: int,
    dtype: str,
) -> Program:
    """Return one decoder step after ``prompt`` tokens, over ``source`` encoded positions.

    ``auto_class`` names transformers' class that builds the model, ``config`` is transformers' own. The
    encoder does not run: its result is random, as its weights would make it anyhow.
    """
    import transformers

    torch.manual_seed(0)
    configuration = transformers.AutoConfig.for_model(model_type, **config)
    with torch.device(device):
        build = getattr(transformers, auto_class).from_config
        model = build(configuration, dtype=getattr(torch, dtype)).eval()
        tokens = torch.randint(0, configuration.vocab_size, (batch, prompt + 1))
        encoded = torch.randn(batch, source, configuration.d_model, dtype=model.dtype)
    decoder = configuration.get_text_config(decoder=True)
    cache = transformers.EncoderDecoderCache(
        transformers.StaticCache(config=decoder, max_cache_len=cache_length),
        transformers.StaticCache(config=decoder, max_cache_len=source),
    )
    decoding = Decoding(model)
    with torch.no_grad():
        decoding(tokens[:, :prompt], encoded, cache)
    return Program(decoding, (tokens[:, prompt:].clone(), encoded, cache))

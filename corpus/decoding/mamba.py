"""Mamba from Hugging Face transformers with random weights: one decode step over its recurrent states."""

from __future__ import annotations

from typing import Any

import torch

from pytest_reinplace import Program


def decode_step(
    device: str, *, model_type: str, config: dict[str, Any], batch: int, prompt: int, dtype: str
) -> Program:
    """Return one step after ``prompt`` tokens: convolution and state-space states are updated in place."""
    from transformers import AutoConfig, AutoModelForCausalLM, DynamicCache

    torch.manual_seed(0)
    configuration = AutoConfig.for_model(model_type, **config)
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(configuration, dtype=getattr(torch, dtype)).eval()
        tokens = torch.randint(0, configuration.vocab_size, (batch, prompt + 1))
    cache = DynamicCache(config=configuration)  # of layers whose states have a fixed size
    with torch.no_grad():
        model(tokens[:, :prompt], cache_params=cache, use_cache=True)
    step = {"input_ids": tokens[:, prompt:].clone(), "cache_params": cache, "use_cache": True}
    return Program(model, kwargs=step)

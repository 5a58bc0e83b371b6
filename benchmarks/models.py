"""The model that is timed."""

from __future__ import annotations

from typing import Any

import torch


def llama(layers: int) -> tuple[Any, torch.Tensor]:
    """Return a small Llama of so many layers, with random weights, and tokens for it."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=128,
    )
    return LlamaForCausalLM(config), torch.arange(16).reshape(1, 16)

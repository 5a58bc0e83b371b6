"""Llama from Hugging Face transformers with random weights: one decode step into a static KV cache."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


def decode_step(
    device: str,
    *,
    layers: int,
    hidden: int,
    intermediate: int,
    heads: int,
    kv_heads: int,
    vocab: int,
    batch: int,
    prompt: int,
    cache_length: int,
    dtype: str,
) -> Program:
    """Return one decode step after a prompt of ``prompt`` tokens, into a cache of ``cache_length``."""
    from transformers import LlamaConfig, LlamaForCausalLM, StaticCache

    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=hidden,
        intermediate_size=intermediate,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        vocab_size=vocab,
        max_position_embeddings=cache_length,
    )
    with torch.device(device):
        model = LlamaForCausalLM(config).to(getattr(torch, dtype)).eval()
        tokens = torch.randint(0, vocab, (batch, prompt + 1))
        position = torch.full((batch, 1), prompt)
    cache = StaticCache(config=config, max_cache_len=cache_length)
    with torch.no_grad():
        model(tokens[:, :prompt], past_key_values=cache, use_cache=True)
    step = {"input_ids": tokens[:, prompt:].clone(), "position_ids": position}
    return Program(model, kwargs={**step, "past_key_values": cache, "use_cache": True})

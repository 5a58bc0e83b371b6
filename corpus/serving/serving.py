"""A decoder stack as vLLM compiles it: every kernel is a custom operator that writes into its arguments."""

from __future__ import annotations

import dataclasses

import torch

from pytest_reinplace import Program

from .serving_ops import register


@dataclasses.dataclass(frozen=True)
class Shape:
    """Sizes of one layer."""

    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_size: int

    @property
    def split(self) -> list[int]:
        """Widths of query, key and value in one row of the fused projection."""
        return [self.heads * self.head_size, *[self.kv_heads * self.head_size] * 2]


@dataclasses.dataclass
class Step:
    """What one step is given beside the hidden states: where its tokens go.

    ``prompt`` is the number of tokens of each sequence in a prefill, and 0 in a decode step.
    """

    positions: torch.Tensor
    slot_mapping: torch.Tensor
    block_table: torch.Tensor
    seq_lens: torch.Tensor
    prompt: int = 0


class Layer(torch.nn.Module):
    """Norm, attention, norm, MLP; the residual stream is updated in place by the fused norms."""

    def __init__(self, shape: Shape, blocks: int, block: int) -> None:
        super().__init__()
        self.shape = shape
        self.input_norm: torch.nn.Parameter = torch.nn.Parameter(torch.rand(shape.hidden) + 0.5)
        self.attention_norm: torch.nn.Parameter = torch.nn.Parameter(torch.rand(shape.hidden) + 0.5)
        self.qkv: torch.nn.Linear = torch.nn.Linear(shape.hidden, sum(shape.split), bias=False)
        self.output: torch.nn.Linear = torch.nn.Linear(shape.split[0], shape.hidden, bias=False)
        self.gate_up: torch.nn.Linear = torch.nn.Linear(shape.hidden, 2 * shape.intermediate, bias=False)
        self.down: torch.nn.Linear = torch.nn.Linear(shape.intermediate, shape.hidden, bias=False)
        pages = (blocks, block, shape.kv_heads, shape.head_size)
        self.register_buffer("key_cache", torch.randn(pages))
        self.register_buffer("value_cache", torch.randn(pages))

    def forward(
        self, hidden: torch.Tensor, residual: torch.Tensor | None, rope: torch.Tensor, step: Step
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the new hidden states and residual, both ``(tokens, hidden)``."""
        ops = torch.ops.serving
        if residual is None:
            residual = hidden
            hidden = torch.empty_like(residual)
            ops.rms_norm(hidden, residual, self.input_norm, 1e-5)
        else:
            ops.fused_add_rms_norm(hidden, residual, self.input_norm, 1e-5)
        hidden = self.output(self.attention(self.qkv(hidden), rope, step))
        ops.fused_add_rms_norm(hidden, residual, self.attention_norm, 1e-5)
        gate_up = self.gate_up(hidden)
        activated = gate_up.new_empty(gate_up.shape[0], self.shape.intermediate)
        ops.silu_and_mul(activated, gate_up)
        return self.down(activated), residual

    def attention(self, qkv: torch.Tensor, rope: torch.Tensor, step: Step) -> torch.Tensor:
        """Rotate query and key inside ``qkv``, cache key and value, attend over the paged cache."""
        ops, size = torch.ops.serving, self.shape.head_size
        query, key, value = qkv.split(self.shape.split, -1)
        ops.rotary_embedding(step.positions, query, key, size, rope, True)
        query, key, value = (part.unflatten(-1, (-1, size)) for part in (query, key, value))
        ops.reshape_and_cache_flash(key, value, self.key_cache, self.value_cache, step.slot_mapping)
        output = torch.empty(query.shape, dtype=query.dtype, device=query.device)
        if step.prompt:
            ops.prefill_attention_with_output(query, key, value, output, step.prompt, size**-0.5)
        else:
            ops.unified_attention_with_output(
                query, self.key_cache, self.value_cache, output, step.block_table, step.seq_lens, size**-0.5
            )
        return output.flatten(1)


class Decoder(torch.nn.Module):
    """A stack of layers and the final norm."""

    def __init__(self, layers: int, shape: Shape, vocab: int, blocks: int, block: int) -> None:
        super().__init__()
        self.embedding: torch.nn.Embedding = torch.nn.Embedding(vocab, shape.hidden)
        self.layers: torch.nn.ModuleList = torch.nn.ModuleList(
            Layer(shape, blocks, block) for _ in range(layers)
        )
        self.norm: torch.nn.Parameter = torch.nn.Parameter(torch.rand(shape.hidden) + 0.5)
        angles = torch.outer(torch.arange(4096.0), 10000 ** -torch.linspace(0, 1, shape.head_size // 2))
        self.register_buffer("rope", torch.cat([angles.cos(), angles.sin()], -1))

    def forward(self, tokens: torch.Tensor, step: Step) -> torch.Tensor:
        """Return the hidden states of the last layer for ``(tokens,)``."""
        hidden: torch.Tensor = self.embedding(tokens)
        residual: torch.Tensor | None = None
        for layer in self.layers:
            hidden, residual = layer(hidden, residual, self.rope, step)
        torch.ops.serving.fused_add_rms_norm(hidden, residual, self.norm, 1e-5)
        return hidden


def decode_step(
    device: str,
    *,
    layers: int,
    hidden: int,
    intermediate: int,
    heads: int,
    kv_heads: int,
    vocab: int,
    sequences: int,
    context: int,
    block: int,
    dtype: str,
) -> Program:
    """Return one decode step of ``sequences`` requests, each with ``context`` tokens in the paged cache."""
    register()
    torch.manual_seed(0)
    pages = -(-(context + 1) // block)
    shape = Shape(hidden, intermediate, heads, kv_heads, hidden // heads)
    with torch.device(device):
        model = Decoder(layers, shape, vocab, sequences * pages, block).to(getattr(torch, dtype)).eval()
        table = torch.randperm(sequences * pages).view(sequences, pages)
        step = Step(
            positions=torch.full((sequences,), context),
            slot_mapping=table[:, context // block] * block + context % block,
            block_table=table,
            seq_lens=torch.full((sequences,), context + 1),
        )
        tokens = torch.randint(0, vocab, (sequences,))
    return Program(model, (tokens, step))


def prefill(
    device: str,
    *,
    layers: int,
    hidden: int,
    intermediate: int,
    heads: int,
    kv_heads: int,
    vocab: int,
    sequences: int,
    prompt: int,
    block: int,
    dtype: str,
) -> Program:
    """Return the prefill of ``sequences`` requests of ``prompt`` tokens each, into a paged cache."""
    register()
    torch.manual_seed(0)
    pages = -(-prompt // block)
    shape = Shape(hidden, intermediate, heads, kv_heads, hidden // heads)
    with torch.device(device):
        model = Decoder(layers, shape, vocab, sequences * pages, block).to(getattr(torch, dtype)).eval()
        table = torch.randperm(sequences * pages).view(sequences, pages)
        position = torch.arange(prompt)
        step = Step(
            positions=position.repeat(sequences),
            slot_mapping=(table[:, position // block] * block + position % block).flatten(),
            block_table=table,
            seq_lens=torch.full((sequences,), prompt),
            prompt=prompt,
        )
        tokens = torch.randint(0, vocab, (sequences * prompt,))
    return Program(model, (tokens, step))

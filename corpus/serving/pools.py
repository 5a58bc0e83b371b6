"""Two pools in one allocation: the key and the value pages of every layer are views of one buffer."""

from __future__ import annotations

import functools

import torch

from pytest_reinplace import Program


@functools.cache
def register() -> torch.library.Library:
    """Define ``torch.ops.pools.store`` and ``torch.ops.pools.attend``, once in a process."""
    library = torch.library.Library("pools", "DEF")
    library.define("store(Tensor(a!) pool, Tensor rows, Tensor slots) -> ()")
    library.impl("store", _store, "CompositeExplicitAutograd")
    torch.library.register_fake("pools::store", lambda pool, rows, slots: None, lib=library)
    library.define("attend(Tensor query, Tensor keys, Tensor values) -> Tensor")
    library.impl("attend", _attend, "CompositeExplicitAutograd")
    torch.library.register_fake(
        "pools::attend", lambda query, keys, values: query.new_empty(query.shape), lib=library
    )
    return library


def _store(pool: torch.Tensor, rows: torch.Tensor, slots: torch.Tensor) -> None:
    pool.index_copy_(0, slots, rows)


def _attend(query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    query, keys, values = (tensor.transpose(0, 1) for tensor in (query, keys, values))
    return torch.nn.functional.scaled_dot_product_attention(query, keys, values).transpose(0, 1).contiguous()


class Attention(torch.nn.Module):
    """Attention of new tokens over a pool of cached ones."""

    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv: torch.nn.Linear = torch.nn.Linear(hidden, 3 * hidden, bias=False)
        self.output: torch.nn.Linear = torch.nn.Linear(hidden, hidden, bias=False)

    def forward(
        self, tokens: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, slots: torch.Tensor
    ) -> torch.Tensor:
        """Return ``(tokens, hidden)``; ``keys`` and ``values`` are ``(slots, heads, size)``."""
        query, key, value = self.qkv(tokens).unflatten(-1, (3, self.heads, -1)).unbind(1)
        torch.ops.pools.store(keys, key, slots)
        torch.ops.pools.store(values, value, slots)
        output: torch.Tensor = self.output(torch.ops.pools.attend(query, keys, values).flatten(1))
        return output


class Stack(torch.nn.Module):
    """Layers whose pools all lie in one buffer."""

    def __init__(self, layers: int, hidden: int, heads: int) -> None:
        super().__init__()
        self.layers: torch.nn.ModuleList = torch.nn.ModuleList(
            Attention(hidden, heads) for _ in range(layers)
        )

    def forward(self, tokens: torch.Tensor, buffer: torch.Tensor, slots: torch.Tensor) -> torch.Tensor:
        """Return the tokens after the last layer; ``buffer`` is ``(layers, 2, slots, heads, size)``."""
        for layer, (keys, values) in zip(self.layers, buffer, strict=True):
            tokens = tokens + layer(tokens, keys, values, slots)
        return tokens


def decode_step(
    device: str, *, layers: int, hidden: int, heads: int, slots: int, tokens: int, dtype: str
) -> Program:
    """Return one step that stores ``tokens`` tokens in every layer's two pools of ``slots`` slots."""
    register()
    torch.manual_seed(0)
    with torch.device(device):
        model = Stack(layers, hidden, heads).to(getattr(torch, dtype)).eval()
        buffer = torch.randn(layers, 2, slots, heads, hidden // heads, dtype=getattr(torch, dtype))
        inputs = torch.randn(tokens, hidden, dtype=buffer.dtype)
        where = torch.randperm(slots)[:tokens]
    return Program(model, (inputs, buffer, where))

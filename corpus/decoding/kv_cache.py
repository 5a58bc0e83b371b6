"""Caches for :mod:`.decoder`: gpt-fast's, one quantized to int8, and pages of a pool."""

from __future__ import annotations

from collections.abc import Callable

import torch

from pytest_reinplace import Program

from .decoder import Cache, Decoder, Rows, Shape


class Static(Cache):
    """A row for each position, written by index: ``cache[:, :, position] = key``."""

    keys: torch.Tensor
    values: torch.Tensor

    def __init__(self, batch: int, length: int, heads: int, size: int) -> None:
        super().__init__()
        self.register_buffer("keys", torch.randn(batch, heads, length, size))
        self.register_buffer("values", torch.randn(batch, heads, length, size))

    def forward(self, position: torch.Tensor | int, key: torch.Tensor, value: torch.Tensor) -> Rows:
        """Store new tokens; at a position that is a number there is one."""
        if isinstance(position, int):
            key, value = key.squeeze(2), value.squeeze(2)
        self.keys[:, :, position] = key
        self.values[:, :, position] = value
        return self.keys, self.values


class Int8(Cache):
    """Rows of int8, with a scale for each row of each head."""

    keys: torch.Tensor
    values: torch.Tensor
    keys_scale: torch.Tensor
    values_scale: torch.Tensor

    def __init__(self, batch: int, length: int, heads: int, size: int) -> None:
        super().__init__()
        for name in ("keys", "values"):
            rows = torch.randint(-127, 128, (batch, heads, length, size), dtype=torch.int8)
            self.register_buffer(name, rows)
            self.register_buffer(f"{name}_scale", torch.rand(batch, heads, length, 1) / 64)

    def forward(self, position: torch.Tensor | int, key: torch.Tensor, value: torch.Tensor) -> Rows:
        """Store new tokens and return everything dequantized."""
        return (
            self._stored(position, key, self.keys, self.keys_scale),
            self._stored(position, value, self.values, self.values_scale),
        )

    @staticmethod
    def _stored(
        position: torch.Tensor | int, new: torch.Tensor, rows: torch.Tensor, scales: torch.Tensor
    ) -> torch.Tensor:
        assert isinstance(position, torch.Tensor)
        scale = new.abs().amax(-1, keepdim=True).clamp(min=1e-5) / 127
        rows.index_copy_(2, position, (new / scale).round().clamp(-127, 127).to(torch.int8))
        scales.index_copy_(2, position, scale)
        return rows * scales


class Paged(Cache):
    """Pages of a pool, keys and values in one buffer as vLLM lays them out; a table says whose is which."""

    pool: torch.Tensor
    table: torch.Tensor

    def __init__(self, batch: int, length: int, heads: int, size: int, page: int) -> None:
        super().__init__()
        self.page = page
        pages = length // page
        self.register_buffer("pool", torch.randn(2, batch * pages, page, heads, size))
        self.register_buffer("table", torch.randperm(batch * pages).view(batch, pages))

    def forward(self, position: torch.Tensor | int, key: torch.Tensor, value: torch.Tensor) -> Rows:
        """Store new tokens in their pages and return all pages of each sequence."""
        assert isinstance(position, torch.Tensor)
        keys, values = self.pool.unbind()
        self._store(position, key.transpose(1, 2), value.transpose(1, 2), keys, values)
        return self._gathered(keys), self._gathered(values)

    def _store(
        self,
        position: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
    ) -> None:
        """Write ``(batch, tokens, heads, size)`` into the pages of ``(pages, page, heads, size)``."""
        where = self.table[:, position // self.page], position % self.page
        keys.index_put_(where, key)
        values.index_put_(where, value)

    def _gathered(self, pool: torch.Tensor) -> torch.Tensor:
        return pool[self.table].flatten(1, 2).transpose(1, 2)


class Kernel(Paged):
    """Pages that a user Triton kernel writes."""

    def _store(
        self,
        position: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
    ) -> None:
        from .cache_kernel import store

        key, value = key.flatten(0, 1), value.flatten(0, 1)
        slots = (self.table[:, position // self.page] * self.page + position % self.page).flatten()
        width = keys.shape[2] * keys.shape[3]
        block = 1 << (width - 1).bit_length()
        store[(len(slots),)](
            key, value, keys, values, slots, key.stride(0), value.stride(0), width, BLOCK=block
        )


def decode_step(
    device: str,
    *,
    cache: str,
    layers: int,
    hidden: int,
    intermediate: int,
    heads: int,
    kv_heads: int,
    vocab: int,
    batch: int,
    position: int,
    cache_length: int,
    dtype: str,
    page: int = 16,
) -> Program:
    """Return one decode step at ``position``; what lies in the cache before it is random.

    ``cache`` is ``static``, ``number`` (the same, at a position that is a Python number), ``int8``,
    ``paged``, whose pages hold ``page`` tokens, or ``kernel``, pages written by a Triton kernel.
    """
    torch.manual_seed(0)
    shape = Shape(layers, hidden, intermediate, heads, kv_heads, vocab)
    sizes = batch, cache_length, kv_heads, shape.head_size
    makers: dict[str, Callable[[], Cache]] = {
        "static": lambda: Static(*sizes),
        "number": lambda: Static(*sizes),
        "int8": lambda: Int8(*sizes),
        "paged": lambda: Paged(*sizes, page),
        "kernel": lambda: Kernel(*sizes, page),
    }
    with torch.device(device):
        model = Decoder(shape, cache_length, makers[cache]).to(getattr(torch, dtype)).eval()
        tokens = torch.randint(0, vocab, (batch, 1))
        where = position if cache == "number" else torch.tensor([position])
    return Program(model, (tokens, where))

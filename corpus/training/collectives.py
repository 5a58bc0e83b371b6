"""Layers of a model that is spread over devices, as one of them runs them; by itself it is the only one."""

from __future__ import annotations

import atexit
import math
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed

from pytest_reinplace import Program


def join(device: str) -> Callable[[], None] | None:
    """Join the group of a launch by ``torchrun`` or make this process one of its own; return how to leave it.

    One that is there is used as it is, and so is that of a launch: it cannot be made twice.

    Raises:
        RuntimeError: there is a group of several processes, and nobody to answer for the others.
    """
    launched = torch.distributed.is_torchelastic_launched()
    is_new = not torch.distributed.is_initialized()
    backends = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "cpu:gloo"
    if is_new:
        alone: dict[str, Any] = {"store": torch.distributed.HashStore(), "rank": 0, "world_size": 1}  # type: ignore[attr-defined]
        torch.distributed.init_process_group(backends, **({} if launched else alone))
        atexit.register(_leave)
    if torch.distributed.get_world_size() != 1 and not launched:
        raise RuntimeError(f"expected a process group of one process for {device}, found a larger one")
    return _leave if is_new and not launched else None


def _leave() -> None:
    atexit.unregister(_leave)
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


class Block(torch.nn.Module):
    """Attention and MLP, each split by columns first and by rows then, so that one sum ends it.

    The weights are this device's part of them.
    """

    def __init__(self, hidden: int, heads: int, intermediate: int) -> None:
        super().__init__()
        devices = torch.distributed.get_world_size()
        self.heads: int = heads // devices
        width, wide = hidden // devices, intermediate // devices
        self.qkv: torch.nn.Linear = torch.nn.Linear(hidden, 3 * width, bias=False)
        self.output: torch.nn.Linear = torch.nn.Linear(width, hidden, bias=False)
        self.up: torch.nn.Linear = torch.nn.Linear(hidden, wide, bias=False)
        self.down: torch.nn.Linear = torch.nn.Linear(wide, hidden, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return ``(batch, length, hidden)``, the same on all devices."""
        part: torch.Tensor
        normed = torch.nn.functional.rms_norm(tokens, tokens.shape[-1:])
        query, key, value = self.qkv(normed).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        part = self.output(mixed.transpose(1, 2).flatten(2))
        torch.distributed.all_reduce(part)
        tokens = tokens + part
        normed = torch.nn.functional.rms_norm(tokens, tokens.shape[-1:])
        part = self.down(torch.nn.functional.silu(self.up(normed)))
        torch.distributed.all_reduce(part)
        return tokens + part


class Sharded(torch.nn.Module):
    """Linear layers whose weights are gathered from all devices, in one buffer a layer."""

    def __init__(self, layers: int, hidden: int) -> None:
        super().__init__()
        shapes = [(4 * hidden, hidden), (4 * hidden,), (hidden, 4 * hidden), (hidden,)]
        self.shapes: list[tuple[int, ...]] = shapes
        self.shards: torch.nn.ModuleList = torch.nn.ModuleList(
            torch.nn.ParameterList(
                torch.randn(math.prod(shape) // torch.distributed.get_world_size()) * hidden**-0.5
                for shape in shapes
            )
            for _ in range(layers)
        )

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Return ``(rows, hidden)`` after all layers."""
        for shards in self.shards:
            assert isinstance(shards, torch.nn.ParameterList)
            up, up_bias, down, down_bias = self.gathered(list(shards))
            wide = torch.nn.functional.gelu(torch.nn.functional.linear(rows, up, up_bias))
            rows = rows + torch.nn.functional.linear(wide, down, down_bias)
        return rows

    def gathered(self, shards: list[torch.Tensor]) -> list[torch.Tensor]:
        """Return whole weights; this device's shards are copied into its part of the buffer first."""
        sizes = [shard.numel() for shard in shards]
        devices, rank = torch.distributed.get_world_size(), torch.distributed.get_rank()
        whole = shards[0].new_empty(devices * sum(sizes))
        mine = whole.narrow(0, rank * sum(sizes), sum(sizes))
        torch.ops.aten._foreach_copy_(list(mine.split(sizes)), shards)
        torch.distributed.all_gather_into_tensor(whole, mine)
        parts = whole.view(devices, -1).split(sizes, 1)
        return [part.reshape(shape) for part, shape in zip(parts, self.shapes, strict=True)]


def tensor_parallel(
    device: str,
    *,
    layers: int,
    hidden: int,
    heads: int,
    intermediate: int,
    batch: int,
    length: int,
    dtype: str,
) -> Program:
    """Return ``layers`` blocks, whose results are summed over the devices in place."""
    leave = join(device)
    torch.manual_seed(torch.distributed.get_rank())
    with torch.device(device):
        blocks = [Block(hidden, heads, intermediate) for _ in range(layers)]
        model = torch.nn.Sequential(*blocks).to(getattr(torch, dtype)).eval()
        torch.manual_seed(0)
        tokens = torch.randn(batch, length, hidden, dtype=getattr(torch, dtype))
    return Program(model, (tokens,), teardown=leave)


def fully_sharded(device: str, *, layers: int, hidden: int, rows: int, dtype: str) -> Program:
    """Return ``layers`` layers, whose weights are copied into one buffer each and gathered there."""
    leave = join(device)
    torch.manual_seed(torch.distributed.get_rank())
    with torch.device(device):
        model = Sharded(layers, hidden).to(getattr(torch, dtype)).eval()
        inputs = torch.randn(rows, hidden, dtype=getattr(torch, dtype))
    return Program(model, (inputs,), teardown=leave)

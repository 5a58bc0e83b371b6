"""The serving operators: what their schemas say is what they do, and they compute the right thing."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pytest_reinplace.corpus.serving import serving_ops

HEADS, KV_HEADS, SIZE, BLOCK = 4, 2, 8, 4


@pytest.fixture(autouse=True)
def _registered() -> None:
    torch.manual_seed(0)
    serving_ops.register()


def samples() -> dict[str, tuple[Any, ...]]:
    """Return arguments for each operator, views where the model passes views."""
    qkv = torch.randn(3, (HEADS + 2 * KV_HEADS) * SIZE)
    query, key, value = qkv.split([HEADS * SIZE, KV_HEADS * SIZE, KV_HEADS * SIZE], -1)
    caches = torch.randn(2, 5, BLOCK, KV_HEADS, SIZE)
    heads = [part.unflatten(-1, (-1, SIZE)) for part in (query, key, value)]
    table, lengths = torch.tensor([[0, 3], [1, 2], [4, 0]]), torch.tensor([5, 8, 3])
    return {
        "rms_norm": (torch.empty(3, 16), torch.randn(3, 16), torch.rand(16), 1e-5),
        "fused_add_rms_norm": (torch.randn(3, 16), torch.randn(3, 16), torch.rand(16), 1e-5),
        "rotary_embedding": (torch.tensor([0, 5, 7]), query, key, SIZE, torch.randn(10, SIZE), True),
        "reshape_and_cache_flash": (heads[1], heads[2], caches[0], caches[1], torch.tensor([2, 7, 19])),
        "unified_attention_with_output": (
            heads[0], caches[0], caches[1], torch.empty(3, HEADS, SIZE), table, lengths, 0.5,
        ),
        "prefill_attention_with_output": (
            torch.randn(6, HEADS, SIZE), torch.randn(6, KV_HEADS, SIZE), torch.randn(6, KV_HEADS, SIZE),
            torch.empty(6, HEADS, SIZE), 3, 0.5,
        ),
        "silu_and_mul": (torch.empty(3, 8), torch.randn(3, 16)),
    }  # fmt: skip


def op(name: str) -> Any:
    return getattr(torch.ops.serving, name).default


@pytest.mark.parametrize("name", samples())
def test_the_schema_names_everything_that_is_written(name: str) -> None:
    torch.library.opcheck(op(name), samples()[name], test_utils=("test_schema", "test_faketensor"))


def test_rms_norm() -> None:
    result, x, weight, epsilon = samples()["rms_norm"]
    op("rms_norm")(result, x, weight, epsilon)
    torch.testing.assert_close(result, torch.nn.functional.rms_norm(x, (16,), weight, epsilon))


def test_fused_add_rms_norm() -> None:
    x, residual, weight, epsilon = samples()["fused_add_rms_norm"]
    total = x + residual
    op("fused_add_rms_norm")(x, residual, weight, epsilon)
    torch.testing.assert_close(residual, total)
    torch.testing.assert_close(x, torch.nn.functional.rms_norm(total, (16,), weight, epsilon))


@pytest.mark.parametrize("is_neox", [True, False])
def test_rotary_embedding_is_a_rotation_by_the_position(is_neox: bool) -> None:
    positions, query, key, size, _, _ = samples()["rotary_embedding"]
    angle = torch.rand(10, size // 2)
    before = query.clone().unflatten(-1, (-1, size))
    op("rotary_embedding")(positions, query, key, size, torch.cat([angle.cos(), angle.sin()], -1), is_neox)
    after = query.unflatten(-1, (-1, size))
    pairs, axis = ((2, -1), -2) if is_neox else ((-1, 2), -1)
    was, now = (t.unflatten(-1, pairs).movedim(axis, -1) for t in (before, after))
    expected = torch.view_as_complex(was.contiguous()) * torch.exp(1j * angle[positions])[:, None]
    torch.testing.assert_close(torch.view_as_complex(now.contiguous()), expected)


def test_cache_and_attention_agree_with_dense_attention() -> None:
    query, keys, values, output, table, lengths, scale = samples()["unified_attention_with_output"]
    op("unified_attention_with_output")(query, keys, values, output, table, lengths, scale)
    for i, length in enumerate(lengths.tolist()):
        k, v = (
            cache[table[i]].flatten(0, 1)[:length].repeat_interleave(HEADS // KV_HEADS, 1)
            for cache in (keys, values)
        )
        weight = (torch.einsum("hd,nhd->hn", query[i], k) * scale).softmax(-1)
        torch.testing.assert_close(output[i], torch.einsum("hn,nhd->hd", weight, v))


def test_tokens_land_in_their_slots() -> None:
    key, value, keys, values, slots = samples()["reshape_and_cache_flash"]
    expected = keys.flatten(0, 1).clone()
    expected[slots] = key
    op("reshape_and_cache_flash")(key, value, keys, values, slots)
    torch.testing.assert_close(keys.flatten(0, 1), expected)
    torch.testing.assert_close(values.flatten(0, 1)[slots], value)


def test_a_prompt_attends_to_itself_up_to_each_token() -> None:
    query, key, value, output, prompt, scale = samples()["prefill_attention_with_output"]
    op("prefill_attention_with_output")(query, key, value, output, prompt, scale)
    for i in range(len(query)):
        seen = slice(i // prompt * prompt, i + 1)
        k, v = (tensor[seen].repeat_interleave(HEADS // KV_HEADS, 1) for tensor in (key, value))
        weight = (torch.einsum("hd,nhd->hn", query[i], k) * scale).softmax(-1)
        torch.testing.assert_close(output[i], torch.einsum("hn,nhd->hd", weight, v))

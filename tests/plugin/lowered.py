"""Programs lowered by Inductor, up to the code of their kernels: nothing is built, so each takes a moment."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import pytest
import torch
import torch._inductor.config
from torch._inductor.graph import GraphLowering

from pytest_reinplace.base.lowering_copy import LoweringCopy
from pytest_reinplace.copies.lowering import Lowering


class _Lowered(Exception):
    """A graph is called whose code was generated, and not built."""


@contextlib.contextmanager
def _not_built() -> Iterator[None]:
    def call(args: Any) -> Any:
        raise _Lowered

    def generated(self: Any) -> Any:
        self.codegen()
        self.cache_key = self.cache_path = ""
        self.cache_linemap = []
        return types.SimpleNamespace(call=call, __file__=__file__)

    with mock.patch.object(GraphLowering, "compile_to_module", generated):
        yield


def lowering_of(fn: Callable[..., Any], *args: Any, **options: Any) -> Lowering:
    """Return who looked on while a function was compiled."""
    torch.compiler.reset()
    lowering = Lowering()
    with (
        torch._inductor.config.patch({"force_disable_caches": True, **options}),
        _not_built(),
        lowering.looking(),
        torch.no_grad(),
        pytest.raises(_Lowered),
    ):
        torch.compile(fn, fullgraph=True)(*args)
    return lowering


def copies(fn: Callable[..., Any], *args: Any, **options: Any) -> list[LoweringCopy]:
    """Return all copies in what Inductor makes of a function, those that it means as well."""
    told = lowering_of(fn, *args, **options).told
    assert told["unlowered"] == "", told
    return list(told["copies"])


def added(fn: Callable[..., Any], *args: Any, **options: Any) -> list[LoweringCopy]:
    """Return the copies that lowering adds."""
    return [one for one in copies(fn, *args, **options) if not one.meant]


def meant(fn: Callable[..., Any], *args: Any) -> list[LoweringCopy]:
    """Return the copies that the program means."""
    return [one for one in copies(fn, *args) if one.meant]

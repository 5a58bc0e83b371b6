"""Passes that are put under test."""

from __future__ import annotations

import torch


def nothing(gm: torch.fx.GraphModule) -> None:
    """Leave everything functional."""


def breaks(gm: torch.fx.GraphModule) -> None:
    """Fail."""
    raise KeyError("in the middle")


def stock(gm: torch.fx.GraphModule) -> None:
    """Do what Inductor does."""
    from pytest_reinplace.base import _torch

    _torch.run_stock_reinplacing(gm)


def ours(gm: torch.fx.GraphModule) -> None:
    """Do what our pass does, without its report."""
    from pytest_reinplace.passes import reinplace

    reinplace(gm)

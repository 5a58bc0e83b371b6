"""Passes that are put under test."""

from __future__ import annotations

import torch


def nothing(gm: torch.fx.GraphModule) -> None:
    """Leave everything functional."""


def breaks(gm: torch.fx.GraphModule) -> None:
    """Fail."""
    raise KeyError("in the middle")

"""Alias-exact reinplacing for FX graphs."""

from __future__ import annotations

if __name__ != "pytest_reinplace.passes":
    raise ImportError(
        f"expected to be imported as pytest_reinplace.passes, was imported as {__name__}; "
        "install the project (pip install -e .) and import pytest_reinplace.passes"
    )

from .errors import GraphError, ReinplaceError, RewriteError, SeamError
from .inductor import ProtectPass, ReinplacePass, inductor_options, observe
from .reason import Reason
from .reinplace import analyze, reinplace
from .report import Blocker, Outcome, Report

__all__ = [
    "Blocker",
    "GraphError",
    "Outcome",
    "ProtectPass",
    "Reason",
    "ReinplaceError",
    "ReinplacePass",
    "Report",
    "RewriteError",
    "SeamError",
    "analyze",
    "inductor_options",
    "observe",
    "reinplace",
]

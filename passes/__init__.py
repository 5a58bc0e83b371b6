"""Alias-exact reinplacing for FX graphs."""

from __future__ import annotations

if __name__ != "pytest_reinplace.passes":
    raise ImportError(
        f"expected to be imported as pytest_reinplace.passes, was imported as {__name__}; "
        "install the project (pip install -e .) and import pytest_reinplace.passes"
    )

from .errors import DeclarationError, GraphError, ReinplaceError, RewriteError, SeamError
from .inductor.caller import caller_of
from .inductor.protect import NotePass, ProtectPass, RulesPass
from .inductor.schedule.check import ScheduleCheck
from .inductor.schedule.veto import FusionVeto
from .inductor.stage import ReinplacePass, inductor_options, observe
from .inductor.target import INDUCTOR
from .ops.declarations import Declaration, Registration, declarations, declare
from .reason import Reason
from .reinplacing.facts.options import Caller, Options
from .reinplacing.facts.target import NODE_BY_NODE, Target
from .reinplacing.run import analyze, analyze_graph, reinplace
from .report import Blocker, Other, Outcome, Report
from .required import NotReinplaced, UnknownName

__all__ = [
    "INDUCTOR",
    "NODE_BY_NODE",
    "Blocker",
    "Caller",
    "Declaration",
    "DeclarationError",
    "FusionVeto",
    "GraphError",
    "NotReinplaced",
    "NotePass",
    "Options",
    "Other",
    "Outcome",
    "ProtectPass",
    "Reason",
    "Registration",
    "ReinplaceError",
    "ReinplacePass",
    "Report",
    "RewriteError",
    "RulesPass",
    "ScheduleCheck",
    "SeamError",
    "Target",
    "UnknownName",
    "analyze",
    "analyze_graph",
    "caller_of",
    "declarations",
    "declare",
    "inductor_options",
    "observe",
    "reinplace",
]

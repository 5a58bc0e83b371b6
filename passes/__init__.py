"""Alias-exact reinplacing for FX graphs."""

from .reason import Reason
from .report import Blocker, Outcome, Report

__all__ = ["Blocker", "Outcome", "Reason", "Report"]

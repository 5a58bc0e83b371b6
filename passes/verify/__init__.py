"""Checking a pass: the contract on one graph, and the fewest bytes that any legal rewrite would copy."""

from __future__ import annotations

from ..graph.copy import copied
from ..inductor.schedule.attempts import once_settled, why_functional
from ..inductor.schedule.check import watching_schedules
from .contract import check, take_elements
from .declaration_check import check_declaration
from .equivalence import EquivalenceError, assert_equivalent
from .execution import cloned
from .finding import Finding
from .foreign import name_of, on_graph_module
from .optimum.search import copied_bytes, minimum_clone_bytes
from .part import Parts
from .program_text import UnprintableError, graph_lines, input_lines, registering_files

__all__ = [
    "EquivalenceError",
    "Finding",
    "Parts",
    "UnprintableError",
    "assert_equivalent",
    "check",
    "check_declaration",
    "cloned",
    "copied",
    "copied_bytes",
    "graph_lines",
    "input_lines",
    "minimum_clone_bytes",
    "name_of",
    "on_graph_module",
    "once_settled",
    "registering_files",
    "take_elements",
    "watching_schedules",
    "why_functional",
]

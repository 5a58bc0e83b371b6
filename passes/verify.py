"""Checking a pass: the contract on one graph, and the fewest bytes that any legal rewrite would copy."""

from .declaration_check import check_declaration
from .equivalence import EquivalenceError, assert_equivalent
from .optimum import copied_bytes, minimum_clone_bytes

__all__ = [
    "EquivalenceError",
    "assert_equivalent",
    "check_declaration",
    "copied_bytes",
    "minimum_clone_bytes",
]

"""What holds of any FX graph, told to readers outside: what its calls do, and whose bytes a value has."""

from __future__ import annotations

from .graph.alias import alias_of, base_of, written
from .ops.schema import OpSchema, argument, is_operator, schema_of
from .ops.source import where, where_in
from .ops.wrapper import BaseView, base_views, called, first_result, wrapped

__all__ = [
    "BaseView",
    "OpSchema",
    "alias_of",
    "argument",
    "base_of",
    "base_views",
    "called",
    "first_result",
    "is_operator",
    "schema_of",
    "where",
    "where_in",
    "wrapped",
    "written",
]

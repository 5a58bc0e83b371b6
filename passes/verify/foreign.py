"""Passes of others: found by a name, and called in the one way that their form asks for."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch.fx import GraphModule

from ..errors import ReinplaceError
from ..inductor._torch import custom_graph_pass
from . import inductor_pass

Pass = Callable[..., None]  # over a graph module, which it rewrites in place


def on_graph_module(function: Callable[..., Any]) -> Pass:
    """Return a pass over a ``GraphModule`` for one of any form.

    Args:
        function: gets the ``GraphModule``, unless it is a ``CustomGraphPass`` or its first parameter is
            annotated ``torch.fx.Graph``. It rewrites in place, or returns the new ``GraphModule``, or an
            object with it as ``graph_module`` (a ``PassResult``).
    """
    takes_graph = isinstance(function, custom_graph_pass()) or _wants_graph(function)

    def call(gm: GraphModule, **told: bool) -> None:
        result = function(gm.graph if takes_graph else gm, **told)
        result = getattr(result, "graph_module", result)
        if isinstance(result, GraphModule) and result is not gm:
            gm.graph = result.graph

    return call


def _wants_graph(function: Any) -> bool:
    """Return whether the first parameter of a callable is annotated as a graph."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return False
    annotation = parameters[0].annotation if parameters else None
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return text.strip("\"'").rpartition(".")[2] == "Graph"


def found(name: str) -> Pass:
    """Return the pass that a name means: of Inductor, or ``module:attribute``, also in the working folder.

    Raises:
        ReinplaceError: there is none; names the part that failed.
    """
    if name in inductor_pass.passes():
        return inductor_pass.passes()[name]
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        known = ", ".join(inductor_pass.passes())
        raise ReinplaceError(f"expected {known} or a pass as MODULE:NAME, got {name!r}")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    try:
        function: Any = importlib.import_module(module)
    except ImportError as error:
        raise ReinplaceError(f"expected a module for the pass {name!r}, got {error}") from error
    for part in attribute.split("."):
        if not hasattr(function, part):
            raise ReinplaceError(f"expected the pass {name!r}, found no {part!r} in {function!r}")
        function = getattr(function, part)
    if isinstance(function, type):
        function = function()
    if not callable(function):
        raise ReinplaceError(f"expected a callable as the pass {name!r}, got {function!r}")
    return on_graph_module(function)

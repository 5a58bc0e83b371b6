"""Passes of others: found by a name, called in the one way that their form asks for, and checked."""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch.fx import Graph, GraphModule
from torch.nn import Module

from ..errors import GraphError, ReinplaceError
from ..graph.journal import Journal
from ..graph.wellformed import check
from ..inductor._torch import custom_graph_pass
from . import inductor_pass

Pass = Callable[..., None]  # over a graph module, which it rewrites in place
# What Inductor's own CustomGraphPass calls its argument, and what is short for that.
_NAMES_OF_A_GRAPH = ("graph", "g", "fx_graph")


def on_graph_module(function: Callable[..., Any], name: str | None = None) -> Pass:
    """Return a pass over a ``GraphModule`` for one of any form.

    A ``CustomGraphPass`` gets the ``Graph``, and so does a callable whose first parameter is annotated
    ``torch.fx.Graph``; one that is annotated ``GraphModule`` gets that. Without an annotation a parameter
    ``graph``, ``g`` or ``fx_graph`` gets the ``Graph``, and any other the ``GraphModule``. If the pass then
    asks it for an attribute that only the other one has, the graph is put back as it was, and the pass is
    called once more, with the other one.

    Args:
        function: rewrites in place. A ``Graph`` or ``GraphModule`` that it returns, or an object that has one
            as ``graph_module`` (a ``PassResult``), is used, with a warning where that is a new one:
            Inductor ignores what a pass returns. Anything else that it returns is ignored.
        name: what errors call it; ``MODULE:NAME`` by default.

    Returns:
        What is called with a ``GraphModule``. It raises ``GraphError`` where the pass did not run because it
        is a generator or a coroutine, leaves a graph that is none, or other placeholders. What the pass
        itself raises gets a note with its name and what it was given.
    """
    return _Foreign(function, name or name_of(function)).rewrite


def name_of(function: Any) -> str:
    """Return ``MODULE:NAME`` of a callable, of an object that of its class, as ``found`` takes it."""
    while isinstance(function, functools.partial):
        function = function.func
    thing = function if hasattr(function, "__qualname__") else type(function)
    module = getattr(thing, "__module__", None)
    return thing.__qualname__ if module in (None, "builtins") else f"{module}:{thing.__qualname__}"


class _Foreign:
    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self._function, self._name = function, name
        parameter = _first_parameter(function)
        declared = True if isinstance(function, custom_graph_pass()) else _annotated_as_graph(parameter)
        self._is_declared = declared is not None
        self._takes_graph = bool(declared)
        if declared is None and parameter is not None:
            self._takes_graph = parameter.name in _NAMES_OF_A_GRAPH

    def rewrite(self, gm: GraphModule, **told: bool) -> None:
        inputs, count = _inputs(gm.graph), len(gm.graph.nodes)
        try:
            result = self._called(gm, told)
        except Exception as error:
            error.add_note(f"raised by {self._what(count)}")
            raise
        if inspect.isgenerator(result) or inspect.iscoroutine(result):
            raise GraphError(
                f"{self._what(count)}, returned a {type(result).__name__}, whose body has not run: expected "
                "a plain function, without yield and async"
            )
        self._adopt(gm, result)
        self._check(gm, inputs, count)

    def _what(self, count: int) -> str:
        return (
            f"pass {self._name}, given a {'Graph' if self._takes_graph else 'GraphModule'} of {count} nodes"
        )

    def _called(self, gm: GraphModule, told: dict[str, bool]) -> Any:
        graph = gm.graph
        given, other = (graph, gm) if self._takes_graph else (gm, graph)
        if self._is_declared:
            return self._function(given, **told)
        journal = Journal(graph)
        try:
            return self._function(given, **told)
        except AttributeError as error:
            if error.obj is not given or not hasattr(other, error.name or ""):
                raise
        if gm.graph is not graph:
            gm.graph = graph
        journal.restore()
        self._takes_graph = not self._takes_graph
        return self._function(other, **told)

    def _adopt(self, gm: GraphModule, result: Any) -> None:
        """Use a new graph that was returned."""
        result = getattr(result, "graph_module", result)
        new = result.graph if isinstance(result, GraphModule) else result
        if isinstance(new, Graph) and new is not gm.graph:
            gm.graph = new
            kind = "GraphModule" if isinstance(result, GraphModule) else "Graph"
            warnings.warn(
                f"pass {self._name} returned a new {kind}, which is used here; Inductor ignores what a pass "
                "returns: rewrite the one that is given",
                stacklevel=2,
            )

    def _check(self, gm: GraphModule, inputs: list[Any], count: int) -> None:
        try:
            check(gm.graph)
            gm.graph.lint()
        except Exception as error:
            first = str(error).partition("\n")[0]
            raise GraphError(f"{self._what(count)}, left a broken graph: {first}") from error
        if (left := _inputs(gm.graph)) != inputs:
            raise GraphError(
                f"{self._what(count)}, left other placeholders: expected {', '.join(inputs)}, found "
                f"{', '.join(left) or 'none'}; the graph is called with all its inputs, used or not"
            )


def _inputs(graph: Graph) -> list[str]:
    return [str(node.target) for node in graph.nodes if node.op == "placeholder"]


def _first_parameter(function: Any) -> inspect.Parameter | None:
    """Return the parameter that gets the graph, its annotation evaluated if that can be done."""
    positional = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    for evaluated in (True, False):
        try:
            found = inspect.signature(function, eval_str=evaluated).parameters.values()
        except Exception:  # noqa: BLE001  (no signature; or an annotation with names that are not there)
            continue
        return next((parameter for parameter in found if parameter.kind in positional), None)
    return None


def _annotated_as_graph(parameter: inspect.Parameter | None) -> bool | None:
    """Return whether a parameter is annotated as a graph, and not as a module; ``None`` where as neither."""
    annotation = parameter.annotation if parameter is not None else None
    if isinstance(annotation, type):
        return True if issubclass(annotation, Graph) else False if issubclass(annotation, Module) else None
    name = annotation.strip("\"'").rpartition(".")[2] if isinstance(annotation, str) else ""
    return {"Graph": True, "GraphModule": False}.get(name)


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
    return on_graph_module(function, name)

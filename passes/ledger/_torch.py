"""The seam to the private names of torch that tell when a pass runs, and when a rule fires."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import torch
from torch.fx import Graph, GraphModule, Node

from .._torch import private
from ..post_grad.rule import around_each

_STAGES = {"joint_graph_passes": "joint", "post_grad_passes": "post_grad"}
_ENTRIES = ("LoweringPatternEntry", "GraphPatternEntry", "ReplacementPatternEntry")


class Follower(Protocol):
    """Who is told of passes and rules."""

    def passed(self, gm: GraphModule, stage: str, name: str) -> contextlib.AbstractContextManager[None]:
        """Follow a pass over a graph."""

    def rule(
        self, gm: GraphModule, name: str, matched: Iterable[Node], node: Node
    ) -> contextlib.AbstractContextManager[None]:
        """Follow one application of a rule."""

    def begin(self, gm: GraphModule) -> None:
        """Take a graph that is handed to a stage."""

    def settle(self, gm: GraphModule) -> None:
        """Take what a stage has left of a graph."""


@contextlib.contextmanager
def following(follower: Follower) -> Iterator[None]:
    """Tell a follower of all passes of Inductor, and of all rules of its pattern matcher, in the block."""
    observer = private("torch.fx.passes.graph_transform_observer", "GraphTransformObserver")
    with contextlib.ExitStack() as stack:
        for name in ("apply_graph_pass", "apply_gm_pass"):
            stack.enter_context(_replaced(observer, name, _pass_told(getattr(observer, name), follower)))
        for name in _ENTRIES:
            entry = private("torch._inductor.pattern_matcher", name)
            stack.enter_context(_replaced(entry, "apply", _rule_told(entry.apply, follower)))
        for name in ("_recursive_joint_graph_passes", "_recursive_post_grad_passes"):
            run = private("torch._inductor.compile_fx", name)
            stack.enter_context(_replaced(sys.modules[run.__module__], name, _begun(run, follower)))
        stack.enter_context(around_each(lambda graph, name: _ours_told(graph, name, follower)))
        yield


def _ours_told(graph: Graph, name: str, follower: Follower) -> contextlib.AbstractContextManager[None]:
    """Follow a rule of ours, which runs inside a hook of Inductor's."""
    gm = graph.owning_module
    return contextlib.nullcontext() if gm is None else follower.passed(gm, "", name)


def _pass_told(apply: Callable[..., Any], follower: Follower) -> Callable[..., Any]:
    @functools.wraps(apply)
    def told(self: Any, pass_fn: Callable[..., Any]) -> Any:
        stage = _STAGES.get(self.subsystem or "", self.subsystem or "")
        with follower.passed(self.gm, stage, self.passname):
            return apply(self, pass_fn)

    return told


def _rule_told(apply: Callable[..., Any], follower: Follower) -> Callable[..., Any]:
    @functools.wraps(apply)
    def told(self: Any, match: Any, graph: Any, node: Node) -> Any:
        gm = graph if isinstance(graph, GraphModule) else graph.owning_module
        with follower.rule(gm, _rule_name(self, node), match.nodes, node):
            return apply(self, match, graph, node)

    return told


def _rule_name(entry: Any, node: Node) -> str:
    """Return how a rule is called: its handler, its pattern, or what it was matched at."""
    handler = getattr(entry, "handler", None)
    while isinstance(handler, functools.partial):
        handler = handler.func
    name = str(getattr(entry, "pattern_name", None) or getattr(handler, "__qualname__", ""))
    name = name.removesuffix(".<locals>._").rpartition(".<locals>.")[2]  # one without a name is its maker's
    return name or _searched(entry) or f"replacement of {node.target}"


def _searched(entry: Any) -> str:
    """Return the name of the function whose graph a replacement looks for; empty where it has none.

    The pattern matcher keeps the function only for its check of a match.
    """
    try:
        function = inspect.getclosurevars(entry.extra_check).nonlocals.get("search_fn")
    except (AttributeError, TypeError):
        return ""
    while isinstance(function, functools.partial):
        function = function.func
    name = str(getattr(function, "__qualname__", "")).replace("<locals>.", "")
    return "" if "<lambda>" in name else name


def _begun(run: Callable[..., Any], follower: Follower) -> Callable[..., Any]:
    @functools.wraps(run)
    def told(gm: GraphModule, *args: Any, **kwargs: Any) -> Any:
        follower.begin(gm)
        result = run(gm, *args, **kwargs)
        follower.settle(gm)
        return result

    return told


@contextlib.contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    original = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, original)


def joint(gm: GraphModule, fake_mode: Any) -> None:
    """Run Inductor's joint-graph passes over a graph."""
    with private("torch._inductor.virtualized", "V").set_fake_mode(fake_mode):
        private("torch._inductor.compile_fx", "_recursive_joint_graph_passes")(gm)
    gm.recompile()  # some of these passes do not, unlike the post-grad stage at its end


def post_grad(gm: GraphModule, fake_mode: Any) -> None:
    """Run Inductor's post-grad passes over a graph, as one without a backward."""
    private("torch._inductor.compile_fx", "view_to_reshape")(gm)
    with (
        private("torch._inductor.virtualized", "V").set_fake_mode(fake_mode),
        private("torch._inductor.compile_fx", "get_cuda_device_context")(gm),
        torch.no_grad(),
    ):
        private("torch._inductor.compile_fx", "_recursive_post_grad_passes")(gm, is_inference=True)

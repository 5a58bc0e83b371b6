"""Captures every graph that ``torch.compile`` hands to Inductor, and what the pass under test does to it."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base import _torch
from ..base.choices import BACKENDS, Asker
from ..base.progress import Progress
from ..picture import traffic
from . import install, pass_under_test, triton_cpu
from .captured import CapturedGraph
from .graph_backend import compile_graph
from .post_grad import PostGrad
from .verifier import Verifier, Watched

if TYPE_CHECKING:
    from types import TracebackType

    from ..base.tolerance import Tolerance
    from ..judge.before import Unseen
    from ..passes import Report
    from .followed import Compiled, Following
    from .onlooker import Onlooker
    from .pass_under_test import PassUnderTest

# A graph from a cache has passed no pass.
_UNCACHED = {"force_disable_caches": True}


class Capture:
    """A context that sees all that ``torch.compile`` compiles inside it, and puts a pass under test.

    Forward and backward, recompilations and subgraphs are seen. Compiled code is forgotten on entry and on
    exit, so that nothing compiled with one pass or backend is used with another, and Inductor's caches are
    off, so that the pass really runs. On a machine without a GPU, user Triton kernels work on CPU tensors.

    Args:
        pass_name: ``"inductor"``, ``"exact"``, ``"post_grad"`` or ``"package.module:attribute"``.
        backend: ``"inductor"``, or ``"graph"`` to run the rewritten graph without generating code.
        folder: where modules of passes are looked for, after ``sys.path``.
        pictured: whether each graph is drawn for a page.
        progress: is told when something is compiled.
        verified: whether each graph is checked against the contract, on what its first call is given.
        tolerance: how far what the fixtures call may be from eager; ``None``: it is not compared.
        forgets: whether compiled code is forgotten. What is compiled in captures that do not can be called
            side by side; each then has to be compiled under Inductor options of its own.
        bounded: whether the bytes are counted that each graph has to move at least.
        asker: who reads the hints.
        following: keeps the ledgers of what passes and rules do; ``None``: nobody does.
        onlooker: makes who looks on while one graph is compiled; ``None``: nobody does.

    Raises:
        pass_under_test.PassError: there is no such pass.
        ValueError: there is no such backend.
    """

    def __init__(
        self,
        pass_name: str = "inductor",
        backend: str = "inductor",
        folder: Path | None = None,
        *,
        pictured: bool = False,
        progress: Progress | None = None,
        verified: bool = False,
        tolerance: Tolerance | None = None,
        forgets: bool = True,
        bounded: bool = False,
        asker: Asker = "test",
        following: Following | None = None,
        onlooker: Callable[[], Onlooker] | None = None,
    ) -> None:
        if backend not in BACKENDS:
            raise ValueError(f"expected backend to be one of {', '.join(BACKENDS)}, got {backend!r}")
        self.pass_under_test: PassUnderTest = pass_under_test.find(pass_name, folder)
        self.backend = backend
        self.pictured = pictured
        self.progress: Progress = progress or Progress()
        self.graphs: list[CapturedGraph] = []
        self.peaks: list[int] = []
        self.memories: list[Any] = []  # what is known of measured calls, by whom they are explained
        self.tolerance = tolerance
        self.compared = 0
        self._forgets = forgets
        self._bounded = bounded
        self._asker: Asker = asker
        self.following = following
        self._onlooker = onlooker
        self._stack = contextlib.ExitStack()
        self._active = self._triton = self.explains_peaks = False
        self._frames = threading.local()
        self._post_grad: dict[int, PostGrad] = {}
        # What our own pass writes, our analysis allows: nothing of it is ever suspicious.
        watches = verified or not self.pass_under_test.is_exact
        self._verifier = Verifier(self.pass_under_test, checks_all=verified) if watches else None
        self._seen: list[_Seen] = []

    @property
    def checked_graphs(self) -> list[CapturedGraph]:
        """The graphs so far with what checking them has given, and those that only the check has seen."""
        from ..passes import Report

        found = self.since(0)
        seen = {id(one) for graph in self._seen for one in graph.watchers}
        watchers = [*(self._verifier.watched if self._verifier else ())]
        watchers += self.following.compiled if self.following else ()
        unseen: dict[str, list[Watched | Compiled]] = {}
        for watcher in watchers:
            if id(watcher) not in seen:
                unseen.setdefault(watcher.graph_id, []).append(watcher)
        for name, theirs in unseen.items():
            problem = "its post-grad passes were not seen"
            empty = CapturedGraph(
                name, Report(), problem=problem, pass_name=self.pass_name, backend=self.backend
            )
            found.append(_Seen(empty, theirs).now())
        return found

    def since(self, start: int) -> list[CapturedGraph]:
        """Return the graphs from number ``start`` on, with what checking them has given so far."""
        seen = {id(one.graph): one for one in self._seen}
        return [seen[id(g)].now() if id(g) in seen else g for g in self.graphs[start:]]

    @property
    def pass_name(self) -> str:
        """The name of the pass under test."""
        return self.pass_under_test.name

    @property
    def report(self) -> Report:
        """The reports of all graphs so far, joined."""
        from ..passes import Report

        return Report.joined(graph.report for graph in self.graphs)

    def __enter__(self) -> Capture:
        self.progress.reset()
        if self._forgets:
            _torch.reset()
            self._stack.callback(_torch.reset)
        try:
            # Inductor takes seconds to import: a test that compiles nothing does not pay for it.
            if _torch.inductor_is_loaded():
                self._activate()
            else:
                self._stack.enter_context(_torch.before_first_compile(self._activate))
                if "triton" in sys.modules:
                    self._let_triton_work()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._active = self._triton = False
        self._post_grad.clear()
        self._stack.close()

    def _activate(self) -> None:
        if self._active:
            return
        self._active = True
        self._let_triton_work()
        self._stack.enter_context(_torch.compiling_with(self._redirect))
        self._stack.enter_context(_torch.watching_post_grad(self._stage))
        if self.following is not None:
            self._stack.enter_context(self.following.watching())
        if self.following is not None or (self._verifier is not None and self._verifier.checks_all):
            # Code that imported compile_fx by its name before is not redirected; all of it comes by here.
            self._stack.enter_context(_torch.compiling_inner_with(self._unredirected))
            self._stack.enter_context(_torch.without_autograd_cache())

    def _let_triton_work(self) -> None:
        if not self._triton:
            self._triton = True
            self._stack.enter_context(triton_cpu.working())

    # -- where torch calls us --------------------------------------------------------------------

    @contextlib.contextmanager
    def handing_to(self, inner: Callable[..., Any]) -> Iterator[None]:
        """Let ``inner``, called as ``compile_fx_inner``, compile what this thread compiles in the block.

        Its graphs are those of the stack as it is: no pass is put under test, and nothing is captured.
        """
        self._frames.inner = inner
        try:
            yield
        finally:
            self._frames.inner = None

    def _redirect(self, compile_fx: Callable[..., Any], stock: Any) -> Callable[..., Any]:
        """Return ``compile_fx`` with our configuration under the user's, and with our backend."""

        def compile_with(
            model: Any,
            inputs: Any,
            inner_compile: Any = stock,
            config_patches: dict[str, Any] | None = None,
            **kwargs: Any,
        ) -> Any:
            if getattr(self._frames, "compiling", False):  # compile_fx calls itself with the patches applied
                return compile_fx(model, inputs, inner_compile, config_patches, **kwargs)
            handed = getattr(self._frames, "inner", None)
            if handed is not None:
                framed, patches = handed, {**(config_patches or {}), **_UNCACHED}
            else:
                is_ours = inner_compile is stock and self.backend == "graph"
                inner = compile_graph if is_ours else inner_compile
                patches = install.options(self.pass_under_test, config_patches or {})
                framed = self._framed(inner, patches)
            self._frames.compiling = True
            try:
                with self.progress.compiling():
                    return compile_fx(model, inputs, framed, patches, **kwargs)
            finally:
                self._frames.compiling = False

        return compile_with

    def _unredirected(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``inner`` so that a graph which did not come by :meth:`_redirect` is watched, too."""

        def compile_one(gm: Any, *args: Any, **kwargs: Any) -> Any:
            if getattr(self._frames, "current", None) is not None or not self._active:
                return inner(gm, *args, **kwargs)
            with _torch.inductor_patched(_UNCACHED):
                return self._framed(inner, _UNCACHED)(gm, *args, **kwargs)

        return compile_one

    def _framed(self, inner: Callable[..., Any], patches: Mapping[str, Any]) -> Callable[..., Any]:
        """Let the graphs that ``inner`` compiles know their direction and the module they belong to."""

        # A backward graph is compiled when it runs, long after compile_fx has returned.
        def compile_one(gm: Any, *args: Any, **kwargs: Any) -> Any:
            direction = "bw" if kwargs.get("is_backward") else "fw"
            frame = _Frame(gm, direction, is_inference=bool(kwargs.get("is_inference")))
            if not self._active:
                with self._frame(frame), self.progress.compiling():
                    return inner(gm, *args, **kwargs)
            if self.following is not None:
                followed = self.following.compiling(frame.graph_id(gm), gm, kwargs)
                frame = dataclasses.replace(frame, followed=followed)
            with contextlib.ExitStack() as stack:
                if self._verifier is not None:
                    watched = self._verifier.compiled(frame.graph_id(gm), gm, patches, kwargs)
                    frame = dataclasses.replace(frame, watched=watched)
                    stack.enter_context(_watching(watched))
                if self._onlooker is not None and self.backend == "inductor":
                    onlooker = self._onlooker()
                    frame = dataclasses.replace(frame, onlooker=onlooker)
                    stack.enter_context(onlooker.looking())
                stack.enter_context(self._frame(frame))
                stack.enter_context(self.progress.compiling())
                compiled = inner(gm, *args, **kwargs)
            for watcher in frame.watchers:
                compiled = watcher.wrapped(compiled)
            return compiled

        return compile_one

    def _passed(self, gm: Any) -> Callable[[str], contextlib.AbstractContextManager[Any]] | None:
        """Return what follows the pass under test over a graph."""
        if self.following is None:
            return None
        return functools.partial(self.following.watch.passed, gm, "")

    @contextlib.contextmanager
    def _frame(self, frame: _Frame) -> Iterator[None]:
        outer = getattr(self._frames, "current", None)
        self._frames.current = frame
        try:
            yield
        finally:
            self._frames.current = outer

    def _stage(self, gm: Any, name: str, run: Callable[[], Any], custom: Any) -> Any:
        post_grad = self._post_grad.get(id(gm))
        frame = getattr(self._frames, "current", None) or _Frame(gm, "fw")
        if post_grad is None:
            # An inner graph is counted where it is called: nobody knows how often it runs.
            least_bytes = traffic.least(gm.graph) if self._bounded and not frame.inside(gm) else 0
            post_grad = self._post_grad[id(gm)] = PostGrad(
                self.pass_under_test,
                gm,
                is_inference=frame.is_inference,
                pictured=self.pictured,
                least_bytes=least_bytes,
                unseen=frame.unseen(gm),
                passed=self._passed(gm),
            )
        result = post_grad.stage(name, run)
        if post_grad.is_done:
            from ..passes.verify import once_settled

            del self._post_grad[id(gm)]
            found = post_grad.captured(frame.graph_id(gm))
            if found.suspicious and frame.watched is not None:
                frame.watched.is_wanted = True
            graph = dataclasses.replace(found, pass_name=self.pass_name, backend=self.backend)
            once_settled(functools.partial(self._keep, graph, gm, frame))
        return result

    def _keep(self, graph: CapturedGraph, gm: Any, frame: _Frame) -> None:
        """Add a graph that was compiled; one that is lowered once more is not added before."""
        outcomes = tuple(o.asked_by(self._asker, self.pass_name) for o in graph.report.outcomes)
        graph = dataclasses.replace(graph, report=dataclasses.replace(graph.report, outcomes=outcomes))
        self.graphs.append(graph)
        watchers: list[Watched | Compiled | Onlooker] = []
        if frame.onlooker is not None and not frame.inside(gm):
            watchers.append(frame.onlooker)
        if frame.watched is not None and frame.watched.is_wanted:
            watchers.append(frame.watched)
        if frame.followed is not None and not frame.inside(gm):
            frame.followed.came(gm)
            watchers.append(frame.followed)
        if watchers:
            self._seen.append(_Seen(graph, watchers))


@contextlib.contextmanager
def _watching(watched: Watched) -> Iterator[None]:
    from ..passes.verify import watching_schedules

    with watching_schedules(watched.misordered), _torch.after_post_grad(watched.note):
        yield


@dataclasses.dataclass(frozen=True, slots=True)
class _Seen:
    """A graph, and who learns more of it when it is called.

    Args:
        graph: as it was compiled.
        watchers: who does.
    """

    graph: CapturedGraph
    watchers: Sequence[Watched | Compiled | Onlooker]

    def now(self) -> CapturedGraph:
        """Return the graph with all that is known by now."""
        known = {name: value for one in self.watchers for name, value in one.told.items()}
        return dataclasses.replace(self.graph, **known)


@dataclasses.dataclass(frozen=True, slots=True)
class _Frame:
    """The graph that is being compiled.

    Args:
        top: its module.
        direction: ``"fw"`` or ``"bw"``.
        is_inference: whether there is no other direction.
        watched: who checks it.
        followed: who follows its passes.
        onlooker: who else looks on.
    """

    top: Any
    direction: str
    is_inference: bool = True
    watched: Watched | None = None
    followed: Compiled | None = None
    onlooker: Onlooker | None = None

    @property
    def watchers(self) -> list[Watched | Compiled]:
        """Who wants to know what it is called with."""
        return [one for one in (self.watched, self.followed) if one is not None]

    def graph_id(self, gm: Any) -> str:
        """Return how a graph is called, which is the module's own or one of its subgraphs."""
        parts = self.direction, _torch.compile_id(), self.inside(gm)
        return f"[{' '.join(part for part in parts if part)}]"

    def unseen(self, gm: Any) -> Unseen | None:
        """Return the outputs that the caller does not see; not known of a subgraph."""
        return None if self.watched is None or self.inside(gm) else self.watched.unseen

    def inside(self, gm: Any) -> str:
        """Return the name of a subgraph in its module, empty for the module's own graph."""
        return next((name for name, module in self.top.named_modules() if module is gm), "")

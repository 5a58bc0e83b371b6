"""Captures every graph that ``torch.compile`` hands to Inductor, and what the pass under test does to it."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _torch, install, pass_under_test, triton_cpu
from .captured import CapturedGraph
from .graph_backend import compile_graph
from .options import BACKENDS
from .post_grad import PostGrad
from .progress import Progress

if TYPE_CHECKING:
    from types import TracebackType

    from .pass_under_test import PassUnderTest
    from .passes import Report


class Capture:
    """A context that sees all that ``torch.compile`` compiles inside it, and puts a pass under test.

    Forward and backward, recompilations and subgraphs are seen. Compiled code is forgotten on entry and on
    exit, so that nothing compiled with one pass or backend is used with another, and Inductor's caches are
    off, so that the pass really runs. On a machine without a GPU, user Triton kernels work on CPU tensors.

    Args:
        pass_name: ``"inductor"``, ``"exact"`` or ``"package.module:attribute"``.
        backend: ``"inductor"``, or ``"graph"`` to run the rewritten graph without generating code.
        folder: where modules of passes are looked for, after ``sys.path``.
        pictured: whether each graph is drawn for a page.
        progress: is told when something is compiled.

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
    ) -> None:
        if backend not in BACKENDS:
            raise ValueError(f"expected backend to be one of {', '.join(BACKENDS)}, got {backend!r}")
        self.pass_under_test: PassUnderTest = pass_under_test.find(pass_name, folder)
        self.backend = backend
        self.pictured = pictured
        self.progress: Progress = progress or Progress()
        self.graphs: list[CapturedGraph] = []
        self.peaks: list[int] = []
        self._stack = contextlib.ExitStack()
        self._active = self._triton = False
        self._frames = threading.local()
        self._post_grad: dict[int, PostGrad] = {}

    @property
    def pass_name(self) -> str:
        """The name of the pass under test."""
        return self.pass_under_test.name

    @property
    def report(self) -> Report:
        """The reports of all graphs so far, joined."""
        from .passes import Report

        return Report.joined(graph.report for graph in self.graphs)

    def __enter__(self) -> Capture:
        self.progress.reset()
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

    def _let_triton_work(self) -> None:
        if not self._triton:
            self._triton = True
            self._stack.enter_context(triton_cpu.working())

    # -- where torch calls us --------------------------------------------------------------------

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
            inner = compile_graph if inner_compile is stock and self.backend == "graph" else inner_compile
            patches = install.options(self.pass_under_test, config_patches or {})
            self._frames.compiling = True
            try:
                with self.progress.compiling():
                    return compile_fx(model, inputs, self._framed(inner), patches, **kwargs)
            finally:
                self._frames.compiling = False

        return compile_with

    def _framed(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        """Let the graphs that ``inner`` compiles know their direction and the module they belong to."""

        def compile_one(gm: Any, example_inputs: Any, **kwargs: Any) -> Any:
            # A backward graph is compiled when it runs, long after compile_fx has returned.
            with self._frame(gm, bool(kwargs.get("is_backward"))), self.progress.compiling():
                return inner(gm, example_inputs, **kwargs)

        return compile_one

    @contextlib.contextmanager
    def _frame(self, gm: Any, is_backward: bool) -> Iterator[None]:
        outer = getattr(self._frames, "current", None)
        self._frames.current = (gm, "bw" if is_backward else "fw")
        try:
            yield
        finally:
            self._frames.current = outer

    def _stage(self, gm: Any, name: str, run: Callable[[], Any]) -> Any:
        post_grad = self._post_grad.get(id(gm))
        if post_grad is None:
            post_grad = self._post_grad[id(gm)] = PostGrad(self.pass_under_test, gm, pictured=self.pictured)
        result = post_grad.stage(name, run)
        if post_grad.is_done:
            del self._post_grad[id(gm)]
            found = post_grad.captured(self._id(gm))
            self.graphs.append(dataclasses.replace(found, pass_name=self.pass_name, backend=self.backend))
        return result

    def _id(self, gm: Any) -> str:
        top, direction = getattr(self._frames, "current", None) or (gm, "fw")
        inside = next((name for name, module in top.named_modules() if module is gm), "")
        return f"[{' '.join(part for part in (direction, _torch.compile_id(), inside) if part)}]"

"""What the fixture ``reinplace`` is: passes applied by hand, callables compiled and measured."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .base import _torch
from .call import arguments, call
from .call.trace import Traced, traced
from .capture import pass_under_test
from .capture.captured import CapturedGraph
from .judge.before import Before
from .judge.judge import Judgement, judge
from .lowered import compiled
from .picture.picture import Picture, copied
from .session import eager

if TYPE_CHECKING:
    from torch.fx import GraphModule

    from .capture.capture import Capture
    from .capture.pass_under_test import PassUnderTest
    from .passes import Report
    from .passes.ledger import Ledger


@dataclasses.dataclass(frozen=True, slots=True)
class Run:
    """A callable that was compiled, called and measured.

    Args:
        report: what was decided in all its graphs.
        result: what it returned.
        peak_bytes: the most bytes that were live during the call, above the level before it; that of
            tensors on the GPU when it got any.
        graphs: the graphs one by one.
    """

    report: Report
    result: Any
    peak_bytes: int
    graphs: tuple[CapturedGraph, ...]


class Reinplace:
    """Runs passes and callables under the capture of a test.

    Args:
        capture: the running capture.
        device: where the test is to have its tensors.
    """

    def __init__(self, capture: Capture, device: str = "cpu") -> None:
        self._capture = capture
        self.device = device
        self._applied = 0

    @property
    def graphs(self) -> tuple[CapturedGraph, ...]:
        """All graphs that the test compiled so far."""
        return tuple(self._capture.since(0))

    @property
    def report(self) -> Report:
        """What was decided in all graphs so far."""
        return self._capture.report

    def trace(
        self,
        fn: Callable[..., Any],
        /,
        *args: Any,
        dynamic: bool | None = None,
        grad: bool = False,
        **kwargs: Any,
    ) -> Traced:
        """Return the functional graph of ``fn(*args, **kwargs)``, as Inductor's post-grad passes get it.

        ``gm`` of what is returned is for ``apply``, and ``inputs`` for
        ``passes.verify.assert_equivalent``. No pass is under test here, and nothing is added to ``graphs``.
        Tensors are left as they are, and without ``grad`` nothing of the graph runs.

        Args:
            fn: a function or module; what is compiled already is traced as what it was before.
            args: its arguments; those for parameters named ``dynamic`` and ``grad`` have to be bound before.
            dynamic: whether sizes are symbolic, as ``torch.compile`` takes it.
            grad: whether the graphs of training are traced, forward and ``backward``; the forward runs. By
                default the graph is that of a call without gradients.
            kwargs: its keyword arguments.

        Raises:
            TypeError: ``fn`` does not take these arguments.
            AssertionError: a line breaks the graph; names it.
            ValueError: there is no graph, or, with ``grad``, no result that requires a gradient.
        """
        __tracebackhide__ = True
        return traced(self._capture, fn, args, kwargs, dynamic=dynamic, grad=grad)

    def apply(self, gm: GraphModule | Traced, my_pass: Callable[..., Any] | str | None = None) -> Report:
        """Run a pass over a functional graph and return what it did.

        Args:
            gm: an FX graph as AOTAutograd gives it to the post-grad stage, or what ``trace`` returns, whose
                ``gm`` is meant; rewritten and recompiled.
            my_pass: a callable over the ``GraphModule`` or the ``Graph``, a ``CustomGraphPass``, or a name as
                ``--reinplace-pass`` takes it; by default the pass under test. Which of the two it gets, and
                what it may return, ``passes.verify.on_graph_module`` says.

        Raises:
            TypeError: it is no graph.
            pytest_reinplace.passes.GraphError: the graph is not functional, or the pass broke it.
            Exception: whatever the pass raises, with a note that names it.

        The graph is as it was before when anything is raised.
        """
        __tracebackhide__ = True
        gm = _graph_module(gm)
        under_test = self._capture.pass_under_test
        if isinstance(my_pass, str):
            under_test = pass_under_test.find(my_pass)
        elif my_pass is not None:
            under_test = pass_under_test.of(my_pass)
        text = str(gm.graph)
        nodes = copied(gm.graph) if self._capture.pictured else {}
        judgement = _applied(under_test, gm)
        graph_id = f"[apply {self._applied}]"
        self._applied += 1
        report = dataclasses.replace(judgement.report, graph=graph_id)
        self._capture.graphs.append(
            CapturedGraph(
                id=graph_id,
                report=report,
                suspicious=judgement.suspicious,
                before=text,
                after=str(gm.graph),
                pass_name=under_test.name,
                picture=Picture.of(nodes, gm.graph, report) if nodes else None,
            )
        )
        return report

    def record(
        self,
        gm: GraphModule,
        pipeline: Any,
        *,
        inputs: Sequence[Any] | None = None,
        check: str = "off",
    ) -> Ledger:
        """Run a pipeline of passes over a graph, and return what each pass and each rule in it did.

        Args:
            gm: a functional graph, such as ``trace`` returns; it is rewritten.
            pipeline: a callable over the graph or its module; a manager that has its passes in a list
                ``passes``; ``"joint"`` or ``"post_grad"``, Inductor's own stage; or a list of all these.
            inputs: real tensors, one value for each placeholder; needed to check.
            check: ``"off"``; ``"passes"`` checks the whole way, and halves it where its ends differ;
                ``"rules"`` holds each application of a rule against the graph just before it.

        Raises:
            pytest_reinplace.passes.ReinplaceError: the pipeline is none, or ``inputs`` are missing.
            Exception: whatever a pass raises.
        """
        from .passes.ledger import record

        return record(gm, pipeline, inputs=inputs, check=check)  # type: ignore[arg-type]

    def compile(self, fn: Callable[..., Any], **options: Any) -> Callable[..., Any]:
        """Return ``torch.compile(fn, **options)``, sharing nothing with earlier compilations of ``fn``."""
        __tracebackhide__ = True
        arguments.check_callable(fn)
        return call.compiled(fn, **options)

    def run(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Run:
        """Compile ``fn``, call it twice with the same tensors, and measure the second call.

        All tensors that can be reached from ``fn`` and the arguments, and the random generators, are put
        back before the second call. A ``fn`` that is compiled already is called as it is. Where the marker
        has a ``tolerance``, ``fn`` is called eagerly first, on copies, and has to do the same. Where it has
        ``max_peak_over_bound``, ``fn`` is called once more, to explain its peak.
        """
        __tracebackhide__ = True
        arguments.check(fn, args, kwargs)
        start = len(self._capture.graphs)

        def measured() -> Any:
            result, peak = self._measured(fn, args, kwargs)
            self._capture.peaks.append(peak)
            return result

        result = eager.beside(self._capture, fn, args, kwargs, measured)
        peak = self._capture.peaks[-1]
        graphs = tuple(self._capture.since(start))
        from .passes import Report

        return Run(Report.joined(graph.report for graph in graphs), result, peak, graphs)

    def _measured(
        self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[Any, int]:
        """Compile and call ``fn``, and return its result and its peak, explained where that is wanted."""
        if not self._capture.explains_peaks:
            return call.with_peak(call.compiled(fn), fn, args, kwargs, self._capture.progress)
        result, memory = compiled.of(fn, args, kwargs, self._capture.progress)
        self._capture.memories.append(memory)
        return result, memory.measured


def _graph_module(gm: object) -> GraphModule:
    __tracebackhide__ = True
    from torch.fx import GraphModule

    gm = gm.gm if isinstance(gm, Traced) else gm
    if not isinstance(gm, GraphModule):
        raise TypeError(
            f"expected an fx.GraphModule, or what reinplace.trace(fn, ...) returns, got {type(gm).__name__}"
        )
    return gm


def _applied(under_test: PassUnderTest, gm: GraphModule) -> Judgement:
    """Run a pass and judge it; the graph is put back when anything raises."""
    from . import passes

    if under_test.is_exact:
        return Judgement(passes.reinplace(gm))
    before, saved = Before.of(gm), copy.deepcopy(gm.graph)
    try:
        if under_test.is_stock:
            _torch.run_stock_reinplacing(gm)
        else:
            under_test.rewrite(gm)
        gm.graph.lint()
        judgement = judge(before, gm.graph)
    except BaseException:
        gm.graph = saved
        gm.recompile()
        raise
    gm.recompile()
    return judgement

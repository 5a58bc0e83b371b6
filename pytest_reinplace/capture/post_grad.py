"""One graph on its way through Inductor's post-grad stages, seen and judged."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..judge.before import Before
from ..judge.judge import Judgement, judge, left_functional
from ..picture.picture import Picture, copied
from .captured import CapturedGraph
from .install import CHUNKING
from .pass_under_test import PassError

if TYPE_CHECKING:
    from torch.fx import GraphModule, Node

    from ..judge.before import Unseen
    from ..passes import Report
    from .pass_under_test import PassUnderTest

_USERS = "post_grad_custom_post_pass"
REINPLACE: str = "reinplace_inplaceable_ops"
# Where Inductor carries out what was decided on wrappers: the decision is complete, the wrappers still there.
_CARRIED_OUT = "decompose_triton_kernel_wrapper_functional"


class PostGrad:
    """Follows one graph through the stages and lets the pass under test do its work.

    Args:
        under_test: the pass.
        gm: the graph, in Inductor's hands.
        is_inference: whether it is one without a backward.
        pictured: whether it is drawn for a page.
        least_bytes: what it has to move at least, if that is known.
        unseen: the outputs that its caller does not see, if that is known.
        passed: follows the pass under test, which runs in the place of one of Inductor's.
    """

    def __init__(
        self,
        under_test: PassUnderTest,
        gm: GraphModule,
        *,
        is_inference: bool = True,
        pictured: bool = False,
        least_bytes: int = 0,
        unseen: Unseen | None = None,
        passed: Callable[[str], contextlib.AbstractContextManager[Any]] | None = None,
    ) -> None:
        self.is_done: bool = False
        self._pictured = pictured
        self._nodes: dict[str, Node] = {}
        self._picture: Picture | None = None
        self._under_test = under_test
        self._is_inference = is_inference
        self._gm = gm
        self._before: Before | None = None
        self._problem = ""
        self._own: Report | None = None
        self._given: GraphModule | None = None
        self._judgement: Judgement | None = None
        self._text = self._after = ""
        self._least_bytes, self._unseen, self._passed = least_bytes, unseen, passed or contextlib.nullcontext

    def stage(self, name: str, run: Callable[[], Any]) -> Any:
        """Carry out one stage and note what it tells."""
        if name == _USERS:
            return self._users_pass(run)
        if name == CHUNKING and not self._under_test.is_exact:
            self._look()
        if name == REINPLACE:
            return self._reinplace(run)
        if name == _CARRIED_OUT:
            self._conclude()
        return run()

    def captured(self, graph_id: str) -> CapturedGraph:
        """Return what was seen, once :attr:`is_done`."""
        from ..passes import Report

        judgement = self._judgement or Judgement(self._own or Report())
        return CapturedGraph(
            id=graph_id,
            report=dataclasses.replace(judgement.report, graph=graph_id),
            suspicious=judgement.suspicious,
            problem=self._problem,
            before=self._text or (self._before.text if self._before else ""),
            after=self._after,
            picture=self._picture,
            offered=self._before.offered if self._before else len(judgement.report.outcomes),
            least_bytes=self._least_bytes,
        )

    def _users_pass(self, run: Callable[[], Any]) -> Any:
        """Run custom post-grad passes. One of them may be ours, or may do the reinplacing itself."""
        from ..passes import observe

        text, nodes = str(self._gm.graph), self._copied()
        if self._under_test.is_exact:
            self._keep()
        else:
            self._look()

        def note(report: Report, graph: Any) -> None:
            self._nodes = nodes
            self._note(report, text)

        with observe(note, every=True):
            return run()

    def _reinplace(self, run: Callable[[], Any]) -> Any:
        """Let the pass under test take the place of Inductor's stage, unless our pass has run already."""
        if self._own is not None:
            return run()
        if self._under_test.is_exact:
            from ..passes import ReinplacePass

            text, self._nodes = str(self._gm.graph), self._copied()
            self._keep()
            self._note(ReinplacePass().apply(self._gm.graph), text)
            return None
        self._look()
        if self._under_test.is_stock:
            return run()
        try:
            with self._passed(self._under_test.name):
                self._under_test.rewrite(self._gm, is_inference=self._is_inference)
        except Exception as error:
            # Torch makes an error of its own of it and drops the notes; traceback and message stay.
            said = f"{type(error).__name__}: {error}"
            raise PassError("; ".join([said, *getattr(error, "__notes__", ())])).with_traceback(
                error.__traceback__
            ) from error
        return None

    def _keep(self) -> None:
        """Keep the functional graph, should our pass say nothing of what it makes of it."""
        from ..passes.verify import copied

        with contextlib.suppress(Exception):  # looking on must not break the user's compilation
            self._given = copied(self._gm)

    def _look(self) -> None:
        """Take a snapshot of the graph while it is functional; a later one replaces an earlier one."""
        from ..passes import GraphError

        gm = self._given or self._gm
        try:
            self._before, self._problem = Before.of(gm, lowered=True, unseen=self._unseen), ""
            self._nodes = self._nodes or self._copied()
        except GraphError as error:
            if self._before is None:
                self._problem = str(error)
        except Exception as error:  # noqa: BLE001  (looking on must not break the user's compilation)
            self._problem = _failed("analysing it", error)

    def _note(self, report: Report, text: str) -> None:
        """Note what our pass says of itself.

        It says nothing of a graph that it leaves functional, or to Inductor's own pass: what is copied there
        is judged as after any other pass.
        """
        self._own, self._text, self._problem = report, text, ""
        if not report.outcomes:
            self._look()
        self._given = None

    def _conclude(self) -> None:
        if not (self._own and self._own.outcomes) and self._before is not None:
            try:
                self._judgement = judge(self._before, self._gm.graph)
                if self._under_test.is_exact:
                    from ..passes.verify import why_functional

                    self._judgement = left_functional(self._judgement, why_functional())
            except Exception as error:  # noqa: BLE001  (looking on must not break the user's compilation)
                self._problem = _failed("comparing it with the functional graph", error)
        self._after = str(self._gm.graph)
        self._draw()
        self.is_done = True

    def _copied(self) -> dict[str, Node]:
        """Return the nodes as they are now, when they will be drawn."""
        if self._pictured:
            with contextlib.suppress(Exception):  # as in _draw
                return copied(self._gm.graph)
        return {}

    def _draw(self) -> None:
        """Draw the graph. What cannot be drawn is reported without a picture: a compilation goes on."""
        report = self._judgement.report if self._judgement is not None else self._own
        if not self._nodes or report is None:
            return
        with contextlib.suppress(Exception):
            self._picture = Picture.of(self._nodes, self._gm.graph, report)
        self._nodes = {}


def _failed(what: str, error: Exception) -> str:
    return f"{what} failed, which is a defect of pytest-reinplace: {type(error).__name__}: {error}"

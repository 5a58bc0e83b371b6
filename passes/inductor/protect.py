"""Our passes before the post-grad stage: what the program says is noted, and what changes nothing dropped."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from torch.fx import Graph

from .._torch import inductor_setting
from ..graph import program_notes
from ..graph.alias import begin_of
from ..graph.collector import paused
from ..graph.journal import Journal
from ..graph.spread import graphs
from ..post_grad import POST_GRAD, find, neutral, no_ops
from ..reinplacing.facts.options import Ordering, Stage, check_choice
from ._torch import (
    captures_graphs,
    custom_graph_pass,
    inductor_step,
    is_inference,
    tell_begins,
)
from .defects import defended
from .identity import state
from .mend import constants, epilogues, factors
from .mend.real_views import count_in_reals
from .mend.wrapper_views import count_from_bases
from .schedule import attempts, check
from .skip import skip

if TYPE_CHECKING:
    from .._torch import CustomGraphPass
else:
    CustomGraphPass = custom_graph_pass()


class _Pass(CustomGraphPass):
    """A pass that is known by its kind and its arguments."""

    __slots__ = ()

    def uuid(self) -> Any:
        """Identify the pass by these, by its source and by what was declared about operators."""
        return ("pytest-reinplace", repr(self), *state())


@dataclasses.dataclass(frozen=True, slots=True)
class NotePass(_Pass):
    """Notes in Dynamo's graph what calls that write are given (``pre_grad_custom_pass``)."""

    def __call__(self, graph: Graph) -> None:
        """Note it in a graph and in those that it calls, as Inductor calls it."""
        journal = Journal(graph)
        try:
            for one in graphs(graph):
                program_notes.note(one)
        except Exception as error:  # noqa: BLE001  (a compile never fails because of us)
            skip(journal, "what calls are given is not noted", error)


@dataclasses.dataclass(frozen=True, slots=True)
class ProtectPass(_Pass):
    """Drops what changes nothing, but no copy that matters (``joint_custom_pre_pass``).

    It runs once more behind the joint-graph patterns (``joint_custom_post_pass``), for what they leave.

    Args:
        stage: as for ``inductor_options``.
        is_last: whether it is the one behind the patterns.
    """

    stage: Stage = "reinplace"
    is_last: bool = False

    def __post_init__(self) -> None:
        check_choice("stage", self.stage, Stage)

    @paused()
    def __call__(self, graph: Graph) -> None:
        """Mend a graph and drop its no-ops, as Inductor calls it."""
        attempts.begin(check.is_wanted)
        neutral.reveal(graph)
        journal = Journal(graph)
        try:
            _tell_begins(graph)
            for one in graphs(graph):
                program_notes.tell(one)
            count_in_reals(graph)
            count_from_bases(graph)
            if drops_no_ops():
                epilogues.order(graph)
                no_ops.remove(graph, folds=self.stage == "reinplace")
            if self.stage == "post_grad" and not self.is_last:
                find("neutral").stand_in(graph)
            factors.write_out(graph)
            if defended("recomputed-from-written"):
                epilogues.save_readers(graph)
            if self.is_last:
                constants.make_late(graph)
        except Exception as error:  # noqa: BLE001  (a compile never fails because of us)
            skip(journal, "copies are not protected", error)


@dataclasses.dataclass(frozen=True, slots=True)
class RulesPass(_Pass):
    """Our rules in the place of those of Inductor's post-grad stage (``post_grad_custom_pre_pass``).

    Single rules of Inductor's cannot be switched off. Ours come before, and leave them nothing to find.

    Args:
        order: as for ``inductor_options``.
    """

    order: Ordering = "free"

    @paused()
    def __call__(self, graph: Graph) -> None:
        """Apply the rules to a graph, as Inductor calls it."""
        journal = Journal(graph)
        try:
            for name in POST_GRAD:
                if name != "locality" or self._moves():
                    find(name).stand_in(graph)
            if captures_graphs():
                inductor_step("move_constructors_to_gpu")(graph)
        except Exception as error:  # noqa: BLE001  (a compile never fails because of us)
            skip(journal, "Inductor's own rules decide", error)

    def _moves(self) -> bool:
        """Return whether nodes may move: in inference, as Inductor's do, or where its setting says so."""
        in_training = inductor_setting("reorder_for_locality_in_training")
        return self.order == "free" and (is_inference() or bool(in_training))


def drops_no_ops() -> bool:
    """Return whether no-ops are dropped here, and not by Inductor."""
    return defended("late-epilogue") and defended("merged-outputs") and defended("widened-items")


def _tell_begins(graph: Graph) -> None:
    begins = [(i, begin_of(node)) for i, node in enumerate(graph.find_nodes(op="placeholder"))]
    tell_begins(tuple((i, str(begin)) for i, begin in begins if begin != 0))

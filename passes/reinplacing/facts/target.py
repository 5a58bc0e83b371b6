"""For whom a rewritten graph is written, and what that consumer makes of it.

Deciding asks a target and knows no compiler. The answers here are those of a graph that is run node by node,
by torch's own kernels; ``inductor/target.py`` answers for Inductor.
"""

from __future__ import annotations

from typing import Any

from torch.fx import Graph, Node

from .candidate import Candidate, Refusal


class Target:
    """What runs a rewritten graph; a compiler is a subclass with answers of its own.

    A decision knows its target, so the target cannot name the type of a ``Decision``: it is ``Any`` below.

    Attributes:
        fuses: whether view scatters and lists are computed on the way, by what makes or uses them.
        makes_as_told: whether results have the strides, and begin, as their fake tensors say.
        returns_operands: whether ``device_put`` and the like return an operand that is there already.
        drops_identities: whether operators that change nothing are replaced by their operand.
        converts_stores: whether storing through a view of another dtype converts the values.
        begins_anywhere: whether a clone may begin a few bytes into its storage.
    """

    fuses: bool = False
    makes_as_told: bool = False
    returns_operands: bool = True
    drops_identities: bool = False
    converts_stores: bool = False
    begins_anywhere: bool = True

    def takes_program_inputs(self, graph: Graph) -> bool:
        """Return whether AOTAutograd gives a graph the inputs of a program, see ``shared_by_inputs``."""
        return False

    def sees_view(self, node: Node, of_input: bool) -> bool:
        """Return whether a view is a view to it, of an input or of what is computed."""
        return True

    def runs_form(self, node: Node, form: Any) -> bool:
        """Return whether the in-place form of a call computes what the functional one does, for no more."""
        return True

    def refusal(self, decision: Any, candidate: Candidate) -> Refusal | None:
        """Return why it would write a candidate wrongly, ``None`` where it would not."""
        return None


NODE_BY_NODE = Target()

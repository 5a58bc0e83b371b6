"""Why a candidate stayed a clone: the closed list of reasons, each with one plain sentence."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable

# The ends of hints that ``hint_form`` words for who asks; as they are here they are those of a test.
LIST = "list it: assert_clones == "
MARKER = '@pytest.mark.reinplace(pass_="{}")'
KEEP_ORDER = "options={'reorder_for_locality': False}"
OUR_PASS = f"{MARKER.format('exact')}, in production inductor_options()"


class Reason(enum.Enum):
    """Why a candidate was cloned. The value is the stable name used in JSON and in reports."""

    STILL_READ = "still-read"
    INPUT_KEPT = "input-kept"
    SAME_NODE = "same-node"
    CLOBBERED = "clobbered"
    OVERWRITTEN = "overwritten"
    IN_FLIGHT = "in-flight"
    ESCAPES = "escapes"
    LAYOUT = "layout"
    SELF_OVERLAP = "self-overlap"
    UNKNOWN_OVERLAP = "unknown-overlap"
    UNKNOWN_OP = "unknown-op"
    UNSUPPORTED = "unsupported"
    LOWERING = "lowering"
    CHEAPER = "cheaper"
    MISSED = "missed"
    FOLLOWS = "follows"
    SAVED = "saved"

    @property
    def sentence(self) -> str:
        """One sentence for a person, without the final period."""
        return _SENTENCES[self]

    @property
    def hint(self) -> str:
        """What the author of the program can do about most of them; empty where nothing is known to help.

        An outcome's own hint says what helps there, or how to list the copy where it is needed.
        """
        return _HINTS.get(self, "")


def listing(labels: Iterable[str]) -> str:
    """Return how a test expects clones, with a line to paste: ``"list it: assert_clones == ['op_.x']"``."""
    counts = sorted(Counter(labels).items())
    if all(count == 1 for _, count in counts):
        return f"{LIST}{[label for label, _ in counts]}"
    return LIST + " + ".join(f"[{label!r}]" + (f" * {n}" if n > 1 else "") for label, n in counts)


_SENTENCES = {
    Reason.STILL_READ: "the old value is still read after this write",
    Reason.INPUT_KEPT: "the caller keeps the input: the program never writes it back",
    Reason.SAME_NODE: "the same call uses these bytes through another argument",
    Reason.CLOBBERED: "a later write into the input would overwrite the result before its last use",
    Reason.OVERWRITTEN: "the source is overwritten while this copy of it is still needed",
    Reason.IN_FLIGHT: "a collective still works on these bytes until its wait",
    Reason.ESCAPES: "the result is returned and would share storage with an input or another output",
    Reason.LAYOUT: "the result has other strides than the operand, and a reader depends on them",
    Reason.SELF_OVERLAP: "the operand overlaps itself: several of its elements are the same bytes",
    Reason.UNKNOWN_OVERLAP: "whether two symbolic regions overlap cannot be decided",
    Reason.UNKNOWN_OP: "an operator without a known schema may read or alias these bytes",
    Reason.UNSUPPORTED: "the pass does not rewrite this kind of node",
    Reason.LOWERING: "Inductor would lose or convert the write when it lowers it",
    Reason.CHEAPER: "another copy was kept instead, because that one is smaller",
    Reason.MISSED: "nothing forbids it: the pass under test missed it",
    Reason.FOLLOWS: "follows from the clone of another candidate",
    Reason.SAVED: "saved for the backward, where it would share storage with an input or another output",
}


# Without the option Inductor moves a reader to its first use, behind the write.
_READ_BEFORE = f"read the old value before the write, and compile with {KEEP_ORDER}"

_HINTS = {
    Reason.STILL_READ: _READ_BEFORE,
    Reason.INPUT_KEPT: "write the result back into the input",
    Reason.SAME_NODE: "if the operator is elementwise, say so: pytest_reinplace.passes.declare",
    Reason.CLOBBERED: "use the result before the input is written again",
    Reason.OVERWRITTEN: _READ_BEFORE,
    Reason.IN_FLIGHT: "wait for the collective before the write",
    Reason.ESCAPES: "return the tensor itself, and not a copy of it",
    Reason.LAYOUT: "make the operand contiguous before the write",
    Reason.SELF_OVERLAP: "write into a tensor that was not expanded",
    Reason.UNKNOWN_OVERLAP: "slice with static sizes, or mark the dimension static",
    Reason.UNKNOWN_OP: "let the operator return memory of its own, and no view of an argument",
    Reason.LOWERING: "view dtypes outside of what is compiled",
    Reason.MISSED: f"our pass does not copy: {OUR_PASS}",
    Reason.SAVED: "for inference, call it under torch.no_grad()",
}

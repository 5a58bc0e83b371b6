"""Why a candidate stayed a clone: the closed list of reasons, each with one plain sentence."""

from __future__ import annotations

import enum


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

    @property
    def sentence(self) -> str:
        """One sentence for a person, without the final period."""
        return _SENTENCES[self]

    @property
    def hint(self) -> str:
        """What the author of the program can do about it; empty where nothing can be done."""
        return _HINTS.get(self, "")


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
}


_HINTS = {
    Reason.STILL_READ: "read the old value before the write, or read only the part that is not written",
    Reason.INPUT_KEPT: "write the result back into the input, or do not pass it as an input",
    Reason.SAME_NODE: "pass arguments that do not share memory",
    Reason.CLOBBERED: "use the result before the input is written again",
    Reason.OVERWRITTEN: "use the copy before its source is written, or copy only the overwritten part",
    Reason.IN_FLIGHT: "wait for the collective before the write",
    Reason.ESCAPES: "return the input itself, or return a copy of only the part you need",
    Reason.LAYOUT: "make the operand contiguous before the write",
    Reason.SELF_OVERLAP: "write into a tensor that was not expanded",
    Reason.UNKNOWN_OVERLAP: "slice with static sizes, or mark the dimension static",
    Reason.UNKNOWN_OP: "give the operator a schema that says what it reads, writes and aliases",
    Reason.LOWERING: "view dtypes outside of what is compiled",
    Reason.MISSED: "compile with pytest_reinplace.passes.inductor_options()",
}

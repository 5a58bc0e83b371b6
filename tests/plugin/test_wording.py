"""The wording of every reason, as a person reads it: changing a sentence means changing it here."""

from __future__ import annotations

import pytest

from pytest_reinplace.base import wording
from pytest_reinplace.passes import Blocker, Outcome, Reason

_READ_BEFORE = "read the old value before the write, and compile with options={'reorder_for_locality': False}"
_WORDING = {
    "still-read": (
        "the old value is still read after this write",
        _READ_BEFORE,
    ),
    "input-kept": (
        "the caller keeps the input: the program never writes it back",
        "write the result back into the input",
    ),
    "same-node": (
        "the same call uses these bytes through another argument",
        "if the operator is elementwise, say so: pytest_reinplace.passes.declare",
    ),
    "clobbered": (
        "a later write into the input would overwrite the result before its last use",
        "use the result before the input is written again",
    ),
    "overwritten": (
        "the source is overwritten while this copy of it is still needed",
        _READ_BEFORE,
    ),
    "in-flight": (
        "a collective still works on these bytes until its wait",
        "wait for the collective before the write",
    ),
    "escapes": (
        "the result is returned and would share storage with an input or another output",
        "return the tensor itself, and not a copy of it",
    ),
    "layout": (
        "the result has other strides than the operand, and a reader depends on them",
        "make the operand contiguous before the write",
    ),
    "self-overlap": (
        "the operand overlaps itself: several of its elements are the same bytes",
        "write into a tensor that was not expanded",
    ),
    "unknown-overlap": (
        "whether two symbolic regions overlap cannot be decided",
        "slice with static sizes, or mark the dimension static",
    ),
    "unknown-op": (
        "an operator without a known schema may read or alias these bytes",
        "let the operator return memory of its own, and no view of an argument",
    ),
    "unsupported": ("the pass does not rewrite this kind of node", ""),
    "lowering": (
        "Inductor would lose or convert the write when it lowers it",
        "view dtypes outside of what is compiled",
    ),
    "cheaper": ("another copy was kept instead, because that one is smaller", ""),
    "missed": (
        "nothing forbids it: the pass under test missed it",
        'our pass does not copy: @pytest.mark.reinplace(pass_="exact"), in production inductor_options()',
    ),
    "follows": ("follows from the clone of another candidate", ""),
    "saved": (
        "saved for the backward, where it would share storage with an input or another output",
        "for inference, call it under torch.no_grad()",
    ),
}


def clone(reason: Reason, *blockers: Blocker) -> Outcome:
    return Outcome(
        label="lib::op.x",
        op="lib::op",
        arg="x",
        node="op",
        reinplaced=False,
        nbytes=1536,
        reason=reason,
        blockers=blockers,
        source="model.py:7",
        hint=reason.hint,
    )


def test_every_reason_is_worded() -> None:
    assert list(_WORDING) == [reason.value for reason in Reason]


@pytest.mark.parametrize("reason", Reason, ids=lambda reason: reason.value)
def test_a_clone_is_told_in_two_lines(reason: Reason) -> None:
    sentence, hint = _WORDING[reason.value]
    first = f"lib::op.x at model.py:7: 1.5 KiB (1536 B), {sentence}"
    held = "  held back by add (aten::add) at model.py:9"
    blocker = Blocker("add", "aten::add", "model.py:9")
    if hint:
        assert wording.clone_lines(clone(reason)) == [first, f"  hint: {hint}"]
        assert wording.clone_lines(clone(reason, blocker)) == [first, f"{held}; hint: {hint}"]
    else:
        assert wording.clone_lines(clone(reason)) == [first]
        assert wording.clone_lines(clone(reason, blocker)) == [first, held]


@pytest.mark.parametrize("reason", Reason, ids=lambda reason: reason.value)
def test_a_sentence_can_be_put_behind_a_comma(reason: Reason) -> None:
    for text in filter(None, (reason.sentence, reason.hint)):
        assert "\n" not in text and not text.endswith(".") and len(text) < 100

"""Which clones of two reports are the same."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_reinplace.compare.clones import Change, Clone, match, told

READ, LAYOUT = "still-read", "layout"
A = Clone("k.a", 32, READ, "m.py:10")


def at(line: int, **changes: object) -> Clone:
    return dataclasses.replace(A, **{"source": f"m.py:{line}", **changes})  # type: ignore[arg-type]


def told_of(old: Sequence[Clone], new: Sequence[Clone]) -> list[tuple[str, Clone | None, Clone | None]]:
    return [(found.kind, found.old, found.new) for found in match(old, new) if found.kind != "same"]


def test_the_line_may_shift() -> None:
    assert told_of([at(10), at(20), at(20)], [at(11), at(21), at(21)]) == []


def test_a_new_clone_above_others_is_told_at_its_own_line() -> None:
    assert told_of([at(10), at(20), at(30)], [at(5), at(11), at(21), at(31)]) == [("new", None, at(5))]
    assert told_of([at(10), at(20), at(30)], [at(10), at(15), at(22), at(32)]) == [("new", None, at(15))]
    assert told_of([at(5), at(11), at(21)], [at(10), at(20)]) == [("gone", at(5), None)]


def test_many_lines_are_paired_in_their_order() -> None:
    assert told_of([at(i) for i in range(0, 1000, 2)], [at(i) for i in range(1, 1003, 2)]) == [
        ("new", None, at(1001))
    ]


def test_bytes_say_which_of_one_line_is_new() -> None:
    small = at(10, nbytes=8)
    assert told_of([A], [A, small]) == [("new", None, small)]
    assert told_of([A, small], [at(12)]) == [("gone", small, None)]
    assert told_of([A], [small]) == []


def test_another_reason_is_told_unless_a_report_does_not_know_it() -> None:
    other = at(12, reason=LAYOUT)
    (found,) = match([A], [other])
    assert found == Change("reason", A, other)
    assert found.text == (
        "k.a at m.py:12: 32 B, still-read → layout: the result has other strides than the operand, and a "
        "reader depends on them"
    )
    assert told_of([A], [at(12, reason="")]) == told_of([at(12, reason="")], [A]) == []


def test_a_reason_that_stays_goes_before_one_that_changes() -> None:
    assert told_of([A, at(10, reason=LAYOUT)], [at(40), at(10, reason="clobbered")]) == [
        ("reason", at(10, reason=LAYOUT), at(10, reason="clobbered"))
    ]


def test_as_many_bytes_elsewhere_are_a_clone_that_moved() -> None:
    other = at(11, label="k.b")
    (found,) = match([A], [other])
    assert found == Change("moved", A, other)
    assert found.is_new
    assert found.text == (
        "from k.a at m.py:10 to k.b at m.py:11: 32 B, the old value is still read after this write"
    )
    assert told_of([A], [at(10, label="k.b", nbytes=33)]) == [
        ("new", None, at(10, label="k.b", nbytes=33)),
        ("gone", A, None),
    ]


def test_a_clone_moves_to_the_same_label_or_else_within_its_file() -> None:
    elsewhere, label, file = at(0, source="n.py:1"), at(0, label="k.b"), at(0, label="k.c", source="n.py:2")
    assert ("moved", A, elsewhere) in told_of([A], [label, elsewhere])
    assert ("moved", A, label) in told_of([A], [file, label])


def test_where_a_file_outside_the_project_lies_does_not_matter() -> None:
    ours, theirs = (at(0, source=f"{root}/transformers/cache.py:7") for root in ("/home/a", "/opt/b/lib"))
    assert told_of([ours], [theirs]) == []
    other = at(0, source="/opt/b/lib/diffusers/cache.py:7")
    assert told_of([ours], [other]) == [("moved", ours, other)]


def test_a_clone_without_a_line_is_that_of_its_label() -> None:
    nowhere = at(0, source="")
    assert told_of([nowhere], [A]) == told_of([A], [nowhere]) == told_of([nowhere], [nowhere]) == []
    assert told_of([nowhere], [at(0, source="", label="k.b")])[0][0] == "moved"
    assert Change("new", None, nowhere).text == "k.a: 32 B, the old value is still read after this write"


def test_an_outcome_without_some_fields_is_a_clone() -> None:
    assert Clone.of({"label": "k.a", "nbytes": 3}) == Clone("k.a", 3)
    assert Clone.of({"label": "k.a", "nbytes": 3, "reason": None, "source": None}) == Clone("k.a", 3)
    assert Change("gone", Clone("k.a", 3), None).text == "k.a: 3 B, for an unknown reason"


def test_what_occurs_often_is_told_once() -> None:
    ((_, text),) = told(match([], [A, A, A]))
    assert text.endswith("this write, 3 times: 96 B together")


# Few of everything, so that clones have much in common.
clones = st.builds(
    Clone,
    st.sampled_from(["k.a", "k.b"]),
    st.sampled_from([0, 32]),
    st.sampled_from(["", READ, LAYOUT]),
    st.sampled_from(["", "m.py", "/x/m.py:1", *(f"{file}.py:{line}" for file in "mn" for line in (1, 2, 5))]),
)
many = st.lists(clones, max_size=8)


@given(many, many)
def test_each_clone_is_in_one_change(old: list[Clone], new: list[Clone]) -> None:
    found = match(old, new)
    assert collections.Counter(one.old for one in found if one.old) == collections.Counter(old)
    assert collections.Counter(one.new for one in found if one.new) == collections.Counter(new)
    for one in found:
        assert (one.old is None, one.new is None) == (one.kind == "new", one.kind == "gone")


@given(many, st.randoms(use_true_random=False))
def test_the_same_clones_in_any_order_are_no_change(old: list[Clone], random: object) -> None:
    new = list(old)
    random.shuffle(new)  # type: ignore[attr-defined]
    assert told_of(old, new) == []


@given(many, many, st.randoms(use_true_random=False))
def test_the_order_does_not_matter(old: list[Clone], new: list[Clone], random: object) -> None:
    found = match(old, new)
    random.shuffle(old)  # type: ignore[attr-defined]
    random.shuffle(new)  # type: ignore[attr-defined]
    assert match(old, new) == found


@given(many, st.integers(0, 100))
def test_lines_that_have_shifted_together_are_no_change(old: list[Clone], by: int) -> None:
    new = [
        dataclasses.replace(clone, source=f"{clone.source.rpartition(':')[0]}:{clone.line + by}")
        if clone.line
        else clone
        for clone in old
    ]
    assert told_of(old, new) == []


@given(many, many)
def test_as_many_are_new_or_gone_as_label_and_file_say(old: list[Clone], new: list[Clone]) -> None:
    """Of each label and file as many are paired as can be, whatever an earlier step has paired."""
    old, new = ([clone for clone in side if clone.file] for side in (old, new))
    before, now = (collections.Counter((clone.label, clone.file) for clone in side) for side in (old, new))
    found = match(old, new)
    assert sum(one.is_new for one in found) == (now - before).total()
    assert sum(one.kind in ("gone", "moved") for one in found) == (before - now).total()


@given(many)
def test_reading_and_telling_never_fails(old: list[Clone]) -> None:
    for one, text in told(match(old, [])):
        assert one.kind == "gone"
        assert text.startswith(one.shown.label)


@pytest.mark.parametrize("kind", ["new", "moved", "gone", "reason", "same"])
def test_new_is_what_was_not_cloned_before(kind: str) -> None:
    assert Change(kind, A, A).is_new == (kind in ("new", "moved"))  # type: ignore[arg-type]


def test_what_holds_it_back_and_the_hint_are_told_of_new_clones_alone() -> None:
    def one(hint: str, source: str = "m.py:3") -> Clone:
        blockers = [{"node": f"n{i}", "op": "aten::add", "source": None} for i in range(4)]
        return Clone.of({"label": "a.b", "nbytes": 8, "source": source, "blockers": blockers, "hint": hint})

    hint = "read it before"
    (new,) = match([], [one(hint)])
    held = "; held back by n0 (aten::add), n1 (aten::add), n2 (aten::add) and 1 more"
    assert new.help == f"{held}; hint: {hint}"
    (gone,) = match([one(hint)], [])
    assert (gone.kind, gone.help) == ("gone", "")
    (same,) = match([one(hint)], [one("another")])  # a hint makes no other clone of it
    assert same.kind == "same"
    (bare,) = match([], [Clone("a.b", 8)])
    assert bare.help == ""


K, V = (Clone(label, 32, READ, "m.py:3", hint="read it before") for label in ("op_.k", "op_.v"))
OF_K, OF_V = (Clone("aten::copy_.self", 32, "follows", "m.py:3", follows=one.place) for one in (K, V))


def test_what_follows_from_a_clone_is_told_with_it() -> None:
    lines = [text for _, text in told(match([], [K, V, OF_K, OF_V]), "; allowed is clones:0")]
    said = "32 B, the old value is still read after this write"
    end = "; allowed is clones:0; hint: read it before"
    follows = "; from it follows aten::copy_.self: 32 B"
    assert lines == [f"op_.{name} at m.py:3: {said}{follows}{end}" for name in "kv"]
    (gone,) = told(match([K, OF_K], []))
    assert gone[1] == f"op_.k at m.py:3: {said}{follows}"


def test_what_follows_from_many_is_counted_with_them() -> None:
    (line,) = (text for _, text in told(match([], [K, OF_K] * 3)))
    first, _, follows = line.partition("; from it follows ")
    assert first.endswith(", 3 times: 96 B together")
    assert follows == "aten::copy_.self: 32 B, 3 times: 96 B together; hint: read it before"


def test_what_follows_from_a_clone_that_is_no_change_is_told_alone() -> None:
    changes = [change for change in match([K, V], [K, V, OF_K, OF_V]) if change.is_new]
    said = "aten::copy_.self at m.py:3: 32 B, follows from the clone of op_."
    assert [text for _, text in told(changes)] == [f"{said}{name} at m.py:3" for name in "kv"]


def test_what_follows_is_matched_by_its_cause() -> None:
    moved = dataclasses.replace(OF_V, source="m.py:4", follows="op_.v at m.py:4")
    (gone,) = (one for one in match([OF_K, OF_V], [moved]) if one.kind != "same")
    assert (gone.kind, gone.old) == ("gone", OF_K)
    without = dataclasses.replace(OF_K, reason="missed", follows="")  # as older reports tell it
    assert [one.kind for one in match([without], [OF_K])] == ["reason"]

"""Verdicts and their wording."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_reinplace.base import wording
from pytest_reinplace.capture.captured import CapturedGraph
from pytest_reinplace.passes import Blocker, Outcome, Reason, Report
from pytest_reinplace.passes.reason import listing
from pytest_reinplace.session.verdict import all_in_place, clones_are, named_in_place, unexercised, within


def outcome(label: str, reason: Reason | None = None, nbytes: int = 8, **more: object) -> Outcome:
    op, _, arg = label.rpartition(".")
    hint = reason.hint if reason else ""
    fields = {
        "node": "n",
        "reinplaced": reason is None,
        "nbytes": nbytes,
        "reason": reason,
        "hint": hint,
        **more,
    }
    return Outcome(label=label, op=op, arg=arg, **fields)  # type: ignore[arg-type]


def graph(*outcomes: Outcome, problem: str = "") -> CapturedGraph:
    return CapturedGraph("[fw 0/0]", Report(outcomes), problem=problem)


GOOD = graph(outcome("lib::op.x"))
BAD = graph(
    outcome("lib::op.x"),
    outcome(
        "lib::op.y",
        Reason.STILL_READ,
        3_000_000,
        source="model.py:3",
        blockers=tuple(Blocker(f"n{i}", "aten::add", "model.py:9") for i in range(5)),
    ),
)


def test_the_failure_says_what_differs_then_why() -> None:
    assert str(all_in_place([GOOD, BAD], "pass inductor")).splitlines() == [
        "1 candidate not in place: lib::op.y (pass inductor)",
        "  lib::op.y at model.py:3: 2.9 MiB (3000000 B), the old value is still read after this write",
        "    held back by n0 (aten::add) at model.py:9, n1 (aten::add) at model.py:9, n2 (aten::add) at "
        "model.py:9 and 2 more; hint: " + Reason.STILL_READ.hint,
    ]
    assert all_in_place([GOOD]).passed


def test_names_are_labels_or_arguments() -> None:
    assert named_in_place([GOOD, BAD], ["x", "lib::op.x"]).passed
    assert named_in_place([BAD], ["y"]).problems == ("1 candidate not in place: lib::op.y",)
    assert named_in_place([GOOD], ["lib::*", "*.x", "lib::op"]).passed
    assert not named_in_place([BAD], ["lib::op"]).passed
    both = named_in_place([BAD], ["y", "lib::po.x"])
    assert both.problems[1] == "no candidate is called 'lib::po.x': did you mean 'lib::op.x'?"


def test_clone_lists_are_compared_with_counts() -> None:
    assert clones_are([BAD], ["lib::op.y"]).passed
    assert clones_are([BAD, BAD], ["lib::op.y"]).problems == ("1 unexpected clone: lib::op.y",)
    found = clones_are([BAD], ["lib::op.y", "lib::op.y", "a"])
    assert found.problems[0] == "2 expected clones are missing: lib::op.y, a"
    assert found.explained == ()
    assert str(found).endswith(f"\n{wording.UPDATE}") and wording.UPDATE not in str(all_in_place([BAD]))


def test_names_of_a_list_that_are_no_labels_are_told() -> None:
    def told(*names: str) -> tuple[str, ...]:
        return clones_are([BAD], names).problems[1:-2]

    assert told("lib::opp.y") == ("no candidate is called 'lib::opp.y': did you mean 'lib::op.y'?",)
    no_label = " is no label: a list has whole labels; it may mean "
    assert told("*") == (f"'*'{no_label}lib::op.x, lib::op.y",)
    assert told("y", "lib::op") == (f"'y'{no_label}lib::op.y", f"'lib::op'{no_label}lib::op.x, lib::op.y")
    assert told("lib::op.y", "lib::op.y") == told("lib::op.x") == ()  # they are some, in place or too often


def test_limits() -> None:
    assert within([BAD], 1, 3_000_000).passed
    assert within([BAD]).passed
    assert within([BAD], 0, 0).problems == (
        "1 clone; the limit is max_clones=0",
        "2.9 MiB (3000000 B) cloned; the limit is max_clone_bytes=0",
    )


def test_what_was_not_exercised_does_not_pass() -> None:
    assert "no graph was compiled" in unexercised([])
    assert "no candidate in 2 compiled graphs" in unexercised([graph(), graph()])
    assert unexercised([graph(), GOOD]) == ""
    refused = [GOOD, graph(problem="it is no functional graph")]
    assert unexercised(refused) == "graph [fw 0/0] could not be judged: it is no functional graph"
    for graphs in ([], [graph()], refused):
        assert not all_in_place(graphs).passed
        assert not named_in_place(graphs, ["x"]).passed
        assert not clones_are(graphs, []).passed
        assert not within(graphs, 9).passed


def test_many_clones_are_cut_short() -> None:
    many = graph(*(outcome(f"lib::op.a{i}", Reason.MISSED) for i in range(13)))
    lines = str(all_in_place([many])).splitlines()
    assert lines[0].endswith("lib::op.a5 and 7 more")
    assert lines[-1] == "  and 3 more clones"


def test_clones_of_one_line_and_reason_are_told_once() -> None:
    layer = outcome("lib::op.y", Reason.STILL_READ, 4096, source="model.py:3")
    other = outcome("lib::op.y", Reason.STILL_READ, 4096, source="model.py:4")
    unknown = outcome("lib::op.y", Reason.STILL_READ, 8)
    found = all_in_place([graph(*[layer] * 9, other, layer, unknown, unknown)])
    said, hint = Reason.STILL_READ.sentence, f"    hint: {Reason.STILL_READ.hint}"
    assert str(found).splitlines()[1:] == [
        f"  10 times: lib::op.y at model.py:3: 40.0 KiB (40960 B) together, {said}",
        hint,
        f"  lib::op.y at model.py:4: 4.0 KiB (4096 B), {said}",
        hint,
        *[f"  lib::op.y: 8 B, {said}", hint] * 2,  # nobody knows whether they are of one line
    ]


def test_a_list_to_paste_is_of_all_graphs() -> None:
    def needed(label: str) -> Outcome:
        return outcome(label, Reason.STILL_READ, hint=f"if that is meant, {listing([label])}")

    first = needed("lib::op.y")
    graphs = [
        graph(first, dataclasses.replace(outcome("lib::copy_.x", Reason.FOLLOWS), follows=first.named)),
        graph(needed("a.b")),
    ]
    graphs.append(graph(outcome("lib::op.z", Reason.MISSED)))
    text = str(all_in_place(graphs))
    line = "list it: assert_clones == ['a.b', 'lib::copy_.x', 'lib::op.y']"
    assert text.count(f"{line}  # without the other clone\n") == 2
    assert str(all_in_place(graphs[:2])).count(line) == str(all_in_place(graphs[:2])).count("list it") == 2
    assert "without" not in str(all_in_place(graphs[:2]))


def test_clones_that_are_left_out_are_counted_one_by_one() -> None:
    many = [outcome(f"lib::op.a{i}", Reason.MISSED, source="model.py:3") for i in range(12)]
    assert str(all_in_place([graph(*many, many[-1])])).splitlines()[-1] == "  and 3 more clones"


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB (1536 B)"), (1 << 30, "1.0 GiB (1073741824 B)")],
)
def test_bytes(count: int, text: str) -> None:
    assert wording.bytes_of(count) == text


def test_a_clone_without_blockers_or_hint_is_one_line() -> None:
    assert wording.clone_lines(outcome("a.b", Reason.CHEAPER)) == [
        "a.b: 8 B, another copy was kept instead, because that one is smaller"
    ]

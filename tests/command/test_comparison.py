"""Two reports beside each other."""

from __future__ import annotations

import json
import re
from typing import Any

from pytest_reinplace.base.markdown_cell import unmarked
from pytest_reinplace.compare.comparison import Comparison, compare
from pytest_reinplace.compare.comparison_json import as_json
from pytest_reinplace.compare.comparison_text import markdown, text
from pytest_reinplace.compare.figure import change
from pytest_reinplace.compare.limit import exact, limit
from pytest_reinplace.measure.gate import Ruling
from pytest_reinplace.measure.result import Result
from pytest_reinplace.record.stored import Stored, parse

from ..measure.measurements import measurement
from .reports import clone, graph, in_place, report, stored, test

HELP = "; held back by sum_1 (aten::sum) at m.py:4; hint: read it before"


def compared(old: dict[str, object], new: dict[str, object], *limits: str) -> Comparison:
    return compare(stored(old, "old"), stored(new, "new"), [limit(text) for text in limits])


def excesses(found: Comparison) -> list[str]:
    return [excess for row in found.rows for excess in row.excesses]


def test_one_more_clone_is_over_the_limit() -> None:
    found = compared({"a": test(clone(10))}, {"a": test(clone(10), clone(5))}, "clones:0", "clone_bytes:0")
    assert excesses(found) == [
        "clones 1 → 2, +1, +100.0 %; allowed is clones:0",
        "clone bytes 10 B → 15 B, +5 B, +50.0 %; allowed is clone_bytes:0",
    ]
    assert not found.passed


def test_an_unchanged_test_and_a_better_one_are_not() -> None:
    old = {"a": test(clone(10)), "b": test(clone(10))}
    found = compared(old, {"a": test(clone(10)), "b": test(in_place(10))}, "clones:0", "clone_bytes:0")
    assert found.passed
    assert [row.improved for row in found.rows] == [[], ["clones", "clone_bytes"]]
    assert [row.changed for row in found.rows] == [[], ["clones", "clone_bytes"]]


def test_each_limit_is_said_to_be_held_or_exceeded() -> None:
    old, limits = {"a": test(clone(10)), "gone": test(clone(1))}, ("clones:0", "clone_bytes:1KiB")
    found = compared(old, {"a": test(clone(10), clone(5))}, *limits, "removed_tests:0", "new_clones:1")
    assert found.bounds == {
        "clones:0": "exceeded",
        "clone_bytes:1KiB": "held",
        "removed_tests:0": "exceeded",
        "new_clones:1": "held",
    }
    assert [row.exceeded for row in found.rows] == [("clones:0",)]
    assert compared(old, {"a": test(clone(1))}, "peak_bytes:1%").bounds == {"peak_bytes:1%": "not compared"}
    assert compared(old, {"b": test()}, "new_clones:0").bounds == {"new_clones:0": "not compared"}
    unjudged = compared({"a": test(clone())}, {"a": test()}, "clones:0")
    assert not unjudged.passed and unjudged.bounds == {"clones:0": "not judged everywhere"}


def made_by(*outcomes: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {"outcome": "passed", "graphs": [graph(*outcomes, **changes)]}


def test_another_pass_backend_or_torch_is_remarked_on() -> None:
    old = {"a": made_by(clone()), "b": made_by(clone(), **{"pass": "exact"})}
    new = {"a": made_by(in_place(), **{"pass": "exact"}), "b": made_by(clone(), **{"pass": "exact"})}
    found = compared(old, new, "clones:0")
    (remark,) = found.remarks
    assert remark == (
        "compiled by inductor/graph before, by exact/graph now in 1 test: figures may differ for that alone"
    )
    assert found.passed and json.loads(as_json(found))["remarks"] == [remark]
    assert remark in list(text(found)) and unmarked(remark, 1000) in markdown(found)
    (remark,) = compared({"a": old["a"]}, {"a": made_by(clone(), backend="inductor")}).remarks
    assert remark.startswith("compiled by inductor/graph before, by inductor/inductor now: ")
    assert compared(old, old).remarks == compared({"a": test()}, {"b": test()}).remarks == ()


def test_another_torch_is_remarked_on_and_an_unknown_one_is_not() -> None:
    def of(torch: str | None) -> Stored:
        return parse(report(tests={"a": test(clone())}, versions={"torch": torch}), "x.json")

    (remark,) = compare(of("2.13.0"), of("2.15.0")).remarks
    assert remark == "torch 2.13.0 before, torch 2.15.0 now: figures may differ for that alone"
    assert compare(of(None), of("2.15.0")).remarks == compare(of("2.13.0"), of("2.13.0")).remarks == ()


def test_a_clone_and_what_follows_is_one_line_and_two_clones() -> None:
    cause = clone(node="op")
    named = {name: cause[name] for name in ("node", "label", "source")}
    back = clone(
        label="aten::copy_.self", reason="follows", node="copy_", blockers=[], hint="", follows=named
    )
    found = compared({"a": test()}, {"a": test(back, cause)}, "new_clones:0")
    (excess,) = excesses(found)
    assert "; from it follows aten::copy_.self: 32 B; allowed is new_clones:0" in excess
    assert markdown(found).count("from it follows") == 1 == markdown(found).count("\n- ")
    clones = json.loads(as_json(found))["tests"]["a"]["clones"]
    assert [one["new"]["follows"] for one in clones] == ["", f"{named['label']} at m.py:3"]


def test_without_limits_nothing_is_exceeded() -> None:
    assert compared({"a": test(clone())}, {"a": test(clone(), clone())}).passed
    assert compared({}, {}).passed


def test_new_and_removed_tests_are_named_and_not_held() -> None:
    found = compared(
        {"a": test(clone()), "gone": test()}, {"a": test(clone()), "new": test(clone())}, "clones:0"
    )
    assert (found.added, found.removed, found.passed) == (("new",), ("gone",), True)


def test_limits_that_nothing_was_held_against_are_exceeded() -> None:
    found = compared({"a": test(clone())}, {"b": test(clone())}, "clones:0")
    assert found.failures == ("no test is in both reports, so nothing was compared",)
    found = compared({"a": test(clone())}, {"a": test(clone())}, "clones:0", "peak_bytes:1%")
    assert found.failures == ("peak_bytes:1%: no compared test has peak_bytes in the old report",)
    assert compare(stored({"a": test(clone())}), stored({"a": test(clone())}), exact()).passed


def test_measured_figures_are_held_where_both_have_them() -> None:
    old, new = (
        {"a": test(peak_bytes=1000), "b": test()},
        {"a": test(peak_bytes=1011), "b": test(peak_bytes=9)},
    )
    assert excesses(compared(old, new, "peak_bytes:1%")) == [
        "peak bytes 1000 B → 1011 B, +11 B, +1.1 %; allowed is peak_bytes:1%"
    ]
    assert compared(old, new, "peak_bytes:2%").passed
    found = compared({"a": test(runtime=0.001)}, {"a": test(runtime=0.002)}, "runtime:5%")
    assert excesses(found) == []
    assert [line for row in found.rows for line in row.advice] == [
        "runtime 1 ms → 2 ms, +1 ms, +100.0 %, is over runtime:5%: no failure, for the two runs "
        "timed nothing side by side"
    ]


def test_a_figure_that_is_not_measured_any_more_is_over_its_limit() -> None:
    found = compared({"a": test(peak_bytes=1024)}, {"a": test()}, "peak_bytes:1%")
    assert excesses(found) == ["peak bytes 1.0 KiB before, not measured now (peak_bytes:1%)"]
    assert compared({"a": test(peak_bytes=1024)}, {"a": test()}, "clones:0").passed


def test_a_test_that_compiles_nothing_any_more_is_no_improvement() -> None:
    found = compared({"a": test(clone())}, {"a": test(graphs=[])}, "clones:0")
    assert excesses(found) == ["1 graph before, none was compiled now"]
    assert compared({"a": test(graphs=[])}, {"a": test(graphs=[])}, "clones:0").passed


def test_a_graph_that_cannot_be_judged_any_more_is_no_improvement() -> None:
    broken = {"a": test(graphs=[graph(problem="no map")])}
    assert excesses(compared({"a": test(clone())}, broken, "clones:0")) == [
        "graph [fw 0/0] could not be judged: no map"
    ]
    assert compared(broken, broken, "clones:0").passed


def test_a_failed_test_is_remarked_and_not_stale() -> None:
    found = compared({"a": test(clone())}, {"a": test(in_place(), outcome="failed")}, "clones:0")
    assert [row.remarks for row in found.rows] == [("passed before, failed now",)]
    assert not any(row.improved for row in found.rows)
    assert found.passed


def test_a_test_that_exercises_the_pass_no_more_is_no_improvement() -> None:
    text = "2 candidates before, none now: the pass is not exercised any more; if that is meant, make the old"
    old = {"a": test(clone(), in_place()), "b": test(in_place())}
    found = compared(old, {"a": test(), "b": test(in_place())}, "clones:0")
    assert excesses(found) == [f"{text} report anew"]
    assert [row.improved for row in found.rows] == [[], []]
    assert [row.clones for row in found.rows] == [(), ()]
    (row, _) = compared(old, {"a": test(), "b": test(in_place())}).rows
    assert (row.excesses, row.remarks) == ((), (f"{text} report anew",))
    assert compared({"a": test()}, {"a": test()}, "clones:0", "clone_bytes:0").passed


def test_removed_tests_are_over_their_own_limit() -> None:
    """Only those that had candidates: of the others nothing was known."""
    old = {"a": test(clone()), "b": test(in_place()), "c": test(clone()), "plain": test(graphs=[])}
    names = "2 removed tests with candidates: b, c; allowed is removed_tests:1. "
    found = compared(old, {"a": test(clone())}, "clones:0", "removed_tests:1")
    (text,) = found.failures
    assert text.startswith(names) and not found.passed
    assert compared(old, {"a": test(clone())}, "removed_tests:2").passed
    assert compared(old, old, "removed_tests:0").passed
    many = {f"t{i}": test(clone()) for i in range(7)}
    (text,) = compared({**old, **many}, old, "removed_tests:0").failures
    assert text.startswith("7 removed tests with candidates: t0, t1, t2, t3, t4 and 2 more; ")


def test_a_clone_that_hides_behind_another_is_over_the_limit() -> None:
    old = test(clone(label="lib::update.k", source="m.py:3"))
    new = test(clone(label="lib::update.v", source="m.py:4"))
    found = compared({"a": old}, {"a": new}, "clones:0", "new_clones:0", "clone_bytes:0")
    assert excesses(found) == [
        "the clone moved from lib::update.k at m.py:3 to lib::update.v at m.py:4: 32 B, the old value is "
        "still read after this write; allowed is new_clones:0" + HELP
    ]
    assert compared({"a": old}, {"a": new}, "clones:0", "clone_bytes:0", "new_clones:1").passed
    assert compared({"a": old}, {"a": old}, "new_clones:0").passed
    assert not compare(stored({"a": old}), stored({"a": new}), exact()).passed


def test_more_new_clones_than_are_allowed_are_told_each() -> None:
    new = {"a": test(*(clone(8, source=f"m.py:{line}") for line in (3, 9, 9)))}
    found = compared({"a": test(clone(8))}, new, "new_clones:1")
    assert excesses(found) == [
        "new clone aten::index_put.self at m.py:9: 8 B, the old value is still read after this write, "
        "2 times: 16 B together; allowed is new_clones:1" + HELP
    ]
    assert compared({"a": test(clone(8))}, new, "new_clones:2").passed


def test_a_clone_on_another_line_is_no_change_and_one_for_another_reason_fails_nothing() -> None:
    old = {"a": test(clone(source="m.py:3"))}
    found = compared(old, {"a": test(clone(source="m.py:30"))}, "new_clones:0")
    assert (found.passed, found.rows[0].clones) == (True, ())
    found = compared(old, {"a": test(clone(source="m.py:30", reason="layout"))}, "new_clones:0")
    assert (found.passed, [one.kind for one in found.rows[0].clones]) == (True, ["reason"])


def test_an_old_report_whose_outcomes_lack_fields_is_compared() -> None:
    lacking = {key: clone()[key] for key in ("label", "op", "arg", "node", "reinplaced", "nbytes")}
    assert compared({"a": test(lacking)}, {"a": test(clone())}, "new_clones:0").rows[0].clones == ()
    (found,) = compared({"a": test(lacking)}, {"a": test(clone(), clone(8))}, "new_clones:0").rows
    assert [(one.kind, one.shown.nbytes) for one in found.clones] == [("new", 8)]


def test_what_was_not_seen_is_neither_gone_nor_an_improvement() -> None:
    old = {"a": test(clone())}
    for new in (test(graphs=[]), test(graphs=[graph(problem="no map")])):
        for limits in ([], ["new_clones:0"]):
            (row,) = compared(old, {"a": new}, *limits).rows
            assert (row.clones, row.improved, len(row.excesses)) == ((), [], len(limits))
    (row,) = compared(old, {"a": test(graphs=[])}).rows
    assert row.remarks == ("1 graph before, none was compiled now",)


def test_what_is_over_a_limit_is_not_told_as_improved() -> None:
    new = {"a": test(clone(8), peak_bytes=2)}
    found = compared({"a": test(clone(), peak_bytes=1)}, new, "peak_bytes:0")
    assert [row.improved for row in found.rows] == [[]]


def test_totals_count_what_both_have() -> None:
    found = compared(
        {"a": test(peak_bytes=4), "b": test()}, {"a": test(peak_bytes=6), "b": test(peak_bytes=9)}
    )
    assert found.total("peak_bytes") == (4, 6)
    assert found.metrics == ["clones", "clone_bytes", "peak_bytes"]


def test_a_change_is_exact_where_rounding_hides_it() -> None:
    assert change("clone_bytes", 1 << 20, (1 << 20) + 1) == "1048576 B → 1048577 B"
    assert change("clone_bytes", 1 << 20, 1 << 21) == "1.0 MiB → 2.0 MiB"
    assert change("clones", 2, 2) == "2"
    assert change("peak_bytes", None, 5) == "- → 5 B"
    assert change("runtime", 0.00100001, 0.00100002) == "0.00100001 s → 0.00100002 s"


def timed(runtime: float, seed: int = 0) -> dict[str, Any]:
    """Return a test whose sides were interleaved; Inductor's takes a millisecond."""
    found = Result(measurement(runtime, seed=seed), Ruling(), True).to_dict()
    return test(runtime=runtime, peak_bytes=1, measured=found)


def test_runtimes_beside_inductor_are_judged() -> None:
    old = {"a": timed(1e-3)}
    assert excesses(compared(old, {"a": timed(1.01e-3, 1)}, "runtime:5%")) == []
    (line,) = excesses(compared(old, {"a": timed(1.2e-3, 1)}, "runtime:5%"))
    assert re.match(
        r"runtime (0.99|1.00)\d → 1.(19|20)\d times that of inductor's pass in the same run", line
    )


def test_what_was_measured_before_and_is_not_now_is_over_the_limit() -> None:
    assert excesses(compared({"a": timed(1e-3)}, {"a": test()}, "runtime:5%")) != []

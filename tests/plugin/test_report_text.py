"""What the terminal shows of a report: by its width, by ``-v``, with colours and without."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pytest_reinplace.base.fit import columns
from pytest_reinplace.reports import text
from pytest_reinplace.reports.clone import clones_of
from pytest_reinplace.reports.groups import groups_of

from .documents import HOSTILE, blocker, graph, hostile, in_place, outcome, report

REPORTS = Path(__file__).parents[2] / "docs/reports.md"
CACHE = "serving/attention/paged_cache.py:123"
LAYERS = [outcome(node=f"index_put_{i}", nbytes=2048, blockers=[blocker(f"sum_{i}")]) for i in range(10)]
OVERLAP = {"reason": "unknown-overlap", "blockers": [], "hint": "slice with static sizes"}
KEYS = outcome("mylib::kv_update_.k_cache", nbytes=20480, source=CACHE, **OVERLAP)
GRAPHS = {
    "test_model.py::test_decode[llama-paged-attention]": [graph(*LAYERS, in_place(), KEYS)],
    "test_model.py::test_layer": [graph(*LAYERS[:2])],
    "test_other.py::test_write": [graph(in_place(), suspicious=["my::set.out"])],
    "test_other.py::test_view": [graph(problem="the node view_3 has no meta")],
}
AT_140 = """
test_other.py::test_write: [fw 0/0] may be miscompiled: my::set.out in place although our analysis forbids it
test_other.py::test_view: [fw 0/0] could not be judged: the node view_3 has no meta

     bytes  count  candidate                  reason           where                                 tests
  24.0 KiB    12x  aten::index_put.self       still-read       model.py:7                                2
      the old value is still read after this write; held back by sum_0 (aten::sum) at model.py:9
      hint: read the old value before the write
  20.0 KiB     1x  mylib::kv_update_.k_cache  unknown-overlap  serving/attention/paged_cache.py:123      1
      whether two symbolic regions overlap cannot be decided
      hint: slice with static sizes

reinplace: 4 tests, 4 graphs, 15 candidates, 2 in place, 13 cloned, 44.0 KiB (45056 B)
"""
TESTS_AT_80 = """
  test                            graphs  candidates  in place  cloned     bytes
  test_deco…ama-paged-attention]       1          12         1      11  40.0 KiB
  test_model.py::test_layer            1           2         0       2   4.0 KiB
  test_other.py::test_view             1           0         0       0       0 B
  test_other.py::test_write            1           1         1       0       0 B
"""
# The tests of a run that made them, without compiling anything.
TEST = """
import json, pytest

GRAPHS = {graphs!r}

@pytest.fixture
def record(request):
    found = GRAPHS[request.node.nodeid]
    request.node.user_properties.append(("reinplace", json.dumps(found)))

@pytest.mark.usefixtures("record")
@pytest.mark.parametrize("_", ["llama-paged-attention"])
def test_decode(_): ...
@pytest.mark.usefixtures("record")
def test_layer(): ...
@pytest.mark.usefixtures("record")
def test_write(): ...
@pytest.mark.usefixtures("record")
def test_view(): ...
"""


def sample() -> str:
    """Return the section at 80 columns that the page of reports shows, without its heading."""
    (block,) = re.findall(r"^```text\n=+ reinplace =+\n(.*?)```$", REPORTS.read_text(), re.M | re.S)
    return str(block)


def made(graphs: dict[str, list[dict[str, Any]]] = GRAPHS) -> dict[str, Any]:
    document = report(graphs)
    document["reasons"]["unknown-overlap"] = "whether two symbolic regions overlap cannot be decided"
    return document


def lines(document: dict[str, Any], width: int = 80, verbosity: int = 0) -> list[str]:
    found = text.section(document, width, verbosity)
    return ["".join(part.text for part in line) for line in found.lines]


def printed(pytester: pytest.Pytester, *args: str, xdist: bool = False) -> str:
    """Return the section of a run, without its heading."""
    for file in ("test_model.py", "test_other.py"):
        graphs = {nodeid: found for nodeid, found in GRAPHS.items() if nodeid.startswith(file)}
        names = "decode|layer" if file == "test_model.py" else "write|view"
        head, *tests = TEST.format(graphs=graphs).split("@pytest.mark.usefixtures")
        kept = [one for one in tests if re.search(f"def test_({names})", one)]
        (pytester.path / file).write_text("@pytest.mark.usefixtures".join([head, *kept]))
    run = pytester.runpytest_subprocess if xdist else pytester.runpytest_inprocess
    result = run("--reinplace-report", "-pno:hypothesispytest", *args)
    result.assert_outcomes(passed=4)
    begin = next(i for i, line in enumerate(result.outlines) if " reinplace =" in line)
    end = next(i for i, line in enumerate(result.outlines) if "4 passed" in line)
    return "\n".join(result.outlines[begin + 1 : end]).rstrip() + "\n"


def plain(coloured: str) -> str:
    return re.sub(r"\x1b\[[\d;]*m", "", coloured)


@pytest.fixture(autouse=True)
def _width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_a_run_prints_what_the_page_of_reports_shows(pytester: pytest.Pytester) -> None:
    shown = printed(pytester)
    assert shown == sample()
    assert all(columns(line) <= 80 for line in shown.splitlines())


def test_a_wide_terminal_shows_whole_names(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    assert printed(pytester).replace("\N{MULTIPLICATION SIGN}", "x") == AT_140.lstrip()


def test_colours_change_no_letter(pytester: pytest.Pytester) -> None:
    coloured = printed(pytester, "--color=yes")
    assert plain(coloured) == sample()
    first, second, _, head, row = coloured.splitlines()[:5]
    assert first.startswith(("\x1b[31m\x1b[1m", "\x1b[1m\x1b[31m"))
    assert second.startswith("\x1b[33m")
    assert head.startswith("\x1b[1m  ")
    assert "\x1b[33m" in row
    assert "\x1b[36mmodel.py:7" in row
    assert coloured.splitlines()[5].startswith("\x1b[2m")


def test_two_workers_print_the_same(pytester: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    assert printed(pytester, "-n2", xdist=True) == sample()


def test_verbose_shows_each_test_and_whole_sentences(pytester: pytest.Pytester) -> None:
    shown = printed(pytester, "-v")
    assert TESTS_AT_80 in shown
    assert " ".join(shown.split()).startswith(
        "test_other.py::test_write: [fw 0/0] may be miscompiled: my::set.out in place although our "
        "analysis forbids it test_other.py::test_view: "
    )
    assert "- " not in shown


def test_more_verbose_shows_each_clone_with_whole_names(pytester: pytest.Pytester) -> None:
    shown = printed(pytester, "-vv")
    assert "\n  test_model.py::test_decode[llama-paged-attention]       1 " in shown
    assert shown.count("      - ") == 13
    whole = " ".join(shown.split())
    test = "test_model.py::test_decode[llama-paged-attention] [fw 0/0]"
    assert f"- 20.0 KiB (20480 B): mylib::kv_update_.k_cache, node index_put at {CACHE}, in {test}" in whole
    assert f"node index_put_9 at model.py:7, in {test}; held back by sum_9 (aten::sum) at model.py:9" in whole


@pytest.mark.parametrize(
    ("graphs", "line"),
    [
        ([graph(in_place(), in_place())], "reinplace: 1 test, 1 graph, 2 candidates, all in place"),
        ([graph(in_place()), graph()], "reinplace: 1 test, 2 graphs, 1 candidate, in place"),
        ([graph()], "reinplace: 1 test, 1 graph, 0 candidates"),
    ],
)
def test_where_all_is_fine_one_line_says_it(graphs: list[dict[str, Any]], line: str) -> None:
    found = text.section(report({"t.py::t": graphs}))
    assert (found.title, found.lines) == ("", ([text.Part(line, ("green",))],))
    verbose = text.section(report({"t.py::t": graphs}), verbosity=1)
    assert verbose.title == "reinplace"
    assert lines(report({"t.py::t": graphs}), verbosity=1)[1].startswith("  t.py::t ")


def test_a_run_where_all_is_fine_prints_no_heading(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        f"""
        import json

        def test_it(request):
            request.node.user_properties.append(("reinplace", json.dumps({[graph(in_place())]!r})))
        """
    )
    result = pytester.runpytest_inprocess("--reinplace-report", "-pno:hypothesispytest")
    assert [x for x in result.outlines if x.startswith("reinplace: ")] == [
        "reinplace: 1 test, 1 graph, 1 candidate, in place"
    ]
    result.stdout.no_fnmatch_line("*= reinplace =*")


def test_what_could_not_be_judged_is_no_fine_run_even_without_a_clone() -> None:
    found = lines(report({"t.py::t": [graph(in_place(), problem="odd")]}))
    assert found == [
        "t.py::t: [fw 0/0] could not be judged: odd",
        "",
        "reinplace: 1 test, 1 graph, 1 candidate, 1 in place",
    ]


def test_a_graph_that_the_verifier_found_wrong_is_told_whatever_our_analysis_says() -> None:
    wrong = {"status": "different", "text": "output 0 differs", "node": "mul (aten::mul)", "source": "m.py:9"}
    wrong |= {"stage": "reinplace", "pass": ""}
    unknown = {"status": "not-checked", "text": "an effect", "node": "", "source": None, "stage": ""}
    document = report({"t.py::t": [graph(in_place(), verified=wrong), graph(in_place(), verified=unknown)]})
    first, *rest = lines(document)
    assert first == "t.py::t: [fw 0/0] is miscompiled: on its first call output 0 differs"
    assert not any("not checked" in line for line in rest)  # the verifier's own section tells that
    assert "at m.py:9; wrong since Inductor's stage reinplace" in " ".join(
        line.strip() for line in lines(document, verbosity=1)
    )


def test_ten_groups_and_ten_remarks_are_shown_and_the_rest_is_summed() -> None:
    document = report(
        {
            f"t.py::t{i:02}": [graph(outcome(source=f"m.py:{i}", nbytes=i), problem="odd")]
            for i in range(1, 13)
        }
    )
    found = lines(document)
    assert found.count("and 2 more; -v shows them") == 1
    assert sum("could not be judged" in line for line in found) == 10
    rows = [line for line in found if " m.py:" in line and "still-read" in line]
    assert [line.split()[0] for line in rows] == [str(i) for i in range(12, 2, -1)]
    assert "    3 B     2\N{MULTIPLICATION SIGN}  in 2 more groups; -v shows all" in found
    verbose = lines(document, verbosity=1)
    assert sum(" m.py:" in line and "still-read" in line for line in verbose) == 12
    assert not any("more" in line for line in verbose)


def test_a_group_is_a_line_and_a_reason_and_those_of_most_bytes_together_come_first() -> None:
    graphs = [
        graph(*(outcome(f"aten::copy_.{i}", nbytes=10, source="m.py:1") for i in range(4))),
        graph(outcome(nbytes=30, source="m.py:2"), outcome(nbytes=5, source="m.py:1", reason="missed")),
    ]
    found = groups_of(clones_of(report({"t.py::a": graphs, "t.py::b": graphs[:1]})))
    told = [(g.where, g.reason, g.nbytes, len(g.clones), g.labels[0], len(g.tests)) for g in found]
    assert told == [
        ("m.py:1", "still-read", 80, 8, "aten::copy_.0", 2),
        ("m.py:2", "still-read", 30, 1, "aten::index_put.self", 1),
        ("m.py:1", "missed", 5, 1, "aten::index_put.self", 1),
    ]
    assert any("aten::copy_.0 +3 " in line for line in lines(report({"t.py::a": graphs})))


def follower(cause: dict[str, Any], **given: Any) -> dict[str, Any]:
    named = {name: cause[name] for name in ("node", "label", "source")}
    return outcome("aten::copy_.self", reason="follows", blockers=[], hint="", follows=named, **given)


def test_what_follows_from_a_clone_is_in_its_group_and_in_no_other() -> None:
    k, v = (outcome(f"op_.{name}", node=f"op_{name}", source=f"m.py:{i}") for i, name in enumerate("kv"))
    clones = [follower(k, nbytes=40, source="m.py:9"), follower(v, source="m.py:9"), k, v]
    found = groups_of(clones_of(report({"t.py::t": [graph(*clones)]})))
    assert [(g.where, g.labels, g.nbytes) for g in found] == [
        ("m.py:0", ["op_.k", "aten::copy_.self"], 72),
        ("m.py:1", ["op_.v", "aten::copy_.self"], 64),
    ]
    assert found[0].sentence.endswith("this write; from it follows aten::copy_.self, 40 B")
    assert found[0].hint == k["hint"]


def test_what_follows_from_clones_of_other_graphs_is_told_by_its_cause() -> None:
    k, v = (outcome(f"op_.{name}", node=f"op_{name}") for name in "kv")
    found = groups_of(clones_of(report({"t.py::t": [graph(k, v), graph(follower(k), follower(v))]})))
    assert [g.sentence for g in found if g.reason == "follows"] == [
        f"follows from the clone of op_.{name} at model.py:7" for name in "kv"
    ]


def test_a_whole_copy_of_what_is_in_place_names_that() -> None:
    named = {"node": "write", "label": "mylib::write.out", "source": "m.py:3"}
    (found,) = groups_of(clones_of(report({"t.py::t": [graph(outcome(copies=named))]})))
    told = "it copies the whole tensor that mylib::write.out at m.py:3 writes in place"
    assert found.sentence.endswith(f"; {told}")
    said = " ".join(lines(report({"t.py::t": [graph(outcome(copies=named))]})))
    assert told in re.sub(r"\s+", " ", said)


def test_without_a_line_the_clones_of_two_tests_are_two_groups() -> None:
    one = [graph(outcome(source=None, reason=None)), graph(outcome(source=None, reason=None))]
    found = groups_of(clones_of(report({"t.py::a": one, "t.py::b": one})))
    assert [(g.where, g.reason, len(g.clones), g.tests) for g in found] == [
        ("index_put", "unknown", 2, ["t.py::a"]),
        ("index_put", "unknown", 2, ["t.py::b"]),
    ]


def test_what_holds_a_group_back_is_told_once_for_each_line() -> None:
    clones = [
        outcome(blockers=[blocker(f"sum_{i}"), blocker(f"mul_{i}", f"m.py:{i % 4}"), blocker("x", None)])
        for i in range(8)
    ]
    (found,) = groups_of(clones_of(report({"t.py::t": [graph(*clones)]})))
    assert found.blockers == (
        "sum_0 (aten::sum) at model.py:9, mul_0 (aten::sum) at m.py:0, x (aten::sum) and 3 more"
    )


@pytest.mark.parametrize("width", [64, 80, 140])
@pytest.mark.parametrize("verbosity", [0, 1])
def test_names_that_mean_harm_are_escaped_and_fit(width: int, verbosity: int) -> None:
    found = lines(hostile(), width, verbosity)
    assert all(line.isprintable() for line in found)
    assert max(map(columns, found)) <= width
    assert not any(json.dumps(name) in line for line in found for name in HOSTILE if "\x1b" in name)

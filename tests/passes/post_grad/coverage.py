"""How often Inductor's post-grad rules fire, and what ours do there: written to docs/post-grad-coverage.md.

``pytest -s tests/passes/post_grad/coverage.py``; ``COVERAGE_GRAPHS`` random graphs, ``COVERAGE_CORPUS`` a
pattern for the names of corpus entries. Each place where a rule of Inductor fires is checked by itself, and
ours is run on the graph as it was there.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import os
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx

from pytest_reinplace.call.ledgers import follow
from pytest_reinplace.entry.entry import load
from pytest_reinplace.entry.run import built, configured, importable, plainly
from pytest_reinplace.passes import ReinplaceError, post_grad
from pytest_reinplace.passes.fuzz.calls import Program, inputs
from pytest_reinplace.passes.fuzz.draws import Draws
from pytest_reinplace.passes.ledger import Application, Ledger, recorded
from pytest_reinplace.passes.ops.identities import handed_on
from pytest_reinplace.passes.post_grad.no_ops import folded
from pytest_reinplace.passes.verify import Finding, check, copied
from pytest_reinplace.passes.verify.equivalence import effects

from ...house.checkout import ROOT
from ..trace import arange, functional
from . import test_cat_of_cat, test_cat_of_split, test_cumsum, test_neutral, test_split_of_cat

COUNT = int(os.environ.get("COVERAGE_GRAPHS", "200"))
ROUNDED = "rounded"
CORPUS = os.environ.get("COVERAGE_CORPUS", "*")
PAGE = ROOT / "docs" / "post-grad-coverage.md"
OURS = {
    "splitwithsizes_cat_replace": "cat_of_split",
    "cat_splitwithsizes_replace": "split_of_cat",
    "cat_slice_cat": "cat_of_cat",
    "pointless_cumsum_replacement": "cumsum",
    "remove_noop_ops": "no_ops",
    "constant_fold_uniform_value": "neutral",
    "remove_assert_ops": "asserts",
}
# What brings nothing of its own, or is what the plugin judges otherwise.
_OTHERS = ("(between passes)", "reinplace_inplaceable_ops", "decompose_", "incremental_update")
# Which nodes of a pass without rules are its places.
_IS_PLACE: Mapping[str, Callable[[Any], Any]] = {
    "no_ops": handed_on,
    "neutral": folded,
    "asserts": lambda node: node.target is torch.ops.aten._assert_tensor_metadata.default,
}
_HEAD = """
# Coverage of the post-grad rules

Made by `pytest -s tests/passes/post_grad/coverage.py` with torch {version} on a CPU.
Graphs: {told}.

A *place* is a node where a rule of Inductor fires, in a run without ours. Each is checked by itself. *Sound*:
the graph still does the same, bit by bit. *Rounded*: numbers are some roundings apart. *Unsound*: it does
something else, or the rule raises. Then our rule is run on the graph as it was in front of that place. At an
unsound place ours may still rewrite: to a copy, or a conversion. *Wrong* are rewrites of ours, at any place.

| Inductor's rule | places {sources} | sound | rounded | unsound | not checked | ours | {ours} |
|---|---|---|---|---|---|---|---|---|---|---|
"""
_SOURCES = "(tests, corpus, random)"
_OURS = "at sound ones | at rounded ones | at unsound ones | wrong"
# A name of the source, the ledger of a graph, what it is called with, the outputs that are made anew.
Graph = tuple[str, Ledger, Sequence[Any] | None, frozenset[int]]


@dataclasses.dataclass
class Row:
    """What is known of one rule."""

    fired: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    judged: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    ours: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    left: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    wrong: int = 0


def add(rows: dict[str, Row], graph: Graph) -> None:
    """Add all places of a graph."""
    source, ledger, given, regenerated = graph
    judge = functools.partial(_checked, given=given, regenerated=regenerated)
    for application in ledger.applications:
        name = application.rule or application.pass_name.rpartition("/")[2]
        if name.startswith(_OTHERS):
            continue
        before = ledger.graph_before(application.number)
        after = ledger.graph_after(application.number)
        ours = OURS.get(name, "")
        places = _places(application, before, after, _IS_PLACE.get(ours))
        if not places:
            continue
        row = rows.setdefault(name, Row())
        found = judge(before, after)
        judged: dict[str, str] = dict.fromkeys(places, found.status)
        if len(places) > 1 and found.is_different:
            judged = _one_by_one(before, places, judge)
        row.fired[source] += len(places)
        row.judged.update(judged.values())
        if ours:
            _compare(row, ours, before, judged, judge)
    if ledger.crash is not None and " at " in ledger.crash.rule:
        name, _, place = ledger.crash.rule.rpartition(" at ")
        row = rows.setdefault(name, Row())
        row.fired[source] += 1
        row.judged["different"] += 1
        if name in OURS:
            before = ledger.graph_before(len(ledger.applications))
            _compare(row, OURS[name], before, {place: "different"}, judge)


def _compare(
    row: Row, ours: str, before: GraphModule, judged: Mapping[str, str], judge: Callable[..., Finding]
) -> None:
    """Note what our rule does at places of Inductor's."""
    mine = copied(before)
    applied = post_grad.find(ours).apply(mine)
    row.wrong += judge(before, mine).is_different
    why = {refusal.node.name: refusal.reason for refusal in applied.refused}
    for place, status in judged.items():
        row.ours[status] += place in applied.rewritten
        if place not in applied.rewritten and status == "same":
            row.left[why.get(place, "not one of its places")] += 1


def _places(
    application: Application, before: GraphModule, after: GraphModule, is_place: Callable[[Any], Any] | None
) -> list[str]:
    if application.rule or is_place is None:
        return [application.node]
    left = {node.name for node in after.graph.nodes}
    gone = [n for n in before.graph.nodes if n.op == "call_function" and n.name not in left]
    return [node.name for node in gone if is_place(node)]


def _one_by_one(before: GraphModule, places: Sequence[str], judge: Callable[..., Finding]) -> dict[str, str]:
    """Return for each no-op whether it may go, when those before it that may are gone."""
    found, base = {}, before
    for place in places:
        trial = copied(base)
        node = next(n for n in trial.graph.nodes if n.name == place)
        operand = handed_on(node) or folded(node)
        node.replace_all_uses_with(operand)
        trial.graph.erase_node(node)
        trial.recompile()
        found[place] = judge(before, trial).status
        base = trial if found[place] == "same" else base
    return found


def _checked(
    before: GraphModule, after: GraphModule, *, given: Sequence[Any] | None, regenerated: frozenset[int]
) -> Finding:
    if given is None:
        return Finding.unchecked("the graph is not called")
    found = check(before, after, given, regenerated=regenerated)
    return Finding(ROUNDED) if found.status == "same" and _is_rounded(before, after, given) else found


def _is_rounded(before: GraphModule, after: GraphModule, given: Sequence[Any]) -> bool:
    """Return whether two graphs that do the same differ in some bits."""
    try:
        one, two = (effects(gm, list(given)) for gm in (before, after))
    except ReinplaceError:
        return False
    pairs = zip(one.outputs, two.outputs, strict=True)
    return any(
        isinstance(x, torch.Tensor) and not torch.equal(x.nan_to_num(nan=7.25), y.nan_to_num(nan=7.25))
        for (_, x), (_, y) in pairs
    )


def of_inductor(source: str, gm: GraphModule, given: Sequence[Any]) -> Graph:
    """Return what Inductor's two stages do to a graph."""
    ledger, error = recorded(gm, ["joint", "post_grad"])
    if error is not None:
        print(f"{source}: {type(error).__name__}: {str(error)[:100]}")
    return source, ledger, given, frozenset()


def of_tests() -> Iterator[Graph]:
    """Yield the programs that tests of our rules are made of."""
    two = arange(2, 2), arange(2, 3)
    a, b, c = test_cat_of_split, test_split_of_cat, test_cat_of_cat
    rejoined = (
        a.returned,
        a.read,
        a.then_written,
        a.read_before_it_is_written,
        a.two_outputs,
        a.even,
        a.turned,
    )
    cases: list[tuple[Any, ...]] = [(fn, arange(2, 5)) for fn in (*rejoined, a.negative, a.other_order)]
    cases += [
        (fn, *two) for fn in (b.read, b.viewed, b.negative, b.stored, b.returned, b.strided, b.cut_elsewhere)
    ]
    cases += [(b.read, x.to(d), y) for d in (torch.half, torch.int32) for x, y in (two,)]
    cases += [(fn, arange(2, 3), arange(2, 2)) for fn in (c.first_part, c.negative, c.beyond)]
    cases += [(fn, arange(3)) for fn in (*test_cumsum.COUNTED, *(fn for fn, _ in test_cumsum.LEFT))]
    neutral = *test_neutral.FOLDED, *(fn for fn, _ in test_neutral.LEFT), test_neutral.a_number
    cases += [(fn, test_neutral.signed()) for fn in neutral]
    for fn, *args in cases:
        for dynamic in (False, True):
            yield of_inductor("tests", *functional(fn, *args, dynamic=dynamic))


def of_random() -> Iterator[Graph]:
    """Yield random programs, with their writes made functional."""
    for seed in range(COUNT):
        mode = "symbolic" if seed % 3 == 2 else "fake"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = torch.func.functionalize(Program(Draws.seeded(seed)).run)
            try:
                gm = make_fx(run, tracing_mode=mode)(*inputs())
            except (RuntimeError, NotImplementedError):
                continue  # it writes what functionalization cannot
        yield of_inductor("random", gm, inputs())


def of_corpus() -> Iterator[Graph]:
    """Yield the graphs of corpus entries on their CPU presets."""
    for path in sorted((ROOT / "corpus").glob(f"{CORPUS}.reinplace.yaml")):
        entry = load(path)
        preset = next((one for one in entry.presets.values() if one.device == "cpu"), None)
        if preset is None:
            continue
        try:
            yield from _of_entry(path, entry, preset)
        except Exception:  # noqa: BLE001  (an entry that cannot run here)
            print(f"{path.name}: {traceback.format_exc(limit=1)}")


def _of_entry(path: Path, entry: Any, preset: Any) -> Iterator[Graph]:
    with importable(path.parent, ROOT), built(entry, preset) as program, configured(entry):
        fn = functools.partial(plainly, program.fn, program, entry)
        found, error = follow(fn, (), {}, "inductor", ROOT, dynamic=entry.dynamic or None)
    if error is not None:
        print(f"{path.name}: {type(error).__name__}: {str(error)[:100]}")
    for one in found:
        yield "corpus", one.ledger, one.inputs, one.regenerated


def page(rows: Mapping[str, Row], graphs: Mapping[str, int]) -> str:
    """Return the page."""
    told = ", ".join(f"{count} of {source}" for source, count in graphs.items())
    head = (
        _HEAD.format(version=torch.__version__.partition("+")[0], told=told, ours=_OURS, sources=_SOURCES)
        .strip()
        .splitlines()
    )
    return "\n".join([*head, *(_line(name, row) for name, row in _sorted(rows)), *_why(rows), ""])


def _sorted(rows: Mapping[str, Row]) -> list[tuple[str, Row]]:
    return sorted(rows.items(), key=lambda found: (found[0] not in OURS, found[0]))


def _line(name: str, row: Row) -> str:
    fired = [row.fired[source] for source in ("tests", "corpus", "random")]
    judged = [row.judged[status] for status in ("same", ROUNDED, "different", "not-checked")]
    cells: list[Any] = [f"`{name}`", f"{sum(fired)} ({', '.join(map(str, fired))})", *judged]
    if name in OURS:
        share = f"{row.ours['same']} ({100 * row.ours['same'] / judged[0]:.1f} %)" if judged[0] else "-"
        cells += [f"`{OURS[name]}`", share, row.ours[ROUNDED], row.ours["different"], row.wrong]
    else:
        cells += ["none", *"----"]
    return f"| {' | '.join(map(str, cells))} |"


def _why(rows: Mapping[str, Row]) -> Iterator[str]:
    yield "\nSound places that ours leaves:\n\n| rule | why | places |\n|---|---|---|"
    for name, row in _sorted(rows):
        for why, count in row.left.most_common():
            yield f"| `{OURS[name]}` | {why} | {count} |"


def test_write_the_page() -> None:
    rows: dict[str, Row] = {}
    graphs: collections.Counter[str] = collections.Counter({"tests": 0, "corpus": 0, "random": 0})
    for source in (of_tests(), of_random(), of_corpus()):
        for graph in source:
            add(rows, graph)
            graphs[graph[0]] += 1
    PAGE.write_text(page(rows, graphs))
    print(PAGE.read_text())
    assert not any(row.wrong for row in rows.values())

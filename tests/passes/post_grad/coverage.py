"""How often Inductor's post-grad rules fire, and what ours do there: written to docs/post-grad-coverage.md.

``pytest -s tests/passes/post_grad/coverage.py``; ``COVERAGE_GRAPHS`` random graphs of each kind,
``COVERAGE_CORPUS`` a pattern for the names of corpus entries. Each place where a rule of Inductor fires is
checked by itself, and ours is run on the graph as it was there.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node

from pytest_reinplace.passes import ReinplaceError, post_grad
from pytest_reinplace.passes.ledger import Application
from pytest_reinplace.passes.ops.identities import handed_on
from pytest_reinplace.passes.ops.wrapper_names import is_wrapper
from pytest_reinplace.passes.post_grad.no_ops import folded
from pytest_reinplace.passes.verify import Finding, copied

from ...house.checkout import ROOT
from .coverage_graphs import (
    Graph,
    of_corpus,
    of_devices,
    of_random,
    of_tests,
    of_wrapped,
    with_wrappers_called,
)
from .coverage_judge import (
    BY_OPERAND,
    ROUNDED,
    holds_for_longer,
    is_as_told,
    is_neutral_throughout,
    judged,
)

PAGE = ROOT / "docs" / "post-grad-coverage.md"
OURS = {
    "splitwithsizes_cat_replace": "cat_of_split",
    "cat_splitwithsizes_replace": "split_of_cat",
    "cat_slice_cat": "cat_of_cat",
    "pointless_cumsum_replacement": "cumsum",
    "remove_noop_ops": "no_ops",
    "constant_fold_uniform_value": "neutral",
    "remove_assert_ops": "asserts",
    "scatter_upon_const_tensor": "scatter",
    "reorder_for_locality": "locality",
    "move_constructors_to_gpu": "constructors",
    "decompose_auto_functionalized": "wrappers",
    "decompose_triton_kernel_wrapper_functional": "wrappers",
}
_ARITHMETIC = {"neutral", "cumsum", "scatter", "split_of_cat", "cat_of_split"}
# What brings nothing of its own, or is what the plugin judges otherwise.
_OTHERS = ("(between passes)", "reinplace_inplaceable_ops", "decompose_map", "decompose_scan", "incremental_")
# Which nodes of a pass without rules are its places.
_IS_PLACE: Mapping[str, Callable[[Any], Any]] = {
    "no_ops": handed_on,
    "neutral": folded,
    "asserts": lambda node: node.target is torch.ops.aten._assert_tensor_metadata.default,
    "wrappers": lambda node: is_wrapper(node.target),
}
_HEAD = """
# Coverage of the post-grad rules

Made by `pytest -s tests/passes/post_grad/coverage.py` with torch {version} on a CPU.
Graphs: {told}.

A *place* is a node where a rule of Inductor fires, in a run without ours; of `reorder_for_locality` a call
that it brings nearer to its first user. Each is checked by itself. *Sound*: the graph still does the same,
bit by bit, in strides and in shared storage. Of arithmetic, and of what is put together and taken apart, also
when its numbers are all `-0.`, infinite or NaN, and when they are shuffled; sums of a length that is a symbol
are also taken at greater ones. *By its operand*: it does the same here, and such arithmetic does not for
every number, as `cos(x) + 0.` and `y + 0.`: that `cos` is never `-0.` is its kernel's doing, and ours does
not rely on it. *Rounded*: numbers are some roundings apart, or 0. is -0. *Unsound*: it does something else,
or the rule raises. *Not checked* are collectives that move, too: one process does not tell whether the others
still meet them. Inductor's comment says that it means to leave them where they are.

Then our rule is run on the graph as it was in front of that place. At an unsound place ours may still
rewrite: to a copy, or a conversion. *Wrong* are rewrites of ours, at any place. Graphs for a GPU are run on
the CPU with all their copies. Of wrappers Inductor's rule and ours are run by themselves, each on the
functional graph: in its stage Inductor's comes behind others, whose doing it is not, when it is decided what
is copied.

| Inductor's rule | places {sources} | {judged} | ours | {ours} |
|---|---|---|---|---|---|---|---|---|---|---|---|
"""
_LEFT = """
Sound places that ours leaves. `no_ops` keeps a copy that the program makes, where what is copied may be
written in place and would have to be copied then; `locality` brings no view behind such a write, and nothing
that may be written itself.

| rule | why | places |
|---|---|---|"""
_UNTOLD = "not one of its places", "what stands in between does not move"
_SOURCES = "(tests, corpus, random)"
_JUDGED = "sound | by its operand | rounded | unsound | not checked"
_OURS = "at sound ones | at rounded ones | at unsound ones | wrong"


@dataclasses.dataclass
class Row:
    """What is known of one rule."""

    fired: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    judged: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    ours: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    left: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    wrong: int = 0

    def unseen(self, source: str) -> None:
        """Add a place that cannot be judged."""
        self.fired[source] += 1
        self.judged["not-checked"] += 1


def add(rows: dict[str, Row], graph: Graph) -> None:
    """Add all places of a graph; wrappers where Inductor's rule alone has called them."""
    called = with_wrappers_called(graph)
    _add(rows, graph, is_whole=called is None)
    if called is not None:
        _add(rows, called)


def _add(rows: dict[str, Row], graph: Graph, *, is_whole: bool = True) -> None:
    """Add the places of a graph, all or all but those of wrappers."""
    for application in graph.ledger.applications:
        name = _name(application)
        ours = OURS.get(name, "")
        if name.startswith(_OTHERS) or (ours == "wrappers" and not is_whole):
            continue
        try:
            before = graph.ledger.graph_before(application.number)
            after = graph.ledger.graph_after(application.number)
        except ReinplaceError:  # the state between two rules of one pass, which is no graph
            rows.setdefault(name, Row()).unseen(graph.source)
            continue
        judge = functools.partial(judged, graph, is_arithmetic=ours in _ARITHMETIC)
        places = _places(application, before, after, ours)
        if not places:
            continue
        row = rows.setdefault(name, Row())
        found = judge(before, after)
        told: dict[str, str] = dict.fromkeys(places, found.status)
        if len(places) > 1 and found.status != "same" and ours in ("no_ops", "neutral"):
            told = _one_by_one(before, places, judge)
        if ours == "cumsum" and found.status == "same" and not holds_for_longer(before, application.node):
            told = dict.fromkeys(places, "different")
        if ours == "neutral":
            told = {place: _by_itself(before, place, status) for place, status in told.items()}
        if ours == "locality":
            told |= dict.fromkeys(_collectives(before) & told.keys(), "not-checked")
        if ours == "constructors":  # a GPU draws other numbers
            told |= dict.fromkeys(filter(functools.partial(_is_drawn_by, before), places), "different")
        row.fired[graph.source] += len(places)
        row.judged.update(told.values())
        if ours:
            _compare(row, ours, graph, before, told, after)
    _add_crash(rows, graph, is_whole=is_whole)


def _name(application: Application) -> str:
    """Return the name of a rule, or of the pass where its rules have none of their own."""
    name = application.pass_name.rpartition("/")[2].rpartition(":")[2]
    return name if not application.rule or name.startswith("decompose_") else application.rule


def _by_itself(gm: GraphModule, place: str, status: str) -> str:
    """Return what is known of arithmetic, where it may be right only by what its operand holds."""
    return BY_OPERAND if status == "same" and not is_neutral_throughout(gm, place) else status


def _collectives(gm: GraphModule) -> set[str]:
    """Return what must meet what other processes do: one process does not tell whether it still does."""
    return {node.name for node in gm.graph.nodes if str(node.target).startswith("_c10d_functional.")}


def _is_drawn_by(gm: GraphModule, place: str) -> bool:
    """Return whether random numbers are drawn by a value."""
    node = next(n for n in gm.graph.nodes if n.name == place)
    tags = [getattr(user.target, "tags", ()) for user in node.users]
    return any(torch.Tag.nondeterministic_seeded in found for found in tags)


def _add_crash(rows: dict[str, Row], graph: Graph, *, is_whole: bool) -> None:
    """Add the place where a rule raised."""
    ledger = graph.ledger
    if ledger.crash is None or " at " not in ledger.crash.rule:
        return
    name, _, place = ledger.crash.rule.rpartition(" at ")
    if OURS.get(name) == "wrappers" and not is_whole:
        return
    row = rows.setdefault(name, Row())
    if "DataDependent" in str(ledger.crash):  # it traces its loop with symbols, which are not here
        row.unseen(graph.source)
        return
    row.fired[graph.source] += 1
    row.judged["different"] += 1
    if name in OURS:
        before = ledger.graph_before(len(ledger.applications))
        _compare(row, OURS[name], graph, before, {place: "different"})


def _compare(
    row: Row,
    ours: str,
    graph: Graph,
    before: GraphModule,
    told: Mapping[str, str],
    after: GraphModule | None = None,
) -> None:
    """Note what our rule does at places of Inductor's."""
    judge = functools.partial(judged, graph, is_arithmetic=ours in _ARITHMETIC)
    if ours == "wrappers":  # what others were made of names offsets of its own
        before = graph.ledger.graph_before(0)
    mine = copied(before)
    applied = post_grad.find(ours).apply(mine)
    row.wrong += judge(before, mine).is_different and is_as_told(graph, before)
    why = {refusal.node.name: refusal.reason for refusal in applied.refused}
    rewritten = set(applied.rewritten)
    if ours == "locality":
        rewritten = _nearer(before, mine) | _as_near(after or before, mine)
    for place, status in told.items():
        row.ours[status] += place in rewritten
        if place not in rewritten and status == "same":
            row.left[why.get(place, _UNTOLD[ours == "locality"])] += 1


def _places(application: Application, before: GraphModule, after: GraphModule, ours: str) -> list[str]:
    if ours == "locality":
        return sorted(_nearer(before, after))
    if ours == "constructors":
        devices = _devices(after)
        return [n for n, device in _devices(before).items() if devices.get(n, device) != device]
    is_place = _IS_PLACE.get(ours)
    if application.rule or is_place is None:
        return [application.node]
    left = {node.name for node in after.graph.nodes}
    gone = [n for n in before.graph.nodes if n.op == "call_function" and n.name not in left]
    return [node.name for node in gone if is_place(node)]


def _devices(gm: GraphModule) -> dict[str, Any]:
    return {node.name: node.kwargs.get("device") for node in gm.graph.nodes}


def _nearer(before: GraphModule, after: GraphModule) -> set[str]:
    """Return the nodes that stand nearer to their first users than they did."""
    return _distances(after).keys() - _as_near(after, before)


def _as_near(one: GraphModule, other: GraphModule) -> set[str]:
    """Return the nodes that stand as near to their first users in another graph, or nearer."""
    far, near = (_distances(gm) for gm in (one, other))
    return {name for name in far.keys() & near.keys() if near[name] <= far[name]}


def _distances(gm: GraphModule) -> dict[str, int]:
    at = {node: i for i, node in enumerate(gm.graph.nodes)}
    moving = (n for n in at if n.op == "call_function" and n.target is not operator.getitem)
    return {node.name: min(at[user] for user in node.users) - at[node] for node in moving if node.users}


def _one_by_one(before: GraphModule, places: Sequence[str], judge: Callable[..., Finding]) -> dict[str, str]:
    """Return for each no-op whether it may go, when those before it that may are gone."""
    found, base = {}, before
    for place in places:
        trial = copied(base)
        node: Node = next(n for n in trial.graph.nodes if n.name == place)
        operand = handed_on(node) or folded(node)
        node.replace_all_uses_with(operand)  # type: ignore[arg-type]
        trial.graph.erase_node(node)
        trial.recompile()
        found[place] = judge(before, trial).status
        base = trial if found[place] == "same" else base
    return found


def page(rows: Mapping[str, Row], graphs: Mapping[str, int]) -> str:
    """Return the page."""
    told = ", ".join(f"{count} of {source}" for source, count in graphs.items())
    version, columns = torch.__version__.partition("+")[0], {"judged": _JUDGED, "ours": _OURS}
    head = _HEAD.format(version=version, told=told, sources=_SOURCES, **columns).strip()
    return "\n".join([head, *(_line(name, row) for name, row in _sorted(rows)), *_why(rows), ""])


def _sorted(rows: Mapping[str, Row]) -> list[tuple[str, Row]]:
    return sorted(rows.items(), key=lambda found: (found[0] not in OURS, found[0]))


def _line(name: str, row: Row) -> str:
    fired = [row.fired[source] for source in ("tests", "corpus", "random")]
    judged = [row.judged[status] for status in ("same", BY_OPERAND, ROUNDED, "different", "not-checked")]
    cells: list[Any] = [f"`{name}`", f"{sum(fired)} ({', '.join(map(str, fired))})", *judged]
    if name in OURS:
        share = f"{row.ours['same']} ({100 * row.ours['same'] / judged[0]:.1f} %)" if judged[0] else "-"
        cells += [f"`{OURS[name]}`", share, row.ours[ROUNDED], row.ours["different"], row.wrong]
    else:
        cells += ["none", *"----"]
    return f"| {' | '.join(map(str, cells))} |"


def _why(rows: Mapping[str, Row]) -> Iterator[str]:
    yield _LEFT
    for name, row in _sorted(rows):
        for why, count in row.left.most_common():
            yield f"| `{OURS[name]}` | {why} | {count} |"


def test_write_the_page() -> None:
    rows: dict[str, Row] = {}
    graphs: collections.Counter[str] = collections.Counter({"tests": 0, "corpus": 0, "random": 0})
    for source in (of_tests(), of_random(), of_wrapped(), of_devices(), of_corpus()):
        for graph in source:
            add(rows, graph)
            graphs[graph.source] += 1
    PAGE.write_text(page(rows, graphs))
    print(PAGE.read_text())
    assert not any(row.wrong for row in rows.values())

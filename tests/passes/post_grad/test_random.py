"""Each rule on random graphs, alone; ``RULE_GRAPHS=10000`` for more of them."""

from __future__ import annotations

import collections
import os
from typing import Any

import torch
from torch.fx import GraphModule

from pytest_reinplace.passes import post_grad
from pytest_reinplace.passes.fuzz.calls import made
from pytest_reinplace.passes.fuzz.draws import Draws
from pytest_reinplace.passes.graph.copy import all_graphs
from pytest_reinplace.passes.ops.schema import traits_of
from pytest_reinplace.passes.ops.wrapper_names import is_wrapper
from pytest_reinplace.passes.strategies import random_graph
from pytest_reinplace.passes.verify import check, copied

from . import devices, random_devices

aten: Any = torch.ops.aten
COUNT = int(os.environ.get("RULE_GRAPHS", "60"))
FIRST = int(os.environ.get("RULE_FIRST", "0"))


def hides_alias(gm: GraphModule) -> bool:
    """Return whether a graph has what is a copy to Inductor, and node by node the operand itself."""
    return any(traits_of(n.target).hides_alias for graph in all_graphs(gm) for n in graph.graph.nodes)


def asserting(gm: GraphModule, draws: Draws) -> tuple[GraphModule, list[str], list[str]]:
    """Return a graph with asserts about values, and the names of those that hold and that do not."""
    gm, told = copied(gm), {True: list[str](), False: list[str]()}
    for node in list(gm.graph.nodes):
        val = node.meta.get("val")
        if node.op != "call_function" or not isinstance(val, torch.Tensor) or not draws.chance(30):
            continue
        facts: dict[str, Any] = {"dtype": val.dtype, "size": [*val.shape], "stride": [*val.stride()]}
        if not all(isinstance(n, int) for n in (*val.shape, *val.stride())) or draws.chance(20):
            facts = {"dtype": val.dtype}
        facts = {name: fact for name, fact in facts.items() if draws.chance(70)} or facts
        holds = draws.chance(60)
        if not holds:
            name = draws.of(tuple(facts))
            is_dtype = name == "dtype"
            facts[name] = torch.bits8 if is_dtype else [n + 1 for n in facts[name]] or [1]
        with gm.graph.inserting_after(node):
            new = gm.graph.call_function(aten._assert_tensor_metadata.default, (node,), facts)
        new.meta["val"] = None
        told[holds].append(new.name)
    gm.recompile()
    return gm, told[True], told[False]


def by_rule(name: str, gm: GraphModule, given: list[torch.Tensor], seed: int) -> collections.Counter[str]:
    """Return how many places a rule found, and what the check of the graph said."""
    after = copied(gm)
    applied = post_grad.find(name).stand_in(after.graph)
    if not applied.rewritten and not applied.refused:
        return collections.Counter()
    after.graph.lint()
    after.recompile()
    found = check(gm, after, given)
    assert not found.is_different, f"{name}, seed {seed}: {found.text}\n{gm.graph}\n{after.graph}"
    return collections.Counter(
        {"rewritten": len(applied.rewritten), "refused": len(applied.refused), found.status: 1}
    )


def test_each_rule_keeps_random_graphs_right() -> None:
    elsewhere = "asserts", "constructors", "wrappers"
    counts = {name: collections.Counter[str]() for name in post_grad.ORDER if name not in elsewhere}
    for seed in range(FIRST, FIRST + COUNT):
        gm, given = made(seed)
        for name, count in counts.items():
            count.update(by_rule(name, gm, given, seed))
    for name, count in counts.items():
        print(name, dict(count))
        assert count["rewritten"] and count["same"] > count["not-checked"]


def test_asserts_go_where_they_hold_and_nowhere_else() -> None:
    counts = collections.Counter[str]()
    for seed in range(FIRST, FIRST + COUNT):
        gm, given = made(seed)
        after, right, wrong = asserting(gm, Draws.seeded(seed))
        applied = post_grad.find("asserts").apply(after)
        assert (sorted(applied.rewritten), sorted(r.node.name for r in applied.refused)) == (
            sorted(right),
            sorted(wrong),
        ), f"seed {seed}"
        for refusal in applied.refused:
            after.graph.erase_node(refusal.node)
        after.recompile()
        found = check(gm, after, given)
        assert not found.is_different, f"seed {seed}: {found.text}\n{gm.graph}\n{after.graph}"
        counts.update({"rewritten": len(right), "refused": len(wrong), found.status: 1})
    print("asserts", dict(counts))
    assert counts["rewritten"] and counts["refused"] and counts["same"] > counts["not-checked"]


def test_constructors_keep_random_graphs_right() -> None:
    counts = collections.Counter[str]()
    for seed in range(FIRST, FIRST + COUNT):
        program, given = random_devices.Program(Draws.seeded(seed)), random_devices.inputs()
        gm = devices.traced(program.run, given, random_devices.INPUT_DEVICES, {})
        after = copied(gm)
        applied = post_grad.find("constructors").apply(after)
        if not applied.rewritten and not applied.refused:
            continue
        after.graph.lint()
        devices.assert_devices(after)
        found = check(devices.on_cpu(gm), devices.on_cpu(after), given)
        assert not found.is_different, f"seed {seed}: {found.text}\n{gm.graph}\n{after.graph}"
        counts.update({"rewritten": len(applied.rewritten), "refused": len(applied.refused), found.status: 1})
    print("constructors", dict(counts))
    assert counts["rewritten"] and counts["refused"] and counts["same"] > counts["not-checked"]


def test_wrappers_keep_the_graphs_of_the_oracle_right() -> None:
    counts = collections.Counter[str]()
    for seed in range(FIRST, FIRST + COUNT):
        graph = random_graph(seed)
        after = graph.copy()
        applied = post_grad.find("wrappers").apply(after)
        if not applied.rewritten and not applied.refused:
            continue
        after.graph.lint()
        assert len(list(filter(is_wrapper, (n.target for n in after.graph.nodes)))) == len(applied.refused)
        found = check(graph.gm, after, graph.inputs)
        assert not found.is_different, f"seed {seed}: {found.text}\n{graph.gm.graph}\n{after.graph}"
        counts.update({"rewritten": len(applied.rewritten), "refused": len(applied.refused), found.status: 1})
        counts.update(r.reason for r in applied.refused)
    print("wrappers", dict(counts))
    assert counts["rewritten"] and counts["same"] > counts["not-checked"]


def test_all_rules_together_keep_the_graphs_of_the_oracle_right() -> None:
    for seed in range(FIRST, FIRST + COUNT):
        graph = random_graph(seed)
        if hides_alias(graph.gm):
            continue
        after = graph.copy()
        for name in post_grad.ORDER:
            post_grad.find(name).stand_in(after.graph)
        after.graph.lint()
        after.recompile()
        found = check(graph.gm, after, graph.inputs)
        assert not found.is_different, f"seed {seed}: {found.text}\n{graph.gm.graph}\n{after.graph}"

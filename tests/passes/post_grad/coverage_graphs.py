"""The graphs in which it is counted how often Inductor's rules fire."""

from __future__ import annotations

import dataclasses
import functools
import os
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch._inductor.fx_passes.post_grad import decompose_auto_functionalized, move_constructors_to_gpu
from torch._inductor.virtualized import V
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx

from pytest_reinplace.call.ledgers import follow
from pytest_reinplace.entry.entry import load
from pytest_reinplace.entry.run import plainly, ready
from pytest_reinplace.passes.fuzz.calls import Program, inputs
from pytest_reinplace.passes.fuzz.draws import Draws
from pytest_reinplace.passes.graph.sizes import fake_mode_of
from pytest_reinplace.passes.ledger import Ledger, recorded
from pytest_reinplace.passes.ops.wrapper_names import is_wrapper, wraps_operator
from pytest_reinplace.passes.strategies import random_graph

from ...house.checkout import ROOT
from ..trace import arange, functional
from . import (
    devices,
    random_devices,
    test_cat_of_cat,
    test_cat_of_split,
    test_cumsum,
    test_neutral,
    test_split_of_cat,
)
from .test_random import hides_alias

COUNT = int(os.environ.get("COVERAGE_GRAPHS", "200"))
CORPUS = os.environ.get("COVERAGE_CORPUS", "*")


@dataclasses.dataclass(frozen=True)
class Graph:
    """What Inductor did to a graph.

    Args:
        source: where the graph is from.
        ledger: what Inductor did.
        given: what the graph is called with.
        regenerated: the outputs that are made anew.
        runnable: makes of a graph one that runs here.
    """

    source: str
    ledger: Ledger
    given: Sequence[Any] | None
    regenerated: frozenset[int] = frozenset()
    runnable: Callable[[GraphModule], GraphModule] = lambda gm: gm


def of_inductor(source: str, gm: GraphModule, given: Sequence[Any], *stages: Any) -> Graph:
    """Return what Inductor's stages do to a graph, by default those two that simplify it."""
    ledger, error = recorded(gm, stages or ("joint", "post_grad"))
    if error is not None:
        print(f"{source}: {type(error).__name__}: {str(error)[:100]}")
    return Graph(source, ledger, given)


def with_wrappers_called(graph: Graph) -> Graph | None:
    """Return what Inductor's rule for wrappers does to a functional graph by itself, if it has any to call.

    In the stage the rule comes behind others, and by then it is decided what is written in place. Kernels of
    Triton's are forgotten by torch when their graph is compiled.
    """
    passes = [run.name for run in graph.ledger.passes if run.stage == "post_grad"]
    if not any(name.endswith(decompose_auto_functionalized.__name__) for name in passes):
        return None
    functional = graph.ledger.graph_before(0)
    wrappers = [node for node in functional.graph.nodes if is_wrapper(node.target)]
    if not wrappers or not all(wraps_operator(node.target) for node in wrappers):
        return None
    with V.set_fake_mode(fake_mode_of(functional.graph)):
        called = of_inductor(graph.source, functional, graph.given or (), decompose_auto_functionalized)
    return dataclasses.replace(graph, ledger=called.ledger)


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
        gm.graph.eliminate_dead_code()
        yield of_inductor("random", gm, inputs())


def of_corpus() -> Iterator[Graph]:
    """Yield the graphs of corpus entries on their CPU presets."""
    for path in sorted((ROOT / "corpus").glob(f"{CORPUS}.reinplace.yaml")):
        entry = load(path)
        preset = entry.on("cpu")
        if preset is None:
            continue
        try:
            yield from _of_entry(path, entry, preset)
        except Exception:  # noqa: BLE001  (an entry that cannot run here)
            print(f"{path.name}: {traceback.format_exc(limit=1)}")


def _of_entry(path: Path, entry: Any, preset: Any) -> Iterator[Graph]:
    with ready(entry, preset, ROOT) as program:
        fn = functools.partial(plainly, program.fn, program, entry)
        found, error = follow(fn, (), {}, "inductor", ROOT, dynamic=entry.dynamic or None)
    if error is not None:
        print(f"{path.name}: {type(error).__name__}: {str(error)[:100]}")
    for one in found:
        yield Graph("corpus", one.ledger, one.inputs, one.regenerated)


def of_wrapped() -> Iterator[Graph]:
    """Yield the graphs of the oracle, in which operators that write come in wrappers."""
    for seed in range(COUNT):
        graph = random_graph(seed)
        if hides_alias(graph.gm):
            continue
        yield of_inductor("random", graph.copy(), graph.inputs, "post_grad")


def of_devices() -> Iterator[Graph]:
    """Yield random programs for a GPU, which are run on the CPU with all their copies."""
    for seed in range(COUNT):
        program, given = random_devices.Program(Draws.seeded(seed)), random_devices.inputs()
        gm = devices.traced(program.run, given, random_devices.INPUT_DEVICES, {})
        gm.graph.eliminate_dead_code()
        found = of_inductor("random", gm, given, move_constructors_to_gpu)
        yield dataclasses.replace(found, runnable=devices.on_cpu)

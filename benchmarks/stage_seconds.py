"""How long the joint and post-grad stages take with our rules, beside stock.

``python -m benchmarks.stage_seconds`` times both: CPU seconds of one process, in random order, each compiled
afresh. A Llama of eight layers with random weights, in inference and in training, and families of graphs of
many nodes. Exit status: the number of rows above ``--limit``.
"""

from __future__ import annotations

import argparse
import collections
import math
import random
import statistics
import sys
from collections.abc import Iterator
from typing import Any

import torch
from torch.fx import GraphModule

from pytest_reinplace.passes import inductor_options
from pytest_reinplace.passes.graph.sizes import fake_mode_of

from . import _torch
from .families import FAMILIES
from .models import llama
from .sides import copied

SIDES = {"stock": {}, "ours": inductor_options(stage="post_grad")}
Times = dict[str, dict[str, list[float]]]  # by what was timed, and by side


def main() -> int:
    """Time all and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--layers", type=int, default=8, help="of the model; 0: no model")
    parser.add_argument("--nodes", type=int, default=20_000, help="of the families; 0: none")
    parser.add_argument("--families", nargs="*", default=[family.name for family in FAMILIES])
    parser.add_argument("--limit", type=float, default=1.0)
    given = parser.parse_args()
    above = 0
    _model_times(1, 1, train=True)  # loads what either side loads once
    if given.layers:
        for train in (False, True):
            above += _told(_model_times(given.layers, given.rounds, train=train), given.limit)
    for name in given.families if given.nodes else ():
        above += _told(_family_times(name, given.nodes, given.rounds), given.limit)
    return above


def _model_times(layers: int, rounds: int, *, train: bool) -> Times:
    """Return how long the stages of a Llama take."""
    model, tokens = llama(layers)
    kind = "training" if train else "inference"
    times: Times = collections.defaultdict(lambda: collections.defaultdict(list))
    for side in _in_turn(rounds):
        seconds = collections.defaultdict[str, float](float)

        def note(stage: str, gm: GraphModule, took: float, seconds: dict[str, float] = seconds) -> None:
            seconds[stage] += took

        torch.compiler.reset()
        with _torch.configured(SIDES[side]), torch.set_grad_enabled(train):
            fast: Any = torch.compile(model, backend=_torch.backend(note))
            result = fast(tokens, use_cache=False).logits
            if train:
                result.sum().backward()
        seconds["all"] = sum(seconds.values())
        for stage, took in seconds.items():
            times[f"llama-{layers} {kind} {stage}"][side].append(took)
    return times


def _family_times(name: str, nodes: int, rounds: int) -> Times:
    """Return how long the post-grad stage of a family's graphs takes, and how that grows."""
    family = next(family for family in FAMILIES if family.name == name)
    times: Times = collections.defaultdict(lambda: collections.defaultdict(list))
    for size in (nodes // 4, nodes):
        graph, _ = family.build(family.size_for(size))
        for side in _in_turn(rounds):
            gm = copied(graph)
            values = [fake_mode_of(gm.graph).from_tensor(torch.empty(0))]
            with _torch.configured(SIDES[side]):
                times[f"{name} {size} nodes"][side].append(_torch.post_grad(gm, values, is_inference=True))
    few, many = (
        {side: min(took) for side, took in times[f"{name} {n} nodes"].items()} for n in (nodes // 4, nodes)
    )
    growth = {side: math.log(many[side] / few[side], 4) for side in SIDES}
    print(
        f"{name:34} grows with nodes to the power of {growth['ours']:.2f}, stock's {growth['stock']:.2f}",
        flush=True,
    )
    return times


def _in_turn(rounds: int) -> Iterator[str]:
    """Yield the sides in random order."""
    yield from random.sample([*SIDES] * rounds, len(SIDES) * rounds)


def _told(times: Times, limit: float) -> int:
    """Print the rows and return how many are above a limit."""
    above = 0
    for what, sides in times.items():
        median, least = (how(sides["ours"]) / how(sides["stock"]) for how in (statistics.median, min))
        above += min(median, least) > limit
        stock = min(sides["stock"]) * 1000
        print(f"{what:34} median {median:.2f}, least {least:.2f} of stock's {stock:.0f} ms", flush=True)
    return above


if __name__ == "__main__":
    sys.exit(main())

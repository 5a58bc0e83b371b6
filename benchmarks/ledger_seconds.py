"""How long the joint and post-grad stages take while a ledger is kept of them, and with each rule checked.

``python -m benchmarks.ledger_seconds`` compiles a Llama with random weights, in inference and in training,
and runs graphs of many nodes through the post-grad stage: without a ledger, with one, and with one whose
applications are checked. CPU seconds of one process, in random order, each compiled afresh. Exit status:
the number of rows above ``--recorded`` or ``--checked``.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import functools
import random
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any
from unittest import mock

import torch

from pytest_reinplace.capture.followed import Compiled, Followed, Following
from pytest_reinplace.passes.graph.sizes import fake_mode_of
from pytest_reinplace.passes.ledger import recorded
from pytest_reinplace.passes.ledger._torch import post_grad

from . import _torch
from .families import FAMILIES
from .models import llama
from .sides import copied

OFF, ON, CHECKED = "off", "recorded", "checked"
Times = dict[str, list[float]]  # by side


def main() -> int:
    """Time all and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--layers", type=int, default=8, help="of the model; 0: no model")
    parser.add_argument("--nodes", type=int, default=20_000, help="of the families; 0: none")
    parser.add_argument("--families", nargs="*", default=[family.name for family in FAMILIES])
    parser.add_argument("--recorded", type=float, default=1.3, help="times the stages without a ledger")
    parser.add_argument("--checked", type=float, default=3.0, help="times the stages without a ledger")
    given = parser.parse_args()
    limits, above = {ON: given.recorded, CHECKED: given.checked}, 0
    if given.layers:
        _model_seconds(1, CHECKED, train=True)  # loads what either side loads once
        for train in (False, True):
            name = f"llama-{given.layers} {'training' if train else 'inference'}"
            one = functools.partial(_model_seconds, given.layers, train=train)
            above += _told(name, _times(one, given.rounds), limits)
    for name in given.families if given.nodes else ():
        one = functools.partial(_family_seconds, name, given.nodes)
        above += _told(name, _times(one, given.rounds), limits)
    return above


def _times(seconds: Callable[[str], float], rounds: int) -> Times:
    """Return how long each side took, in random order."""
    times: Times = collections.defaultdict(list)
    for side in random.sample([OFF, ON, CHECKED] * rounds, 3 * rounds):
        times[side].append(seconds(side))
    return times


def _model_seconds(layers: int, side: str, *, train: bool) -> float:
    """Return how long the stages of a Llama take, and the checks of what they did."""
    model, tokens = llama(layers)
    following = None if side == OFF else Following(checks=side == CHECKED)
    watching = contextlib.nullcontext() if following is None else following.watching()
    spent = list[float]()
    torch.compiler.reset()
    with (
        _torch.configured({}),
        torch.set_grad_enabled(train),
        watching,
        mock.patch.object(Compiled, "_note", _timed(Compiled._note, spent)),
    ):
        note = _torch.backend(lambda stage, gm, took: spent.append(took), following)
        fast: Any = torch.compile(model, backend=note)
        result = fast(tokens, use_cache=False).logits
        if train:
            result.sum().backward()
    if following is not None:
        _check_findings(following, is_checked=side == CHECKED)
    return sum(spent)


def _check_findings(following: Following, *, is_checked: bool) -> None:
    """Raise where the ledgers are not what is timed: each application has a finding, or none has."""
    found = [one for graph in following.compiled for one in graph.applications]
    checked = [one for one in found if one["finding"] is not None]
    if not found or len(checked) != is_checked * len(found):
        problems = [graph.problem for graph in following.compiled]
        wanted = "with" if is_checked else "without"
        raise SystemExit(
            f"expected a ledger {wanted} findings, got {len(checked)} of {len(found)}; {problems}"
        )


def _timed(function: Callable[..., Any], spent: list[float]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        start = time.process_time()
        try:
            return function(*args, **kwargs)
        finally:
            spent.append(time.process_time() - start)

    return call


def _family_seconds(name: str, nodes: int, side: str) -> float:
    """Return how long the post-grad stage of a family's graph takes, and the checks of what it did."""
    family = next(family for family in FAMILIES if family.name == name)
    graph, _ = family.build(family.size_for(nodes))
    gm = copied(graph)
    values = [node.meta["val"] for node in gm.graph.find_nodes(op="placeholder")]
    inputs = [torch.zeros(val.shape, dtype=val.dtype) for val in values]
    start = time.process_time()
    if side == OFF:
        post_grad(gm, fake_mode_of(gm.graph))
        return time.process_time() - start
    ledger, error = recorded(gm, "post_grad")
    if error is not None:
        raise error
    if side == CHECKED:
        Followed(name, ledger, tuple(inputs)).checked()
    return time.process_time() - start


def _told(what: str, times: Times, limits: dict[str, float]) -> int:
    """Print the row and return whether it is above a limit."""
    found, above = list[str](), False
    for side, limit in limits.items():
        median, least = (how(times[side]) / how(times[OFF]) for how in (statistics.median, min))
        above |= min(median, least) > limit
        found.append(f"{side} median {median:.2f}, least {least:.2f}")
    print(f"{what:22} {'; '.join(found)} of {min(times[OFF]) * 1000:.0f} ms", flush=True)
    return int(above)


if __name__ == "__main__":
    sys.exit(main())

"""Random programs through AOTAutograd: the graphs that torch makes, with static and with symbolic sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
import torch._inductor.config as inductor_config
from functorch.compile import aot_function
from torch._inductor.decomposition import select_decomp_table
from torch.fx import GraphModule

from pytest_reinplace.passes import reinplace
from pytest_reinplace.passes.verify import EquivalenceError, assert_equivalent, copied

from ..traced_program import RandomProgram, random_program


class Sides:
    """A program that AOTAutograd traces once: its graphs as they are, and copies that a pass has rewritten.

    Wrappers around the graphs are common to both, so that only the pass can make a difference.
    """

    def __init__(self, program: RandomProgram, one_pass: Any, *, dynamic: bool) -> None:
        self._one_pass, self._is_rewritten = one_pass, False
        self._call = aot_function(
            program,
            fw_compiler=self._compile,
            decompositions=select_decomp_table(),
            keep_inference_input_mutations=True,
            dynamic=dynamic,
        )

    def _compile(self, gm: GraphModule, _: Sequence[Any]) -> Any:
        rewritten = copied(gm)
        self._one_pass(rewritten)
        rewritten.recompile()
        return lambda *args: (rewritten if self._is_rewritten else gm)(*args)

    def expected(self, *args: Any) -> Any:
        self._is_rewritten = False
        return self._call(*args)

    def actual(self, *args: Any) -> Any:
        self._is_rewritten = True
        return self._call(*args)


def verdict(
    program: RandomProgram, one_pass: Any = reinplace, *, v2: bool = True, dynamic: bool = False
) -> str:
    """Return how the compiled program differs from what AOTAutograd alone makes of it; empty: not at all."""
    with inductor_config.patch(enable_auto_functionalized_v2=v2), torch.no_grad():
        sides = Sides(program, one_pass, dynamic=dynamic)
        try:
            assert_equivalent(sides.expected, sides.actual, program.inputs())
        except EquivalenceError as error:
            return str(error)
    return ""


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("v2", [False, True], ids=["v1", "v2"])
def test_programs(v2: bool, dynamic: bool) -> None:
    for seed in range(40):
        program = random_program(seed)
        assert not (text := verdict(program, v2=v2, dynamic=dynamic)), f"seed {seed}: {text}\n{program}"


def without_clones(gm: GraphModule) -> None:
    """Let every wrapper write in place."""
    names = {
        "auto_functionalized": "_only_clone_these_tensors",
        "auto_functionalized_v2": "_only_clone_these_bases",
    }
    for node in gm.graph.nodes:
        name = names.get(str(node.target))
        if name is not None:
            node.kwargs = {**node.kwargs, name: ()}


@pytest.mark.parametrize("v2", [False, True], ids=["v1", "v2"])
def test_a_wrong_pass_is_caught(v2: bool) -> None:
    texts = [verdict(random_program(seed), without_clones, v2=v2) for seed in range(20)]
    assert sum(map(bool, texts)) >= 5
    assert any("elements differ" in text for text in texts)

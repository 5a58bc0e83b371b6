"""The tolerance of the marker: what the fixtures call beside eager."""

from __future__ import annotations

import pytest

from .test_marker import KEEP, run

CALLS = {
    "run": "reinplace.run({fn}, *inputs({fn}))",
    "assert_reinplaced": "assert_reinplaced({fn}, *inputs({fn}))",
    "assert_clones": "list(assert_clones({fn}, *inputs({fn})))",
}


def comparing(project: pytest.Pytester, tolerance: str, *lines: str) -> pytest.RunResult:
    text = "\n    ".join(lines)
    asked = ", ".join(name for name in ("reinplace", "assert_reinplaced", "assert_clones") if name in text)
    body = f"def test_it({asked}):\n    {text}"
    return run(project, f"pass_='wrong:adds_more', tolerance={tolerance}", body)


@pytest.fixture
def adding(compiling: pytest.Pytester) -> pytest.Pytester:
    """Return a project with a pass that is ours, but adds 1/1024 more than it is told."""
    compiling.makepyfile(
        wrong="""
from pytest_reinplace.passes import reinplace

def adds_more(gm):
    reinplace(gm)
    for node in gm.graph.nodes:
        if "aten.add" in str(node.target):
            node.args = (node.args[0], node.args[1] * (1 + 2**-10))
    gm.recompile()
"""
    )
    return compiling


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("tolerance", ["1e-5", "{'rtol': 1e-5}", "0"])
def test_beyond_the_tolerance_a_call_fails_where_it_stands(
    adding: pytest.Pytester, call: str, tolerance: str
) -> None:
    result = comparing(adding, tolerance, call.format(fn="call_op"))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            f">*{call.format(fn='call_op')}",
            "E *AssertionError: the compiled call differs from eager, allowed is tolerance rtol=* (pass *",
            "E *result: Tensor-likes are not *! Mismatched elements: 4 / 4*",
        ]
    )


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("tolerance", ["1e-2", "1", "{'atol': 0.1}", "{'rtol': 0.1, 'atol': 0}"])
def test_within_the_tolerance_it_passes(adding: pytest.Pytester, call: str, tolerance: str) -> None:
    comparing(adding, tolerance, call.format(fn="call_op")).assert_outcomes(passed=1)


def test_without_a_tolerance_nothing_is_compared(adding: pytest.Pytester) -> None:
    comparing(adding, "None", CALLS["run"].format(fn="call_op")).assert_outcomes(passed=1)


def test_a_wrong_argument_is_told_before_the_clones(compiling: pytest.Pytester) -> None:
    compiling.makepyfile(
        wrong="""
def forgets(gm):
    for node in gm.graph.nodes:
        if "copy_" in str(node.target):
            gm.graph.erase_node(node)
    gm.recompile()
"""
    )
    body = "def test_it(assert_reinplaced):\n    assert_reinplaced(update, *inputs(update))"
    result = run(compiling, "pass_='wrong:forgets', tolerance=1e-5", body)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E *args?0?: Tensor-likes are not close! Mismatched elements: 2 / 8*"])


RIGHT = """
import pytest, torch, torch._inductor.config
from programs import *
class Counting(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4))
        self.register_buffer("seen", torch.zeros(4))

    def forward(self, x):
        self.seen[0] += 1
        return (x * self.weight * torch.rand(4)).sum()

def trained(model, x):
    model(x).backward()
    return model.weight.grad

@pytest.mark.reinplace(tolerance=1e-5, pass_="exact")
@torch._inductor.config.patch(fallback_random=True)  # else Inductor draws other numbers
def test_it(reinplace, assert_clones):
    model = Counting()
    assert reinplace.run(model.forward, torch.ones(4)).graphs
    assert reinplace.run(torch.compile(model), torch.ones(4)).graphs
    list(assert_clones(torch.compile(call_op), *inputs(call_op)))
    assert model.seen.tolist() == [2, 0, 0, 0]
    for _ in range(2):
        run = reinplace.run(trained, model, torch.ones(4))
        assert torch.equal(run.result, model.weight.grad)
    assert model.seen.tolist() == [4, 0, 0, 0]
"""


def test_models_random_numbers_and_gradients_are_as_in_eager(compiling: pytest.Pytester) -> None:
    """Each call begins with what the one before has left, and eager with the same."""
    compiling.makepyfile(
        test_it=f"import pytest, torch, torch._inductor.config\nfrom programs import *\n{RIGHT}"
    )
    compiling.runpytest_inprocess().assert_outcomes(passed=1)


def test_a_tolerance_that_nothing_was_compared_with_fails(compiling: pytest.Pytester) -> None:
    result = run(compiling, "tolerance=1e-5, max_clones=0", KEEP)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "nothing was compared: tolerance holds the calls reinplace.run(fn, *args), *against eager *",
            "1 clone; the limit is max_clones=0 *",
        ]
    )


@pytest.mark.parametrize(
    ("setup", "message"),
    [
        ("cache = torch.zeros(4)", "*closes over tensors, which a copy would share; pass them as arguments"),
        ("global cache; cache = torch.zeros(4)", "*writes into the global cache, which a copy would share*"),
    ],
)
def test_what_eager_would_write_for_both_is_refused(
    compiling: pytest.Pytester, setup: str, message: str
) -> None:
    body = f"""def test_it(reinplace):
    {setup}
    def step(x):
        cache.add_(x)
        return cache + 1
    reinplace.run(step, torch.ones(4))
"""
    result = run(compiling, "tolerance=1e-5", body)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"E *TwinError: {message}"])


def test_a_global_that_is_only_read_is_fine(compiling: pytest.Pytester) -> None:
    compiling.makepyfile(
        reader="import torch\nweight = torch.full((4,), 2.0)\ndef step(x):\n    return x.add_(weight)"
    )
    body = "def test_it(reinplace):\n    from reader import step\n    reinplace.run(step, torch.ones(4))"
    run(compiling, "tolerance=0", body).assert_outcomes(passed=1)

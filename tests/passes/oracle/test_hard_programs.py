"""Hard random programs, compiled by Inductor with our passes, held against eager mode in all that is seen."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import torch

from pytest_reinplace.passes import inductor_options
from pytest_reinplace.passes.fuzz.program import HardProgram, idioms
from pytest_reinplace.passes.inductor.defects import DEFECTS
from pytest_reinplace.passes.oracle import compiled
from pytest_reinplace.passes.oracle.call import Called, called, differences, peak
from pytest_reinplace.passes.oracle.case import Case
from pytest_reinplace.passes.oracle.setting import Setting

HARD = Setting(hard=True)
IS_COMPILED = "torch.compiler.is_compiling()"


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    torch.compiler.reset()


MADE = (
    "x, y = torch.arange(24).view(2, 12), torch.arange(24).view(2, 12) + 7",
    "w, v, i, k = torch.arange(24.0).view(2, 12), torch.arange(12.0), torch.tensor([0, 1]), 1",
)
WITH_GRADIENTS = (*MADE, "w.requires_grad_(), v.requires_grad_()")


class Chosen(HardProgram):
    """A program whose lines are given."""

    def __init__(
        self, *lines: str, returned: tuple[str, ...] = ("x + 1",), is_training: bool = False
    ) -> None:
        super().__init__(3, is_training=is_training)
        self.lines, self.returned, self.options = list(lines), list(returned), {}
        self.calls = [WITH_GRADIENTS if is_training else MADE] * 2


@pytest.mark.parametrize("setting", [HARD, HARD._replace(dynamic=True), HARD._replace(training=True)])
def test_compiled_programs_do_what_eager_mode_does(setting: Setting) -> None:
    for fate in compiled.fates(range(1), ["exact"], setting):
        assert fate.functional or not any(fate.problems.values()), setting.program(fate.seed).source


def test_programs_run_in_eager_mode_twice_and_are_the_same_again() -> None:
    for seed in range(60):
        program = HardProgram(seed, is_training=seed % 3 == 0, is_dynamic=seed % 3 == 1)
        for given in program.every_inputs():
            called(program.function(), given)
        again = HardProgram(seed, is_training=seed % 3 == 0, is_dynamic=seed % 3 == 1)
        assert program.source == again.source


def test_inputs_lie_where_inputs_of_real_programs_do() -> None:
    firsts = [HardProgram(seed).inputs() for seed in range(80)]
    assert any(x.storage_offset() for x, *_ in firsts)
    assert any(not x.is_contiguous() for x, *_ in firsts)
    assert any(x is y for x, y, *_ in firsts)
    shared = [x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr() for x, y, *_ in firsts]
    assert True in shared and False in shared
    both = [HardProgram(seed, is_dynamic=True).every_inputs() for seed in range(40)]
    assert any(one[0].shape != other[0].shape for one, other in both)
    assert all(
        w.requires_grad for _, _, w, *_ in (HardProgram(s, is_training=True).inputs() for s in range(9))
    )


@pytest.mark.parametrize(
    "text",
    [
        *("nonzero()", "torch.unique(", ".item()", "masked_select", "_foreach_", "index_put_(", "scatter_("),
        *("tidy.some(", "tidy.both(", "kernels['pair']", "out=", ".real", ".unfold(", "[k:]"),
        *("enable_auto_functionalized_v2", ".view(torch.", "masked_fill_", "clamp_(", ".as_strided("),
    ],
)
def test_programs_hold_what_real_programs_do(text: str, sources: list[str]) -> None:
    assert any(text in source for source in sources)


@pytest.fixture(scope="module")
def sources() -> list[str]:
    return [HardProgram(seed).source for seed in range(400)]


@pytest.mark.parametrize("template", idioms._ANY + idioms._TRAINING, ids=" ; ".join)
def test_every_idiom_runs_whole(template: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idioms, "_ANY", (template,))
    monkeypatch.setattr(idioms, "_TRAINING", (template,))
    last = re.compile(re.sub(r"\\{\w+\\}", ".+", re.escape(template[-1])))
    is_training = template in KNOWN_TRAINING
    programs = (HardProgram(seed, is_training=is_training) for seed in range(150))
    assert any(last.fullmatch(line) for program in programs for line in program.lines)


KNOWN_TRAINING = idioms._TRAINING


def test_a_program_is_made_small() -> None:
    program = Chosen("z1 = x * 2", "y.add_(1)", "z1[0:1] = 5", returned=("z1", "y.sum()"))
    small = compiled.minimal(program, lambda p: "z1[0:1] = 5" in p.lines and bool(p.function()(*p.inputs())))
    assert small.lines == ["z1[0:1] = 5"] or small.lines == ["z1 = x * 2", "z1[0:1] = 5"]
    assert len(small.calls) == 1 and len(program.calls) == 2 and len(program.lines) == 3


@pytest.mark.parametrize(
    ("line", "returned", "found"),
    [
        (f"y.add_({IS_COMPILED} * 1)", "x + 1", "input 1 differs"),
        ("z1 = 0", f"x + {IS_COMPILED} * 1", "result 0 differs"),
        ("z1 = 0", f"x[0:1] if {IS_COMPILED} else x[0:1] + 0", "sharing of result 0 and input 0 differs"),
        ("y.mul_(2)", "x[1:]", ""),
    ],
)
def test_what_differs_is_told(line: str, returned: str, found: str) -> None:
    with HARD.in_force():
        case = Case(Chosen(line, returned=(returned,)), HARD)
        case.tolerated = set()  # AOTAutograd sees the same program
        assert case.judged(inductor_options()).problem == found
    assert case.functional == ("" if found.startswith(("sharing", "layout")) else found)


@pytest.mark.parametrize("line", ["print(x.tolist())", "x.expand(2, *x.shape).mul_(2)"])
def test_what_torch_refuses_is_unfit(line: str) -> None:
    """AOTAutograd the first, eager mode the second one."""
    with HARD.in_force():
        assert Case(Chosen(line), HARD).is_unfit


def test_a_gradient_that_differs_is_told() -> None:
    setting = HARD._replace(training=True)
    program = Chosen(
        "z1 = w * (w.detach() if torch.compiler.is_compiling() else w)", returned=("z1",), is_training=True
    )
    with setting.in_force():
        assert Case(program, setting).functional == "gradient of input 2 differs"


def test_layouts_and_distances_are_compared() -> None:
    base, other = torch.arange(24.0), torch.arange(24.0)
    expected = Called([base[2:14].view(3, 4)], [base])
    assert list(differences(expected, Called([other[2:14].view(3, 4)], [other]))) == []
    assert list(differences(expected, Called([other[2:14].view(3, 4).clone()], [other]))) == [
        "sharing of result 0 and input 0 differs"
    ]
    turned = torch.empty(4, 3).t().copy_(base[2:14].view(3, 4))
    assert "layout of result 0 differs" in list(differences(expected, Called([turned], [other])))
    shifted = torch.cat([base[:3], base])[:24]
    moved = Called([shifted[5:17].view(3, 4)], [other])
    assert [d.split()[0] for d in differences(expected, moved)] == ["sharing"]
    assert list(differences(expected, Called([], [other]))) == ["0 results"]


def test_a_peak_is_that_of_one_call() -> None:
    held = peak(lambda x: [(x + 1).sum() + (x * 2).sum()], [torch.zeros(1024)])
    assert 4096 <= held < 3 * 4096
    assert peak(lambda x: [x.mul_(2)], [torch.zeros(1024)]) < 64


def test_what_holds_more_than_the_other_side_is_told() -> None:
    right = {"exact": "", "inductor": ""}
    assert compiled.Fate(0, right, {"exact": 9, "inductor": 8}).is_above
    assert not compiled.Fate(0, right, {"exact": 8, "inductor": 8}).is_above
    assert not compiled.Fate(0, {"exact": "", "inductor": "input 0 differs"}, {"exact": 9}).is_above
    assert not compiled.Fate(0, right, {"exact": 9, "inductor": 8}, "input 0 differs").is_above


def test_a_defect_that_nothing_is_done_about_is_found() -> None:
    source = ("x[0:1] = 7", "z2 = x + x.flip(0)", "x.clamp_(max=4)")
    found = []
    for without in ((), ("racing-fusion",)):
        setting = HARD._replace(without=without)
        with setting.in_force():
            found.append(Case(Chosen(*source, returned=("z2",)), setting).judged(inductor_options()).problem)
    is_wrong = ".".join(torch.__version__.split(".")[:2]) in DEFECTS["racing-fusion"].seen
    assert found == ["", "result 0 differs" if is_wrong else ""]


def test_the_command_tells_how_fast_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    assert compiled.main(["--hard", "--programs", "1", "--seed", "5", "--beside"]) == 0
    assert "programs a minute" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        compiled.main(["--without", "nothing-known"])

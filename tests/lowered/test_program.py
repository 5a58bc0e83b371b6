"""Generated programs, run on tensors without memory; written by hand here."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch

from pytest_reinplace.lowered.allocation import Taken
from pytest_reinplace.lowered.called import Call, Given, Program
from pytest_reinplace.lowered.program import ProgramError, possible, taken

_HEAD = """
import torch
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.select_algorithm import extern_kernels
empty_strided_cpu = torch._C._dynamo.guards._empty_strided_cpu
reinterpret_tensor = torch._C._dynamo.guards._reinterpret_tensor
assert_size_stride = torch._C._dynamo.guards.assert_size_stride
async_compile = AsyncCompile()
kernel = async_compile.cpp_pybinding(['float*'], 'this is not C++')
async_compile.wait(globals())

def call(args):
"""
EIGHT = "empty_strided_cpu((8, ), (1, ), torch.float32)"


def program(*body: str) -> Program:
    return Program(_HEAD + "".join(f"    {line}\n" for line in body))


def tensor(address: int, size: int = 8, *, storage: int = 32, dtype: torch.dtype = torch.float32) -> Given:
    return Given((size,), (1,), 0, dtype, torch.device("cpu"), address, storage)


def run(*body: str, inputs: tuple[Any, ...] = (), **call: Any) -> Taken:
    return taken(Call(program(*body), inputs, **call))


def test_what_is_deleted_is_released_and_what_is_returned_is_not() -> None:
    found = run(
        f"buf0 = {EIGHT}",
        f"buf1 = {EIGHT}",
        "kernel(buf0, buf1)",
        "del buf0",
        "buf2 = buf1; del buf1  # reuse",
        f"buf3 = {EIGHT}",
        "return (buf2, reinterpret_tensor(buf3, (2, 2), (2, 1), 1))",
    )
    assert [(one.name, one.nbytes, one.born, one.freed) for one in found.allocations] == [
        ("buf0", 32, 0, 3),
        ("buf1", 32, 1, None),
        ("buf3", 32, 5, None),
    ]
    assert found.allocations[1].later == ("buf2",)
    assert [level.after for level in found.levels] == [32, 64, 64, 32, 32, 64, 64]
    assert (found.peak, found.peak_at) == (64, 1)
    assert [one.name for one in found.alive(1)] == ["buf0", "buf1"]
    assert [one.name for one in found.alive(5)] == ["buf1", "buf3"]


def test_a_value_that_is_replaced_lives_until_the_new_one_is_there() -> None:
    found = run(f"buf0 = {EIGHT}", "buf0 = buf0.clone()", "return (buf0, )")
    assert (found.peak, found.levels[-1].after) == (64, 32)
    assert [one.freed for one in found.allocations] == [1, None]


def test_inputs_count_only_where_the_program_releases_them() -> None:
    body = "arg0_1, arg1_1 = args", "args.clear()", "del arg0_1", f"buf0 = {EIGHT}", "return (buf0, arg1_1)"
    inputs = (tensor(1), tensor(2))
    kept = run(*body, inputs=inputs)
    assert ([one.name for one in kept.inputs], kept.peak) == (["arg0_1", "arg1_1"], 32)
    assert [one.freed for one in kept.inputs] == [None, None]
    given = run(*body, inputs=inputs, released=frozenset({1}))
    assert [one.freed for one in given.inputs] == [2, None]
    assert [level.after for level in given.levels] == [0, 0, -32, 0, 0]


def test_inputs_that_share_a_storage_are_released_together() -> None:
    body = "arg0_1, arg1_1 = args", "args.clear()", "del arg0_1", "del arg1_1", "return ()"
    inputs = (tensor(7, 4), tensor(7, 8))
    found = run(*body, inputs=inputs, released=frozenset({7}))
    assert [(one.name, one.freed) for one in found.inputs] == [("arg0_1", 3)]
    assert found.levels[-1].after == -32


def test_a_view_of_an_input_takes_nothing() -> None:
    found = run(
        "arg0_1, = args", "return (reinterpret_tensor(arg0_1, (2, ), (1, ), 3), )", inputs=(tensor(1),)
    )
    assert found.allocations == ()


def test_a_result_is_not_a_later_name_of_what_it_is_computed_from() -> None:
    found = run(
        f"buf0 = {EIGHT}",
        f"buf1 = {EIGHT}",
        "buf2 = torch.ops.aten.sort.default(reinterpret_tensor(buf0, (4, ), (1, ), 0))",
        "buf3 = torch.ops.aten.add.Tensor(reinterpret_tensor(buf1, (4, ), (1, ), 0), 1)",
        "return (buf2, buf3)",
    )
    assert [(one.name, one.later) for one in found.allocations] == [
        ("buf0", ()),
        ("buf1", ()),
        ("buf2[0]", ()),
        ("buf2[1]", ()),
        ("buf3", ()),
    ]


def test_a_view_that_has_a_variable_is_a_later_name() -> None:
    found = run(
        f"buf0 = {EIGHT}",
        "buf1 = reinterpret_tensor(buf0, (4, ), (1, ), 0)",
        "buf2 = torch.ops.aten.view.default(reinterpret_tensor(buf1, (4, ), (1, ), 0), [2, 2])",
        "buf3 = torch.ops.aten.split.Tensor(buf0, 4)",
        "return (buf2, )",
    )
    assert [one.later for one in found.allocations] == [("buf1", "buf2", "buf3[0]", "buf3[1]")]


@pytest.mark.parametrize(
    "made",
    [
        "copy.default(x, buf0)",
        "slice_scatter.default(x, buf0[1:], 0, 1, 9)",
        "select_scatter.default(x, buf0[0], 0, 1)",
    ],
)
def test_what_is_copied_with_its_gaps_has_the_whole_storage(made: str) -> None:
    x = torch.arange(25.0)[1:25].view(4, 6)[:, :3]
    b = torch.zeros(4, 3)
    size = eval(f"torch.ops.aten.{made}", {"torch": torch, "x": x, "buf0": b}).untyped_storage().nbytes()
    assert size == 100  # the elements end after 88
    found = run(
        "arg0_1, = args",
        "x = reinterpret_tensor(arg0_1, (4, 3), (6, 1), 0)",
        "buf0 = empty_strided_cpu((4, 3), (3, 1), torch.float32)",
        f"buf1 = torch.ops.aten.{made}",
        f"buf2 = torch.ops.aten.{made}",  # no cache may make it shorter
        "return (buf1, buf2)",
        inputs=(Given((24,), (1,), 1, torch.float32, torch.device("cpu"), 1, 100),),
    )
    assert [(one.name, one.nbytes) for one in found.allocations][1:] == [("buf1", size), ("buf2", size)]


def test_several_results_are_told_apart() -> None:
    found = run(
        f"buf0 = {EIGHT}",
        "buf1 = torch.ops.aten.sort.default(buf0)",
        "buf2 = buf1[0]",
        "buf3 = buf1[1]",
        "del buf1",
        "del buf3",
        "return (buf2, )",
    )
    assert [(one.name, one.later, one.nbytes, one.freed) for one in found.allocations] == [
        ("buf0", (), 32, 6),
        ("buf1[0]", ("buf2",), 32, None),
        ("buf1[1]", ("buf3",), 64, 5),
    ]


def test_to_wait_for_a_tensor_takes_nothing() -> None:
    wait = "torch.ops._c10d_functional.wait_tensor.default(buf0)"
    assert run(f"buf0 = {EIGHT}", wait, f"buf1 = {wait}", "del buf0", "return (buf1, )").peak == 32


def test_a_constant_of_the_module_takes_nothing() -> None:
    with_constant = dataclasses.replace(
        program("buf0 = reinterpret_tensor(constant0, (4, ), (1, ), 0)", "return (buf0, )"),
        constants={"constant0": torch.ones(4)},
    )
    assert taken(Call(with_constant, ())).allocations == ()


_BRANCHES = (
    "arg0_1, = args",
    "args.clear()",
    "if arg0_1.item():",
    f"    buf0 = [{EIGHT}, {EIGHT}]",
    "else:",
    f"    buf0 = [{EIGHT}]",
    "return (buf0[0], )",
)
_BOOL = tensor(1, 1, storage=1, dtype=torch.bool)


def test_the_real_call_tells_which_branch_runs() -> None:
    assert [run(*_BRANCHES, inputs=(_BOOL,), answers=(p,)).peak for p in (True, False)] == [64, 32]


def test_without_a_call_the_way_that_takes_most_is_told() -> None:
    found = possible(program(*_BRANCHES), (_BOOL,))
    assert (found.peak, found.paths, found.all_paths) == (64, 2, True)


def test_a_loop_turns_as_often_as_it_really_did() -> None:
    loop = ("arg0_1, = args", "held = []", "while arg0_1:", f"    held.append({EIGHT})", "return (held, )")
    for turns in (0, 1, 12):
        assert run(*loop, inputs=(_BOOL,), answers=(True,) * turns + (False,)).peak == 32 * turns
    guessed = possible(program(*loop), (_BOOL,))
    assert (guessed.peak, guessed.paths, guessed.all_paths) == (256, 9, False)


def test_a_result_whose_size_depends_on_data_is_that_of_the_real_call() -> None:
    body = "arg0_1, = args", "buf0 = torch.ops.aten.nonzero.default(arg0_1)", "return (buf0, )"
    rows = Given((3, 1), (1, 1), 0, torch.int64, torch.device("cpu"), 5, 24)
    assert run(*body, inputs=(tensor(1),), results=((rows,),)).peak == 24
    with pytest.raises(ProgramError, match="buf0 = .*: DynamicOutputShapeException"):
        possible(program(*body), (tensor(1),))


def test_a_size_that_is_computed_is_known_from_the_real_call_alone() -> None:
    body = (
        "arg0_1, = args",
        "u0 = arg0_1.item()",
        "buf0 = empty_strided_cpu((u0, ), (1, ), torch.float32)",
        "return (buf0, )",
    )
    inputs = (tensor(1, 1, storage=8, dtype=torch.int64),)
    assert run(*body, inputs=inputs, answers=(5,)).peak == 20
    with pytest.raises(ProgramError, match="a number that kernels compute decides what follows"):
        possible(program(*body), inputs)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            ("arg0_1, arg1_1 = args", "return (torch.ops.aten.nonzero.default(arg0_1), )"),
            "the real call did not call aten.nonzero.default",
        ),
        (("buf0 = unheard_of(3)", "return (buf0, )"), "buf0 = unheard_of.3.: NameError"),
        (("return (args[1].item(), )",), "the real call asked for fewer numbers"),
    ],
)
def test_what_is_not_understood_is_an_error_with_its_line(body: tuple[str, ...], message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        run(*body, inputs=(tensor(1), _BOOL))


def test_a_program_in_cpp_is_named() -> None:
    text = "from torch._inductor.codecache import CppWrapperCodeCache\n"
    with pytest.raises(ProgramError, match=r"C\+\+ programs \(cpp_wrapper\) are not supported"):
        taken(Call(Program(text), ()))
    with pytest.raises(ProgramError, match="kept no program"):
        taken(Call(Program(""), ()))


def test_another_way_than_the_real_one_is_an_error() -> None:
    body = f"buf0 = {EIGHT}", "return (buf0, )"
    first = len(_HEAD.splitlines()) + 1
    assert run(*body, lines=(first, first + 1)).peak == 32
    with pytest.raises(ProgramError, match="goes another way"):
        run(*body, lines=(first, first, first + 1))

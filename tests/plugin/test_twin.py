"""The eager twin of a program: what is copied, and each difference that is found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pytest_reinplace import Program
from pytest_reinplace.base.tolerance import Tolerance
from pytest_reinplace.call.twin import TwinError, differences, leaves, twin


def compare(program: Program, broken: Callable[..., Any] | None = None) -> list[str]:
    """Run a program's twin eagerly and the original, or a ``broken`` stand-in, and compare."""
    pair = twin(program)
    eager = pair.after_eager(pair.eager.fn(*pair.eager.args, **pair.eager.kwargs))
    compiled = pair.after_compiled((broken or program.fn)(*program.args, **program.kwargs))
    return differences(eager, compiled, Tolerance())


def update(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x.add_(y)
    return x * 2


def pair() -> Program:
    return Program(update, (torch.arange(4.0), torch.ones(4)))


def test_the_same_function_has_no_differences() -> None:
    assert compare(pair()) == []


def test_wrong_results_are_found() -> None:
    def wrong(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.add_(y)
        return x * 3

    (found,) = compare(pair(), wrong)
    assert found.startswith("result: Tensor-likes are not close! Mismatched elements: 4 / 4")


def test_wrong_final_inputs_are_found() -> None:
    def wrong(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x + y) * 2

    (found,) = compare(pair(), wrong)
    assert found.startswith("args[0]: Tensor-likes are not close!")


def test_an_input_that_must_not_be_written_is_found() -> None:
    def wrong(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.add_(y)
        result = x * 2
        y.zero_()
        return result

    (found,) = compare(pair(), wrong)
    assert found.startswith("args[1]: ")


def test_leaked_sharing_is_found() -> None:
    program = Program(lambda x: x.clone(), (torch.ones(3),))
    assert compare(program, lambda x: x) == [
        "result shares storage with args[0] when compiled, but not in eager"
    ]


def test_lost_sharing_is_found() -> None:
    program = Program(lambda x: x[1:], (torch.ones(3),))
    assert compare(program, lambda x: x[1:].clone()) == [
        "result shares storage with args[0] in eager, but not when compiled"
    ]


def test_sharing_between_results_is_compared() -> None:
    def two(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x.clone(), x.clone()

    def one(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return (copied := x.clone()), copied

    (found,) = compare(Program(two, (torch.ones(3),)), one)
    assert found == "result[1] shares storage with result[0] when compiled, but not in eager"


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (lambda x: x.double(), "dtype"),
        (lambda x: x[None].clone(), "shape"),
        (lambda x: (x.clone(),), "result[0]: only the compiled program has it"),
    ],
)
def test_other_dtype_shape_and_structure_are_found(broken: Callable[..., Any], message: str) -> None:
    assert message in " ".join(compare(Program(lambda x: x.clone(), (torch.ones(3),)), broken))


def test_numbers_are_compared() -> None:
    assert compare(Program(lambda: {"n": 1}), lambda: {"n": 2}) == ["result['n']: eager gives 1, compiled 2"]


@pytest.mark.parametrize("cause", [torch.OutOfMemoryError("no memory"), ValueError("no number")])
def test_a_full_device_is_told_as_one(cause: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch's comparison makes a RuntimeError of all that it meets; an entry is run again alone for one."""

    def compared(self: object) -> None:
        raise cause

    monkeypatch.setattr(torch.testing._comparison.TensorLikePair, "compare", compared)
    with pytest.raises(torch.OutOfMemoryError if "memory" in str(cause) else RuntimeError) as raised:
        compare(pair())
    assert isinstance(raised.value, torch.OutOfMemoryError) is isinstance(cause, torch.OutOfMemoryError)


def test_nan_equals_nan() -> None:
    assert compare(Program(lambda x: x / x, (torch.zeros(2),))) == []


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e8m0fnu])
def test_float8_is_compared_by_its_values(dtype: torch.dtype) -> None:
    program = Program(lambda x: x.clone(), (torch.tensor([1.0, 2.0, torch.nan]).to(dtype),))
    assert compare(program) == []
    (found,) = compare(program, lambda x: x.float().mul(2).to(x.dtype))
    assert found.startswith("result: Tensor-likes are not close! Mismatched elements: 2 / 3")
    (found,) = compare(program, lambda x: x.float())
    assert "dtype" in found


def test_tolerance_is_respected() -> None:
    program = Program(lambda x: x.clone(), (torch.ones(3),))
    copied = twin(program)
    eager = copied.after_eager(torch.ones(3))
    compiled = copied.after_compiled(torch.full((3,), 1.01))
    assert differences(eager, compiled, Tolerance(rtol=0.1)) == []
    assert differences(eager, compiled, Tolerance(rtol=0.001)) != []


def test_integers_may_have_a_tolerance_of_their_own() -> None:
    def compared(came: torch.Tensor, tolerance: Tolerance) -> list[str]:
        copied = twin(Program(lambda: None))
        eager = torch.tensor([100, -3], dtype=came.dtype)
        return differences(copied.after_eager(eager), copied.after_compiled(came), tolerance)

    one = Tolerance(rtol=0.05, atol=0.05, integers=1)
    assert compared(torch.tensor([101, -4], dtype=torch.int8), one) == []
    assert compared(torch.tensor([102, -3], dtype=torch.int8), one) != []
    assert compared(torch.tensor([102, -3], dtype=torch.int8), Tolerance(rtol=0.05, atol=0.05)) == []
    assert compared(torch.tensor([100.0, -4.0]), one) != []


def test_a_tolerance_of_integers_is_none_of_bools() -> None:
    copied = twin(Program(lambda: None))
    eager, compiled = torch.tensor([True, False]), torch.tensor([True, True])
    one = Tolerance(rtol=0.05, atol=0.05, integers=1)
    assert differences(copied.after_eager(eager), copied.after_compiled(compiled), one) != []


class Counter(torch.nn.Module):
    """A module with state of every kind."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2))
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls.add_(1)
        return x * self.weight


def test_a_modules_state_is_copied_and_compared_by_name() -> None:
    module = Counter()
    program = Program(module, (torch.ones(2),))
    assert compare(program) == []
    assert module.calls == 1
    found = compare(program, lambda x: x * module.weight)
    assert [line.split(":")[0] for line in found] == ["fn.calls"]


def test_a_bound_method_brings_its_object() -> None:
    class Owner:
        def __init__(self) -> None:
            self.total = torch.zeros(2)

        def add(self, x: torch.Tensor) -> None:
            self.total += x

    owner = Owner()
    assert compare(Program(owner.add, (torch.ones(2),))) == []
    assert owner.total.tolist() == [1, 1]
    assert [line.split(":")[0] for line in compare(Program(owner.add, (torch.ones(2),)), lambda x: None)] == [
        "fn.total"
    ]


def test_views_stay_views_in_the_copy() -> None:
    base = torch.zeros(4)
    copied = twin(Program(update, (base[:2], base[2:]), {"whole": base}))
    assert copied.eager.args[0].untyped_storage().data_ptr() == copied.eager.kwargs["whole"].data_ptr()
    assert copied.eager.args[0].data_ptr() != base.data_ptr()


def test_gradients_are_copied_and_compared() -> None:
    module = Counter()
    module.weight.grad = torch.ones(2)
    program = Program(module, (torch.ones(2),))
    copied = twin(program)
    assert copied.eager.fn.weight.grad.tolist() == [1, 1]
    before = copied.after_eager(None)
    module.weight.grad.zero_()
    (found,) = differences(before, copied.after_compiled(None), Tolerance())
    assert found.startswith("fn.weight.grad: ")


def test_a_closure_over_tensors_is_refused() -> None:
    cache = torch.zeros(2)
    with pytest.raises(TwinError, match="closes over tensors"):
        twin(Program(lambda x: cache.add_(x), (torch.ones(2),)))


def test_a_closure_over_a_module_is_refused() -> None:
    module = Counter()
    with pytest.raises(TwinError, match="closes over tensors"):
        twin(Program(lambda x: module(x), (torch.ones(2),)))


def test_a_closure_over_numbers_is_fine() -> None:
    factor = 3
    assert compare(Program(lambda x: x * factor, (torch.ones(2),))) == []


def test_parameters_that_share_storage_are_refused() -> None:
    flat = torch.zeros(4)
    parameters = [torch.nn.Parameter(flat[:2]), torch.nn.Parameter(flat[2:])]
    with pytest.raises(TwinError, match="do not share it"):
        twin(Program(lambda a: a[0] + a[1], (parameters,)))


def test_what_cannot_be_copied_is_refused() -> None:
    with pytest.raises(TwinError, match="cannot be copied"):
        twin(Program(update, (torch.ones(2, requires_grad=True) * 2, torch.ones(2))))


def test_leaves_walk_containers_objects_and_cycles() -> None:
    class Box:
        pass

    box, x = Box(), torch.ones(1)
    box.items, box.me, box.name = {"a": [x], 3: (1, 2.5)}, box, "text"  # type: ignore[attr-defined]
    assert leaves(box, "box") == {"box.items['a'][0]": x, "box.items[3][0]": 1, "box.items[3][1]": 2.5}

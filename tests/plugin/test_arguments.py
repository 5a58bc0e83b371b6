"""A callable that does not take its arguments is told so, with its signature, before anything is compiled."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch

from pytest_reinplace.call.arguments import check, mismatch


def take(cache: torch.Tensor, key: int = 3, *, scale: Any = torch.ones(2)) -> torch.Tensor:  # noqa: B008
    return cache * key * scale


class Adds(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y


def giving_scale(fn: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fn)
    def outer(cache: torch.Tensor) -> Any:
        return fn(cache, key=1)

    return outer


@pytest.mark.parametrize("call", ["assert_reinplaced", "assert_clones", "reinplace.run", "reinplace.trace"])
@pytest.mark.parametrize(("given", "got"), [("", "none"), (", x", "1 argument")])
def test_the_users_line_comes_first(compiling: pytest.Pytester, call: str, given: str, got: str) -> None:
    fixture, line = call.partition(".")[0], f"    {call}(two{given})"
    compiling.makepyfile(
        test_it=f"import torch\nx = torch.ones(2)\ndef two(a, b):\n    return a + b\n"
        f"def test_it({fixture}):\n{line}\n"
    )
    result = compiling.runpytest()
    lines = [text for text in result.outlines if text.startswith((">", "E "))]
    missing = "a" if got == "none" else "b"
    assert lines == [
        f">   {line}",
        "E       TypeError: expected arguments for two(a, b) at test_it.py:3: missing a required argument: "
        f"'{missing}'; got {got}",
    ]


def test_what_is_wrong_is_told_with_names_alone() -> None:
    line = inspect.getsourcelines(take)[1]
    with pytest.raises(TypeError) as raised:
        check(take, (), {})
    assert "take(cache, key=..., *, scale=...) at " in str(raised.value)
    assert f"test_arguments.py:{line}: missing a required argument: 'cache'; got none" in str(raised.value)
    assert mismatch(take, (1, 2, 3), {}).endswith("too many positional arguments")
    assert mismatch(take, (1,), {"wrong": 1}).endswith("unexpected keyword argument 'wrong'")
    with pytest.raises(TypeError, match=r"arguments for Adds\(x, y\)"):
        check(Adds(), (1,), {})
    with pytest.raises(TypeError, match=r"arguments for take\("):
        check(torch.compile(take), (), {})


def test_arguments_that_fit_are_left_alone() -> None:
    hooked = Adds()
    hooked.register_forward_pre_hook(lambda module, args: (*args, args[0]))
    fitting: list[tuple[Any, tuple[Any, ...]]] = [
        (take, (1, 2)),
        (Adds(), (1, 2)),
        (hooked, (1,)),
        (giving_scale(take), (1,)),
        (torch.add, (1, 2)),
        (torch.ops.aten.add, (1, 2)),
        (functools.partial(take, key=1), (1,)),
    ]
    assert [mismatch(fn, args, {}) for fn, args in fitting] == [""] * len(fitting)

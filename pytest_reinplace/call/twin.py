"""An eager twin of a program: its copy, and what differs between the two after each ran.

Copied and compared are the callable's own state, the arguments and the results, and who shares storage
with whom among all of them.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import types
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ..base.tolerance import Tolerance
from .program import Program

if TYPE_CHECKING:
    import torch


_CODE = (type, types.FunctionType, types.MethodType, types.BuiltinFunctionType, types.ModuleType)


class TwinError(Exception):
    """A program cannot be copied faithfully, so that compiled and eager cannot be compared."""


@dataclasses.dataclass(frozen=True, slots=True)
class Run:
    """What one run left behind.

    Args:
        results: the leaves of the returned value by their path (``"result[0]"``).
        state: every tensor of the program, by its path (``"args[1]"``).
    """

    results: Mapping[str, Any]
    state: Mapping[str, torch.Tensor]


@dataclasses.dataclass(frozen=True, slots=True)
class Twin:
    """A program and its copy.

    Args:
        program: the original, to be compiled.
        eager: the copy.
        tensors: path, tensor of the original, tensor of the copy.
    """

    program: Program
    eager: Program
    tensors: tuple[tuple[str, torch.Tensor, torch.Tensor], ...]

    def after_compiled(self, result: Any) -> Run:
        """Return what the original's run left behind."""
        return Run(leaves(result), _with_gradients((path, tensor) for path, tensor, _ in self.tensors))

    def after_eager(self, result: Any) -> Run:
        """Return what the copy's run left behind."""
        return Run(leaves(result), _with_gradients((path, tensor) for path, _, tensor in self.tensors))


def twin(program: Program) -> Twin:
    """Copy a program, with all sharing of storage inside it.

    Raises:
        TwinError: it holds something that cannot be copied, or closes over tensors.
    """
    _refuse_closures(program)
    memo: dict[int, Any] = {}
    whole = (program.fn, program.args, dict(program.kwargs))
    try:
        fn, args, kwargs = copy.deepcopy(whole, memo)
    except (TypeError, RuntimeError) as error:
        raise TwinError(
            f"the program cannot be copied for the eager run: {error}; build it from modules, containers "
            "and leaf tensors"
        ) from error
    pairs = tuple(_pairs(program, memo))
    _copy_gradients(pairs, memo)
    if _sharing({path: a for path, a, _ in pairs}) != _sharing({path: b for path, _, b in pairs}):
        raise TwinError(
            "the program cannot be copied for the eager run: copies of parameters that are views of one "
            "storage do not share it; make them buffers or plain tensors"
        )
    return Twin(program, dataclasses.replace(program, fn=fn, args=args, kwargs=kwargs), pairs)


def _refuse_closures(program: Program) -> None:
    """Refuse a function whose tensors a copy of the program would share with the original."""
    import torch

    for cell in getattr(program.fn, "__closure__", None) or ():
        with contextlib.suppress(ValueError):  # an empty cell
            if any(isinstance(leaf, torch.Tensor) for leaf in leaves(cell.cell_contents).values()):
                raise TwinError(
                    f"{program.fn!r} closes over tensors, which a copy would share; pass them as arguments"
                )


def _pairs(program: Program, memo: dict[int, Any]) -> Iterator[tuple[str, torch.Tensor, torch.Tensor]]:
    """Yield the tensors that were copied; ``memo`` maps ids to copies and holds the originals alive."""
    import torch

    owner = getattr(program.fn, "__self__", program.fn)
    named = {"fn": owner, "args": program.args, "kwargs": dict(program.kwargs)}
    paths = {
        id(tensor): path for root, value in named.items() for path, tensor in leaves(value, root).items()
    }
    for number, original in enumerate(memo.get(id(memo), ())):
        if isinstance(original, torch.Tensor):
            yield paths.get(id(original), f"state #{number}"), original, memo[id(original)]


def _copy_gradients(pairs: tuple[tuple[str, torch.Tensor, torch.Tensor], ...], memo: dict[int, Any]) -> None:
    """Give copied parameters their gradients, which copying a parameter drops."""
    for _, original, copied in pairs:
        if original.is_leaf and original.grad is not None and copied.grad is None:
            copied.grad = copy.deepcopy(original.grad, memo)


def _with_gradients(tensors: Iterator[tuple[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    found = {}
    for path, tensor in tensors:
        found[path] = tensor
        if tensor.is_leaf and tensor.grad is not None:
            found[f"{path}.grad"] = tensor.grad
    return found


def leaves(value: Any, root: str = "result") -> dict[str, Any]:
    """Return the tensors and numbers inside a value by their paths, walking containers and objects."""
    found: dict[str, Any] = {}
    seen: set[int] = set()
    pending = [(root, value)]
    while pending:
        path, item = pending.pop()
        if _is_leaf(item):
            found[path] = item
        elif id(item) not in seen:
            seen.add(id(item))
            pending.extend(reversed(list(_inside(path, item))))
    return found


def _is_leaf(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor | bool | int | float)


def _inside(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    import torch

    if isinstance(value, torch.nn.Module):
        for name, tensor in [*value.named_parameters(), *value.named_buffers()]:
            yield f"{path}.{name}", tensor
    elif isinstance(value, Mapping):
        for i, (key, item) in enumerate(value.items()):
            yield f"{path}[{key!r}]" if isinstance(key, str | int) else f"{path}[{i}]", item
    elif isinstance(value, list | tuple | set | frozenset):
        for i, item in enumerate(value):
            yield f"{path}[{i}]", item
    elif not isinstance(value, _CODE):
        for name, item in getattr(value, "__dict__", {}).items():
            yield f"{path}.{name}", item


def differences(eager: Run, compiled: Run, tolerance: Tolerance) -> list[str]:
    """Return what differs, results first, then what the inputs hold, then sharing; empty when nothing."""
    found = [*_differing(eager.results, compiled.results, tolerance)]
    found += _differing(eager.state, compiled.state, tolerance)
    return found or [*_sharing_differences(eager, compiled)]


def _differing(eager: Mapping[str, Any], compiled: Mapping[str, Any], tolerance: Tolerance) -> Iterator[str]:
    import torch

    for path in [*eager, *(path for path in compiled if path not in eager)]:
        if path not in eager or path not in compiled:
            yield f"{path}: {'only eager' if path in eager else 'only the compiled program'} has it"
            continue
        expected, came = eager[path], compiled[path]
        if not isinstance(expected, torch.Tensor) or not isinstance(came, torch.Tensor):
            if expected != came:
                yield f"{path}: eager gives {expected!r}, compiled {came!r}"
            continue
        if expected.dtype is came.dtype and str(came.dtype).startswith("torch.float8"):
            came, expected = came.float(), expected.float()  # torch compares these bit by bit only
        rtol, atol = _distances(expected, tolerance)
        try:
            torch.testing.assert_close(came, expected, rtol=rtol, atol=atol, equal_nan=True)
        except AssertionError as error:
            yield f"{path}: " + " ".join(str(error).split())
        except RuntimeError as error:
            # Torch makes one of its own of whatever its comparison raises. A full device is no difference.
            if isinstance(error.__cause__, torch.OutOfMemoryError):
                raise error.__cause__ from None
            raise


def _distances(tensor: Any, tolerance: Tolerance) -> tuple[float, float]:
    """Return the relative and the absolute difference that is allowed for a tensor's elements."""
    is_integer = str(tensor.dtype).startswith(("torch.int", "torch.uint"))
    if is_integer and tolerance.integers is not None:
        return 0.0, tolerance.integers
    return tolerance.rtol, tolerance.atol


def _sharing(tensors: Mapping[str, Any]) -> dict[str, str]:
    """Return for each tensor the first one that has the same storage."""
    import torch

    first: dict[int, str] = {}
    groups = {}
    for path, tensor in tensors.items():
        if isinstance(tensor, torch.Tensor) and (address := tensor.untyped_storage().data_ptr()):
            groups[path] = first.setdefault(address, path)
    return groups


def _sharing_differences(eager: Run, compiled: Run) -> Iterator[str]:
    expected = _sharing({**eager.state, **eager.results})
    came = _sharing({**compiled.state, **compiled.results})
    for path, partner in came.items():
        if expected.get(path) == partner:
            continue
        if partner != path:
            yield f"{path} shares storage with {partner} when compiled, but not in eager"
        else:
            yield f"{path} shares storage with {expected.get(path)} in eager, but not when compiled"

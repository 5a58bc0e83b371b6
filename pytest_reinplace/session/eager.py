"""Holding a compiled call against an eager one: what the marker's ``tolerance=`` asks for."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from ..call import _torch
from ..call.program import Program
from ..call.twin import TwinError, differences, leaves, twin
from . import verdict
from .item_capture import origin

if TYPE_CHECKING:
    from ..capture.capture import Capture

T = TypeVar("T")


def beside(
    capture: Capture,
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    call: Callable[[], T],
) -> T:
    """Return ``call()``, which is ``fn`` compiled and called, where it does what ``fn`` does eagerly.

    An eager copy of ``fn`` is called first, on copies of the arguments and with the same random numbers.
    Compared are results, what the tensors of ``fn`` and of the arguments hold afterwards, their gradients,
    and who shares storage with whom. Nothing is compared when the test has no tolerance.

    Raises:
        AssertionError: something differs, by more than the tolerance where it is floating-point.
        TwinError: ``fn`` and its arguments cannot be copied, or ``fn`` closes over tensors or writes global
            ones.
    """
    __tracebackhide__ = True
    tolerance = capture.tolerance
    if tolerance is None:
        return call()
    fn = _torch.eager_of(fn)
    pair = twin(Program(fn, args, kwargs))
    with _torch.eagerly(), _globals_unwritten(fn):
        eager = pair.after_eager(pair.eager.fn(*pair.eager.args, **pair.eager.kwargs))
    result = call()
    capture.compared += 1
    found = differences(eager, pair.after_compiled(result), tolerance)
    judged = verdict.as_eager(found, tolerance, origin(capture))
    if not judged.passed:
        raise AssertionError(str(judged))
    return result


@contextlib.contextmanager
def _globals_unwritten(fn: Callable[..., Any]) -> Iterator[None]:
    """Refuse a function that writes into global tensors: the compiled call would find what eager wrote."""
    import torch

    plain = getattr(fn, "__func__", fn)
    names = inspect.getclosurevars(plain).globals if inspect.isfunction(plain) else {}
    found = {
        path: (leaf, leaf._version)
        for name, value in names.items()
        for path, leaf in leaves(value, name).items()
        if isinstance(leaf, torch.Tensor) and not leaf.is_inference()
    }
    yield
    for path, (tensor, version) in found.items():
        if tensor._version != version:
            raise TwinError(
                f"{fn!r} writes into the global {path}, which a copy would share; pass it as an argument"
            )

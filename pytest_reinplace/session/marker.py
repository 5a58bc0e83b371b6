"""The marker ``@pytest.mark.reinplace(...)``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest

from ..base import choices

if TYPE_CHECKING:
    from ..base.tolerance import Tolerance
    from .marked import Marked

NAME = "reinplace"
_TEXTS = {"device": choices.device_name, "backend": choices.backend_name, "pass_": choices.pass_name}
_COUNTS = ("max_clones", "max_copies")
_BYTES = ("max_clone_bytes", "max_copy_bytes", "max_peak_bytes")
_RATIO = "max_peak_over_bound"
_VALID = (*_TEXTS, *_COUNTS, *_BYTES, _RATIO, "tolerance")

LINE = (
    "reinplace(*, device=None, backend=None, pass_=None, max_clones=None, max_clone_bytes=None, "
    "max_copies=None, max_copy_bytes=None, max_peak_bytes=None, max_peak_over_bound=None, tolerance=None): "
    "capture what the test compiles, on this device, with this backend and pass, and fail it when more is "
    "cloned, more copied by Inductor's lowering, more memory held by reinplace.run, when a measured call "
    "holds more times its lower bound, or when what the fixtures compile and call differs from eager by more "
    "than this tolerance"
)


def read(item: pytest.Item) -> Marked:
    """Return what the markers of a test say; the closest marker wins, name by name.

    Raises:
        pytest.fail.Exception: an unknown or a positional argument, or a wrong value.
    """
    given: dict[str, Any] = {}
    for mark in item.iter_markers(NAME):
        if mark.args:
            raise wrong(item, f"takes keyword arguments only, got {mark.args!r}")
        for name, value in mark.kwargs.items():
            if name not in _VALID:
                raise wrong(item, f"has no argument {name!r}; the valid ones are {', '.join(_VALID)}")
            if value is not None:
                given.setdefault(name, _checked(item, name, value))
    from .marked import Marked

    return Marked(**given)


def _checked(item: pytest.Item, name: str, value: Any) -> Any:
    if name == "tolerance":
        return _tolerance(item, value)
    if name == _RATIO:
        if not _is_distance(value) or value < 1:
            raise wrong(item, f"expected {name} to be a finite number of at least 1, got {value!r}")
        return value
    if name in _COUNTS:
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise wrong(item, f"expected {name} to be an int of at least 0, got {value!r}")
        return value
    try:
        if name in _BYTES:
            from ..base.amount import in_bytes

            return in_bytes(value)
        _TEXTS[name](value if isinstance(value, str) else repr(value))
    except ValueError as error:
        raise wrong(item, f"{name}: {error}") from None
    return value


def _tolerance(item: pytest.Item, value: Any) -> Tolerance:
    """Return a tolerance as an entry's: one number for both, or either of ``rtol`` and ``atol`` by name."""
    from ..base.tolerance import Tolerance

    both = value if isinstance(value, Mapping) else {"rtol": value, "atol": value}
    if not both or not both.keys() <= {"rtol", "atol"} or not all(map(_is_distance, both.values())):
        raise wrong(
            item,
            "expected tolerance to be a finite number of at least 0, or a mapping from rtol and atol to such "
            f"numbers, got {value!r}",
        )
    return Tolerance(**both)


def _is_distance(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 <= value < float("inf")


def wrong(item: pytest.Item, text: str) -> BaseException:
    """Return the failure of this one test: the others have nothing to do with its marker."""
    return pytest.fail.Exception(f"{item.nodeid}: marker {NAME}: {text}", pytrace=False)

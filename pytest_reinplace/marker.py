"""The marker ``@pytest.mark.reinplace(...)``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from . import options

if TYPE_CHECKING:
    from .marked import Marked

NAME = "reinplace"
_TEXTS = {"device": options.device_name, "backend": options.backend_name, "pass_": options.pass_name}
_COUNTS = ("max_clones", "max_clone_bytes", "max_peak_bytes")
_VALID = (*_TEXTS, *_COUNTS)

LINE = (
    "reinplace(*, device=None, backend=None, pass_=None, max_clones=None, max_clone_bytes=None, "
    "max_peak_bytes=None): capture what the test compiles, on this device, with this backend and pass, and "
    "fail it when more is cloned, or more memory held by reinplace.run"
)


def read(item: pytest.Item) -> Marked:
    """Return what the markers of a test say; the closest marker wins, name by name.

    Raises:
        pytest.UsageError: an unknown or a positional argument, or a wrong value.
    """
    given: dict[str, Any] = {}
    for mark in item.iter_markers(NAME):
        if mark.args:
            raise _wrong(item, f"takes keyword arguments only, got {mark.args!r}")
        for name, value in mark.kwargs.items():
            if name not in _VALID:
                raise _wrong(item, f"has no argument {name!r}; the valid ones are {', '.join(_VALID)}")
            if value is not None:
                _check(item, name, value)
                given.setdefault(name, value)
    from .marked import Marked

    return Marked(**given)


def _check(item: pytest.Item, name: str, value: Any) -> None:
    if name in _COUNTS:
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise _wrong(item, f"expected {name} to be an int of at least 0, got {value!r}")
        return
    try:
        _TEXTS[name](value if isinstance(value, str) else repr(value))
    except ValueError as error:
        raise _wrong(item, f"{name}: {error}") from None


def _wrong(item: pytest.Item, text: str) -> pytest.UsageError:
    return pytest.UsageError(f"{item.nodeid}: marker {NAME}: {text}")

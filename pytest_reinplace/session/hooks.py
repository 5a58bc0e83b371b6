"""Asking our hooks: what they answer is checked, and an error names the plugin."""

from __future__ import annotations

import copy
import json
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ..base.visible import visible
from ..record import stored

if TYPE_CHECKING:
    from pluggy import HookCaller, HookImpl


class HookError(Exception):
    """A hook raised, or gave what cannot be used. The message names the hook and the plugin."""


def device_info(config: pytest.Config) -> dict[str, Any] | None:
    """Return what ``pytest_reinplace_device_info`` says, as plain data; ``None`` where nothing is known.

    Raises:
        HookError: the answer is no mapping of JSON values with a name.
    """
    hook = config.hook.pytest_reinplace_device_info
    found = _asked(hook, config, config=config)
    if found is None:
        return None
    if not isinstance(found, Mapping):
        raise _wrong(hook, config, f"expected a mapping or None, got {_shown(found)}")
    name = found.get("name")
    if not isinstance(name, str) or not any(c.isascii() and c.isalnum() for c in name):
        raise _wrong(
            hook, config, f"expected 'name' to be a text with a letter or a digit, got {_shown(name)}"
        )
    return dict(_plain(dict(found), hook, config))


def updated(config: pytest.Config, report: dict[str, Any]) -> dict[str, Any]:
    """Return a report after ``pytest_reinplace_update_json``; the given one is not changed.

    Raises:
        HookError: what the hooks leave is no report any more.
    """
    hook = config.hook.pytest_reinplace_update_json
    if not hook.get_hookimpls():
        return report
    changed = copy.deepcopy(report)
    returned = _asked(hook, config, config=config, report=changed)
    if returned:
        raise _wrong(hook, config, f"expected None, got {_shown(returned[0])}; change the report in place")
    _plain(changed, hook, config)
    try:
        # Read as it will be, so that what a hook breaks is found now and not by the next comparison.
        stored.parse(json.loads(json.dumps(changed)), "the report")
    except stored.StoredError as error:
        raise _wrong(hook, config, f"cannot be read back: {error}") from None
    return changed


def _asked(hook: HookCaller, config: pytest.Config, /, **arguments: Any) -> Any:
    try:
        return hook(**arguments)
    except Exception as error:
        who = _culprit(hook, error)
        whose = f"plugin {_name(who, config)}" if who is not None else _everyone(hook, config)
        what = visible(f"{type(error).__name__}: {error}", 500)
        raise HookError(f"hook {hook.name} of {whose} raised {what}{_where(who, error)}") from error


def _culprit(hook: HookCaller, error: BaseException) -> HookImpl | None:
    """Return the implementation that an error came out of."""
    codes = {getattr(impl.function, "__code__", None): impl for impl in hook.get_hookimpls()}
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if frame.f_code in codes:
            return codes[frame.f_code]
    return None


def _where(who: HookImpl | None, error: BaseException) -> str:
    if who is None:
        return ""
    *_, (frame, line) = traceback.walk_tb(error.__traceback__)
    return f" (at {visible(Path(frame.f_code.co_filename).name)}:{line})"


def _plain(data: Any, hook: HookCaller, config: pytest.Config) -> Any:
    try:
        return json.loads(json.dumps(data, allow_nan=False, sort_keys=True))
    except (TypeError, ValueError, RecursionError) as error:
        raise _wrong(hook, config, f"expected only values that JSON has: {visible(error, 300)}") from None


def _wrong(hook: HookCaller, config: pytest.Config, problem: str) -> HookError:
    return HookError(f"hook {hook.name} of {_everyone(hook, config)}: {problem}")


def _everyone(hook: HookCaller, config: pytest.Config) -> str:
    """Name the plugins that implement a hook, ours left out: pluggy does not say whose answer came."""
    theirs = [i for i in hook.get_hookimpls() if not i.function.__module__.startswith("pytest_reinplace.")]
    names = sorted({_name(impl, config) for impl in theirs})
    return f"{'plugin' if len(names) == 1 else 'one of the plugins'} {', '.join(names)}"


def _name(impl: HookImpl, config: pytest.Config) -> str:
    """Return a plugin as its user knows it: a ``conftest.py`` by its path from the root."""
    path = Path(impl.plugin_name)
    return visible(path.relative_to(config.rootpath) if path.is_relative_to(config.rootpath) else path, 200)


def _shown(value: object) -> str:
    return f"{type(value).__name__} {visible(repr(value), 100)}"

"""The hooks that a ``conftest.py`` or another plugin may implement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest


@pytest.hookspec(firstresult=True)
def pytest_reinplace_device_info(config: pytest.Config) -> Mapping[str, Any] | None:
    """Say what the tests ran on; the first answer that is not ``None`` counts, ours is the last to be asked.

    Called once at the end of a session that writes ``--reinplace-json``; with pytest-xdist in each worker and
    in the controller, and the first worker's answer comes first.

    Args:
        config: the configuration of the session.

    Returns:
        What the report holds under ``device``: values that JSON has, among them ``name``, a text from which
        the ``slug`` beside it is made (``"NVIDIA H200"`` gives ``"nvidia-h200"``). ``None`` where nothing is
        known.
    """


@pytest.hookspec
def pytest_reinplace_update_json(config: pytest.Config, report: dict[str, Any]) -> None:
    """Change the JSON report before it is written; with pytest-xdist only the controller asks.

    Add what you know under keys of your own. The report must stay one that can be read back: JSON values
    only, the keys of ``report.schema.json`` with their meaning. Where a hook fails, the report is written
    as it was before the first hook, and the session ends with an error that names the plugin.

    Args:
        config: the configuration of the session.
        report: the document, a copy, to be changed in place; nothing is returned.
    """

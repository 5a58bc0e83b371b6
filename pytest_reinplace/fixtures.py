"""The fixtures. Any ``torch.compile`` of a test that requests one of them is captured."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .session import item_capture

if TYPE_CHECKING:
    from .assertions import AssertClones, AssertReinplaced
    from .capture.capture import Capture
    from .workbench import Workbench


def _capture(request: pytest.FixtureRequest) -> Capture:
    if item_capture.settings_of(request.config).disable:
        pytest.skip(item_capture.DISABLED)
    item_capture.require_device(request.node)
    return item_capture.begin(request.node)


@pytest.fixture
def reinplace(request: pytest.FixtureRequest) -> Workbench:
    """Work with passes and callables: ``.apply(gm, my_pass)``, ``.run(fn, x)``, ``.compile(fn)``."""
    from .workbench import Workbench

    return Workbench(_capture(request), item_capture.device_of(request.node))


@pytest.fixture
def assert_reinplaced(request: pytest.FixtureRequest) -> AssertReinplaced:
    """Require candidates in place: ``assert_reinplaced(fn, x)``, ``assert_reinplaced("mylib::op.x")``."""
    from .assertions import AssertReinplaced

    return AssertReinplaced(_capture(request))


@pytest.fixture
def assert_clones(request: pytest.FixtureRequest) -> AssertClones:
    """Require exactly these clones: ``assert_clones == ["mylib::op.x"]``, ``assert_clones(fn, x) == []``."""
    from .assertions import AssertClones

    return AssertClones(_capture(request))

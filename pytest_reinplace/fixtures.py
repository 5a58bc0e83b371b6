"""The fixtures. Any ``torch.compile`` of a test that requests one of them is captured."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .session import item_capture

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .assertions import AssertClones, AssertReinplaced
    from .capture.capture import Capture
    from .copy_assertions import AssertCopies
    from .graph_assertions import AssertGraph
    from .peak_assertions import AssertPeak
    from .workbench import Reinplace


def _capture(request: pytest.FixtureRequest) -> Capture:
    if item_capture.settings_of(request.config).disable:
        pytest.skip(item_capture.DISABLED)
    item_capture.require_device(request.node)
    return item_capture.begin(request.node)


@pytest.fixture
def reinplace(request: pytest.FixtureRequest) -> Reinplace:
    """Work with passes and callables: ``.apply(gm, my_pass)``, ``.run(fn, x)``, ``.compile(fn)``."""
    from .workbench import Reinplace

    return Reinplace(_capture(request), item_capture.device_of(request.node))


@pytest.fixture
def assert_reinplaced(request: pytest.FixtureRequest) -> Iterator[AssertReinplaced]:
    """Require candidates in place: ``assert_reinplaced(fn, x)``, ``assert_reinplaced("mylib::op.x")``."""
    from .assertions import AssertReinplaced

    asserting = AssertReinplaced(_capture(request))
    yield asserting
    _require_used(request, asserting.is_used, "assert_reinplaced(fn, x)")


@pytest.fixture
def assert_clones(request: pytest.FixtureRequest) -> Iterator[AssertClones]:
    """Require exactly these clones: ``assert_clones == ["mylib::op.x"]``, ``assert_clones(fn, x) == []``."""
    from .assertions import AssertClones
    from .session import updating

    clones = AssertClones(_capture(request), updating.comparing(request.node))
    yield clones
    _require_compared(request, clones)


@pytest.fixture
def assert_copies(request: pytest.FixtureRequest) -> Iterator[AssertCopies]:
    """Require exactly these copies of lowering: ``assert_copies(fn, x) == []``, ``assert_copies == [..]``."""
    from .copy_assertions import AssertCopies

    copies = AssertCopies(_capture(request))
    yield copies
    _require_compared(request, copies)


@pytest.fixture
def assert_peak(request: pytest.FixtureRequest) -> Iterator[AssertPeak]:
    """Require a peak of memory: ``assert_peak(fn, x) <= "2MiB"``."""
    from .peak_assertions import AssertPeak

    asserting = AssertPeak(_capture(request))
    yield asserting
    if asserting.is_called_only:
        _require(
            request,
            "assert_peak(...) was called, and what it returned was compared with nothing: write "
            'assert_peak(fn, x) <= "2MiB"',
        )
    _require_used(request, asserting.is_used, 'assert_peak(fn, x) <= "2MiB"')


@pytest.fixture
def assert_graph(request: pytest.FixtureRequest) -> Iterator[AssertGraph]:
    """Require graphs to be as a file says: ``assert_graph("name", gm, my_pass)``, ``.matches(gm, "...")``."""
    if item_capture.settings_of(request.config).disable:
        pytest.skip(item_capture.DISABLED)
    from .graph_assertions import AssertGraph
    from .session import updating

    asserting = AssertGraph(request.node.path, request.config.rootpath, updating.graphs(request.node))
    yield asserting
    _require_used(request, asserting.is_used, 'assert_graph("name", gm, my_pass)')


def _require_compared(request: pytest.FixtureRequest, labels: AssertClones | AssertCopies) -> None:
    name = request.fixturename
    if labels.is_called_only:
        _require(
            request,
            f"{name}(...) was called, and what it returned was compared with nothing: write "
            f"{name}(fn, x) == [...]",
        )
    _require_used(request, labels.is_used, f"{name} == [...]")


def _require_used(request: pytest.FixtureRequest, is_used: bool, how: str) -> None:
    if not is_used:
        _require(
            request,
            f"{request.fixturename} was requested and never used, so nothing was asserted: write {how}, or "
            "do not request it",
        )


def _require(request: pytest.FixtureRequest, otherwise: str) -> None:
    """Fail a test that passed and asked its fixture nothing: it looks like a check and is none."""
    if item_capture.passed(request.node):
        pytest.fail(otherwise, pytrace=False)

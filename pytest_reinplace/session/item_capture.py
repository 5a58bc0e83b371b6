"""The capture of one test: whether there is one, from when to when, and what it hands on."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from . import marker
from .settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..capture.capture import Capture
    from ..capture.captured import CapturedGraph
    from ..capture.followed import Following
    from ..expected.found import Found

SETTINGS = pytest.StashKey[Settings]()
_CAPTURE = pytest.StashKey["Capture"]()

# On the stash of an item that captures by itself what it compiles.
OWN = pytest.StashKey[bool]()
# What came where files list the clones that an item expects, by list and labels.
COMPARED = pytest.StashKey[dict[tuple[str, ...], "Found"]]()
_PICTURES, _LEDGERS, _MEMORY = (pytest.StashKey[str]() for _ in range(3))
_RUNNING = pytest.StashKey[pytest.Item]()
_PASSED = pytest.StashKey[bool]()
_BEGAN = pytest.StashKey[bool]()
FIXTURES = frozenset({"reinplace", "assert_reinplaced", "assert_clones", "assert_copies", "assert_peak"})
NO_DEVICE = "no CUDA device"
_HERE = Path(__file__).parent
DISABLED = "--reinplace-disable: nothing is captured, so the pass would not be exercised"


def settings_of(config: pytest.Config) -> Settings:
    """Return the options in force."""
    return config.stash.get(SETTINGS, Settings())


def is_asked(item: pytest.Item) -> bool:
    """Return whether a test itself asks to be captured, by a fixture or a marker."""
    if not isinstance(item, pytest.Function) or OWN in item.stash:
        return False
    return not FIXTURES.isdisjoint(item.fixturenames) or item.get_closest_marker(marker.NAME) is not None


def is_wanted(item: pytest.Item) -> bool:
    """Return whether a test is captured: it asks for it, or a report on all tests is wanted.

    A report captures only tests that run after torch was imported: it never imports torch itself. Where
    every graph is to be checked, the test that imports torch is captured as well.
    """
    settings = settings_of(item.config)
    if settings.disable or not isinstance(item, pytest.Function) or OWN in item.stash:
        return False
    if settings.verify or settings.verify_rules:
        return True
    return is_asked(item) or ("torch" in sys.modules and (settings.reports or settings.compare is not None))


def device_of(item: pytest.Item) -> str:
    """Return the device that a test is for: its marker's, else the option's, else the CPU."""
    return marker.read(item).device or settings_of(item.config).device or "cpu"


def require_device(item: pytest.Item) -> None:
    """Skip a test for a device that is missing here."""
    if device_of(item) == "cuda":
        import torch

        if not torch.cuda.is_available():
            pytest.skip(NO_DEVICE)


def begin(item: pytest.Item) -> Capture:
    """Start the capture of a test, or return the one that is running.

    Raises:
        pytest.UsageError: the pass under test cannot be found.
        pytest.fail.Exception: the pass that the test's marker names cannot be found.
    """
    if _CAPTURE in item.stash:
        return item.stash[_CAPTURE]
    from ..base import progress
    from ..capture.capture import Capture
    from ..capture.pass_under_test import PassError
    from ..copies.lowering import Lowering

    settings, marked = settings_of(item.config), marker.read(item)
    try:
        capture = Capture(
            pass_name=marked.pass_ or settings.pass_name or "inductor",
            backend=marked.backend or settings.backend or "inductor",
            folder=item.config.rootpath,
            pictured=settings.pictured,
            progress=progress.of(item.config),
            verified=settings.verify,
            tolerance=marked.tolerance,
            asker="marked test" if marked.pass_ else "test",
            following=following(settings),
            onlooker=Lowering,
        )
    except PassError as error:
        if marked.pass_:
            raise marker.wrong(item, f"pass_: {error}") from None
        raise pytest.UsageError(f"--reinplace-pass: {error}") from None
    is_lowered = settings.explains_peaks and capture.backend == "inductor"
    capture.explains_peaks = is_lowered or marked.max_peak_over_bound is not None
    item.stash[_CAPTURE] = capture.__enter__()
    item.stash[_BEGAN] = True
    item.config.stash[_RUNNING] = item
    return capture


def following(settings: Settings) -> Following | None:
    """Return who keeps the ledgers of one capture; ``None`` where no option asks for them."""
    if not settings.follows:
        return None
    from ..capture.followed import Following

    return Following(checks=settings.verify_rules)


def running(item: pytest.Item) -> Capture | None:
    """Return the capture of a test, ``None`` where there is none."""
    return item.stash.get(_CAPTURE, None)


def was_begun(item: pytest.Item) -> bool:
    """Return whether a test is or was captured."""
    return _BEGAN in item.stash


def end(item: pytest.Item) -> None:
    """Stop the capture of a test, if there is one."""
    capture = item.stash.get(_CAPTURE, None)
    if capture is not None:
        del item.stash[_CAPTURE]
        capture.__exit__(None, None, None)


def end_interrupted(config: pytest.Config) -> None:
    """Stop the capture of a test whose teardown was never reached: pytest skips it after Ctrl-C."""
    item = config.stash.get(_RUNNING, None)
    if item is not None:
        end(item)


def hand_on(item: pytest.Item) -> None:
    """Put what was captured on the test's report."""
    capture = running(item)
    if capture is None:
        return
    graphs = capture.checked_graphs
    if graphs or is_asked(item):
        attach(item, graphs)
    if settings_of(item.config).explains_peaks and capture.memories:
        item.stash[_MEMORY] = json.dumps([one.figures() for one in capture.memories], sort_keys=True)


def attach(item: pytest.Item, graphs: Iterable[CapturedGraph]) -> None:
    """Put graphs on the report that pytest will make of a test: numbers and outcomes; what is long apart."""
    from ..record.counts import counts_of
    from ..record.record import PROPERTY

    data = [graph.to_dict() for graph in graphs]
    ledgers = [graph.pop("applications", None) for graph in data]
    if any(ledger is not None for ledger in ledgers):
        item.stash[_LEDGERS] = json.dumps(ledgers, sort_keys=True)
    for name, count in counts_of(data).items():
        item.user_properties.append((f"{PROPERTY}_{name}", count))
    item.user_properties.append((PROPERTY, json.dumps(data, sort_keys=True)))
    if settings_of(item.config).pictured:
        pictures = [graph.picture.to_dict() if graph.picture else None for graph in graphs]
        item.stash[_PICTURES] = json.dumps(pictures, sort_keys=True)


def illustrate(item: pytest.Item, report: pytest.TestReport) -> None:
    """Hand what is long over to a test's report; pytest-xdist takes any attribute along."""
    for key, attribute in ((_PICTURES, "PICTURES"), (_LEDGERS, "LEDGERS"), (_MEMORY, "MEMORY")):
        if report.when == "call" and key in item.stash:
            from ..record import record

            setattr(report, getattr(record, attribute), item.stash[key])
            del item.stash[key]
    if COMPARED in item.stash:
        from ..record.record import EXPECTED

        compared = [one.to_dict() for one in item.stash[COMPARED].values()]
        setattr(report, EXPECTED, json.dumps(compared, sort_keys=True))
        del item.stash[COMPARED]


def locate_skip(item: pytest.Item, report: pytest.TestReport) -> None:
    """Say where a test is that was skipped by us, and not where we skip."""
    if report.skipped and isinstance(report.longrepr, tuple):
        file, _, reason = report.longrepr
        if Path(file).is_relative_to(_HERE):
            path, line, _ = item.reportinfo()
            report.longrepr = (str(path), (line or 0) + 1, reason)


def note_passed(item: pytest.Item) -> None:
    """Note that the call of a test is over and nothing in it failed."""
    item.stash[_PASSED] = True


def passed(item: pytest.Item) -> bool:
    """Return whether a test has run and nothing in it failed, or was skipped."""
    return _PASSED in item.stash


def advise(item: pytest.Item, error: BaseException) -> None:
    """Add to an error of torch what helps, where a test compiles by our options."""
    if was_begun(item) or OWN in item.stash:
        from ..call import failure

        if note := failure.remedy(error, "--reinplace-backend=graph"):
            error.add_note(note)


def shorten(error: BaseException) -> None:
    """Leave an error that a pass under test raised the frames of the user alone."""
    module = sys.modules.get("pytest_reinplace.capture.pass_under_test")
    if module is None or not isinstance(error, Exception) or not module.is_of_a_pass(error):
        return
    from ..call import failure

    failure.shortened(error)


def origin(capture: Capture) -> str:
    """Return the pass and the backend for the reader of a failure."""
    return f"pass {capture.pass_name}, backend {capture.backend}"


def check_limits(item: pytest.Item) -> None:
    """Fail a test whose marker allows fewer clones or copies, or less memory, or has nothing to compare."""
    capture = running(item)
    if capture is None:
        return
    marked = marker.read(item)
    if not marked.has_limits:
        return
    from . import verdict

    where, found = origin(capture), []
    if marked.tolerance is not None and not capture.compared:
        found.append(verdict.uncompared(where))
    if marked.limits_clones:
        found.append(verdict.within(capture.since(0), marked.max_clones, marked.max_clone_bytes, where))
    if marked.limits_copies:
        graphs = capture.since(0)
        found.append(verdict.copies_within(graphs, marked.max_copies, marked.max_copy_bytes, where))
    if marked.max_peak_bytes is not None:
        found.append(verdict.peaks_within(capture.peaks, marked.max_peak_bytes, where))
    if (most := marked.max_peak_over_bound) is not None:
        found.append(verdict.peaks_over_bound(capture.memories, capture.backend, most, where))
    if not all(one.passed for one in found):
        pytest.fail("\n".join(str(one) for one in found if not one.passed), pytrace=False)

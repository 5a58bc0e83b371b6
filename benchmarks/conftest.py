"""Options of the benchmarks, the ledger of a run, and its tables at the end."""

from __future__ import annotations

import math
from typing import Any

import pytest

from .families import FAMILIES
from .ledger import Ledger, large_table, table

_LEDGER = pytest.StashKey[Ledger]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what bounds a run."""
    group = parser.getgroup("reinplace benchmarks")
    group.addoption("--sizes", default="1000,2000,4000,8000", help="numbers of writes, ascending")
    group.addoption("--large", type=int, default=20_000, help="nodes of the large graph")
    group.addoption("--limit", type=float, default=20.0, help="CPU seconds that Inductor may take per graph")


def pytest_configure(config: pytest.Config) -> None:
    """Begin a ledger."""
    config.stash[_LEDGER] = Ledger(config.getoption("--limit"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test for every family, and for every size where it asks for one."""
    if "family" in metafunc.fixturenames:
        metafunc.parametrize("family", FAMILIES, ids=lambda f: f.name)
    if "size" in metafunc.fixturenames:
        sizes = sorted(int(n) for n in metafunc.config.getoption("--sizes").split(","))
        metafunc.parametrize("size", sizes)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests of one graph together, small graphs first: the graph is built once."""
    names = [family.name for family in FAMILIES]

    def place(item: pytest.Item) -> tuple[str, int, float]:
        params: dict[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
        family = names.index(params["family"].name) if "family" in params else -1
        return item.path.name, family, float(params.get("size", math.inf))

    items.sort(key=place)


@pytest.fixture(scope="session")
def ledger(pytestconfig: pytest.Config) -> Ledger:
    """What this run has measured so far."""
    return pytestconfig.stash[_LEDGER]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print a table per family, and the large graphs."""
    ledger = config.stash[_LEDGER]
    if not (ledger.families or ledger.large):
        return
    terminalreporter.section("reinplacing, CPU seconds")
    texts = {family.name: family.text for family in FAMILIES}
    for name in ledger.families:
        terminalreporter.write_line("\n".join(table(name, texts[name], ledger)) + "\n")
    if ledger.large:
        terminalreporter.write_line("\n".join(large_table(ledger)))

"""Our rooms: who may import whom, type-checking imports counted; no circles, and no crowds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .checkout import PACKAGES, ROOT, modules
from .imports import imports_of, read_imports
from .layers import ORDERS, PASSES, PLUGIN, Arrow, circle, climbing, crowded, room


def _inside(folder: str) -> dict[str, str]:
    """Return the modules of a folder by their installed names: a package is its face."""
    found = {}
    for path in modules(folder):
        parts = path.relative_to(ROOT / folder).with_suffix("").parts
        installed = ".".join([PACKAGES[folder], *parts]).removesuffix(".__init__")
        found[installed] = ".".join(parts)
    return found


def _arrows(folder: str) -> Iterator[Arrow]:
    names = _inside(folder)
    for path in modules(folder):
        source = ".".join(path.relative_to(ROOT / folder).with_suffix("").parts)
        for entry in imports_of(path):
            target = names.get(entry.module)
            if target is not None and target != source:
                yield Arrow(source, entry.line, target)


@pytest.mark.parametrize("folder", ORDERS)
def test_imports_go_down_only(folder: str) -> None:
    assert climbing(_arrows(folder), ORDERS[folder]) == []


@pytest.mark.parametrize("folder", PACKAGES)
def test_no_module_imports_itself_by_a_detour(folder: str) -> None:
    assert circle(_arrows(folder)) == []


@pytest.mark.parametrize("folder", PACKAGES)
def test_no_package_is_crowded(folder: str) -> None:
    assert crowded(_inside(folder).values()) == {}


def test_type_checking_imports_and_imports_inside_functions_count() -> None:
    program = (
        "if TYPE_CHECKING:\n    from .oracle import tally\ndef late():\n    from .verify import contract\n"
    )

    found = [e.module for e in read_imports(program, "pytest_reinplace.passes")]
    assert found == ["pytest_reinplace.passes.oracle.tally", "pytest_reinplace.passes.verify.contract"]


def test_the_longest_entry_is_a_module_s_room() -> None:
    assert room("inductor._torch", PASSES) == "inductor._torch"
    assert room("inductor.stage", PASSES) == "inductor"
    assert room("reinplacing.facts.place", PASSES) == "reinplacing.facts"
    assert room("verify.__init__", PASSES) == "verify.__init__"
    assert room("odd.module", PASSES) is room("odd", PASSES) is None
    assert room("plugin", PLUGIN) == "." and room("session.controller", PLUGIN) == "session"


@pytest.mark.parametrize(
    ("source", "target", "legal"),
    [
        ("ops.schema", "memory.region", True),
        ("memory.region", "ops.schema", False),
        ("reinplacing.decide.choose", "inductor.lowering", False),
        ("inductor.target", "inductor.lowering", True),
        ("inductor.lowering", "inductor.mend.element_op", False),
        ("graph.emit", "odd.module", False),
        ("graph.emit", "graph.fake_view", True),
    ],
)
def test_the_rule_fires_where_an_import_goes_up(source: str, target: str, legal: bool) -> None:
    assert (climbing([Arrow(source, 1, target)], PASSES) == []) is legal


def test_the_rule_about_circles_fires() -> None:
    there, back = Arrow("ops.schema", 1, "ops.wrapper"), Arrow("ops.wrapper", 1, "ops.schema")
    assert set(circle([there, back])) == {"ops.schema", "ops.wrapper"}
    assert circle([there]) == []


def test_the_rule_about_crowds_fires() -> None:
    names = [f"ops.m{i}" for i in range(18)]
    assert crowded(names) == {"ops": 18}
    assert crowded([*names[:17], "ops.__init__"]) == {}

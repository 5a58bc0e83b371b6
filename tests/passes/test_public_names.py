"""Every public name of the passes states its contract and is in the documentation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_reinplace import passes

_DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", passes.__all__)
def test_a_public_name_has_a_contract_and_is_documented(name: str) -> None:
    own = vars(getattr(passes, name)).get("__doc__") or getattr(passes, name).__doc__
    assert own and not own.startswith(f"{name}(")  # a dataclass without one is given its signature
    assert re.search(rf"`{name}`", (_DOCS / "pass.md").read_text()), f"{name} is missing in docs/pass.md"


@pytest.mark.parametrize(
    "field",
    [
        *("reason", "blockers", "hint", "source", "fused", "moved", "added", "nbytes"),
        *("follows", "spares", "copies"),
    ],
)
def test_what_an_outcome_says_is_documented(field: str) -> None:
    assert field in passes.Outcome.__slots__
    assert f"`{field}`" in (_DOCS / "pass.md").read_text()

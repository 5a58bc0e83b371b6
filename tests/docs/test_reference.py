"""The reference is made from docstrings: it has every public name, and no name that is gone."""

from __future__ import annotations

import importlib
import inspect
import re
from typing import Any

import pytest

import pytest_reinplace
from pytest_reinplace import hookspec, passes
from pytest_reinplace.passes import facts, post_grad, strategies, verify

from .page import DOCS

NAMES = [
    name
    for path in sorted((DOCS / "reference").glob("*.md"))
    for name in re.findall(r"^::: (\S+)$", path.read_text(), re.MULTILINE)
]
# Sphinx would resolve these; the site shows them as they stand.
_ROLE = re.compile(r":(class|func|meth|attr|mod):`")


def found(name: str) -> Any:
    """Return the object that a name of the reference means."""
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_exists_and_says_what_it_is(name: str) -> None:
    thing = found(name)
    if isinstance(thing, tuple):
        assert thing and all(isinstance(one, str) for one in thing)  # names, which say what they are
        return
    described = thing if hasattr(thing, "__qualname__") else type(thing)  # a constant: what its class says
    assert inspect.getdoc(described)
    assert _ROLE.findall(inspect.getsource(described)) == []


@pytest.mark.parametrize(
    "face", [pytest_reinplace, passes, facts, post_grad, verify, strategies], ids=lambda m: m.__name__
)
def test_every_public_name_is_in_it(face: Any) -> None:
    # By the name that users import, so that the page's heading and its anchor are that name.
    assert {f"{face.__name__}.{name}" for name in face.__all__} - set(NAMES) == set()


def test_every_hook_is_in_it() -> None:
    hooks = {name for name in vars(hookspec) if name.startswith("pytest_")}
    assert {name.rpartition(".")[2] for name in NAMES} & hooks == hooks


def test_no_name_is_in_it_twice() -> None:
    assert sorted(NAMES) == sorted(set(NAMES))

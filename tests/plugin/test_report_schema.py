"""The document has a schema, the schema describes all of it, and refuses what is none."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from pytest_reinplace.passes import Reason
from pytest_reinplace.record.record import SCHEMA
from pytest_reinplace.reports.document import schema

jsonschema = pytest.importorskip("jsonschema")

TESTS = """
import pytest, torch
from programs import *

def under(name):
    return pytest.param(name, marks=pytest.mark.reinplace(pass_=name))

@pytest.mark.parametrize("name", [under("exact"), under("inductor")])
def test_many(reinplace, name):
    reinplace.run(keep, *inputs(keep))
    torch.compile(read_row, dynamic=True)(*inputs(read_row)).backward()
    assert reinplace.graphs[0].picture is not None

def test_fails(assert_reinplaced):
    assert_reinplaced(call_op, *inputs(call_op))
    assert False

def test_nothing(reinplace):
    pass
"""


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """Return what the run inside wrote, once there was one."""
    return []


@pytest.fixture
def written(compiling: pytest.Pytester, texts: list[str]) -> dict[str, Any]:
    if not texts:
        compiling.makepyfile(test_it=TESTS)
        compiling.runpytest_inprocess("--reinplace-json=out.json").assert_outcomes(passed=3, failed=1)
        texts.append((compiling.path / "out.json").read_text())
    found: dict[str, Any] = json.loads(texts[0])
    return found


def closed(part: Any) -> Any:
    """Return a schema that knows no other keys than it names: what is written must all be described."""
    if isinstance(part, list):
        return [closed(item) for item in part]
    if not isinstance(part, dict):
        return part
    found = {key: closed(value) for key, value in part.items()}
    if "properties" in part:
        found.setdefault("additionalProperties", False)
    return found


def test_what_is_written_is_described_to_the_last_key(written: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    jsonschema.validate(written, closed(schema()))
    assert {test["outcome"] for test in written["tests"].values()} == {"passed", "failed"}
    assert sum(graph["picture"] is not None for t in written["tests"].values() for graph in t["graphs"]) == 7


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("schema",), 2),
        (("total", "clone_bytes"), -1),
        (("tests", "test_it.py::test_fails", "outcome"), "maybe"),
        (("tests", "test_it.py::test_fails", "graphs", 0, "outcomes", 0, "reason"), "bad-luck"),
        (("tests", "test_it.py::test_fails", "graphs", 0, "outcomes", 0, "label"), None),
        (("tests", "test_it.py::test_fails", "graphs", 0, "picture"), []),
    ],
)
def test_what_is_none_is_refused(written: dict[str, Any], where: tuple[Any, ...], value: Any) -> None:
    wrong = copy.deepcopy(written)
    inner: Any = wrong
    for key in where[:-1]:
        inner = inner[key]
    inner[where[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, schema())


def test_the_schema_has_every_reason_and_the_version() -> None:
    found = schema()
    reasons = found["$defs"]["outcome"]["properties"]["reason"]["enum"]
    assert reasons == [*(reason.value for reason in Reason), None]
    assert found["properties"]["schema"] == {"const": SCHEMA}

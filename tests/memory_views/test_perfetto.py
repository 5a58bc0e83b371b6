"""The trace in Chrome's format, by its schema, and what it adds up to."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import jsonschema
import pytest

from pytest_reinplace.memory_views.drawn import Side
from pytest_reinplace.memory_views.perfetto import trace

from .calls import call, held_at, program, unknown


def _event(ph: str, *required: str, **properties: Any) -> dict[str, Any]:
    common = {name: {"type": "integer", "minimum": 0} for name in ("pid", "tid", "ts")}
    return {
        "type": "object",
        "properties": {
            "ph": {"const": ph},
            "name": {"type": "string", "minLength": 1},
            **common,
            **properties,
        },
        "required": ["ph", "name", "pid", "tid", "ts", *required],
        "additionalProperties": False,
    }


def _named(key: str, kind: str, *names: str) -> dict[str, Any]:
    return {
        "properties": {
            "name": {"enum": list(names)},
            "args": {
                "type": "object",
                "properties": {key: {"type": kind}},
                "required": [key],
                "maxProperties": 1,
            },
        }
    }


_TEXT, _COUNT = {"type": "string"}, {"type": "integer", "minimum": 0}
_METADATA = [
    _named("name", "string", "process_name", "thread_name"),
    _named("sort_index", "integer", "process_sort_index", "thread_sort_index"),
    _named("labels", "string", "process_labels"),
]
# What Chrome's trace event format says of the four phases that are used.
SCHEMA = {
    "type": "object",
    "required": ["traceEvents", "displayTimeUnit"],
    "properties": {
        "displayTimeUnit": {"enum": ["ms", "ns"]},
        "otherData": {"type": "object"},
        "traceEvents": {
            "type": "array",
            "items": {
                "oneOf": [
                    {**_event("M", "args", args={"type": "object"}), "oneOf": _METADATA},
                    _event("X", "dur", "args", "cat", dur=_COUNT, cat=_TEXT, args={"type": "object"}),
                    _event("i", "s", s={"enum": ["g", "p", "t"]}, cat=_TEXT),
                    _event(
                        "C",
                        "args",
                        args={"type": "object", "minProperties": 1, "additionalProperties": _COUNT},
                    ),
                ]
            },
        },
    },
}


def events(*sides: Side) -> list[dict[str, Any]]:
    """Return the events of a trace, as they are in its file, once the schema allows them."""
    found = json.loads(json.dumps(trace("mylib:step", sides)))
    jsonschema.validate(found, SCHEMA)
    return list(found["traceEvents"])


def named(found: list[dict[str, Any]], what: str) -> dict[int, str]:
    return {
        event["pid" if what == "process_name" else "tid"]: event["args"]["name"]
        for event in found
        if event["ph"] == "M" and event["name"] == what
    }


@pytest.mark.parametrize("seed", range(20))
def test_the_counter_is_the_sum_of_the_slices_and_its_most_is_the_peak(seed: int) -> None:
    lowered = program(seed)
    side = call(lowered)
    found = events(side)
    counter = {event["ts"]: event["args"]["bytes"] for event in found if event["ph"] == "C"}
    (one,) = side.programs
    assert max(counter.values()) == lowered.peak + one.aside
    for position in range(len(one.live)):
        slices = [
            event
            for event in found
            if event["ph"] == "X" and event["ts"] <= position < event["ts"] + event["dur"]
        ]
        # Of several calls in a line one counts.
        own = [event["args"]["bytes"] for event in slices if event["cat"] == "outside"]
        rest = sum(event["args"]["bytes"] for event in slices if event["cat"] != "outside")
        assert rest + max(own, default=0) == counter[position] == held_at(one, position)
    assert counter[len(one.live)] == one.after


def test_each_storage_has_a_thread_and_each_program_a_process() -> None:
    found = events(call(program(1), program(2, graph="[bw 0/0]")), call(program(1), pass_name="inductor"))
    assert list(named(found, "process_name").values()) == [
        "[fw 0/0] pass exact",
        "[bw 0/0] pass exact",
        "[fw 0/0] pass inductor",
    ]
    threads = named(found, "thread_name")
    slices = Counter(event["tid"] for event in found if event["ph"] == "X")
    own = {tid for tid, name in threads.items() if name == "inside calls"}
    assert set(slices) <= set(threads)
    assert all(slices[tid] == 1 for tid in threads if tid not in own)
    assert not set(threads) & set(named(found, "process_name"))


def test_programs_follow_each_other_and_each_side_begins_at_the_same_place() -> None:
    one, two = program(1, positions=10), program(2, positions=20)
    found = events(call(one, two), call(one, pass_name="inductor"))
    begins: dict[int, int] = {}
    for event in found:
        if event["ph"] == "C":
            begins.setdefault(event["pid"], event["ts"])
    assert list(begins.values()) == [0, 10, 0]


def test_a_slice_says_what_it_is() -> None:
    args = next(
        event["args"] for event in events(call(program(3))) if event["ph"] == "X" and event["cat"] == "value"
    )
    assert set(args) == {"bytes", "kind", "names", "nodes", "source", "line", "text", "why", "outlives"}
    assert (args["nodes"], args["source"]) == (["mm"], "model.py:3")


def test_what_is_not_known_is_said() -> None:
    found = events(call(unknown()))
    labels = [event["args"]["labels"] for event in found if event["name"] == "process_labels"]
    assert labels == ["not known: C++ programs are not supported"]
    assert not [event for event in found if event["ph"] != "M"]


def test_what_was_held_before_the_whole_call_is_said() -> None:
    side = next(side for seed in range(20) if (side := call(program(seed))).programs[0].aside)
    labels = [event["args"]["labels"] for event in events(side) if event["name"] == "process_labels"]
    nbytes = side.programs[0].aside
    assert labels == [f"the measured peak counts {nbytes} B less: held before the call, released in it"]


def test_what_was_not_foreseen_is_a_mark() -> None:
    marks = [event for event in events(call(program(3))) if event["ph"] == "i"]
    assert [(event["ts"], event["name"]) for event in marks] == [(3, "24 B not foreseen, left by aten::sort")]


def test_the_schema_refuses_what_is_no_event() -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"traceEvents": [{"ph": "X", "name": "a"}], "displayTimeUnit": "ns"}, SCHEMA)

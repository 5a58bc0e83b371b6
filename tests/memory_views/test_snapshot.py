"""The snapshot, by its schema, by what torch's viewer reads of it, and by torch's own scripts."""

from __future__ import annotations

import copy
import pickle
import pickletools
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from pytest_reinplace.memory_views.drawn import Side
from pytest_reinplace.memory_views.snapshot import dump, snapshot

from .calls import call, program, unknown

_TEXT, _COUNT = {"type": "string"}, {"type": "integer", "minimum": 0}
_FRAMES = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"filename": _TEXT, "line": _COUNT, "name": _TEXT},
        "required": ["filename", "line", "name"],
    },
}
_STATES = ("active_allocated", "active_pending_free", "inactive")
_ACTIONS = ("alloc", "free_requested", "free_completed", "snapshot")


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


# What torch documents of `torch.cuda.memory._snapshot`, as far as a program without a device has it.
SCHEMA = _object(
    segments={
        "type": "array",
        "items": _object(
            device=_COUNT,
            address=_COUNT,
            total_size={"type": "integer", "minimum": 1},
            allocated_size=_COUNT,
            active_size=_COUNT,
            requested_size=_COUNT,
            stream=_COUNT,
            segment_type={"enum": ["small", "large"]},
            segment_pool_id={"type": "array", "minItems": 2, "maxItems": 2},
            is_expandable={"type": "boolean"},
            blocks={
                "type": "array",
                "items": _object(
                    address=_COUNT,
                    size={"type": "integer", "minimum": 1},
                    requested_size=_COUNT,
                    state={"enum": list(_STATES)},
                    frames=_FRAMES,
                ),
            },
        ),
    },
    device_traces={
        "type": "array",
        "items": {
            "type": "array",
            "items": _object(
                action={"enum": list(_ACTIONS)},
                addr=_COUNT,
                size=_COUNT,
                stream=_COUNT,
                time_us=_COUNT,
                frames=_FRAMES,
                category=_TEXT,
            ),
        },
    },
)

# What the viewer's own reader of pickles understands.
_READ = frozenset(
    {
        *("PROTO", "FRAME", "STOP", "MARK", "MEMOIZE", "BINGET", "LONG_BINGET", "BINPUT", "LONG_BINPUT"),
        *("NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"),
        *("SHORT_BINUNICODE", "BINUNICODE", "EMPTY_LIST", "APPEND", "APPENDS", "LIST"),
        *("EMPTY_DICT", "SETITEM", "SETITEMS", "DICT"),
        *("EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"),
    }
)


def _is_array(checker: object, value: object) -> bool:
    return isinstance(value, list | tuple)  # torch writes a tuple where JSON has an array


_CHECKER = jsonschema.Draft202012Validator.TYPE_CHECKER.redefine("array", _is_array)
validate = jsonschema.validators.extend(jsonschema.Draft202012Validator, type_checker=_CHECKER)(
    SCHEMA
).validate


def read(*sides: Side) -> dict[str, Any]:
    """Return a snapshot as it is in its file, once the schema allows it."""
    found = pickle.loads(dump(sides))
    validate(found)
    return dict(found)


def levels(found: dict[str, Any], device: int) -> list[int]:
    """Return what is allocated after each event, as the viewer counts: what nothing took was there before."""
    living: dict[int, int] = {}
    before, steps = 0, [0]
    for event in found["device_traces"][device]:
        addr, size = event["addr"], event["size"]
        if event["action"] == "alloc":
            assert all(addr + size <= at or at + other <= addr for at, other in living.items())
            living[addr] = size
            steps.append(steps[-1] + size)
        elif event["action"] == "free_completed":
            before += size if living.pop(addr, None) is None else 0
            steps.append(steps[-1] - size)
    for segment in found["segments"]:
        if segment["device"] == device:
            at = segment["address"]
            for block in segment["blocks"]:
                assert block["address"] == at
                at += block["size"]
                if block["state"] == "active_allocated" and block["address"] not in living:
                    before += block["size"]
            assert at == segment["address"] + segment["total_size"]
    return [before + step for step in steps]


@pytest.mark.parametrize("seed", range(40))
def test_the_most_that_is_allocated_is_the_peak(seed: int) -> None:
    lowered, other = program(seed), program(seed + 100, graph="[bw 0/0]")
    side = call(lowered, other)
    found = read(side)
    aside = [one.aside for one in side.programs]
    assert max(levels(found, 0)) == lowered.peak + aside[0]
    assert max(levels(found, 1)) == other.peak + aside[1]


@pytest.mark.parametrize("seed", range(20))
def test_what_is_left_is_in_the_segment(seed: int) -> None:
    side = call(program(seed))
    found = read(side)
    (segment,) = found["segments"]
    active = [block for block in segment["blocks"] if block["state"] == "active_allocated"]
    assert sum(block["size"] for block in active) == side.programs[0].after == levels(found, 0)[-1]
    for event in found["device_traces"][0][:-1]:
        assert segment["address"] <= event["addr"]
        assert event["addr"] + event["size"] <= segment["address"] + segment["total_size"]
        assert event["size"] > 0


@pytest.mark.parametrize("seed", range(5))
def test_the_viewer_understands_the_pickle_and_its_categories(seed: int) -> None:
    data = dump([call(program(seed), program(seed + 1))])
    assert {opcode.name for opcode, _, _ in pickletools.genops(data)} <= _READ
    for trace in pickle.loads(data)["device_traces"]:
        assert "unknown" in {event["category"] for event in trace}  # without it the viewer fails


def test_a_frame_is_the_users_line_and_then_that_of_the_program() -> None:
    found = read(call(program(3)))
    event = next(event for event in found["device_traces"][0] if event["category"] == "value")
    user, generated = event["frames"]
    assert (user["filename"], user["line"]) == ("model.py", 3)
    assert user["name"].endswith(" for mm")
    assert generated["filename"] == "program of [fw 0/0] pass exact"
    assert generated["name"].endswith(" = empty()")


def test_each_program_is_a_device_also_one_that_is_not_known() -> None:
    found = read(call(unknown(), program(1)), call(program(1), pass_name="inductor"))
    assert [bool(trace) for trace in found["device_traces"]] == [False, True, True]
    assert [segment["device"] for segment in found["segments"]] == [1, 2]
    addresses = [segment["address"] for segment in found["segments"]]
    assert addresses[0] + found["segments"][0]["total_size"] <= addresses[1]


def test_the_schema_refuses_what_is_no_snapshot() -> None:
    found = copy.deepcopy(snapshot([call(program(1))]))
    found["device_traces"][0][0]["action"] = "take"
    with pytest.raises(jsonschema.ValidationError):
        validate(found)


@pytest.mark.parametrize("script", ["trace", "stats", "trace_plot", "segment_plot"])
def test_scripts_of_torch_read_the_file(script: str, tmp_path: Path) -> None:
    side = call(program(3), program(4, graph="[bw 0/0]"))
    (tmp_path / "memory.pickle").write_bytes(dump([side]))
    arguments = ["memory.pickle", *(["-o", "out.html"] if script.endswith("plot") else [])]
    done = subprocess.run(
        [sys.executable, "-m", "torch.cuda._memory_viz", script, *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    if script == "trace":
        assert "Device 0" in done.stdout
        assert "Device 1" in done.stdout
        assert done.stdout.count("\ndel ") == dump_frees(side)
    elif script == "stats":
        assert "segments: 2" in done.stdout
    else:
        assert "snapshot.pickle" in (tmp_path / "out.html").read_text()


def dump_frees(side: Side) -> int:
    """Return how many storages and calls release something."""
    rows = [row for one in side.programs for row in one.rows]
    return sum(1 for row in rows if row.nbytes and row.moments[1] is not None and row.kind != "before")

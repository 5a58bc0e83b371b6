"""The JSON Schema of entries says what the reader says."""

from __future__ import annotations

import importlib.resources
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

import pytest_reinplace.corpus
from pytest_reinplace.entry.entry import SUFFIX, EntryError, load

SCHEMA: dict[str, Any] = json.loads(
    importlib.resources.files("pytest_reinplace").joinpath("entry.schema.json").read_text("utf-8")
)
CORPUS = sorted(Path(pytest_reinplace.corpus.__file__).parent.glob(f"*{SUFFIX}"))

RIGHT = [
    "builder: a.b:c\nclones: {}\n",
    "builder: a.b:c\nclones: {exact: [a::b.c], my.pass:it: []}\ntolerance: 0.5\ngrad: true\n",
    "builder: a.b:c\nclones: {exact: []}\npresets: {cuda: {unrunnable: {inductor: why}, tolerance: 0}}\n",
    "builder: a.b:c\nclones: {}\nahead_of_time: true\ndynamic: false\ngrad: false\nfullgraph: true\n",
    "builder: a.b:c\nclones: {}\nahead_of_time: false\ndynamic: true\ngrad: true\nfullgraph: false\n",
    "builder: a.b:c\nclones: {}\nmax_peak_over_bound: 1.5\n",
    "builder: a.b:c\nclones: {}\npresets: {cuda: {max_peak_over_bound: {exact: 1}}}\n",
]
WRONG = [
    "builder: a.b\nclones: {}\n",
    "builder: a.b:c\n",
    "clones: {}\n",
    "builder: a.b:c\nclones: {other: []}\n",
    "builder: a.b:c\nclones: {exact: a::b.c}\n",
    "builder: a.b:c\nclones: {}\ntolerance: -1\n",
    "builder: a.b:c\nclones: {}\npresets: {tpu: {}}\n",
    "builder: a.b:c\nclones: {}\npresets: {}\n",
    "builder: a.b:c\nclones: {}\nargs: {device: cpu}\n",
    "builder: a.b:c\nclones: {}\nunrunnable: {inductor: 3}\n",
    "builder: a.b:c\nclones: {}\nbackend: eager\n",
    "builder: a.b:c\nclones: {}\ntag: [a]\n",
    "builder: a.b:c\nclones: {}\nahead_of_time: 1\n",
    "builder: a.b:c\nclones: {}\nahead_of_time: true\ndynamic: true\n",
    "builder: a.b:c\nclones: {}\nahead_of_time: true\ngrad: true\n",
    "builder: a.b:c\nclones: {}\nahead_of_time: true\nfullgraph: false\n",
    "builder: a.b:c\nclones: {}\nmax_peak_over_bound: 0.5\n",
    "builder: a.b:c\nclones: {}\nmax_peak_over_bound: true\n",
    "builder: a.b:c\nclones: {}\nmax_peak_over_bound: {exakt: 2}\n",
    "builder: a.b:c\nclones: {}\nmax_peak_over_bound: {exact: 0}\n",
    "builder: a.b:c\nclones: {}\nmax_peak_over_bound: 2\nahead_of_time: true\n",
    "builder: a.b:c\nclones: {}\nahead_of_time: true\npresets: {cuda: {max_peak_over_bound: 2}}\n",
]


def is_valid(text: str) -> bool:
    return jsonschema.Draft202012Validator(SCHEMA).is_valid(yaml.safe_load(text))


def test_it_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name.removesuffix(SUFFIX))
def test_the_corpus_is_valid(path: Path) -> None:
    jsonschema.Draft202012Validator(SCHEMA).validate(yaml.safe_load(path.read_text()))


@pytest.mark.parametrize(("text", "right"), [*((t, True) for t in RIGHT), *((t, False) for t in WRONG)])
def test_reader_and_schema_agree(text: str, right: bool, tmp_path: Path) -> None:
    path = tmp_path / f"one{SUFFIX}"
    path.write_text(text)
    assert is_valid(text) is right
    if right:
        load(path)
    else:
        with pytest.raises(EntryError):
            load(path)

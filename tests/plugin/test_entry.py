"""The YAML format of corpus entries: what is read, and the file and line in every error."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_reinplace.base.tolerance import Tolerance
from pytest_reinplace.entry import located
from pytest_reinplace.entry.entry import Entry, EntryError, load

GOOD = """\
name: decode
description: one step
source: https://example.org
builder: my.models:decode_step
requires: [transformers, triton]
tags: [inference]
options: {enable_auto_functionalized_v2: false}
grad: true
dynamic: true
fullgraph: false
args: {layers: 2, sizes: [1, 2], ratio: 0.5, none: null}
backend: inductor
tolerance: {rtol: 1.0e-3}
presets:
  cpu:
    args: {hidden: 8}
    backend: graph
  cuda:
    args: {layers: 32, hidden: 4096}
    tolerance: {rtol: 0.05, atol: 0.05, integers: 1}
    clones: {inductor: [aten::clone.self]}
clones:
  exact: []
  inductor: [aten::clone.self, aten::clone.self]
  mine.passes:rewrite: []
"""

MINIMAL = "builder: models:step\nclones: {exact: []}\n"


@pytest.fixture
def entry(tmp_path: Path):  # type: ignore[no-untyped-def]
    """Return a function that loads an entry from text."""

    def load_text(text: str | bytes, name: str = "model.reinplace.yaml") -> Entry:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return load(path)

    return load_text


def test_every_key_is_read(entry) -> None:  # type: ignore[no-untyped-def]
    e = entry(GOOD)
    assert (e.name, e.description, e.source, e.builder) == (
        "decode", "one step", "https://example.org", "my.models:decode_step",
    )  # fmt: skip
    assert (e.requires, e.tags) == (("transformers", "triton"), ("inference",))
    assert (e.grad, e.dynamic, e.fullgraph) == (True, True, False)
    assert e.options == {"enable_auto_functionalized_v2": False}
    assert e.path.name == "model.reinplace.yaml"


def test_presets_are_laid_over_the_entry(entry) -> None:  # type: ignore[no-untyped-def]
    cpu, cuda = entry(GOOD).presets["cpu"], entry(GOOD).presets["cuda"]
    assert cpu.args == {"layers": 2, "sizes": [1, 2], "ratio": 0.5, "none": None, "hidden": 8}
    assert cuda.args["layers"] == 32
    assert (cpu.backend, cuda.backend) == ("graph", "inductor")
    assert (cpu.tolerance, cuda.tolerance) == (Tolerance(rtol=1e-3), Tolerance(0.05, 0.05, 1))
    assert cpu.clones == {"exact": (), "inductor": ("aten::clone.self",) * 2, "mine.passes:rewrite": ()}
    assert cuda.clones == {**cpu.clones, "inductor": ("aten::clone.self",)}


def test_defaults(entry) -> None:  # type: ignore[no-untyped-def]
    e = entry(MINIMAL)
    assert (e.name, e.requires, e.options, e.grad, e.dynamic, e.fullgraph) == (
        "model", (), {}, False, False, True,
    )  # fmt: skip
    assert {device: preset.backend for device, preset in e.presets.items()} == {
        "cpu": "graph",
        "cuda": "inductor",
    }
    assert e.presets["cpu"].tolerance == Tolerance()


def test_ahead_of_time_goes_with_what_is_said_anyway(entry) -> None:  # type: ignore[no-untyped-def]
    e = entry(MINIMAL + "ahead_of_time: true\ngrad: false\ndynamic: false\nfullgraph: true\n")
    assert (e.ahead_of_time, e.grad, e.dynamic, e.fullgraph) == (True, False, False, True)
    assert entry("ahead_of_time: false\ndynamic: true\n" + MINIMAL).dynamic
    assert not entry(MINIMAL).ahead_of_time


def test_an_anchor_is_read(entry) -> None:  # type: ignore[no-untyped-def]
    e = entry("builder: models:step\nclones: {exact: &none [], inductor: *none}\n")
    assert e.presets["cpu"].clones == {"exact": (), "inductor": ()}


WRONG = {
    "unknown key, nearest named": (MINIMAL + "tag: [a]\n", 3, "unknown key 'tag': did you mean 'tags'?"),
    "unknown key, nothing near": (
        MINIMAL + "zzz: 1\n", 3, "unknown key 'zzz'; valid are 'ahead_of_time', 'args'",
    ),
    "unknown key in a preset": (
        MINIMAL + "presets:\n  cpu:\n    argz: {}\n", 5, "'presets.cpu.argz': did you mean 'args'?",
    ),
    "unknown device": (MINIMAL + "presets:\n  gpu: {}\n", 4, "unknown device 'presets.gpu'"),
    "no device": (MINIMAL + "presets: {}\n", 3, "at least one of cpu, cuda"),
    "unknown pass": (
        "builder: a:b\nclones:\n  exakt: []\n", 3, "unknown pass 'clones.exakt': did you mean 'exact'?",
    ),
    "missing builder": ("\n\nclones: {}\n", 3, "missing key 'builder'"),
    "missing clones": ("builder: a:b\n", 1, "missing key 'clones'"),
    "duplicate key": (
        "builder: a:b\nclones: {exact: []}\nbuilder: a:c\n", 3, "'builder'; it is already on line",
    ),
    "duplicate nested key": (
        "builder: a:b\nclones:\n  exact: []\n  exact: []\n", 4, "'exact'; it is already on line",
    ),
    "builder without function": ("builder: a.b\nclones: {}\n", 1, "'package.module:function', got str 'a.b'"),
    "builder that is code": ("builder: 'a:b()'\nclones: {}\n", 1, "got str 'a:b()'"),
    "string expected": (MINIMAL + "name: 3\n", 3, "expected key 'name' to be a string, got int 3"),
    "empty string": (MINIMAL + "name: ''\n", 3, "expected key 'name' to be a string, got str ''"),
    "name with control codes": (
        MINIMAL + 'name: "a\\e[2J"\n', 3, "'name' to be one line without control codes, got str",
    ),
    "name of two lines": (MINIMAL + 'name: "a\\nb"\n', 3, "'name' to be one line without control codes"),
    "list expected": (MINIMAL + "tags: one\n", 3, "key 'tags' to be a list of strings, got str 'one'"),
    "list of strings": (MINIMAL + "tags:\n- a\n- 1\n", 5, "expected key 'tags[1]' to be a string, got int 1"),
    "boolean expected": (MINIMAL + "grad: 1\n", 3, "expected key 'grad' to be true or false, got int 1"),
    "boolean expected for ahead_of_time": (
        MINIMAL + "ahead_of_time: aot\n", 3, "key 'ahead_of_time' to be true or false, got str 'aot'",
    ),
    "dynamic ahead of time": (
        MINIMAL + "ahead_of_time: true\ndynamic: true\n", 4,
        "'dynamic: true' does not go with 'ahead_of_time: true': it is exported with the sizes",
    ),
    "grad ahead of time": (
        "grad: true\n" + MINIMAL + "ahead_of_time: true\n", 1,
        "'grad: true' does not go with 'ahead_of_time: true': a library of AOTInductor has no backward",
    ),
    "graph breaks ahead of time": (
        MINIMAL + "fullgraph: false\nahead_of_time: true\n", 3,
        "'fullgraph: false' does not go with 'ahead_of_time: true': an exported program is one graph",
    ),
    "mapping expected": (MINIMAL + "args: [1]\n", 3, "expected key 'args' to be a mapping, got list [1]"),
    "labels expected": (
        "builder: a:b\nclones:\n  exact: 3\n", 3, "expected key 'clones.exact' to be a list of strings",
    ),
    "choice": (
        MINIMAL + "backend: grap\n", 3,
        "expected key 'backend' to be one of graph, inductor, got 'grap': did you mean 'graph'?",
    ),
    "negative tolerance": (MINIMAL + "tolerance: -1\n", 3, "a finite number, 0 or larger"),
    "tolerance not a number": (MINIMAL + "tolerance: .nan\n", 3, "a finite number"),
    "tolerance that YAML reads as text": (MINIMAL + "tolerance: 1e-5\n", 3, "write 1.0e-5"),
    "tolerance key": (MINIMAL + "tolerance:\n  rtoll: 1.0\n", 4, "did you mean 'rtol'?"),
    "device among args": (MINIMAL + "args:\n  device: cuda\n", 4, "'device' is given by the preset"),
    "not a mapping": ("- a\n", 1, "expected the document to be a mapping, got list ['a']"),
    "empty file": ("", 1, "the file is empty"),
    "only a comment": ("# nothing\n", 1, "the file is empty"),
    "two documents": (MINIMAL + "---\n" + MINIMAL, 3, "not valid YAML"),
    "broken YAML": ("builder: a:b\nclones: {exact: [\n", 3, "not valid YAML"),
    "a tab": ("builder: a:b\n\tclones: {}\n", 2, "not valid YAML"),
    "key that is no string": (MINIMAL + "1: 2\n", 3, "expected keys to be plain strings, got str '1'"),
    "key that is a list": (MINIMAL + "[a]: 2\n", 3, "expected keys to be plain strings"),
    "merge key": ("a: &a {}\nbuilder: a:b\nclones: {}\n<<: *a\n", 4, "expected keys to be plain strings"),
    "python object": (
        MINIMAL + "args:\n  x: !!python/object/apply:os.system [echo]\n", 4, "plain data, got the YAML tag",
    ),
    "date": (MINIMAL + "args:\n  day: 2024-01-01\n", 4, "put text in quotes"),
    "unknown alias": (MINIMAL + "args: *nothing\n", 3, "undefined alias"),
    "number out of range": (MINIMAL + f"args: {{n: {'9' * 5000}}}\n", 3, "not a number"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_names_file_and_line(entry, name: str) -> None:  # type: ignore[no-untyped-def]
    text, line, message = WRONG[name]
    with pytest.raises(EntryError) as error:
        entry(text)
    assert message in str(error.value)
    assert error.value.line == line
    assert str(error.value).startswith(f"{error.value.path}:{line}: ")


def test_aliases_that_explode_are_refused_quickly(entry) -> None:  # type: ignore[no-untyped-def]
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10)]
    with pytest.raises(EntryError, match=f"at most {located.MAX_VALUES} values"):
        entry("\n".join(levels))


def test_a_value_that_contains_itself_is_refused(entry) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(EntryError, match=f"at most {located.MAX_DEPTH} levels"):
        entry(MINIMAL + "args: &self {again: *self}\n")


def test_deep_nesting_is_refused(entry) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(EntryError, match="levels"):
        entry(MINIMAL + "args: {x: " + "[" * 50_000 + "]" * 50_000 + "}\n")


def test_a_large_file_is_refused(entry) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(EntryError, match=f"at most {located.MAX_BYTES} bytes"):
        entry(MINIMAL + "#" * located.MAX_BYTES)


def test_a_file_just_below_the_limit_is_read(entry) -> None:  # type: ignore[no-untyped-def]
    assert entry(MINIMAL + "#" * (located.MAX_BYTES - len(MINIMAL))).name == "model"


def test_bytes_that_are_no_text_are_refused(entry) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(EntryError, match="expected UTF-8 text"):
        entry(b"builder: \xff\xfe\n")


def test_a_missing_file_is_an_entry_error(tmp_path: Path) -> None:
    with pytest.raises(EntryError, match="cannot be read"):
        load(tmp_path / "none.reinplace.yaml")

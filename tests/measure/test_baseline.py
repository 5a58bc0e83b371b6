"""Files of baselines: what is written is read back; what is damaged or newer is refused by line."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_reinplace.measure import baseline
from pytest_reinplace.measure.baseline import Baselines

FIGURES = {"clones": 1, "clone_bytes": 64, "peak_bytes": 2**40, "runtime_ns": 1234}
KNOWN = Baselines(
    {"b": {"exact": FIGURES, "eager": {"peak_bytes": 3}}, "a": {"exact": FIGURES}},
    {"a": {"torch": "2.13.0"}, "b": {"torch": "2.11.0", "commit": "abc+"}},
)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    path = baseline.path_of(tmp_path / "new", "cuda-sm90-h200")
    baseline.write(path, "cuda-sm90-h200", KNOWN)
    assert path.name == "cuda-sm90-h200.yaml"
    assert baseline.load(path) == KNOWN


def test_the_file_is_sorted_whatever_came_first(tmp_path: Path) -> None:
    texts = []
    for entries in (KNOWN.entries, dict(sorted(KNOWN.entries.items()))):
        path = tmp_path / "cpu.yaml"
        baseline.write(path, "cpu", Baselines(entries, KNOWN.taken))
        texts.append(path.read_text())
    assert texts[0] == texts[1]
    assert texts[0].index("  a:") < texts[0].index("  b:")


def test_a_file_that_cannot_be_written_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cpu.yaml"
    baseline.write(path, "cpu", KNOWN)
    before = path.read_bytes()
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        baseline.write(path, "cpu", Baselines())
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["cpu.yaml"]


@pytest.mark.parametrize("slug", ["../x", "a b", "", "A"])
def test_a_slug_is_no_path(slug: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected a device's slug"):
        baseline.write(tmp_path / "x.yaml", slug, KNOWN)


HEAD = "schema: 1\ndevice: cpu\nentries:\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "schema: 2\ndevice: cpu\nentries: {}\n",
            ":1: expected schema: 1, got 2; it is of a newer pytest-rein",
        ),
        ("device: cpu\nentries: {}\n", ":1: expected schema: 1, got none"),
        ("schema: 1\ndevice: cpu\n", ":1: missing key 'entries'"),
        (
            HEAD + "  a: {sides: {exact: {clones: -1}}, taken: {}}\n",
            ":4: expected key 'entries.a.sides.exact.clo",
        ),
        (
            HEAD + "  a: {sides: {exact: {clones: 1.5}}, taken: {}}\n",
            "to be a whole number, 0 or larger, got",
        ),
        (HEAD + "  a: {sides: {exact: {clone: 1}}, taken: {}}\n", ":4: unknown key"),
        (HEAD + "  a: {sides: {exact: 3}, taken: {}}\n", ":4: expected key"),
        (HEAD + "  a: !!python/object/apply:os.system [ls]\n", "expected plain data, got the YAML tag"),
        ("", ":1: the file is empty"),
        ("- 1\n", ":1: expected the document to be a mapping"),
    ],
)
def test_a_wrong_file_is_refused_by_its_line(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "cpu.yaml"
    path.write_text(text)
    with pytest.raises(baseline.BaselineError) as error:
        baseline.load(path)
    assert str(error.value).startswith(str(path))
    assert message in str(error.value)


def test_changes_are_told_old_to_new() -> None:
    new = {"exact": {**FIGURES, "clones": 0, "runtime_ns": 1}, "inductor": {"peak_bytes": 1}}
    assert list(baseline.changes(KNOWN.entries["a"], new)) == [
        "exact clones: 1 → 0",
        "inductor peak_bytes: - → 1",
    ]

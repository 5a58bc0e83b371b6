"""Every page of docs/ runs: its programs pass, or print what the page says that they print.

A block with ``title="test_x.py"`` is run as soon as it is read, beside the files that came before it. It has
to pass, unless a block ``title="test_x.py prints"`` follows: then it has to fail with that text. With
``UPDATE_DOCS=1`` in the environment these texts are written anew instead.
"""

from __future__ import annotations

import ast
import json
import os
import re
import textwrap
from pathlib import Path

import pytest
import yaml

from pytest_reinplace.passes import Reason

from .page import DOCS, Block, Step, blocks, is_run, name, pages, steps

_UPDATE = os.environ.get("UPDATE_DOCS") == "1"
_TAKEN_ON = "2.13."  # the names of nodes, and what Inductor misses, are those of this torch
_REPORT = "reinplace-report.json"
_WHY = DOCS / "why-cloned"
_LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")

every_page = pytest.mark.parametrize("path", pages(), ids=name)
every_reason = pytest.mark.parametrize("reason", Reason, ids=lambda reason: reason.value)


def _run(project: pytest.Pytester, files: list[Block], step: Step) -> pytest.RunResult:
    """Write the files and run the last of them by the graph backend."""
    import torch

    for file in files:
        target = project.path / file.title
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(file.text)
    torch._dynamo.reset()
    options = "--reinplace-backend=graph", f"--reinplace-json={_REPORT}"
    return project.runpytest_inprocess(*options, step.file.title)


def _reasons(project: pytest.Pytester) -> set[str]:
    """Return the reasons of all clones of the last run."""
    report = json.loads((project.path / _REPORT).read_text())
    graphs = [graph for test in report["tests"].values() for graph in test["graphs"]]
    return {outcome["reason"] for graph in graphs for outcome in graph["outcomes"] if outcome["reason"]}


def _printed(result: pytest.RunResult) -> str:
    """Return the failure text as the page shows it: what pytest marks with E, without the mark."""
    lines = [line[1:] for line in result.outlines if re.match(r"E( |$)", line)]
    return textwrap.dedent("\n".join(lines)).replace("AssertionError: ", "", 1) + "\n"


@every_page
def test_what_a_page_says_happens(project: pytest.Pytester, path: Path) -> None:
    import torch

    text, printed = path.read_text(), []
    if "torch.Tag.inplace" in text and not hasattr(torch.Tag, "inplace"):
        pytest.skip("this torch has no torch.Tag.inplace")
    if "triton" in text and any("triton" in s.file.text for _, s in steps(text)):
        pytest.importorskip("triton")
    reasons = []
    for files, step in steps(text):
        result = _run(project, files, step)
        reasons.append(_reasons(project))
        if step.prints is None:
            assert result.ret == 0, f"{name(path)}:{step.file.line} fails:\n{result.stdout.str()}"
            continue
        if result.ret == 0 and not torch.__version__.startswith(_TAKEN_ON):
            continue
        assert result.ret == 1, f"{name(path)}:{step.file.line} should fail:\n{result.stdout.str()}"
        printed.append((step.prints, _printed(result)))
    if path.parent == _WHY and path.stem != "index" and len(printed) == 1:
        assert path.stem in reasons[0], f"the first program of {name(path)} gives {reasons[0]}"
    if _UPDATE:
        for block, came in reversed(printed):
            text = text[: block.span[0]] + came + text[block.span[1] :]
        path.write_text(text)
    elif torch.__version__.startswith(_TAKEN_ON):
        assert [came for _, came in printed] == [block.text for block, _ in printed]


@every_page
def test_code_parses_and_links_lead_somewhere(path: Path) -> None:
    text = path.read_text()
    found = list(blocks(text))
    for block in found:
        if block.language == "python":
            ast.parse(block.text, f"{name(path)}:{block.line}")
        elif block.language == "yaml":
            assert yaml.safe_load(block.text), f"{name(path)}:{block.line} is empty"
    for block in found:
        text = text.replace(block.text, "")
    missing = [link for link in _LINK.findall(text) if not (path.parent / link).exists()]
    assert missing == []


@every_reason
def test_a_reason_has_a_page(reason: Reason) -> None:
    text = (_WHY / f"{reason.value}.md").read_text()
    assert text.startswith(f"# {reason.value}\n")
    assert f"[{reason.value}]({reason.value}.md) | {reason.sentence} |" in (_WHY / "index.md").read_text()
    (_, red), *green = steps(text)
    assert red.prints is not None and green and green[-1][1].prints is None
    told = "follows from the clone of mylib::" if reason is Reason.FOLLOWS else reason.sentence
    assert told in red.prints.text and reason.hint in text


def test_no_page_is_about_a_reason_that_does_not_exist() -> None:
    names = {path.stem for path in _WHY.glob("*.md")} - {"index"}
    assert names == {reason.value for reason in Reason}


def test_the_site_lists_every_page_once() -> None:
    text = (DOCS.parent / "mkdocs.yml").read_text()
    listed = re.findall(r"^ *- (\S+\.md)$", text, re.MULTILINE)
    assert sorted(listed) == sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))


def test_what_is_run_is_told_by_its_title() -> None:
    text = '```python title="test_a.py"\nx\n```\n\n```text title="test_a.py prints"\ny\n```\n'
    text += "```python\nz\n```\n"
    first, second, third = blocks(text)
    assert [is_run(block) for block in (first, second, third)] == [True, False, False]
    assert steps(text) == [([first], Step(first, second))]
    assert steps(text.replace("test_a.py prints", "")) == [([first], Step(first, None))]
    assert (first.line, second.line, third.text) == (1, 5, "z\n")

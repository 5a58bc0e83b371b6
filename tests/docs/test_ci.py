"""docs/ci: the action and the pipeline do what they say, in a project with two commits and our own forge.

What runs is the text of the files. Left out is what only the forge can do: its checkout, its Python. ``pip``
notes what it is called for; the other commands are those of this Python.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from ..command.forge_server import Server, serving
from ..house.checkout import ROOT
from .page import DOCS, blocks, pages

pytestmark = pytest.mark.skipif(
    not (shutil.which("git") and shutil.which("bash")), reason="git or bash is not installed"
)

ACTION = yaml.safe_load((DOCS / "ci/action/action.yml").read_text())
GITHUB = yaml.safe_load((DOCS / "ci/github.yml").read_text())
GITLAB = yaml.safe_load((DOCS / "ci/gitlab.yml").read_text())
TUTORIAL = yaml.safe_load(
    next(b.text for b in blocks((DOCS / "tutorial.md").read_text()) if b.title.startswith(".github/"))
)

IN_PLACE = """
def update(cache, row):
    total = cache.sum()
    cache[0] = row
    return total
"""
CLONED = """
def update(cache, row):
    old = cache.clone()
    cache[0] = row
    return old.sum()
"""
TEST = """
import torch
from model import update

def test_update():
    assert torch.compile(update)(torch.ones(4, 4), torch.zeros(4)) == 16
"""

_OUTSIDE = ("PYTEST_", "REINPLACE_", "CI", "GITHUB_", "GITLAB_", "GH_", "GIT_")
_COMMANDS = {
    "pip": 'echo "$(git rev-parse HEAD) $*" >> "$CALLS"',
    "pytest": f'exec "{sys.executable}" -m pytest -p no:cacheprovider "$@"',
    "pytest-reinplace": f'exec "{sys.executable}" -m pytest_reinplace.command "$@"',
}


class Project:
    """A checkout of two commits, the second of which clones what the first did not.

    Args:
        tmp_path: for all files.
        server: the forge.
    """

    def __init__(self, tmp_path: Path, server: Server) -> None:
        self.path, self.summary, self._calls = (
            tmp_path / "project",
            tmp_path / "summary.md",
            tmp_path / "calls",
        )
        self._output, bin_folder = tmp_path / "output", tmp_path / "bin"
        for folder in (self.path, bin_folder):
            folder.mkdir()
        for name, command in _COMMANDS.items():
            (bin_folder / name).write_text(f"#!{shutil.which('bash')}\n{command}\n")
            (bin_folder / name).chmod(0o755)
        self._env = {k: v for k, v in os.environ.items() if not k.startswith(_OUTSIDE)} | {
            "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
            "CALLS": str(self._calls),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        self._of_github = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTION_PATH": str(DOCS / "ci/action"),
            "GITHUB_API_URL": server.address,
            "GITHUB_OUTPUT": str(self._output),
            "GITHUB_REPOSITORY": "o/r",
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "GITHUB_WORKSPACE": str(self.path),
        }
        self._bash("git init --quiet")
        (self.path / "test_model.py").write_text(TEST)
        self.base, self.head = self.commit(IN_PLACE), self.commit(CLONED)

    def commit(self, model: str) -> str:
        (self.path / "model.py").write_text(model)
        who = "-c user.name=a -c user.email=a@example.org"
        self._bash(f"git add model.py test_model.py; git {who} commit --quiet --no-gpg-sign -m model")
        return self._bash("git rev-parse HEAD").stdout.strip()

    @property
    def installed(self) -> list[tuple[str, str]]:
        """The commits that pip was called on, and with what."""
        calls = [line.partition(" ") for line in self._calls.read_text().splitlines()]
        return [(commit, words) for commit, _, words in calls]

    def run_action(self, **inputs: str) -> tuple[list[str], subprocess.CompletedProcess[str]]:
        """Run the steps up to one that fails; returns the names of those that ran, and the last."""
        known = {f"inputs.{name}": str(given.get("default", "")) for name, given in ACTION["inputs"].items()}
        known |= {f"inputs.{name.replace('_', '-')}": value for name, value in inputs.items()}
        known |= {"github.event_name": "pull_request", "github.event.pull_request.number": "12"}
        known["inputs.token"] = "a-secret"
        ran, told = [], ""
        for step in ACTION["runs"]["steps"]:
            if not _holds(step.get("if", ""), known):
                continue
            self._output.write_text("")
            env = {name: _filled(value, known) for name, value in step.get("env", {}).items()}
            done = self._bash(step["run"], self._of_github | env, check=False)
            ran.append(step["name"])
            told += done.stdout + done.stderr
            if done.returncode:
                break
            for line in self._output.read_text().splitlines():
                name, _, value = line.partition("=")
                known[f"steps.{step['id']}.outputs.{name}"] = value
        return ran, subprocess.CompletedProcess(ran, done.returncode, told)

    def run_workflow(self, workflow: Mapping[str, Any]) -> dict[str, subprocess.CompletedProcess[str]]:
        """Run the named steps of the only job, whatever an earlier one says; returns what each gave."""
        (job,) = workflow["jobs"].values()
        known = {"github.token": "a-secret"}
        of_github = self._of_github | {"GITHUB_REF": "refs/pull/12/merge"}
        ran = {}
        for step in job["steps"]:
            if "run" in step:
                env = {name: _filled(value, known) for name, value in step.get("env", {}).items()}
                ran[step.get("name", step["run"])] = self._bash(step["run"], of_github | env, check=False)
        return ran

    def run_pipeline(self, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run the script of the job on the CPU."""
        job = {**GITLAB[".reinplace"], **GITLAB["reinplace"]}
        env = GITLAB[".reinplace"]["variables"] | job["variables"] | variables
        script = [*job["before_script"], *job["script"]]
        return self._bash("\n".join(script), {k: str(v) for k, v in env.items()}, check=False)

    def _bash(
        self, script: str, env: Mapping[str, str] = {}, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
        env = {**self._env, **env}
        return subprocess.run(
            command, cwd=self.path, env=env, capture_output=True, text=True, timeout=600, check=check
        )


def _filled(text: object, known: Mapping[str, str]) -> str:
    """Put in what the runner would; a name that nothing defines is an error."""
    return re.sub(r"\$\{\{ *(\S+) *\}\}", lambda found: known[found[1]], str(text))


def _holds(condition: str, known: Mapping[str, str]) -> bool:
    def side(text: str) -> str:
        return text[1:-1] if text.startswith("'") else known[text]

    return all(len({side(part) for part in one.split(" == ")}) == 1 for one in condition.split(" && ") if one)


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as found:
        yield found


@pytest.fixture
def project(tmp_path: Path, server: Server) -> Project:
    return Project(tmp_path, server)


def test_the_action_compares_both_commits_and_keeps_one_comment(project: Project, server: Server) -> None:
    steps = [step["name"] for step in ACTION["runs"]["steps"]]
    ran, done = project.run_action(tests="test_model.py -k 'update or none'")
    assert ran == steps and done.returncode == 1, done.stdout
    us, *installed = project.installed
    assert us == (project.head, f"install {DOCS / 'ci/action'}/../../..")
    assert (DOCS / "ci/action/../../..").samefile(ROOT)
    assert installed == [(project.base, "install -e ."), (project.head, "install -e .")]
    assert re.search(r"^::error file=model\.py,line=4,title=aten.*new clone", done.stdout, re.MULTILINE)
    assert "::error::over the limits; the comment and the summary say which" in done.stdout
    (comment,) = server.comments.values()
    assert comment.endswith(project.summary.read_text()) and "### Over the limit" in comment

    project.commit(IN_PLACE)
    ran, done = project.run_action(base_report="reinplace-reports/base.json")
    assert ran == [steps[0], *steps[2:]] and done.returncode == 0, done.stdout
    (comment,) = server.comments.values()
    assert "✅" in comment and "Over the limit" not in comment


def test_the_action_names_a_base_that_was_not_fetched(project: Project, server: Server) -> None:
    ran, done = project.run_action(base="HEAD^2")
    assert ran == ["Install pytest-reinplace", "Run the base"] and done.returncode == 1
    assert "::error::no commit HEAD^2 in this checkout: give actions/checkout fetch-depth: 2" in done.stdout


def test_the_pipeline_compares_both_commits_and_keeps_one_note(project: Project, server: Server) -> None:
    server.comments = {1: "<!-- pytest-reinplace: reinplace -->\nold"}
    variables = {
        "TESTS": "--reinplace-backend=graph",
        "CI_API_V4_URL": server.address,
        "CI_COMMIT_SHA": project.head,
        "CI_JOB_NAME": "reinplace",
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": project.base,
        "CI_MERGE_REQUEST_IID": "12",
        "CI_MERGE_REQUEST_PROJECT_ID": "7",
        "GITLAB_CI": "true",
        "GITLAB_TOKEN": "a-secret",
    }
    done = project.run_pipeline(**variables)
    assert done.returncode == 1, done.stdout + done.stderr
    *_, base, head = project.installed
    assert (base, head) == ((project.base, "install -e ."), (project.head, "install -e ."))
    # The log is for people: nothing in it is written as an entity.
    assert "test_model.py::test_update: new clone aten" in done.stdout, done.stdout
    assert "&#" not in done.stdout
    (note,) = server.comments.values()
    assert "### Over the limit" in note and note.endswith((project.path / "comment.md").read_text())


def _steps(workflow: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def test_the_gate_of_the_tutorial_gates_as_it_is_written(project: Project, server: Server) -> None:
    ran = project.run_workflow(TUTORIAL)
    gate = ran["Gate"]
    assert gate.returncode == 1, gate.stdout + gate.stderr
    assert "1 test over a limit (new_clones:0 exceeded)" in gate.stdout
    assert ran["Comment"].returncode == 0, ran["Comment"].stderr
    (comment,) = server.comments.values()
    assert "## Reinplacing: <code>base</code> → <code>head</code> ❌" in comment
    assert "new clone aten&#58;&#58;select" in comment

    project.commit(CLONED.replace("total", "before") + "# nothing new\n")
    assert project.run_workflow(TUTORIAL)["Gate"].returncode == 0
    (comment,) = server.comments.values()
    assert "✅" in comment


def _requirements(commands: object) -> set[str]:
    """Return what is given to pip in quotes, and which index that is from."""
    return set(re.findall(r'"((?:torch|pytest-reinplace)\b[^"]*"(?: --index-url \S+)?)', str(commands)))


def test_everything_is_installed_by_the_same_words() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    torch, us = sorted(_requirements((DOCS / "ci/gitlab.yml").read_text()), reverse=True)
    assert torch.startswith(f'{project["dependencies"][0]}" --index-url ')
    assert us == f'{project["name"]} @ git+https://github.com/OWNER/pytest-reinplace"'
    assert _requirements((DOCS / "tutorial.md").read_text()) == {torch, us}
    assert _requirements((DOCS / "how-to/ci.md").read_text()) == {torch, us}
    # An action is a whole checkout, and installs itself.
    assert _requirements((DOCS / "ci/github.yml").read_text()) == {torch}


def test_nothing_is_installed_from_an_index_that_does_not_have_it() -> None:
    files = [*DOCS.rglob("*.yml"), *pages(), *(ROOT / "pytest_reinplace").rglob("*.py")]
    from_index = re.compile(r"pip install .*?[ '\"]pytest-reinplace(?! @ git)")
    assert [(path, found) for path in files for found in from_index.findall(path.read_text())] == []


def test_the_workflow_gives_the_action_what_it_takes() -> None:
    using = [step for step in _steps(GITHUB) if "/docs/ci/action@" in step.get("uses", "")]
    assert len(using) == 1
    page = list(blocks((DOCS / "how-to/ci.md").read_text()))
    whole, on_gpu = (yaml.safe_load(b.text) for b in page if b.title.startswith(".github/"))
    without = [step for step in _steps(GITHUB) if "upload-artifact" not in step.get("uses", "")]
    assert _steps(whole) == without
    using += [step for step in _steps({"jobs": on_gpu}) if "/docs/ci/action@" in step.get("uses", "")]
    assert len({step["with"].get("name", "") for step in using}) == 2
    for step in using:
        assert set(step["with"]) <= set(ACTION["inputs"])

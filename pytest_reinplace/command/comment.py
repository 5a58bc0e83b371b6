"""``pytest-reinplace comment``: a text as the one comment on a pull request, edited at each push."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ..base.visible import visible
from . import forge
from .errors import CommandError


class _Place(NamedTuple):
    """A forge, and the variables by which its CI says where a job runs."""

    make: Callable[[str, str, int, str], forge.Forge]
    api: tuple[str, str]
    repo: str
    pull: str
    tokens: tuple[str, ...]
    rights: str


_PLACES = {
    "github": _Place(
        forge.github,
        ("GITHUB_API_URL", "https://api.github.com"),
        "GITHUB_REPOSITORY",
        "GITHUB_REF",
        ("GITHUB_TOKEN", "GH_TOKEN"),
        "The job needs 'permissions: pull-requests: write'; for a fork's pull request its token only reads",
    ),
    "gitlab": _Place(
        forge.gitlab,
        ("CI_API_V4_URL", "https://gitlab.com/api/v4"),
        "CI_MERGE_REQUEST_PROJECT_ID",
        "CI_MERGE_REQUEST_IID",
        ("GITLAB_TOKEN",),
        "It needs the scope 'api' and the role Reporter",
    ),
}


def run(path: Path, where: str | None, repo: str | None, pull: int | None, name: str) -> int:
    """Create or edit the comment; returns the exit code, 0 as well where the token may not write.

    Args:
        path: the file with the text.
        where: the forge; ``None``: the one whose CI runs this, GitHub elsewhere.
        repo: ``OWNER/NAME``, at GitLab a project's number too; ``None``: what the CI says.
        pull: the number of the pull request, or of the merge request; ``None``: what the CI says.
        name: tells several comments on one pull request apart.

    Raises:
        CommandError: the text cannot be read, something is not known, or the forge answers with an error.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path}: expected a text in UTF-8: {error}") from None
    if not text.strip():
        raise CommandError(f"{path}: expected a text, got an empty file")
    place = _PLACES[where or ("gitlab" if os.environ.get("GITLAB_CI") == "true" else "github")]
    repo = repo or os.environ.get(place.repo) or _missing("a repository", "--repo", place.repo)
    pull = pull or _pull(place)
    variable, usual = place.api
    api = (os.environ.get(variable) or usual).rstrip("/")
    request = f"request {pull} of {visible(repo)}"
    try:
        done = place.make(api, repo, pull, _token(place)).keep(name, text)
    except forge.NotAllowed as error:
        _tell(f"No comment on {request}: the token may not write there ({visible(error)}). {place.rights}.")
    else:
        print(f"comment {name!r} on {request}: {done}")
    return 0


def _pull(place: _Place) -> int:
    said = re.fullmatch(r"(?:refs/pull/)?(\d+)(?:/\w+)?", os.environ.get(place.pull, ""))
    return int(said[1]) if said else int(_missing("a number", "--pull", place.pull))


def _missing(what: str, option: str, variable: str) -> str:
    raise CommandError(
        f"expected {what} of what to comment on: give {option}; {variable} says none outside the CI of a "
        "pull request"
    )


def _token(place: _Place) -> str:
    token = next((os.environ[name] for name in place.tokens if os.environ.get(name)), "").strip()
    names = " or ".join(place.tokens)
    if not token:
        raise CommandError(f"expected a token in the environment, in {names}, got none")
    if not token.isascii() or not token.isprintable():  # what came is not shown: it is secret
        raise CommandError(f"{names}: expected a token of printable ASCII on one line")
    return token


def _tell(sentence: str) -> None:
    """Say it where it is read: on stderr, and in the summary of GitHub's step."""
    print(sentence, file=sys.stderr)
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        try:
            with open(summary, "a", encoding="utf-8") as file:
                file.write(f"\n{sentence}\n")
        except OSError as error:
            raise CommandError(f"{summary}: cannot be written: {error.strerror or error}") from None

"""``pytest-reinplace comment``: one comment, whatever is pushed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from .forge_server import Server, serving
from .reports import main

FORGES = ("github", "gitlab")
MARKER = "<!-- pytest-reinplace: reinplace -->\n"

both = pytest.mark.parametrize("forge", FORGES)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in [name for name in os.environ if name.startswith(("GITHUB_", "GITLAB_", "GH_", "CI"))]:
        monkeypatch.delenv(name)
    with serving() as found:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("GITHUB_API_URL", found.address)
        monkeypatch.setenv("GITHUB_REPOSITORY", "o/r")
        monkeypatch.setenv("GITHUB_REF", "refs/pull/12/merge")
        monkeypatch.setenv("GITHUB_TOKEN", "a-secret")
        monkeypatch.setenv("CI_API_V4_URL", found.address)
        monkeypatch.setenv("CI_MERGE_REQUEST_PROJECT_ID", "7")
        monkeypatch.setenv("CI_MERGE_REQUEST_IID", "12")
        monkeypatch.setenv("GITLAB_TOKEN", "a-secret")
        yield found


def keep(text: str, *options: str) -> int:
    Path("comment.md").write_text(text)
    return main(["comment", "comment.md", *options])


def refused(capsys: pytest.CaptureFixture[str], *options: str, text: str = "one") -> str:
    """Return the message of a command that fails; the token is never in it."""
    assert keep(text, *options) == 2
    message = capsys.readouterr().err
    assert "a-secret" not in message
    return message


@both
def test_it_is_made_once_and_then_edited(
    server: Server, forge: str, capsys: pytest.CaptureFixture[str]
) -> None:
    server.comments = {1: "a human", 2: f"> {MARKER}quoted"}
    for text in ("one", "two", "three ✅"):
        assert keep(text, f"--forge={forge}") == 0
        assert server.comments == {1: "a human", 2: f"> {MARKER}quoted", 3: MARKER + text}
    repo = {"github": "o/r", "gitlab": "7"}[forge]
    assert capsys.readouterr().out.splitlines() == [
        f"comment 'reinplace' on request 12 of {repo}: {done}" for done in ("created", "edited", "edited")
    ]
    header, value = {"github": ("authorization", "Bearer "), "gitlab": ("private-token", "")}[forge]
    assert server.headers[header] == f"{value}a-secret"


@both
def test_it_is_found_among_many(server: Server, forge: str) -> None:
    server.comments = dict.fromkeys(range(1, 201), "a human") | {201: MARKER + "one"}
    assert keep("two", f"--forge={forge}") == 0
    assert server.comments[201] == MARKER + "two" and len(server.comments) == 201


def test_as_many_as_fill_a_page(server: Server) -> None:
    server.comments = dict.fromkeys(range(1, 101), "a human")
    assert keep("one") == 0
    assert server.comments[101] == MARKER + "one"


def test_each_name_has_its_own(server: Server) -> None:
    assert [keep(text, f"--name={name}") for text, name in (("1", "gpu"), ("2", "gpus"), ("3", "gpu"))] == [
        0
    ] * 3
    assert server.comments == {
        1: "<!-- pytest-reinplace: gpu -->\n3",
        2: "<!-- pytest-reinplace: gpus -->\n2",
    }


def test_a_name_that_would_end_the_marker(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["comment", "comment.md", "--name=a --> b"])
    assert "expected a name on one line, without --, got 'a --> b'" in capsys.readouterr().err


def test_the_ci_says_which_forge_it_is(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITLAB_CI", "true")
    assert keep("one") == 0
    assert server.asked[-1] == "POST /projects/7/merge_requests/12/notes"


@pytest.mark.parametrize(
    ("forge", "rights"),
    [("github", "a fork's pull request its token only reads"), ("gitlab", "the role Reporter")],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_token_that_may_not_write_is_told_and_fails_nothing(
    server: Server,
    forge: str,
    rights: str,
    method: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("summary.md").write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    server.refuses = method, 403, {}, "Resource not accessible by integration"
    assert keep("one", f"--forge={forge}") == 0
    told, summary = capsys.readouterr().err, Path("summary.md").read_text()
    assert "the token may not write there" in told and rights in told
    assert "HTTP 403: Resource not accessible by integration" in told
    assert summary == f"before\n\n{told}" and server.comments == {}


@pytest.mark.parametrize(
    ("status", "headers", "message"),
    [
        (401, {}, "HTTP 401: no; the token is not valid"),
        (403, {"Retry-After": "60"}, "HTTP 403: no; there were too many requests; run the job again later"),
        (403, {"X-RateLimit-Remaining": "0"}, "HTTP 403: no; there were too many requests"),
        (404, {}, "HTTP 404: no; the repository or the request does not exist"),
        (422, {}, "HTTP 422: no\n"),
        (500, {}, "HTTP 500: no; run the job again"),
    ],
)
def test_an_error_is_named(
    server: Server, status: int, headers: dict[str, str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    server.refuses = "POST", status, headers, "no"
    told = refused(capsys)
    assert f"POST {server.address}/repos/o/r/issues/12/comments: {message}" in told
    assert server.comments == {}


def test_the_token_is_not_sent_elsewhere(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    with serving() as other:
        server.refuses = "GET", 302, {"Location": f"{other.address}/repos/o/r/issues/12/comments"}, "moved"
        assert "HTTP 302: moved" in refused(capsys)
        assert other.asked == []


def test_no_server(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving() as gone:
        monkeypatch.setenv("GITHUB_API_URL", gone.address)
    assert "no answer that can be used: " in refused(capsys)


def test_an_answer_that_is_no_list(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    server.refuses = "GET", 200, {}, "hello"
    assert "expected a list of comments, got {'message': 'hello'}" in refused(capsys)


def test_a_text_that_github_does_not_take(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    fits = 65_536 - len(MARKER)
    assert keep("x" * fits) == 0
    assert "at most 65536 characters, got 65537" in refused(capsys, text="x" * (fits + 1))
    assert keep("x" * (fits + 1), "--forge=gitlab") == 0


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("GITHUB_TOKEN", "", "expected a token in the environment, in GITHUB_TOKEN or GH_TOKEN, got none"),
        ("GITHUB_TOKEN", "a-secret\nX: y", "expected a token of printable ASCII on one line"),
        (
            "GITHUB_REPOSITORY",
            "",
            "expected a repository of what to comment on: give --repo; GITHUB_REPOSITORY",
        ),
        ("GITHUB_REF", "refs/heads/main", "expected a number of what to comment on: give --pull; GITHUB_REF"),
    ],
)
def test_what_is_not_known_is_asked_for(
    server: Server,
    variable: str,
    value: str,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(variable, value)
    assert message in refused(capsys)
    assert server.asked == []


def test_an_empty_text(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    assert "comment.md: expected a text, got an empty file" in refused(capsys, text="\n")
    assert server.asked == []


def test_a_text_that_is_not_there(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["comment", "none.md"]) == 2
    assert "none.md: expected a text in UTF-8: " in capsys.readouterr().err

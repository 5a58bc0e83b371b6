"""One comment on a pull request of GitHub or GitLab: made once, found again by its marker, and edited."""

from __future__ import annotations

import dataclasses
import http.client
import itertools
import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any, Literal
from urllib.parse import quote

from ..base.visible import brief
from .errors import CommandError

_PAGE = 100
_SECONDS = 30

# What helps, by the status of an answer.
_HELP = {
    401: "the token is not valid",
    404: "the repository or the request does not exist, or the token may not see it",
    429: "there were too many requests; run the job again later",
}


class NotAllowed(Exception):
    """The token may not do this. The message says what was asked and what was answered."""


@dataclasses.dataclass(frozen=True, slots=True)
class Forge:
    """The comments of one pull request, or of one merge request.

    Args:
        comments: the address of them all.
        comment: the address of one, without its number.
        headers: what says who asks.
        edit: the method that edits a comment.
        most: characters that a comment may have.
    """

    comments: str
    comment: str
    headers: Mapping[str, str]
    edit: Literal["PATCH", "PUT"]
    most: int

    def keep(self, name: str, text: str) -> str:
        """Make the comment of this name, or edit it where it is; returns ``"created"`` or ``"edited"``.

        Raises:
            NotAllowed: the token may not write there.
            CommandError: the text is too long, or what was asked was answered otherwise or not at all.
        """
        marker = f"<!-- pytest-reinplace: {name} -->"
        body = f"{marker}\n{text}"
        if len(body) > self.most:
            raise CommandError(
                f"expected a comment of at most {self.most} characters, got {len(body)}; "
                "'pytest-reinplace compare --markdown' writes at most 60000"
            )
        # At its very beginning: a reply that quotes the comment is another one.
        number = next((n for n, found in self._all() if found.startswith(marker)), None)
        if number is None:
            self._ask("POST", self.comments, {"body": body})
            return "created"
        self._ask(self.edit, f"{self.comment}/{number}", {"body": body})
        return "edited"

    def _all(self) -> Iterator[tuple[int, str]]:
        """Yield the number and the text of each comment, page after page."""
        for page in itertools.count(1):
            found = self._ask("GET", f"{self.comments}?per_page={_PAGE}&page={page}")
            try:
                yield from ((int(one["id"]), str(one["body"])) for one in found)
            except (TypeError, KeyError, ValueError):
                raise CommandError(
                    f"GET {self.comments}: expected a list of comments, got {brief(found)}"
                ) from None
            if len(found) < _PAGE:
                return

    def _ask(self, method: str, url: str, data: Mapping[str, str] | None = None) -> Any:
        headers = {**self.headers, "Content-Type": "application/json", "User-Agent": "pytest-reinplace"}
        body = None if data is None else json.dumps(data).encode()
        try:
            request = urllib.request.Request(url, body, headers, method=method)
            with urllib.request.build_opener(_Here).open(request, timeout=_SECONDS) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise _refused(f"{method} {url}", error) from None
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise CommandError(f"{method} {url}: no answer that can be used: {brief(error)}") from None


class _Here(urllib.request.HTTPRedirectHandler):
    """Follows no redirection: the token would be sent along."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _refused(asked: str, error: urllib.error.HTTPError) -> Exception:
    """Return the exception for an answer that is an error."""
    try:
        said = json.load(error)
        text = said.get("message") or said.get("error") or ""
    except (OSError, ValueError, AttributeError, http.client.HTTPException):
        text = ""
    status = brief(f"HTTP {error.code}: {text or error.reason}")
    # GitHub answers 403 as well when it was asked too often.
    is_limited = "retry-after" in error.headers or error.headers.get("x-ratelimit-remaining") == "0"
    if error.code == 403 and not is_limited:
        return NotAllowed(f"{asked}: {status}")
    hint = _HELP.get(429 if is_limited else error.code, "run the job again" if error.code >= 500 else "")
    return CommandError(f"{asked}: {status}" + (f"; {hint}" if hint else ""))


def github(api: str, repo: str, pull: int, token: str) -> Forge:
    """Return a pull request's comments; ``repo`` is ``OWNER/NAME``."""
    issues = f"{api}/repos/{quote(repo)}/issues"
    headers = {
        "Authorization": f"Bearer {token}",
        "Accept": "application/vnd.github+json",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    return Forge(f"{issues}/{pull}/comments", f"{issues}/comments", headers, "PATCH", 65_536)


def gitlab(api: str, repo: str, pull: int, token: str) -> Forge:
    """Return a merge request's notes; ``repo`` is a project's number or its path."""
    notes = f"{api}/projects/{quote(repo, safe='')}/merge_requests/{pull}/notes"
    return Forge(notes, notes, {"PRIVATE-TOKEN": token}, "PUT", 1_000_000)

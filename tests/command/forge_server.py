"""A server that keeps comments as GitHub and GitLab do, as far as the command asks."""

from __future__ import annotations

import contextlib
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

GITHUB = r"/repos/o/r/issues/12/comments", r"/repos/o/r/issues/comments/(\d+)", "PATCH"
GITLAB = r"/projects/7/merge_requests/12/notes", r"/projects/7/merge_requests/12/notes/(\d+)", "PUT"


class Server:
    """The comments of request 12.

    Args:
        address: where it listens.
        comments: what they say, by number.
        asked: the methods and paths of all requests.
        headers: of the last request.
        refuses: ``(method, status, headers, message)``: how it answers this method.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.comments: dict[int, str] = {}
        self.asked: list[str] = []
        self.headers: dict[str, str] = {}
        self.refuses: tuple[str, int, dict[str, str], str] | None = None

    def answer(self, method: str, url: str, body: bytes) -> tuple[int, dict[str, str], Any]:
        path, query = urlsplit(url).path, parse_qs(urlsplit(url).query)
        self.asked.append(f"{method} {path}")
        if self.refuses and self.refuses[0] == method:
            _, status, headers, message = self.refuses
            return status, headers, {"message": message}
        for every, one, edit in (GITHUB, GITLAB):
            if path == every and method == "GET":
                first = (int(query["page"][0]) - 1) * int(query["per_page"][0])
                found = [{"id": number, "body": text} for number, text in sorted(self.comments.items())]
                return 200, {}, found[first : first + int(query["per_page"][0])]
            if path == every and method == "POST":
                number = max(self.comments, default=0) + 1
                self.comments[number] = json.loads(body)["body"]
                return 201, {}, {"id": number}
            named = re.fullmatch(one, path)
            if named and method == edit and int(named[1]) in self.comments:
                self.comments[int(named[1])] = json.loads(body)["body"]
                return 200, {}, {"id": int(named[1])}
        return 404, {}, {"message": "Not Found"}


@contextlib.contextmanager
def serving() -> Iterator[Server]:
    """Serve on a port of this machine for the block."""

    class Handler(BaseHTTPRequestHandler):
        def handle_one(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            server.headers = {name.lower(): value for name, value in self.headers.items()}
            status, headers, data = server.answer(self.command, self.path, body)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(json.dumps(data).encode())

        do_GET = do_POST = do_PATCH = do_PUT = handle_one

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        server = Server(f"http://127.0.0.1:{listening.server_port}")
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            listening.shutdown()
            thread.join()

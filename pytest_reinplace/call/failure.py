"""What a compiled call raises, told briefly: the program's own line first, without the frames of torch."""

from __future__ import annotations

import contextlib
import os
import types

from . import _torch

_KEPT = ("Explanation:", "Developer debug context:")


_ALLOWING = (
    "assert_reinplaced(fn, ...) compiles with fullgraph=True; to allow graph breaks, call "
    "assert_reinplaced(torch.compile(fn), ...)"
)


def told(error: Exception, advice: str = _ALLOWING) -> Exception:
    """Return what is to be raised in the place of an error of ``torch.compile(fn, fullgraph=True)(...)``.

    A graph break becomes an ``AssertionError`` that begins with the line which breaks the graph. Any other
    error stays what it is; its traceback keeps only the frames of the program, its kernels among them.
    """
    lines = _torch.breaks_at(error)
    if lines is None:
        return shortened(error)
    return AssertionError("\n".join([*_broken(str(error), *lines), f"  {advice}"]))


def remedy(error: BaseException, option: str) -> str:
    """Return what helps against an error of torch that names no remedy; empty where nothing is known to."""
    if "InvalidCxxCompiler" not in f"{type(error).__name__}: {error}":
        return ""
    return f"{option} needs no C++ compiler: it generates no code"


def shortened(error: Exception) -> Exception:
    """Return an error whose traceback has the frames of the program, or of a pass of the user, alone.

    It stays as it is where there are none.
    """
    found = _outside_torch(error.__traceback__)
    return error if found is None else error.with_traceback(found)


def _broken(message: str, path: str, line: int, code: str) -> list[str]:
    first, *rest = message.strip().splitlines() or ["unknown reason"]
    kept = [text.strip() for text in rest if text.strip().startswith(_KEPT)]
    place = os.path.relpath(path) if path.startswith(os.getcwd() + os.sep) else path
    return [
        f"{place}:{line}: `{code.strip()}` breaks the graph: {first}",
        *(f"  {text}" for text in kept),
    ]


def _outside_torch(traceback: types.TracebackType | None) -> types.TracebackType | None:
    """Return a traceback without the frames of torch, of code that it generated, and ours."""
    ours = os.path.dirname(os.path.dirname(__file__)) + os.sep
    # torch enters what it calls through decorators of contextlib.
    kept, inside = [], ("<", _torch.folder(), ours, contextlib.__file__)
    while traceback is not None:
        if not traceback.tb_frame.f_code.co_filename.startswith(inside):
            kept.append(traceback)
        traceback = traceback.tb_next
    outer: types.TracebackType | None = None
    for one in reversed(kept):
        outer = types.TracebackType(outer, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return outer


def uncompiled(so: str) -> str:
    """Return why there is no graph, where there is none; ``so`` says what follows."""
    if others := _torch.other_backends():
        seen = ", ".join(f"backend={name!r}" for name in others)
        return f"no graph reached Inductor, {so}: torch.compile was called with {seen}"
    return (
        f"no graph was compiled, {so}: call what torch.compile(fn) returns, with backend='inductor', inside "
        "the test"
    )

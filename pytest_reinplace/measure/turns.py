"""Who may use a device when: workers of pytest-xdist may have the same one."""

from __future__ import annotations

import contextlib
import gc
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from ..base import launch
from .sides import OutOfMemory

T = TypeVar("T")


def run(kind: str, once: Callable[[], T]) -> T:
    """Run an entry beside those of other workers; where memory runs out, once more without them.

    Args:
        kind: ``"cpu"`` or ``"cuda"``, the current device.
        once: runs the entry; it may be called twice.

    Raises:
        OutOfMemory: the device has not enough memory for this entry alone.
    """
    import torch

    no_memory = OutOfMemory, torch.OutOfMemoryError
    others = "PYTEST_XDIST_WORKER" in os.environ and os.name == "posix"
    if others:
        with _inside(kind, alone=False), _giving_back(kind), contextlib.suppress(*no_memory):
            return once()
    try:
        with _inside(kind, alone=True) if others else contextlib.nullcontext():
            return once()
    except no_memory as error:
        words = str(error).splitlines()[0]
        alone = ", also with no other worker on the device" if others else ""
        raise OutOfMemory(f"out of memory: {words}{alone}; choose smaller args for this device") from None


@contextlib.contextmanager
def _inside(kind: str, *, alone: bool) -> Iterator[None]:
    """Be inside an entry on the device, among others or alone.

    Who waits to be alone holds the door, so that nobody comes in before; who is inside does not need it.
    """
    import fcntl  # filelock has no lock that several may share

    door, room = _path(kind, "door"), _path(kind, "room")
    with open(room, "a") as inside:
        with open(door, "a") as entering:
            fcntl.flock(entering, fcntl.LOCK_EX)
            fcntl.flock(inside, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        try:
            yield
        finally:
            fcntl.flock(inside, fcntl.LOCK_UN)  # a process forked meanwhile has the file open, too


@contextlib.contextmanager
def _giving_back(kind: str) -> Iterator[None]:
    """Leave no memory of the device with this process when the block ends, also by an error."""
    try:
        yield
    finally:
        gc.collect()
        if kind == "cuda":
            import torch

            with contextlib.suppress(torch.AcceleratorError):  # the device is lost; the entry says so
                torch.cuda.empty_cache()


@contextlib.contextmanager
def exclusive(kind: str) -> Iterator[None]:
    """Let one process at a time measure on a device.

    The processes of one launch measure together; where they share a processor the first one locks it.
    """
    if kind == "cpu" and launch.local_rank():
        yield
        return
    import filelock

    # A kernel may be chosen while its program is measured, in a backward by a thread of its own.
    with filelock.FileLock(_path(kind), is_singleton=True, thread_local=False):
        yield


def _path(kind: str, what: str = "") -> Path:
    """Return the file of a lock of the current device."""
    import torch

    number = torch.cuda.current_device() if kind == "cuda" else 0
    user = os.getuid() if hasattr(os, "getuid") else 0
    name = "-".join(filter(None, ["pytest-reinplace", str(user), kind, str(number), what]))
    return Path(tempfile.gettempdir(), f"{name}.lock")

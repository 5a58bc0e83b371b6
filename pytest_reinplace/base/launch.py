"""The launch that a session is one process of: ``torchrun`` starts one for each device, in lockstep."""

from __future__ import annotations

import os


def processes() -> int:
    """Return how many processes ``torchrun`` started; 1 where it started none.

    Other launchers set ``RANK``, too, for processes that have nothing to do with each other.
    """
    return int(os.environ["WORLD_SIZE"]) if _is_torchrun() else 1


def rank() -> int:
    """Return this process's number among all of the launch: 0 reports and records."""
    return int(os.environ["RANK"]) if _is_torchrun() else 0


def local_rank() -> int:
    """Return this process's number among those on this host, which is that of its device."""
    return int(os.environ["LOCAL_RANK"]) if _is_torchrun() else 0


def _is_torchrun() -> bool:
    return {"TORCHELASTIC_RUN_ID", "WORLD_SIZE", "RANK", "LOCAL_RANK"} <= os.environ.keys()

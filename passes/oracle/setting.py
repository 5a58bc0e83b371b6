"""How random programs are made, compiled and run."""

from __future__ import annotations

import contextlib
import functools
import os
import pathlib
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any, NamedTuple
from unittest import mock

from ..fuzz.program import HardProgram, RandomProgram
from ..inductor.defects import undefended
from ..inductor.schedule import check
from . import _torch


class Setting(NamedTuple):
    """How programs are made, compiled and run.

    Args:
        device: where they run.
        dynamic: whether the sizes of their inputs are symbols, as far as a program lets them be.
        triton: whether some of their lines launch a Triton kernel, for which there must be a device.
        hard: whether they are hard programs, called twice, of which layouts, storages and peaks are held too.
        training: whether a backward follows; hard programs only.
        without: defects (``inductor/defects``) that nothing is done about; finished schedules are not
            checked then either.
    """

    device: str = "cpu"
    dynamic: bool = False
    triton: bool = False
    hard: bool = False
    training: bool = False
    without: tuple[str, ...] = ()

    def program(self, seed: int) -> RandomProgram | HardProgram:
        """Return the program of a seed."""
        if self.hard:
            return HardProgram(seed, is_training=self.training, is_dynamic=self.dynamic)
        return RandomProgram(seed, has_triton=self.triton)

    @contextlib.contextmanager
    def in_force(self) -> Iterator[None]:
        """Compile as programs are compiled in great numbers: kernels that are quick to build, not to run.

        No graph comes from a cache: another program's, stored under the same key, would be judged.
        """
        compiler = quick_compiler()
        quick: dict[str, Any] = {"fx_graph_cache": False}
        if compiler:
            quick["cpp.cxx"] = (None, compiler)
        unchecked = mock.patch.object(check, "problem", return_value="")  # it would see to some of them
        with contextlib.ExitStack() as entered:
            entered.enter_context(_torch.inductor_config(**quick))
            entered.enter_context(undefended(*self.without))
            if self.without:
                entered.enter_context(unchecked)
            yield


@functools.cache
def quick_compiler() -> str:
    """Return a C++ compiler that does not optimize, ``""`` where there is none that we know.

    It is called ``g++`` and has the same path in every process: Inductor asks for the name before it uses
    precompiled headers, and keeps one for each command line.
    """
    found = shutil.which(os.environ.get("CXX", "g++"))
    if not found or pathlib.Path(found).name != "g++" or os.name != "posix":
        return ""
    folder = pathlib.Path(tempfile.gettempdir(), f"reinplace-quick-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        return ""
    script, text = folder / "g++", f'#!/bin/sh\nexec {found} "$@" -O0 -g0\n'
    if not script.exists() or script.read_text() != text:
        new = folder / f"g++.{os.getpid()}"
        new.write_text(text)
        new.chmod(0o700)
        new.replace(script)
    return str(script)

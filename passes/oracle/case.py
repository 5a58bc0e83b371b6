"""A hard program compiled and called twice, held against eager mode in all that a caller can see."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import torch

from ..fuzz.program import HardProgram
from . import _torch
from .call import Called, called, differences, kept_inputs, peak
from .setting import Setting

RAISES = "raises"
_SEEN_BY_FEW = ("layout", "offset", "sharing")  # what AOTAutograd itself may do otherwise than eager mode
_FUNCTIONAL = {"backend": "aot_eager_decomp_partition"}


@dataclasses.dataclass(frozen=True, slots=True)
class Judged:
    """What became of one program on one side.

    Args:
        problem: the first thing that is wrong, ``""`` if nothing is.
        peak: the most bytes that a further call held, 0 where it was not measured.
    """

    problem: str
    peak: int = 0


class Case:
    """A hard program, run in eager mode once, and what its functional graph makes of it.

    Args:
        program: the program.
        setting: how it is compiled.

    ``functional`` is what is wrong with its functional graph, which is not the program then, though our
    passes mend some; where there is none, or eager mode refuses it, as it may on a GPU alone, the program is
    unfit.
    """

    def __init__(self, program: HardProgram, setting: Setting) -> None:
        self.program = program
        self._setting = setting
        self._function = program.function()
        self._expected: list[Called] = []
        found = self._refused() or self._differences(has_peak=False, **_FUNCTIONAL)[0]
        self.tolerated: set[str] = {text for text in found if _kind(text) in _SEEN_BY_FEW}
        self.functional: str = next((text for text in found if text not in self.tolerated), "")
        self.is_unfit: bool = self.functional.startswith(RAISES)

    def _refused(self) -> list[str]:
        """Run the program in eager mode; returns what that raises."""
        try:
            self._expected += [called(self._function, given) for given in self._inputs()]
        except RuntimeError as error:
            return [f"{RAISES} {error}"]
        return []

    def judged(self, options: dict[str, Any]) -> Judged:
        """Compile by Inductor with options and return what is wrong beyond what the functional graph has."""
        found, height = self._differences(has_peak=True, options=options)
        return Judged(next((text for text in found if text not in self.tolerated), ""), height)

    def kept(self, options: dict[str, Any]) -> int:
        """Compile by Inductor with options and return how many inputs are kept for the backward."""
        with self._compiled(options=options) as compiled:
            return kept_inputs(compiled, self._inputs()[0])

    def _inputs(self) -> list[list[Any]]:
        return self.program.every_inputs(self._setting.device)

    @contextlib.contextmanager
    def _compiled(self, **how: Any) -> Iterator[Callable[..., Any]]:
        torch.compiler.reset()
        dynamic = None if self._setting.dynamic and self.program.seed % 4 == 0 else self._setting.dynamic
        with _torch.sizes_of_numbers(), _torch.inductor_config(**self.program.options):
            yield torch.compile(self._function, fullgraph=True, dynamic=dynamic, **how)

    def _differences(self, *, has_peak: bool, **how: Any) -> tuple[list[str], int]:
        found: list[str] = []
        with self._compiled(**how) as compiled:
            try:
                for i, (given, expected) in enumerate(zip(self._inputs(), self._expected, strict=True)):
                    actual = called(compiled, given)
                    found += [text + " in the second call" * i for text in differences(expected, actual)]
                return found, peak(compiled, self._inputs()[0]) if has_peak else 0
            except torch.AcceleratorError:
                raise
            except Exception as error:  # noqa: BLE001  (whatever it raises is a finding)
                text = " ".join(str(error).split())[:300]
                return [*found, f"{RAISES} {type(error).__name__}: {text}"], 0


def _kind(text: str) -> str:
    return text.partition(" ")[0]

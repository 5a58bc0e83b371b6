"""Looking on while one graph is compiled: which copies are in the code that Inductor made of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..base._torch import SeamError
from . import _torch
from .cause import causes

if TYPE_CHECKING:
    from ..base.lowering_copy import LoweringCopy

_NOT_LOWERED = "Inductor's lowering was not seen"


class Lowering:
    """Sees one compiled graph, with all subgraphs, while Inductor lowers it.

    A graph may be lowered several times until its schedule is right; the last time counts.
    """

    def __init__(self) -> None:
        self._copies: list[LoweringCopy] | None = None
        self._inner: dict[int, list[LoweringCopy]] = {}
        self._problem = _NOT_LOWERED

    @property
    def told(self) -> dict[str, Any]:
        """What is known now, as a captured graph has it."""
        found = None if self._copies is None else tuple(self._copies)
        return {"copies": found, "unlowered": "" if found is not None else self._problem}

    @contextlib.contextmanager
    def looking(self) -> Iterator[None]:
        """See what is lowered inside the block. Whatever fails here leaves the compilation as it is."""
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(_torch.watching(self._done))
            except SeamError as error:
                self._problem = str(error)
            yield

    def _done(self, graph: Any, read: _torch.Read) -> None:
        try:
            found = list(causes(read(), _torch.name_of(graph)))
        except Exception as error:  # noqa: BLE001  (looking on must not break the user's program)
            text = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            self._copies, self._problem = None, f"a defect of pytest-reinplace: {text}"
            return
        root = _torch.root_of(graph)
        if root is graph:
            self._copies = [*found, *self._inner.pop(id(root), ())]
        else:
            self._inner.setdefault(id(root), []).extend(found)

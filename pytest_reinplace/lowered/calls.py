"""The calls of generated programs, as they really are: what each is given, which lines run, what is asked."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from . import _torch
from .allocation import Origin
from .called import Call, Given, Program
from .lines import Lines

MARK = "reinplace:"
"""With what the marks begin that a call puts among the events of a profile."""
ENTERED, LEFT = -1, -2
"""The positions in marks at which a compiled graph is entered and left, around its program."""


class Calls:
    """Knows what was lowered, and notes calls.

    Lines are followed by Python's trace function, which allocates nothing. Each puts a mark into the
    profile, if one is running: its events are told apart by these, and not by names or times of our own.
    Numbers that a program asks for are noted by a dispatch mode. It makes tensors of scalar arguments, of
    some bytes each, so it is for calls whose memory nobody looks at.
    """

    def __init__(self) -> None:
        self.found: list[Call] = []
        self.lowered: int = 0
        self._notes_asked = False
        self._origins: dict[str, Mapping[str, Origin]] = {}
        self._compilations: dict[str, str] = {}

    @contextlib.contextmanager
    def lowering(self) -> Iterator[None]:
        """Note in the block where the buffers of graphs come from that are lowered."""
        with _torch.lowered_graphs(self._lowered):
            yield

    @contextlib.contextmanager
    def noting(self, *, asked: bool = False) -> Iterator[None]:
        """Note each call of a compiled graph in the block, in the place of those before.

        Args:
            asked: whether what only data decide is noted, too.
        """
        self.found.clear()
        self._notes_asked = asked
        with _torch.around_calls(self._called):
            yield

    def _lowered(self, key: str, compilation: str, buffers: Mapping[str, list[Any]]) -> None:
        self.lowered += 1
        self._origins[key] = {name: _origin(nodes) for name, nodes in buffers.items()}
        self._compilations[key] = compilation

    def _called(self, graph: Any, inputs: Any, run: Callable[[], Any]) -> Any:
        import torch

        number = len(self.found)
        lines: list[int] = []
        answers: list[Any] = []
        results: list[tuple[Given, ...]] = []
        given: list[Any] = []
        self.found.append(Call(self._program(graph), ()))

        def step(line: int) -> None:
            lines.append(line)
            _torch.mark(f"{MARK}{number}:{len(lines) - 1}")

        def dispatched(func: Any, args: Any, kwargs: Any) -> Any:
            result = func(*args, **kwargs)
            if func is torch.ops.aten._local_scalar_dense.default:
                answers.append(result)
            elif _torch.depends_on_data(func):
                results.append(tuple(_given(one) for one in _torch.leaves(result)))
            return result

        _torch.mark(f"{MARK}{number}:{ENTERED}")
        try:
            following = Lines(_torch.is_program(graph), step, lambda args: given.extend(map(_given, args)))
            asking = _torch.dispatching(dispatched) if self._notes_asked else contextlib.nullcontext()
            with asking, following:
                return run()
        finally:
            _torch.mark(f"{MARK}{number}:{LEFT}")
            call = self.found[number]
            self.found[number] = dataclasses.replace(
                call,
                inputs=tuple(given),
                lines=tuple(lines),
                answers=tuple(answers),
                results=tuple(results),
            )

    def _program(self, graph: Any) -> Program:
        from ..passes.facts import where_in

        key = _torch.key_of(graph)
        direction = "bw" if _torch.is_backward(graph) else "fw"
        named = " ".join(filter(None, (direction, self._compilations.get(key, ""))))
        traces = ((line, where_in(trace)) for line, trace in _torch.traces_of(graph))
        return Program(
            _torch.text_of(graph),
            f"[{named}]",
            _torch.constants_of(graph),
            self._origins.get(key, {}),
            {line: source for line, source in traces if source},
        )


def _origin(nodes: list[Any]) -> Origin:
    from ..passes.facts import where

    sources = [source for node in nodes if (source := where(node))]
    return Origin(tuple(node.name for node in nodes), sources[-1] if sources else "")


def _given(value: Any) -> Any:
    import torch

    if not isinstance(value, torch.Tensor):
        return value
    storage = value.untyped_storage()
    return Given(
        tuple(map(int, value.shape)),
        tuple(map(int, value.stride())),
        int(value.storage_offset()),
        value.dtype,
        value.device,
        storage.data_ptr() or -id(storage),  # nothing has an address of its own where it has no bytes
        storage.nbytes(),
    )

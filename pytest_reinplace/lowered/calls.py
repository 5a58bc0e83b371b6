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


@dataclasses.dataclass(frozen=True, slots=True)
class Marked:
    """A mark, and what an allocator said at it.

    Args:
        call: the number of the call.
        position: that of the line which is next, or ``ENTERED``, ``LEFT``.
        level: the bytes that were held.
        highest: the most since the mark before.
    """

    call: int
    position: int
    level: int
    highest: int


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
        self.marks: list[Marked] = []
        self._notes_asked = False
        self._level: Callable[[], tuple[int, int]] | None = None
        self._origins: dict[str, Mapping[str, Origin]] = {}
        self._compilations: dict[str, str] = {}

    @contextlib.contextmanager
    def lowering(self) -> Iterator[None]:
        """Note in the block where the buffers of graphs come from that are lowered."""
        with _torch.lowered_graphs(self._lowered):
            yield

    @contextlib.contextmanager
    def noting(
        self, *, asked: bool = False, level: Callable[[], tuple[int, int]] | None = None
    ) -> Iterator[None]:
        """Note each call of a compiled graph in the block, in the place of those before.

        Args:
            asked: whether what only data decide is noted, too.
            level: returns the bytes that are held, and the most since it was last asked. Without it there are
                marks in the running profile only.
        """
        self.found.clear()
        self.marks.clear()
        self._notes_asked, self._level = asked, level
        with _torch.around_calls(self._called):
            yield

    def _lowered(self, key: str, compilation: str, buffers: Mapping[str, list[Any]]) -> None:
        self.lowered += 1
        self._origins[key] = {name: _origin(nodes) for name, nodes in buffers.items()}
        self._compilations[key] = compilation

    def _called(self, graph: Any, inputs: Any, run: Callable[[], Any]) -> Any:
        number, noted = len(self.found), _Noted()
        self.found.append(Call(self._program(graph), ()))

        def step(line: int) -> None:
            noted.lines.append(line)
            self._mark(number, len(noted.lines) - 1)

        self._mark(number, ENTERED)
        try:
            following = Lines(_torch.is_program(graph), step, noted.begin)
            asking = _torch.dispatching(noted.dispatched) if self._notes_asked else contextlib.nullcontext()
            with asking, following:
                return run()
        finally:
            self._mark(number, LEFT)
            self.found[number] = noted.call(self.found[number].program)

    def _mark(self, number: int, position: int) -> None:
        if self._level is not None:
            self.marks.append(Marked(number, position, *self._level()))
        _torch.mark(f"{MARK}{number}:{position}")

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


class _Noted:
    """What is noted of one call while it runs."""

    def __init__(self) -> None:
        self.lines: list[int] = []
        self._answers: list[Any] = []
        self._results: list[tuple[Given, ...]] = []
        self._given: list[Any] = []
        self._gone: dict[int, Callable[[], bool]] = {}

    def begin(self, args: list[Any]) -> None:
        """Note what a program is called with; nothing of it is held."""
        self._given.extend(map(_given, args))
        pairs = zip(self._given, args, strict=True)
        self._gone.update({one.address: _torch.weakly(arg) for one, arg in pairs if isinstance(one, Given)})

    def dispatched(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Make a call, and note what only data decide."""
        import torch

        result = func(*args, **kwargs)
        if func is torch.ops.aten._local_scalar_dense.default:
            self._answers.append(result)
        elif _torch.depends_on_data(func):
            self._results.append(tuple(_given(one) for one in _torch.leaves(result)))
        return result

    def call(self, program: Program) -> Call:
        """Return the call, which is over."""
        released = frozenset(address for address, is_gone in self._gone.items() if is_gone())
        return Call(
            program,
            tuple(self._given),
            tuple(self.lines),
            tuple(self._answers),
            tuple(self._results),
            released,
        )


def _origin(nodes: list[Any]) -> Origin:
    from ..passes.facts import called, where

    source = next((source for node in reversed(nodes) if (source := where(node))), "")
    clones = any(node.op == "call_function" and called(node) == "aten::clone" for node in nodes)
    return Origin(tuple(node.name for node in nodes), source, clones)


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

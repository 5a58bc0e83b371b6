"""The seam to Inductor's IR: where it copies, for whom, and what was made in the end.

What notes causes may be missing on some torch: a copy is found without it, and its cause is ``unknown``.
Without ``Scheduler.codegen`` nothing is found, and :func:`watching` raises ``SeamError``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import re
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal

from ..base._torch import SeamError, private, virtualized

if TYPE_CHECKING:
    from torch.fx import Node

Kind = Literal["copy", "concat", "write"]
# Where Inductor makes a copy, and as what it makes it; each returns the buffer or a box around it.
_MAKERS: tuple[tuple[str, str, Kind], ...] = (
    ("ExternKernel", "copy_input", "copy"),
    ("ConcatKernel", "realize_into", "concat"),
    ("MutationLayoutSHOULDREMOVE", "realize_into", "write"),
)
_BOXES = ("TensorBox", "StorageBox", "BaseView")
_NO_TURN = re.compile(r"\s*(\w+)\[(\d+)\] = .*\.clone\(\)\s*")
# Inductor's own frames between a copy and the node that is lowered, at most.
_DEEPEST = 60


@dataclasses.dataclass(frozen=True, slots=True)
class Note:
    """What was known when a copy was made.

    Args:
        kind: who made it.
        node: the FX node that was being lowered; of what a loop's body returns, the loop.
        between: the FX nodes whose values have no place, and are computed where the copy is made.
        operand: the operand of ``node`` that is copied, ``None`` where that is not known.
        calls: Inductor's functions that led there, innermost first.
    """

    kind: Kind
    node: Node | None
    between: frozenset[Node]
    operand: Node | None
    calls: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Made:
    """A copy that is in the generated code.

    Args:
        buffer: its name.
        of: the name of what it copies.
        nbytes: the bytes that are copied.
        device: where.
        origins: the FX nodes of its graph that it was lowered from.
        note: what was known when it was made; ``None`` where it was made somewhere else.
        extern: the operator or the kind of call that copies; empty for a generated kernel.
        is_whole: whether all elements of what it copies are in it.
        is_given: whether what it copies is an input of the graph, or a constant.
        maker: the FX node that made what is copied.
        is_as_traced: whether it has the strides that the result of the note's node has in the FX graph.
        is_noted: whether this torch has all functions that are asked for notes.
    """

    buffer: str
    of: str
    nbytes: int
    device: str
    origins: tuple[Node, ...]
    note: Note | None = None
    extern: str = ""
    is_whole: bool = True
    is_given: bool = False
    maker: Node | None = None
    is_as_traced: bool = False
    is_noted: bool = True


Notes = weakref.WeakKeyDictionary[Any, dict[str, Note]]
Read = Callable[[], list[Made]]


@contextlib.contextmanager
def watching(done: Callable[[Any, Read], None]) -> Iterator[None]:
    """Call ``done(graph, read)`` for each graph, subgraphs first, once its code is generated.

    ``read()`` returns the copies that are in the code, those of subgraphs not among them.

    Raises:
        SeamError: this torch has no ``Scheduler.codegen``.
    """
    scheduler = private("torch._inductor.scheduler", "Scheduler")
    private("torch._inductor.scheduler", "Scheduler.codegen")
    notes: Notes = weakref.WeakKeyDictionary()

    missing = set[str]()

    def around(codegen: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = codegen(self, *args, **kwargs)
            graph = virtualized().graph
            done(graph, lambda: list(_made(graph, notes.get(graph, {}), is_noted=not missing)))
            return result

        return call

    with contextlib.ExitStack() as stack:
        stack.enter_context(_wrapped(scheduler, "codegen", around))
        for owner, name, kind in _MAKERS:
            try:
                found = private("torch._inductor.ir", owner)
                stack.enter_context(_wrapped(found, name, _noting(kind, notes)))
            except SeamError:
                missing.add(f"{owner}.{name}")
        yield


@contextlib.contextmanager
def _wrapped(owner: Any, name: str, around: Callable[[Callable[..., Any]], Any]) -> Iterator[None]:
    """Wrap a method for the block; a static or a class method stays one."""
    original = owner.__dict__.get(name)
    if original is None:
        raise SeamError(f"expected {owner.__name__} to have {name!r}, found none")
    if isinstance(original, staticmethod | classmethod):
        setattr(owner, name, type(original)(around(original.__func__)))
    else:
        setattr(owner, name, around(original))
    try:
        yield
    finally:
        setattr(owner, name, original)


def _noting(kind: Kind, notes: Notes) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def around(make: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            # The class comes first where there is one, then what is copied.
            value = args[1] if isinstance(args[0], type) else args[0]
            note = _note(kind, value)
            result = make(*args, **kwargs)
            graph, name = virtualized().graph, _name(result)
            if name:
                notes.setdefault(graph, {})[name] = note
            return result

        return call

    return around


def _note(kind: Kind, value: Any) -> Note:
    graph = virtualized().graph
    node = graph.current_node or getattr(getattr(graph, "parent", None), "current_node", None)
    inner = _unboxed(value)
    between = (
        getattr(inner, "origins", ()) if isinstance(inner, private("torch._inductor.ir", "Loops")) else ()
    )
    return Note(kind, node, frozenset(between), _operand(graph, node, value, inner), _calls())


def _unboxed(value: Any) -> Any:
    """Return what is in a box or under views: a buffer, or loops that have no place yet."""
    boxes = tuple(private("torch._inductor.ir", name) for name in _BOXES)
    while isinstance(value, boxes):
        value = value.data
    return value


def _operand(graph: Any, node: Node | None, value: Any, inner: Any) -> Node | None:
    """Return the operand of a node that has a value; ``None`` where none has, or several may."""
    operands = [] if node is None else [n for n in node.all_input_nodes if n in graph.env]
    same = [n for n in operands if graph.env[n] is value or getattr(graph.env[n], "data", None) is value]
    if not same:
        same = [n for n in operands if _unboxed(graph.env[n]) is inner]
    if len(same) > 1:  # several views of one tensor
        size = _maybe(value.get_size)
        same = [n for n in same if _maybe(graph.env[n].get_size) == size]
    return same[0] if len(same) == 1 else None


def _calls() -> tuple[str, ...]:
    """Return the functions of Inductor that lead from the node that is lowered to a copy, innermost first."""
    frame, found = sys._getframe(3), list[str]()
    while frame is not None and len(found) < _DEEPEST:
        name = frame.f_code.co_qualname
        if "_inductor" in frame.f_code.co_filename:
            found.append(name)
        if name.endswith(("GraphLowering.run_node", "GraphLowering.output")):
            break
        frame = frame.f_back  # type: ignore[assignment]
    return tuple(found)


def _name(value: Any) -> str:
    try:
        return str(value.get_name())
    except (AttributeError, NotImplementedError, AssertionError):
        return ""


# -- what was made -----------------------------------------------------------------------------------


def _made(graph: Any, notes: dict[str, Note], *, is_noted: bool) -> Iterator[Made]:
    gone = {*graph.removed_buffers, *graph.inplaced_to_remove}
    real = getattr(getattr(graph, "scheduler", None), "mutation_real_name", {})
    for buffer in graph.buffers:
        of = _only_read(buffer) if _reads_one(graph, buffer) else ""
        if of and of not in gone and buffer.get_name() not in gone:
            made = _of_buffer(graph, buffer, of, real.get(of, of), notes)
            yield dataclasses.replace(made, is_noted=is_noted)
    yield from _extern(graph, gone)
    yield from _no_turn(graph)


def _reads_one(graph: Any, buffer: Any) -> bool:
    """Return whether the scheduler, which has counted them already, knows one read of a buffer's kernel."""
    names = getattr(getattr(graph, "scheduler", None), "name_to_buf", {})
    node = getattr(names.get(buffer.get_name()), "defining_op", None)
    reads = getattr(getattr(node, "read_writes", None), "reads", None)
    # What orders kernels alone is no read of elements.
    return reads is None or sum(type(one).__name__ == "MemoryDep" for one in reads) <= 1


def _only_read(buffer: Any) -> str:
    """Return the one buffer whose elements a computed one holds unchanged; empty where there is none."""
    data: Any = getattr(buffer, "data", None)
    if type(buffer).__name__ != "ComputedBuffer" or type(data).__name__ != "Pointwise":
        return ""
    counted: Any = data.inner_fn_opcount()
    # Bytes read as another type are the same bytes.
    is_plain = "load" in counted.used_ops and {*counted.used_ops} <= {"load", "to_dtype_bitcast"}
    return str(counted.read_buffers[0]) if is_plain and len(counted.read_buffers) == 1 else ""


def _of_buffer(graph: Any, buffer: Any, of: str, real: str, notes: dict[str, Note]) -> Made:
    count = _count(graph, buffer.data.ranges)
    name, source = buffer.get_name(), graph.try_get_buffer(of)
    size = [] if source is None else _maybe(source.get_size) or []
    note = notes.get(name)
    return Made(
        name,
        real,
        count * buffer.get_dtype().itemsize,
        str(buffer.get_device()),
        _own(graph, buffer.data.origins),
        note=note,
        is_whole=source is None or _count(graph, size) <= count,
        is_given=real in graph.graph_inputs or real in graph.constants,
        maker=_maybe(source.get_origin_node) if source is not None else None,
        is_as_traced=note is not None and _is_as_traced(graph, buffer, note.node),
    )


def _is_as_traced(graph: Any, buffer: Any, node: Node | None) -> bool:
    traced = getattr(node.meta.get("val"), "stride", None) if node is not None else None
    if traced is None or (strides := _maybe(buffer.get_stride)) is None:
        return False
    asked = [stride if isinstance(stride, int) else stride.node.expr for stride in traced()]
    return [_number(graph, one) for one in strides] == [_number(graph, one) for one in asked]


def _extern(graph: Any, gone: set[str]) -> Iterator[Made]:
    """Yield the calls that copy: to another device, or by an operator that Inductor has no kernel for."""
    for op in graph.operations:
        name = str(getattr(op, "op_overload", None) or "")
        kind = type(op).__name__
        is_copy = name.startswith(("aten.clone.", "aten.copy.", "aten.copy_.", "aten._to_copy."))
        if (kind in ("DeviceCopy", "InplaceCopyFallback") or is_copy) and op.get_name() not in gone:
            size, dtype = _maybe(op.get_size), _maybe(op.get_dtype)
            reads = [_name(one) for one in op.inputs]
            yield Made(
                op.get_name(),
                reads[-1] if reads else "",
                _count(graph, size or ()) * dtype.itemsize if size is not None and dtype else 0,
                str(_maybe(op.get_device)),
                _own(graph, op.origins),
                extern=name or kind,
            )


def _no_turn(graph: Any) -> Iterator[Made]:
    """Yield what the wrapper copies where a loop makes no turn: lines of text, and no buffers."""
    loops = {op.get_name(): op for op in graph.operations if type(op).__name__ == "WhileLoop"}
    for line in graph.wrapper_code.lines if loops else ():
        found = _NO_TURN.fullmatch(line) if isinstance(line, str) else None
        if found is None or found[1] not in loops:
            continue
        loop, i = loops[found[1]], int(found[2])
        operand = loop.carried_inputs[i]
        size, dtype = _maybe(operand.get_size) or (), _maybe(operand.get_dtype)
        yield Made(
            f"{found[1]}[{i}]",
            _name(operand),
            _count(graph, size) * dtype.itemsize if dtype else 0,
            str(_maybe(operand.get_device)),
            _own(graph, loop.origins),
            extern="no turn",
        )


def _own(graph: Any, nodes: Any) -> tuple[Node, ...]:
    """Return the nodes of a graph itself: a subgraph's buffers bear nodes of the graph that calls it, too."""
    order = {node: i for i, node in enumerate(graph.module.graph.nodes)}
    return tuple(sorted((n for n in nodes if n in order), key=order.__getitem__))


def _maybe(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except (AttributeError, NotImplementedError):
        return None


def _count(graph: Any, sizes: Any) -> int:
    """Return how many elements there are; of symbolic sizes, by their hints."""
    return math.prod(_number(graph, size) for size in sizes)


def _number(graph: Any, size: Any) -> int:
    try:
        return int(size)
    except TypeError:
        pass
    return int(graph.sizevars.optimization_hint(size, fallback=0))


def root_of(graph: Any) -> Any:
    """Return the graph that a subgraph belongs to, which is itself where it is none."""
    while (parent := getattr(graph, "parent", None)) is not None:
        graph = parent
    return graph


def name_of(graph: Any) -> str:
    """Return the name of a subgraph; empty for a graph that is none."""
    return str(graph.name or "") if hasattr(graph, "parent") else ""

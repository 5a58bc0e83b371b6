"""What users declare about operators that the passes cannot understand by themselves.

An operator's schema says which arguments it writes and which results alias them. It does not say that the
old content of a written argument is never read, that an operator works element by element, or that its
schema is wrong; and a higher-order operator has no schema at all. ``declare`` says it. A declaration is
believed: ``pytest_reinplace.passes.verify.check_declaration`` runs an operator and finds wrong ones.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from types import TracebackType
from typing import Any

from .. import _torch
from ..errors import DeclarationError
from . import wrapper_names

Argument = str | int
_declared: dict[Any, Declaration] = {}


# The same by the identity of the operator, which the other keeps alive: to hash one takes torch a
# microsecond, and every node is asked several times. Other modules only look things up.
by_identity: dict[int, Declaration] = {}


# What schema_of worked out under the declaration in force; an entry goes when its declaration changes.
contracts: dict[int, tuple[Any, Any]] = {}


@dataclasses.dataclass(frozen=True, slots=True)
class Declaration:
    """What was declared about one operator; see ``declare``.

    Args:
        op: the operator's name, ``"mylib::silu_and_mul.default"``.
        reads: the arguments whose elements it reads, ``None`` for all.
        writes: the arguments that it writes although nothing says so.
        write_only: the mutable arguments that it overwrites whole without reading them.
        elementwise: whether element i of what it writes depends on element i of its operands alone.
    """

    op: str
    reads: tuple[Argument, ...] | None = None
    writes: tuple[Argument, ...] = ()
    write_only: tuple[str, ...] = ()
    elementwise: bool = False

    @property
    def places(self) -> bool:
        """Whether it says what a node of the operator reads and writes in a functional graph."""
        return self.reads is not None or bool(self.writes)

    def reads_argument(self, argument: Argument) -> bool:
        """Return whether the elements of an argument are read."""
        return self.reads is None or argument in self.reads


class Registration:
    """A declaration in force, until ``undo`` or the end of the ``with`` block that it opens."""

    def __init__(self, op: Any, declaration: Declaration) -> None:
        self.op = op
        self.declaration = declaration

    def undo(self) -> None:
        """Forget the declaration; a second call does nothing."""
        if _declared.get(self.op) is self.declaration:
            del _declared[self.op]
            by_identity.pop(id(self.op), None)
            contracts.pop(id(self.op), None)

    def __enter__(self) -> Declaration:
        """Return the declaration, which was in force from the start."""
        return self.declaration

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Forget the declaration."""
        self.undo()


def declare(
    op: Any,
    *,
    reads: Iterable[Argument] | None = None,
    writes: Iterable[Argument] = (),
    write_only: Iterable[str] = (),
    elementwise: bool = False,
) -> Registration:
    """Declare what an operator does, from now on or for a ``with`` block.

    Arguments of an operator are given by name. Those of a higher-order operator, which has no schema, are
    given by position, or by name where the graph passes them by name; a position means all the tensors
    nested in that argument.

    Args:
        op: an operator overload (``torch.ops.mylib.silu_and_mul.default``) or a higher-order operator.
        reads: the arguments whose elements it reads; the others are only asked for sizes, or not at all.
            By default it reads all. Mutable arguments are read unless they are ``write_only``.
        writes: the arguments that it writes although no schema says so. Nothing else is ever put in place
            in their storage.
        write_only: mutable arguments that it overwrites whole, every element, and whose old elements it
            never reads. In place they hold nothing back; else they cost an empty buffer and no copy.
        elementwise: that for each i it reads element i of every operand before it writes element i of any,
            and that it looks at no other element for it. An operand may then be the very tensor that is
            written.

    Returns:
        The registration: ``with declare(...):`` undoes it at the end of the block, ``.undo()`` at any time.

    Raises:
        DeclarationError: ``op`` is no operator, an argument is unknown or cannot be declared like this,
            or the operator is declared already. Nothing is registered then.
    """
    declaration = Declaration(
        op=_name(op),
        reads=None if reads is None else _given("reads", reads),
        writes=_given("writes", writes),
        write_only=tuple(str(a) for a in _given("write_only", write_only)),
        elementwise=_flag(elementwise),
    )
    if op in _declared:
        raise DeclarationError(f"{declaration.op} is declared already: {_declared[op]}; undo that first")
    if declaration == Declaration(declaration.op):
        raise DeclarationError(f"expected something to declare about {declaration.op}, got nothing")
    if isinstance(op, _torch.op_overload()):
        _check_operator(op, declaration)
    else:
        _check_higher_order(declaration)
    _declared[op] = by_identity[id(op)] = declaration
    contracts.pop(id(op), None)
    return Registration(op, declaration)


def declaration_of(op: Any) -> Declaration | None:
    """Return what was declared about an operator, ``None`` when nothing was."""
    return by_identity.get(id(op))


def declarations() -> tuple[Declaration, ...]:
    """Return all declarations in force, by the operators' names."""
    return tuple(sorted(_declared.values(), key=lambda d: d.op))


def fingerprint() -> tuple[str, ...]:
    """Return what identifies the declarations in force: the same in every process that declares the same."""
    return tuple(map(repr, declarations()))


def _name(op: Any) -> str:
    if isinstance(op, _torch.op_overload()):
        return str(op)
    if isinstance(op, _torch.higher_order_operator()):
        if op.name() in wrapper_names.NAMES:
            raise DeclarationError(
                f"expected an operator, got the wrapper {op.name()}: declare the operator that it wraps"
            )
        return str(op.name())
    hint = ""
    if isinstance(op, _torch.op_overload_packet()):
        overloads = ", ".join(f"{op}.{name}" for name in op.overloads())
        hint = f"; it has the overloads {overloads}: declare one of them"
    raise DeclarationError(
        f"expected an operator (torch.ops.mylib.f.default) or a higher-order operator, got "
        f"{type(op).__name__} {op!r}{hint}"
    )


def _given(what: str, arguments: Iterable[Argument]) -> tuple[Argument, ...]:
    if isinstance(arguments, str | int) or not isinstance(arguments, Iterable):
        raise DeclarationError(f"expected a tuple of arguments for {what}=, got {arguments!r}")
    given = tuple(arguments)
    for argument in given:
        if isinstance(argument, bool) or not isinstance(argument, str | int):
            raise DeclarationError(f"expected names or positions of arguments in {what}=, got {argument!r}")
    return tuple(sorted(set(given), key=str))


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise DeclarationError(f"expected True or False for elementwise=, got {value!r}")
    return value


def _check_operator(op: Any, declaration: Declaration) -> None:
    schema = op._schema
    names = [a.name for a in schema.arguments]
    groups = (
        ("reads", declaration.reads or ()),
        ("writes", declaration.writes),
        ("write_only", declaration.write_only),
    )
    for what, arguments in groups:
        for argument in arguments:
            if argument not in names:
                raise DeclarationError(
                    f"{what}= names {argument!r}, which is no argument of {declaration.op}: it has "
                    f"{', '.join(names) or 'none'}"
                )
    _check_mutable(schema, declaration)


def _check_mutable(schema: Any, declaration: Declaration) -> None:
    mutable = {a.name for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write}
    for name in declaration.write_only:
        if name not in mutable:
            raise DeclarationError(
                f"write_only= names {name!r} of {declaration.op}, which its schema does not say it writes: "
                f"mutable are {', '.join(sorted(mutable)) or 'none'}"
            )
        if name in (declaration.reads or ()):
            raise DeclarationError(f"{name!r} of {declaration.op} is in reads= and in write_only=")
    if mutable and set(declaration.writes) - mutable:
        raise DeclarationError(
            f"{declaration.op} writes {', '.join(sorted(mutable))} by its schema, and functionalization "
            "copies only these: correct the schema instead of declaring further writes"
        )


def _check_higher_order(declaration: Declaration) -> None:
    for what in ("write_only", "elementwise"):
        if getattr(declaration, what):
            raise DeclarationError(
                f"{what}= is for operators with a schema, and {declaration.op} is a higher-order operator"
            )
    arguments = (*(declaration.reads or ()), *declaration.writes)
    for argument in arguments:
        if isinstance(argument, int) and argument < 0:
            raise DeclarationError(f"expected positions from 0 on for {declaration.op}, got {argument}")

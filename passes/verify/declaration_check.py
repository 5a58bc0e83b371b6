"""Whether an operator does what was declared about it: run on tensors that show when it does not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from .. import _torch
from ..errors import DeclarationError, ReinplaceError
from ..ops.declarations import declaration_of
from ..ops.schema import OpSchema, schema_of
from .execution import address, cloned, leaves, same_randomness, stored_bytes

_PATTERNS = (0x5A, 0xFF)  # two different contents of memory that nobody may look at; 0xFF.. is a NaN
_MOST_ELEMENTS = 64  # of each operand so many elements are changed, one at a time
Named = dict[str, Any]


def check_declaration(op: Any, *args: Any, **kwargs: Any) -> None:
    """Run an operator on these arguments, and on changed ones, and compare with what is known about it.

    Checked is what ``pytest_reinplace.passes.declare`` declared, and for the rest the schema: what is
    not said to be written stays as it is; results share storage with the arguments that the schema names
    and with no others; arguments that are not read, and write-only ones before the call, may hold anything;
    an elementwise operator may be given the tensor that it writes, and element i reaches element i alone.
    A pass of this check on inputs that take every branch of the kernel is evidence, no proof.

    Args:
        op: an operator overload.
        args: real tensors, and whatever else the operator takes; none is written to.
        kwargs: more of them.

    Raises:
        DeclarationError: the operator does something else; the message says with which argument.
        ReinplaceError: it is no operator overload, or it does not run on these arguments.
    """
    if not isinstance(op, _torch.op_overload()):
        raise ReinplaceError(
            f"expected an operator (torch.ops.mylib.f.default), got {type(op).__name__} {op!r}"
        )
    schema = schema_of(op)
    given = {**dict(zip(schema.names, args, strict=False)), **kwargs}
    _Check(op, schema, given).run()


class _Check:
    def __init__(self, op: Any, schema: OpSchema, given: Named) -> None:
        self.op = op
        self.schema = schema
        self.given = given
        declared = declaration_of(op)
        self.written = {*schema.mutable, *(declared.writes if declared is not None else ())}
        self.after, self.results = self._called(given)

    def run(self) -> None:
        self._writes()
        self._aliases()
        self._unread()
        if self.schema.elementwise:
            for name, tensor in self._tensors(*map(str, self.written)):
                self._elementwise(name, tensor)

    def _fail(self, text: str) -> DeclarationError:
        return DeclarationError(f"{self.op} {text}")

    def _called(self, given: Named) -> tuple[Named, list[Any]]:
        """Run the operator on copies; returns the arguments as they are afterwards, and the results."""
        flat = [v for _, v in leaves(given)]
        copies = iter(cloned(flat))
        mine = _rebuilt(given, copies)
        names = [n for n in self.schema.names if n in mine]
        positional = [n for n in names if n not in self.schema.kwarg_only]
        positional = positional if positional == list(self.schema.names)[: len(positional)] else []
        try:
            with torch.no_grad(), same_randomness(flat):
                rest = {n: mine[n] for n in names if n not in positional}
                result = self.op(*(mine[n] for n in positional), **rest)
        except Exception as error:
            raise ReinplaceError(
                f"expected arguments that {self.op} runs on; it raised {type(error).__name__}: {error}"
            ) from error
        return mine, list(result) if isinstance(result, list | tuple) else [result]

    def _tensors(self, *names: str) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield ``(argument, tensor)``, those of lists too."""
        for name in names or tuple(self.given):
            for _, value in leaves(self.given.get(name)):
                if isinstance(value, torch.Tensor):
                    yield name, value

    def _writes(self) -> None:
        for name in self.given:
            for (_, old), (_, new) in zip(leaves(self.given[name]), leaves(self.after[name]), strict=True):
                if name not in self.written and not _same(old, new):
                    raise self._fail(f"writes {name!r}, and neither its schema nor a declaration says so")

    def _aliases(self) -> None:
        for i, result in enumerate(self.results):
            said = self.schema.returns[i] if i < len(self.schema.returns) else None
            for name, argument in self.after.items():
                shared = bool(_addresses(argument) & _addresses(result))
                if shared and name != said:
                    raise self._fail(
                        f"returns result {i} in the storage of {name!r}, and its schema does not say so"
                    )
                if name == said and not shared and _addresses(result):
                    raise self._fail(f"returns result {i} outside of {name!r}, against its schema")

    def _unread(self) -> None:
        """Put something else into what is not read, and see that nothing else comes out."""
        for name in (*self.schema.write_only, *self.schema.unread):
            for pattern in _PATTERNS:
                after, results = self._called(self._poisoned(name, pattern))
                for other in (n for n in self.written if n in after):
                    if not _same(self.after[other], after[other]):
                        what = f"reads {name!r}"
                        if name in self.schema.write_only:
                            what = f"reads the old content of {name!r}, or leaves a part of it as it was"
                        raise self._fail(f"{what}: with another {name!r} it leaves another {other!r}")
                if not _same(self.results, results):
                    raise self._fail(f"reads {name!r}: with another one the result is another one")

    def _poisoned(self, name: str, pattern: int) -> Named:
        copies = cloned([v for _, v in leaves(self.given[name])])
        for copy in copies:
            if isinstance(copy, torch.Tensor) and copy.numel():
                stored_bytes(copy).fill_(pattern if copy.dtype != torch.bool else pattern & 1)
        return {**self.given, name: _rebuilt(self.given[name], iter(copies))}

    def _elementwise(self, name: str, written: torch.Tensor) -> None:
        for other, tensor in list(self._tensors()):
            if other == name or tensor.shape != written.shape:
                continue
            if other not in self.written and tensor.dtype == written.dtype:
                self._same_tensor(name, other, written)
            self._one_by_one(name, other, tensor)

    def _same_tensor(self, name: str, other: str, written: torch.Tensor) -> None:
        apart, _ = self._called({**self.given, other: written.clone()})
        together, _ = self._called({**self.given, other: written, name: written})
        if not _same(apart[name], together[name]):
            raise self._fail(
                f"is not elementwise: given the same tensor as {name!r} and {other!r} it computes something "
                "else than given a copy, so it writes an element before it has read it"
            )

    def _one_by_one(self, name: str, other: str, tensor: torch.Tensor) -> None:
        for i in range(min(tensor.numel(), _MOST_ELEMENTS)):
            changed = cloned([tensor])[0]
            at = torch.unravel_index(torch.tensor(i), changed.shape)
            changed[at] = ~changed[at] if changed.dtype == torch.bool else changed[at] + 1
            after, _ = self._called({**self.given, other: changed})
            differs = (after[name] != self.after[name]) & ~(_is_nan(after[name]) & _is_nan(self.after[name]))
            differs[at] = False
            if bool(differs.any()):
                raise self._fail(
                    f"is not elementwise: element {[int(n) for n in at]} of {other!r} reaches other elements "
                    f"of {name!r}"
                )


def _is_nan(tensor: torch.Tensor) -> torch.Tensor:
    return tensor != tensor


def _addresses(value: Any) -> set[int]:
    found = {address(v) for _, v in leaves(value) if isinstance(v, torch.Tensor) and v.numel()}
    return found - {0}


def _same(one: Any, two: Any) -> bool:
    pairs = list(zip(leaves(one), leaves(two), strict=True))
    return all(
        torch.equal(a, b) or bool(torch.allclose(a, b, 0, 0, equal_nan=True))
        for (_, a), (_, b) in pairs
        if isinstance(a, torch.Tensor)
    )


def _rebuilt(value: Any, given: Iterator[Any]) -> Any:
    """Return a nested value with other leaves, in the order of ``leaves``."""
    if isinstance(value, dict):
        return {k: _rebuilt(v, given) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_rebuilt(v, given) for v in value]
    return next(given)

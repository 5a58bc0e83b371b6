"""Which copies a node makes, by itself: what a clone, a store into an input or a functional write moves."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from torch.fx import Node

from ..graph.sizes import bytes_of
from ..ops import wrapper
from ..ops.schema import arguments, is_operator, schema_of
from ..ops.wrapper_names import is_wrapper, wraps_operator

# What Inductor's reinplacing leaves on a wrapper: the arguments, or the bases, that it still clones.
KEPT = "only_clone_these_tensors"
_STORES = ("aten::copy_",)

Copy = tuple[str, int]


def copies_of(node: Node) -> list[Copy]:
    """Return the copies of whole tensors that a node makes: each one's label, and its bytes.

    A copy is a ``clone``, a ``copy_`` into other memory, and every operand that a functional write has to
    copy before it writes. Whether the copy is needed is not asked.
    """
    return [(f"{wrapper.called(node)}.{arg}", bytes_of(value)) for arg, value in _copied(node)]


def _copied(node: Node) -> Iterator[tuple[str, Any]]:
    if node.op != "call_function":
        return
    if is_wrapper(node.target):
        yield from _cloned_by_wrapper(node)
    elif is_operator(node.target):
        schema = schema_of(node.target)
        if schema.is_copy or schema.is_scatter or schema.copies_first or schema.name in _STORES:
            yield from itertools.islice(arguments(node), 1)


def _cloned_by_wrapper(node: Node) -> Iterator[tuple[str, Any]]:
    kept = node.meta.get(KEPT)
    if not wraps_operator(node.target):
        yield from wrapper.operands(node).items()
        return
    bases: Any = node.kwargs.get("_all_bases")
    for label, value in wrapper.operands(node).items():
        place = label.partition("[")[0] if bases is None else _index(bases, value)
        if value is not None and (kept is None or place in kept):
            yield label, value


def _index(bases: Iterable[Any], value: Any) -> int:
    return next((i for i, base in enumerate(bases) if base is value), -1)

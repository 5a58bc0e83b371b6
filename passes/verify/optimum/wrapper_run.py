"""Running a wrapped mutable operator of the oracle's with some of its operands written in place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.fx import Node

from ... import _torch
from ...ops.declarations import declaration_of
from ..execution import leaves
from .form_run import Refused
from .same_bytes import copy_of, overlap, overlap_elsewhere
from .slots import copy_bytes, mutable, slots

aten: Any = torch.ops.aten


class WrapperCall:
    """One call of ``auto_functionalized`` or ``auto_functionalized_v2``, with one set of copies.

    Args:
        node: the call.
        spec: the value of each node as written.
        copied: the slots that are copied, and the parts ``("part", prefix)``, with their bytes.
    """

    def __init__(self, node: Node, spec: Mapping[Node, Any], copied: Mapping[Any, int]) -> None:
        self._node = node
        self._spec = spec
        self._copied = copied
        self._parts: list[tuple[torch.Tensor, torch.Tensor]] = []

    def run(self, kwargs: dict[str, Any]) -> Any:
        """Call the operator and return what the wrapper returns.

        Raises:
            Refused: the operator would read bytes that it writes.
        """
        op: Any = self._node.args[0]
        if self._node.target is _torch.hop("auto_functionalized"):
            written = self._v1(op, kwargs)
        else:
            written = [
                self._room(i, base) if i in self._copied else base
                for i, base in enumerate(kwargs.pop("_all_bases"))
            ]
            kwargs = self._regenerated(op, written, kwargs)
        if _meets_itself(op, kwargs):
            raise Refused
        result = op(**kwargs)
        for view, copy in self._parts:
            view.copy_(copy)
        return (*result, *written) if isinstance(result, tuple) else (result, *written)

    def _v1(self, op: Any, kwargs: dict[str, Any]) -> list[Any]:
        for slot, _ in slots(self._node):
            name, item = slot if isinstance(slot, tuple) else (slot, None)
            if item is None and slot in self._copied:
                kwargs[name] = self._room(slot, kwargs[name])
            elif item is not None:
                kwargs[name] = list(kwargs[name])
                if slot in self._copied:
                    kwargs[name][item] = self._room(slot, kwargs[name][item])
        return [kwargs[name] for name in mutable(op)]

    def _room(self, slot: Any, tensor: torch.Tensor) -> torch.Tensor:
        """Return what is written into instead of an operand: a copy, without content where that is free."""
        copy = copy_of(tensor)
        return copy.fill_(0x3C) if not copy_bytes(self._node, slot, tensor) else copy

    def _regenerated(self, op: Any, bases: list[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return an operator's arguments, with the views of its bases that v2 describes."""
        args = {a.name: kwargs[a.name] for a in op._schema.arguments if a.name in kwargs}
        for name in mutable(op):
            if f"_{name}_length" in kwargs:
                count = kwargs[f"_{name}_length"]
                items = [self._part(bases, kwargs, f"_{name}_{i}") for i in range(count or 0)]
                args[name] = None if count is None else items
            else:
                args[name] = self._part(bases, kwargs, f"_{name}")
        return args

    def _part(self, bases: list[Any], kwargs: dict[str, Any], prefix: str) -> Any:
        """Return a view of a base, or a copy of it that is to be put back."""
        view = self._view(bases, kwargs, prefix)
        size = self._copied.get(("part", prefix))
        if size is None:
            return view
        copy = copy_of(view) if size else copy_of(view).fill_(0x3C)
        self._parts.append((view, copy))
        return copy

    def _view(self, bases: list[Any], kwargs: dict[str, Any], prefix: str) -> Any:
        index = kwargs[f"{prefix}_base_index"]
        if index is None:
            return None
        base = bases[index]
        if f"{prefix}_slice_dim" in kwargs:
            dim, start, end = (kwargs[f"{prefix}_slice_{k}"] for k in ("dim", "start", "end"))
            return aten.slice.Tensor(base, dim, start, end)
        if f"{prefix}_storage_offset" in kwargs:
            operand: Any = self._node.kwargs["_all_bases"][index]  # type: ignore[index]
            moved = base.storage_offset() - self._spec[operand].storage_offset()
            size, stride = kwargs[f"{prefix}_size"], kwargs[f"{prefix}_stride"]
            return torch.as_strided(base, size, stride, kwargs[f"{prefix}_storage_offset"] + moved)
        return base


def _meets_itself(op: Any, kwargs: dict[str, Any]) -> bool:
    """Return whether an operator of a user's may read bytes after it wrote them: it works in any order.

    One that is elementwise reads an element of each operand before it writes that element, and in no order
    of the elements.
    """
    declaration = declaration_of(op)
    by_element = declaration is not None and declaration.elementwise
    written = [v for _, v in leaves([kwargs.get(name) for name in mutable(op)])]
    read = [v for _, v in leaves([v for name, v in kwargs.items() if name not in mutable(op)])]
    meets = overlap_elsewhere if by_element else overlap
    tensors = [v for v in read if isinstance(v, torch.Tensor)]
    return any(meets(w, r) for w in written if isinstance(w, torch.Tensor) for r in tensors)

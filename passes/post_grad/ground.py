"""What rules ask of a graph, and how they replace a node."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import Graph, Node

from .. import _torch
from ..graph.alias import begin_of, behind_views, is_view, uses, viewed
from ..graph.emit import Emitter, is_dense
from ..graph.spread import backward, names_one
from ..memory.geometry import Geometry
from ..memory.region import Region, as_size, is_static
from ..ops.beginning import EXACT, is_widened
from ..ops.schema import argument, schema_of, traits_of
from ..ops.wrapper_names import is_wrapper
from .sharing import Sharing

aten: Any = torch.ops.aten


class Ground:
    """A graph that a rule is rewriting.

    Args:
        graph: the graph; nodes that are replaced keep their places in it.
        is_joint: whether forward and backward are in it, and will be cut apart.
        lowered: whether copies are written as Inductor needs them.
    """

    def __init__(self, graph: Graph, *, is_joint: bool = False, lowered: bool = False) -> None:
        self._graph, self._is_joint = graph, is_joint
        self.emitter: Emitter = Emitter(graph, lowered=lowered)
        self.geometry: Geometry = Geometry(getattr(self.emitter.fake_mode, "shape_env", None))

    @functools.cached_property
    def sharing(self) -> Sharing:
        """Who shares storage with whom, as the graph was when this was first asked."""
        return Sharing(self._graph, is_joint=self._is_joint, is_beside=self._writes_beside)

    def _writes_beside(self, copy: Node, operand: Node, node: Node) -> bool:
        """Return whether a view scatter writes other bytes than the operand of a copy lies in.

        Or the very same: whoever stores that onto itself changes nothing.
        """
        through, buffer = traits_of(node.target).writes_through, node.args[0] if node.args else None
        whole: Any = buffer.meta.get("val") if isinstance(buffer, Node) else None
        val: Any = operand.meta.get("val")
        if through is None or not _is_strided(whole) or not _is_strided(val):
            return False
        if _torch.storage_key(whole) != _torch.storage_key(val):
            return False
        more = {name: given for name, given in node.kwargs.items() if name != "src"}
        if any(isinstance(given, Node) for given in (*node.args[2:], *more.values())) or not is_static(whole):
            return False  # by a symbol
        part = Region.of(_torch.run_fake(self.emitter.fake_mode, through, (whole, *node.args[2:]), more))
        is_itself = argument(node, "src") is copy and self.geometry.same(part, Region.of(val))
        return is_itself or self.geometry.overlap(part, Region.of(val)) is False

    def alike(
        self,
        node: Node,
        operand: Node,
        *,
        is_laid_out: bool = True,
        is_retyped: bool = False,
        is_moved: bool = False,
    ) -> bool:
        """Return whether a value has all that another has.

        Args:
            node: the value.
            operand: the other one.
            is_laid_out: whether strides count.
            is_retyped: whether the dtype does not.
            is_moved: whether the device does not.
        """
        new: Any = node.meta.get("val")
        old: Any = operand.meta.get("val")
        if not _is_strided(new) or not _is_strided(old) or new.dim() != old.dim():
            return False
        if (new.device != old.device and not is_moved) or (new.dtype != old.dtype and not is_retyped):
            return False
        if (new.is_conj(), new.is_neg()) != (old.is_conj(), old.is_neg()):
            return False
        pairs = list(zip(new.size(), old.size(), strict=True))
        if is_laid_out:
            pairs += zip(new.stride(), old.stride(), strict=True)
            pairs += [(new.storage_offset(), old.storage_offset())] if is_view(node) else []
        return all(self.geometry.equal(as_size(one), as_size(other)) for one, other in pairs)

    def unite(self, copy: Node, operand: Node) -> bool:
        """Let a copy share the storage of its operand, if nobody can tell; returns whether it does.

        What names bytes by an offset counts from where the storage of the copy begins. An input may begin
        elsewhere in a later call: of complex numbers, torch's own kernels would be asked for other bytes.
        """
        is_known = behind_views(operand).op != "placeholder" or not copy.meta["val"].is_complex()
        begins_alike = is_known and self.geometry.equal(begin_of(copy), begin_of(operand))
        return (begins_alike or copy not in self._offsets) and self.sharing.unite(copy, operand)

    @functools.cached_property
    def _offsets(self) -> dict[Node, int]:
        """Where what lies in a storage matters, as the graph was when this was first asked."""
        return backward(dict.fromkeys(filter(self._counts, self._graph.nodes), EXACT))

    def _counts(self, node: Node) -> bool:
        """Return whether a node counts from where a storage begins; wrappers do, if nothing mends them.

        Items of a view must not become larger where they would begin between two of them.
        """
        if node.op == "call_function" and is_wrapper(node.target):
            return not self._is_joint
        return names_one(node) or is_widened(node)

    def copy(self, node: Node, source: Node) -> bool:
        """Make a node a copy of a value of its shape and dtype, if one can be laid out as it is.

        Returns:
            whether it is one now.
        """
        dense = {"memory_format": torch.contiguous_format}
        is_known = is_static(source.meta["val"]) or is_dense(source.meta["val"])  # torch would add a guard
        if is_known and self.put(node, aten.clone.default, (source,)):
            return True
        return self.put(node, aten.clone.default, (source,), dense)

    def put(self, node: Node, target: Any, args: tuple[Any, ...], kwargs: Any = None) -> bool:
        """Make a node another call, if what that makes is laid out as the node is; returns whether it is."""
        before = node.target, node.args, node.kwargs
        node.target, node.args, node.kwargs = target, args, kwargs or {}
        pairs = zip(self.emitter.value(node).stride(), node.meta["val"].stride(), strict=True)
        if all(self.geometry.equal(as_size(one), as_size(other)) for one, other in pairs):
            return True
        node.target, node.args, node.kwargs = before
        return False

    def replace(self, node: Node, source: Node) -> None:
        """Put a value in the place of a node that it equals."""
        views = [] if is_view(node) and self.alike(node, source) else views_of(node)
        node.replace_all_uses_with(source)
        self.revalue(views)
        node.graph.erase_node(node)

    def revalue(self, views: Sequence[Node]) -> None:
        """Let views of something else by now say whose storage they share, and how they lie in it.

        By that the partitioner tells which values are outputs, and AOTAutograd what the backward may write
        its results into.
        """
        for view in views:
            view.meta["val"] = self.emitter.value(view)


def is_plain(val: Any) -> bool:
    """Return whether a value is a tensor with strides, and holds its numbers as they are."""
    return _is_strided(val) and not val.is_conj() and not val.is_neg()


def _is_strided(val: Any) -> bool:
    return isinstance(val, torch.Tensor) and val.layout == torch.strided


def is_split(node: Node) -> bool:
    """Return whether a node cuts its operand into pieces along a dimension."""
    val, source = node.meta.get("val"), viewed(node)
    if source is None or not isinstance(val, list | tuple) or not val:
        return False
    whole: Any = source.meta.get("val")
    names = schema_of(node.target).names
    is_cut = is_plain(whole) and all(is_plain(piece) and piece.dim() == whole.dim() for piece in val)
    return is_cut and "dim" in names


def views_of(node: Node) -> list[Node]:
    """Return the views of a value, each behind what it is a view of."""
    return [user for user, name in uses(node) if viewed(user) is name]


def dim_of(node: Node, rank: int) -> int:
    """Return the dimension that a node is given, counted from the first."""
    dim: Any = argument(node, "dim") or 0
    return int(dim) % rank if rank else 0

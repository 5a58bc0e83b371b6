"""Where the inputs of a graph live: its placeholders, and the tensors that it takes from its module."""

from __future__ import annotations

import torch
from torch.fx import Node

from ... import _torch
from ...graph import attribute
from ...memory.region import Region, as_size
from ...ops import wording
from ...reason import Reason
from ..facts.model import Model
from ..facts.place import Place, mapped


def visit(model: Model, node: Node) -> None:
    """Place an input: in the storage of another one with which it shares bytes, or in one of its own.

    What a subgraph takes from a module of its own, too, is never written: it would be read by another name.
    """
    val = node.meta.get("val")
    if node.op == "get_attr" and val is None:
        val = attribute.value(node)
        if not isinstance(val, torch.Tensor):
            return
    elif "val" not in node.meta:
        raise wording.no_value(node)
    keys = attribute.keys(node) if node.op == "get_attr" else []
    if isinstance(val, torch.Tensor):
        model.values[node] = _placed(model, node, val, keys)
    else:
        model.values[node] = mapped(lambda tensor: _placed(model, node, tensor, keys), val)


def _placed(model: Model, node: Node, tensor: torch.Tensor, keys: list[int | str | None]) -> Place:
    mine = [k for k in (_torch.storage_key(tensor), *keys) if k is not None]
    storage = next((model.given[k] for k in mine if k in model.given), None)
    if storage is None:
        storage = model.new_storage(node, is_input=True)
        if mine:
            model.whole[storage] = Region.flat(as_size(tensor.untyped_storage().nbytes()))
    elif keys and model.whole[storage] != Region.flat(as_size(tensor.untyped_storage().nbytes())):
        storage.close(Reason.UNKNOWN_OP, node)  # its fake value does not say which bytes these are
    if not model.held_inside.isdisjoint(mine):
        storage.close(Reason.UNKNOWN_OP, node)
    model.given.update(dict.fromkeys(mine, storage))
    return model.at(storage, tensor)

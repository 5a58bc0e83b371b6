"""Whether a result may take its operand's place although the operand has other strides or another offset.

A functional operator returns a fresh, mostly dense tensor; written in place the result has the operand's
strides. Where these differ, the operators that use the result are run on fake tensors with the operand's
layout: the exchange is legal iff every view can still be made and no other result changes its strides.
"""

from __future__ import annotations

import itertools
import math
import operator
from typing import Any

import torch
from torch.fx import Node
from torch.fx.node import map_arg

from ... import _torch
from ...graph.layouts import Layout
from ...graph.sizes import makes_sizes
from ...memory.region import Region, as_size
from ...ops import views
from ...ops.beginning import asked
from ...ops.schema import argument, has_tensor, is_operator, schema_of, tensors
from ...ops.true_strides import has_one, is_mistold
from ...ops.wrapper_names import is_wrapper
from ...reason import Reason
from ..facts.model import Model
from ..facts.place import Place, Storage, Value, is_known, reads_alike

_INT = frozenset({int})
_REFUSED = object()  # what running an operator gives that does not run
_MOST_MIXTURES = 16  # an operator with more of them keeps its operands' layouts
_MOST_USERS = 64  # a result used more often than this keeps its own layout: the check stays linear


def settle(
    model: Model, operand: Node, node: Node | None, result: Place, item: int | None = None
) -> tuple[Storage, Reason | None]:
    """Give a result's storage its coordinates inside the operand's; returns it and what forbids that.

    Args:
        model: the model under construction.
        operand: the operand's node.
        node: the node whose value is the result, when it may be laid out anew; ``None`` when the
            operator promises the operand's own strides.
        result: the result's place in its own fresh storage.
        item: which of the node's results it is, ``None`` where it is the only one.
    """
    storage, place = result.storage, model.place(operand)
    storage.relaid = item is None and node in model.relaid  # by what its operand is laid out like
    assert place is not None
    layout = model.layouts.of(storage.node, item)
    given = model.layouts.of(operand)
    is_told = not given.untold and not (given.guessed and _is_guess(model, storage.node, layout))
    if not is_told or not _has_form(model, place, result) or _is_turned_nothing(place, result):
        return storage, Reason.LAYOUT
    if model.geometry.self_overlapping(place.region):
        return storage, Reason.SELF_OVERLAP
    shift = place.region.offset - result.region.offset
    alike = model.geometry.same_layout(place.region, result.region)
    if alike and layout.may_move(shift) and _same_units(model, place.value, result.value):
        storage.shift = shift
        storage.relaid = place.storage.relaid
        return storage, None
    if node is None or node in model.premises.own_layout:
        return storage, Reason.LAYOUT
    # Laid out anew it begins where the operand does: offsets that name its bytes would not know.
    if layout.is_located and shift != 0:
        return storage, Reason.LAYOUT
    if not _relay(model, node, place.value, item):
        return storage, Reason.LAYOUT
    storage.shift = place.storage.shift
    storage.relaid = True
    return storage, None


def _has_form(model: Model, place: Place, result: Place) -> bool:
    """Return whether a result has its operand's sizes, dtype and device, so that it could be in its place."""
    old, new, equal = place.value, result.value, model.geometry.equal
    if not is_known(place) or not reads_alike(old, new) or old.device != new.device:
        return False
    sizes, wanted = place.region.sizes, result.region.sizes
    if len(sizes) != len(wanted):
        return False
    return sizes == wanted or all(equal(a, b) for a, b in zip(sizes, wanted, strict=True))


def _is_turned_nothing(place: Place, result: Place) -> bool:
    """Return whether a result without elements has other strides, which a view of another dtype asks for."""
    return 0 in result.region.sizes and place.region.strides != result.region.strides


def _is_guess(model: Model, node: Node, layout: Layout) -> bool:
    """Return whether somebody may notice that strides of dimensions of one are not those told of an operand.

    A wrapper's copy has the strides of its operand, whichever these are.
    """
    return is_operator(node.target) and (model.calls.inner or layout.viewed > 0)


def _same_units(model: Model, a: torch.Tensor, b: torch.Tensor) -> bool:
    """Return whether the strides of dimensions of one agree, too: operators choose memory formats by them."""
    mine, other = a.stride(), b.stride()
    if _INT.issuperset(map(type, (*mine, *other))):  # to compare others may add a guard
        return mine == other
    sizes = [as_size(n) for n in a.size()]
    strides = zip(map(as_size, mine), map(as_size, other), strict=True)
    return all(model.geometry.equal_where_filled(s, t, sizes) for s, t in strides)


def value(model: Model, node: Node, storage: Storage, result: Value) -> Value:
    """Return the value of a node whose storage was settled, in its final coordinates."""
    if node in model.relaid:
        return model.at(storage, model.relaid[node])
    if not isinstance(result, Place) or storage.shift == 0:
        return result
    return Place(storage, result.region.shifted(storage.shift), result.value)


def _relay(model: Model, node: Node, operand: torch.Tensor, item: int | None) -> bool:
    """Try the operand's layout on all users of a result; keeps the new fake tensors when it is legal."""
    laid: dict[Node, Any] = {node: operand}
    if item is not None:  # of a list that is only taken apart: else none of it is a candidate
        laid = {user: operand for user in node.users if user.args[1] == item}
    pending, seen = {user for n in laid for user in n.users}, 0
    while pending:
        user = min(pending, key=model.order.__getitem__)  # all that it is given has its layout by then
        pending.remove(user)
        seen += 1
        if seen > _MOST_USERS or not _agrees(model, user, laid):
            return False
        for n in (user, *user.users) if isinstance(laid.get(user), list) else (user,):
            pending.update(n.users if n in laid and not isinstance(laid[n], list) else ())
    model.relaid.update(laid)
    for n, value in laid.items():
        model.tried.setdefault(n, []).append(value)
    if item is not None:
        mine = model.relaid.get(node, node.meta["val"])
        model.relaid[node] = [operand if i == item else t for i, t in enumerate(mine)]
    return True


def _agrees(model: Model, user: Node, laid: dict[Node, Any]) -> bool:
    """Return whether a user still works; what it returns in a new layout is added to ``laid``."""
    if user.op != "call_function" or not is_operator(user.target):
        return (user.op == "output" or _is_wrapper(user, laid)) and _agrees_as_noted(model, user, laid)
    schema = schema_of(user.target)
    if user.target is torch.ops.aten.copy_.default:
        return True  # it copies into an input, whatever the strides of its source
    if schema.returns_operand:
        return _lay(user, [laid[user.all_input_nodes[0]]], laid)
    # Random numbers are drawn in the order of memory: laid out anew, other elements get them.
    told = not (schema.mutable or schema.seeded or _is_untold(model, user, laid))
    if not told or schema.laid_out is not None:
        return told  # such a result has the strides that it had
    if not schema.name.startswith(("aten::", "prims::")):
        return _is_kernel(user) and _agrees_as_noted(model, user, laid)
    if schema.by_strides:  # of a source it takes the elements, whatever their layout
        return argument(user, schema.names[0]) not in laid
    if schema.meta_only and not has_tensor(user.meta.get("val")):
        return not asked(user)  # numbers: sizes stay, strides and offsets may not
    new_operands = _given(model, user, laid)
    result = _run(model, user, new_operands)
    if result is _REFUSED or not _works_with_any(model, user, new_operands, result):
        return False
    source = {_torch.storage_key(t) for value in new_operands.values() for t in tensors(value)}
    new, old = list(tensors(result)), list(tensors(user.meta.get("val")))
    if len(old) != len(new) or (schema.regroups and not _keeps_bytes(model, laid, user, new[0])):
        return False
    if schema.view:
        return _agrees_as_view(model, user, laid, new, source)
    if any(_torch.storage_key(t) in _keys(user) or _is_unit_asked(model, t) for t in old):
        return False  # it may alias, though its schema hides that, and nobody would look at what uses it
    if _is_alike(model, new, old):
        return True
    # What it returns is laid out anew as well, in place and functional.
    return user not in model.premises.own_layout and len(new) == 1 and _lay(user, new, laid)


def _given(model: Model, user: Node, laid: dict[Node, Any]) -> dict[Node, Any]:
    """Return the operands of a user that are laid out anew, now or before, each with its new value."""
    found = {n: laid.get(n, model.relaid.get(n)) for n in user.all_input_nodes}
    return {n: value for n, value in found.items() if value is not None}


def _run(model: Model, user: Node, laid: dict[Node, Any]) -> Any:
    """Run a user on fake tensors, some of them laid out anew; ``_REFUSED`` where it does not run."""
    if model.fake_mode is None or makes_sizes(user):
        return _REFUSED
    args, kwargs = map_arg((user.args, user.kwargs), lambda n: laid.get(n, n.meta.get("val")))
    try:
        with _torch.expecting_refusal():
            return _torch.run_fake(model.fake_mode, user.target, args, kwargs)
    except Exception:  # noqa: BLE001  (any refusal means: this user needs the old layout)
        return _REFUSED


def _works_with_any(model: Model, user: Node, laid: dict[Node, Any], result: Any) -> bool:
    """Return whether a user's result has a known layout whichever of its operands are laid out anew.

    Results are laid out anew one by one, and each of them may be refused later.

    Args:
        model: the model under construction.
        user: the operator.
        laid: its operands that are laid out anew.
        result: what the operator returns when all of them are.
    """
    if len(laid) < 2:
        return True
    written = user.meta.get("val")
    if user in model.relaid and _is_alike(model, result, written):
        return False  # with all of them it would be laid out as written, and with some it would not
    known = [result, written, *model.tried.get(user, ())]
    choices = [(n.meta["val"], *model.tried.get(n, ()), value) for n, value in laid.items()]
    if math.prod(map(len, choices)) > _MOST_MIXTURES:
        return False
    mixtures = (dict(zip(laid, mixture, strict=True)) for mixture in itertools.product(*choices))
    results = (_run(model, user, mixture) for mixture in mixtures)
    return all(any(_is_alike(model, found, layout) for layout in known) for found in results)


def _is_alike(model: Model, a: Any, b: Any) -> bool:
    """Return whether two values have the same strides, tensor by tensor; those of dimensions of one, too."""
    one, two = list(tensors(a)), list(tensors(b))  # of what did not run there are none
    return len(one) == len(two) and all(
        _same_strides(model, s, t) and _same_units(model, s, t) for s, t in zip(one, two, strict=True)
    )


def _agrees_as_noted(model: Model, user: Node, laid: dict[Node, Any]) -> bool:
    """Return whether the output, a wrapper or a kernel is given the strides that the graph notes."""
    pairs = [(laid[n], n.meta["val"]) for n in user.all_input_nodes if n in laid]
    # Who calls a subgraph, and whatever a kernel does, goes by those of dimensions of one, too.
    is_used = user.op != "output" or model.calls.inner
    return all(_same_strides(model, *p) and (not is_used or _same_units(model, *p)) for p in pairs)


def _agrees_as_view(
    model: Model, user: Node, laid: dict[Node, Any], new: list[torch.Tensor], source: set[int | None]
) -> bool:
    """Return whether a view is one still; ``source`` are the storages it is given."""
    was = (_torch.storage_key(t) in _keys(user) for t in tensors(user.meta.get("val")))
    if not (all(was) and all(_torch.storage_key(t) in source for t in new)):
        return False
    if schema_of(user.target).regroups and any(_is_unit_asked(model, t) for t in new):
        return False  # kernels give a new dimension of one the strides around it, and fake ones what is usual
    return _lay(user, new, laid)


def _is_untold(model: Model, user: Node, laid: dict[Node, Any]) -> bool:
    """Return whether fake tensors cannot tell the strides of what a user makes of another layout."""
    schema = schema_of(user.target)
    if schema.untold:
        return True
    operand = argument(user, schema.names[0]) if schema.names else None
    if not isinstance(operand, Node):
        return False
    if schema.untold_of_one:
        return has_one(operand.meta["val"])
    return any(is_mistold(user, value) for value in (None, *model.tried.get(operand, ()), laid.get(operand)))


def _is_unit_asked(model: Model, value: torch.Tensor) -> bool:
    """Return whether a view may go by the stride of a dimension of one, which fake tensors do not tell.

    One with smaller items needs a stride of 1 in the last dimension, and the graph as written works. One
    with larger items needs strides that are whole items.
    """
    strides = zip(value.shape, value.stride(), strict=True)
    found = [stride for size, stride in strides if not isinstance(size, int) or size == 1]
    if model.layouts.unit > value.element_size():
        return bool(found)
    return model.layouts.unit > 0 and not all(isinstance(n, int) and n != 1 for n in found)


def _lay(user: Node, new: list[torch.Tensor], laid: dict[Node, Any]) -> bool:
    """Note the new layout of a user's results, of all of a list where it returns one."""
    if isinstance(user.meta["val"], torch.Tensor):
        laid[user] = new[0]
        return True
    if any(item.target is not operator.getitem for item in user.users):
        return False
    laid[user] = new
    laid.update({item: new[item.args[1]] for item in user.users})  # type: ignore[index]
    return True


def _is_wrapper(user: Node, laid: dict[Node, Any]) -> bool:
    """Return whether a node calls kernels that go by the strides they are given, and by no offset."""
    if not is_wrapper(user.target):
        return False
    bases: Any = user.kwargs.get("_all_bases", ())
    return not (views.is_absolute(user) and any(base in laid for base in bases))


def _is_kernel(user: Node) -> bool:
    """Return whether an operator that is not torch's own returns fresh tensors, whose strides it makes up."""
    schema = schema_of(user.target)
    if schema.view or schema.hides_accesses or any(name is not None for name in schema.returns):
        return False
    return not any(_torch.storage_key(t) in _keys(user) for t in tensors(user.meta.get("val")))


def _keeps_bytes(model: Model, laid: dict[Node, Any], user: Node, new: torch.Tensor) -> bool:
    """Return whether a regrouping of dimensions has the bytes of its operand in their order, or is a copy.

    Fake tensors also make views that real ones refuse.
    """
    old: torch.Tensor = laid.get(user.all_input_nodes[0], new)
    if _torch.storage_key(old) != _torch.storage_key(new):
        return True
    before, after = Region.of(old), Region.of(new)
    return model.geometry.axes(before).empty or before.in_order == after.in_order


def _same_strides(model: Model, a: torch.Tensor, b: torch.Tensor) -> bool:
    return model.geometry.same_layout(Region.of(a), Region.of(b))


def _keys(user: Node) -> set[int | None]:
    return {_torch.storage_key(t) for n in user.all_input_nodes for t in tensors(n.meta.get("val"))}

"""The kinds of candidates: for each, which operand, which bytes it writes, what else it reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node

from . import (
    _torch,
    functional_op,
    hidden_alias,
    origin,
    outs,
    relayout,
    scatter,
    variant,
    wrapper,
    wrapper_check,
)
from .candidate import Kind
from .errors import GraphError
from .place import Place, Storage, Value, is_known, mapped, places, reads_alike
from .reason import Reason
from .recording import add, others_of
from .region import Region, as_size
from .schema import argument, is_operator, schema_of, target_name
from .source import where

if TYPE_CHECKING:
    from .model import Model

_NAMED = scatter.INDEX_PUT | scatter.VIEWS.keys() | {"aten::clone", "aten::copy"}


def visit_wrapper(model: Model, node: Node) -> bool:
    """Add the candidates of a wrapper of mutable operators; returns whether ``node`` is one."""
    if node.op != "call_function":
        return False
    if node.target is _torch.hop("triton_kernel_wrapper_mutation"):
        raise GraphError(
            f"expected a functional graph, found {node.name} = {target_name(node.target)} at "
            f"{where(node) or 'an unknown line'}; was the graph reinplaced already?"
        )
    if node.target is _torch.hop("auto_functionalized"):
        _auto_v1(model, node)
    elif node.target is _torch.hop("auto_functionalized_v2"):
        _auto_v2(model, node)
    elif node.target is _torch.hop("triton_kernel_wrapper_functional"):
        _triton(model, node)
    else:
        return False
    # The results were placed before their storages were settled inside the operands'.
    value = model.values[node]
    if any(place.storage.shift != 0 for place in places(value)):
        model.values[node] = mapped(_settled, value)
    return True


def _settled(place: Place) -> Place:
    """Return a place that was made before its storage was moved, in its final coordinates."""
    shift = place.storage.shift
    return place if shift == 0 else Place(place.storage, place.region.shifted(shift), place.value)


def visit_candidate(model: Model, node: Node) -> bool:
    """Add the candidate of a functional operator; returns whether ``node`` is of such a kind.

    What returns its operand is none, and nothing else is to be noted of it.
    """
    if hidden_alias.visit(model, node):
        return True
    name = schema_of(node.target).name
    if node in model.setting.aside:
        if name in _NAMED or variant.in_place_form(node.target) is not None:
            model.unsupported.append((node, ((name, "self"),), functional_op.copied_bytes(model, node)))
        return False
    if name in scatter.INDEX_PUT:
        return _index_put(model, node)
    if name in scatter.VIEWS:
        return _scatter(model, node)
    if name == "aten::clone":
        return _clone(model, node)
    if name == "aten::copy":
        return _copy(model, node)
    return functional_op.visit(model, node)


def _unsupported(model: Model, node: Node, name: str, mutated: dict[str, Any]) -> None:
    """Leave a wrapper functional: it reads its operands, clones some, and its results are not understood."""
    for _, place in model.operands((node.args, node.kwargs)):
        model.add_read(node, place)
    model.values[node] = model.fresh(node, node.meta.get("val"), opaque=True)
    size = sum(model.nbytes(p.region) for v in mutated.values() for _, p in model.operands(v))
    model.unsupported.append((node, tuple((name, arg) for arg in mutated), size))


def _results(model: Model, node: Node) -> list[Value]:
    if node.meta.get("val") is None:
        raise GraphError(
            f'expected meta["val"] on {node.name} ({target_name(node.target)}) at '
            f"{where(node) or 'an unknown line'}, found none; run FakeTensorProp over the graph first."
        )
    value = model.fresh(node, node.meta["val"])
    model.values[node] = value
    return value if isinstance(value, list) else [value]


def _wrapped(model: Model, operand: Node, result: Value) -> tuple[Storage, Reason | None]:
    """Settle a result that a wrapper clones with its operand's strides."""
    if not isinstance(result, Place):
        return model.new_storage(operand), Reason.UNSUPPORTED
    return relayout.settle(model, operand, None, result)


def _auto_v1(model: Model, node: Node) -> None:
    op = node.args[0] if node.args else None
    if not is_operator(op):
        return _unsupported(model, node, target_name(op), {"self": node.kwargs})
    wrapper_check.check(node)
    if _is_unplaced(model, node) or not wrapper_check.is_taken_apart(node):
        return _unsupported(model, node, target_name(op), wrapper.operands(node))
    results, first = _results(model, node), wrapper.first_result(node)
    others = others_of(model, wrapper.read_args(node))
    for _, _, other in others:
        model.add_read(node, other)
    positions = {name: first + i for i, name in enumerate(schema_of(op).mutable)}
    for name, item, operand in wrapper.mutated_args(node):
        place = model.place(operand)
        if place is None:
            continue
        result = results[positions[name]]
        settled = _wrapped(model, operand, result if item is None else result[item])
        label = (target_name(op), name if item is None else f"{name}[{item}]")
        slot = name if item is None else (name, item)
        write = (place.region,)
        only, _ = wrapper.write_only(model.geometry, op, [name], place.region, write)
        only = only and operand not in model.addressing.untold  # empty memory has the strides that are told
        add(model, Kind.AUTO_V1, node, slot, (label,), operand, settled, write, others, None, only)
    return None


def _auto_v2(model: Model, node: Node) -> None:
    op = node.args[0] if node.args else None
    if not is_operator(op):
        return _unsupported(model, node, target_name(op), {"self": node.kwargs.get("_all_bases")})
    if outs.makes_outs(node):
        return outs.visit(model, node)
    wrapper_check.check(node)
    if (
        not wrapper_check.hands_back_operands(node)
        or _is_unplaced(model, node)
        or not wrapper_check.is_taken_apart(node)
    ):
        return _unsupported(model, node, target_name(op), wrapper.operands(node))
    bases: Any = node.kwargs["_all_bases"]
    views = wrapper.base_views(node)
    results = _results(model, node)
    first = len(results) - len(bases)
    others = others_of(model, wrapper.read_args(node))
    for _, _, other in others:
        model.add_read(node, other)
    for i, base in enumerate(bases):
        place = model.place(base)
        if place is None:
            continue
        mine = [v for v in views if v.base == i]
        storage, obstacle = _wrapped(model, base, results[first + i])
        # Else these bytes are more than what is written, or a copy of some would have other strides.
        is_exact = is_known(place) and base not in model.addressing.untold
        if place.storage.relaid and any(v.form == "as_strided" for v in mine):
            obstacle, is_exact = Reason.LAYOUT, False
        shift = place.storage.shift
        writes = tuple(v.region(place.region, shift) if is_exact else place.region for v in mine)
        labels = tuple((target_name(op), v.label) for v in mine) or ((target_name(op), f"base[{i}]"),)
        names = [v.name for v in mine]
        written = wrapper.write_only(model.geometry, op, names, place.region, writes)
        only, hole = written if is_exact else (False, None)
        settled = (storage, obstacle)
        add(model, Kind.AUTO_V2, node, i, labels, base, settled, writes, others, hole, only)
    return None


def _is_unplaced(model: Model, node: Node) -> bool:
    """Return whether a wrapper is left alone: it binds data-dependent sizes, or it was set aside."""
    return bool(node.meta.get("unbacked_bindings")) or node in model.setting.aside


def _triton(model: Model, node: Node) -> None:
    kwargs: Any = node.kwargs["kwargs"]
    names: Any = node.kwargs["tensors_to_clone"]
    kernel = _torch.triton_kernel_name(node.kwargs["kernel_idx"])  # type: ignore[arg-type]
    if _is_unplaced(model, node):
        return _unsupported(model, node, kernel, {name: kwargs[name] for name in names})
    _results(model, node)
    value = model.values[node]
    others = others_of(model, ((n, v) for n, v in kwargs.items() if n not in names))
    for _, _, other in others:
        model.add_read(node, other)
    for name in names:
        operand, place = kwargs[name], model.place(kwargs[name])
        if place is not None:
            settled = _wrapped(model, operand, value[name])
            add(model, Kind.TRITON, node, name, ((kernel, name),), operand, settled, (place.region,), others)


def _index_put(model: Model, node: Node) -> bool:
    operand, place = _own_operand(model, node)
    if place is None:
        return False
    result = model.fresh(node, node.meta["val"])
    settled = relayout.settle(model, operand, node, result)
    model.values[node] = relayout.value(model, node, settled[0], result)
    others = others_of(model, ((name, argument(node, name)) for name in ("indices", "values")))
    for _, _, other in others:
        model.add_read(node, other)
    label = (schema_of(node.target).name, "self")
    add(model, Kind.INDEX_PUT, node, 0, (label,), operand, settled, (place.region,), others)
    return True


def _scatter(model: Model, node: Node) -> bool:
    operand, place = _own_operand(model, node)
    source = argument(node, "src")
    if place is None or not isinstance(source, Node) or not is_known(place):
        return False
    written = scatter.written(model, node, place)
    if scatter.is_absolute(node) and written is not None:
        scatter.check_reach(model, node, written, place.region)
    result = model.fresh(node, node.meta["val"])
    settled = relayout.settle(model, operand, node, result)
    if place.storage.relaid and operand not in model.relaid and scatter.is_absolute(node):
        settled = (settled[0], Reason.LAYOUT)
    model.values[node] = relayout.value(model, node, settled[0], result)
    others = others_of(model, iter([("src", source)]))
    for _, _, other in others:
        model.add_read(node, other)
    label = (schema_of(node.target).name, "self")
    writes = (place.region if written is None else written,)
    if written is not None and _is_stored(model, node, others[0][2], place, written):
        model.held.add(node)
    add(model, Kind.SCATTER, node, 0, (label,), operand, settled, writes, others, written)
    return True


def _is_stored(model: Model, node: Node, source: Place, place: Place, written: Region) -> bool:
    """Return whether a scatter stores what its operand, the functional value, holds there anyway."""
    alike = reads_alike(source.value, place.value)
    return alike and origin.is_held(model, node, source, (place.storage, written))


def _clone(model: Model, node: Node) -> bool:
    """Add an explicit clone; one that is made for the sake of another layout is a conversion, no clone."""
    operand, place = _own_operand(model, node)
    result = model.fresh(node, node.meta["val"])
    if place is None or not isinstance(result, Place):
        return False
    converts = node.kwargs.get("memory_format") not in (None, torch.preserve_format)
    was_alike = model.geometry.same_layout(Region.of(operand.meta["val"]), result.region)
    settled = relayout.settle(model, operand, node if was_alike or not converts else None, result)
    # What strides a view without elements has is not told, and a conversion makes those that are asked for.
    if (settled[1] is not None and not was_alike) or (converts and 0 in result.region.sizes):
        return False
    model.values[node] = relayout.value(model, node, settled[0], result)
    add(model, Kind.CLONE, node, 0, (("aten::clone", "self"),), operand, settled, (), ())
    return True


def _copy(model: Model, node: Node) -> bool:
    """Add a functional ``copy``: what functionalization makes of an assignment, a clone of its source.

    Nothing of ``self`` is read but its shape and strides.
    """
    source = node.args[1] if len(node.args) > 1 else None
    place, like = model.place(source), _own_operand(model, node)[1]
    result = model.fresh(node, node.meta["val"])
    if place is None or like is None or not isinstance(source, Node) or not isinstance(result, Place):
        return False
    stays = model.addressing.begins(node) and as_size(like.value.storage_offset()) != 0
    if stays:
        # It begins where ``self`` does, and its fake value says otherwise: where its views lie is not known.
        result.storage.close(Reason.LAYOUT, node)
    alike = model.geometry.same_layout(place.region, result.region)
    if place.value.dtype == result.value.dtype and (alike or place.storage.relaid):
        fixed = (result.storage, Reason.LAYOUT)
        # Where only strides of dimensions of one differ, whoever looks at them is asked.
        settled = fixed if stays else relayout.settle(model, source, node if alike else None, result)
        model.values[node] = relayout.value(model, node, settled[0], result)
        add(model, Kind.COPY, node, 1, (("aten::copy", "src"),), source, settled, (), ())
    else:
        model.add_read(node, place)
        model.values[node] = result
    return True


def _own_operand(model: Model, node: Node) -> tuple[Any, Place | None]:
    operand = node.args[0] if node.args else None
    return operand, model.place(operand)


def is_protected_clone(node: Node) -> bool:
    """Return whether a node is a clone that was hidden from Inductor's no-op removal."""
    return node.op == "call_function" and node.target is torch.ops.prims.clone.default

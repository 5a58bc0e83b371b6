"""Building the model of a functional graph, in one walk over its nodes; the graph is not changed."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Graph, Node

from ... import _torch
from ...errors import GraphError, ReinplaceError
from ...graph import attribute
from ...graph.alias import is_epilogue, shared_by_inputs
from ...graph.collective import END, wait_time
from ...memory.region import Region, as_size, is_static
from ...ops import higher_order, wording
from ...ops.schema import OpSchema, argument, has_tensor, is_operator, schema_of, tensors
from ...ops.views import is_absolute
from ...reason import Reason
from ..facts import price
from ..facts.model import Model
from ..facts.options import DEFAULT, Options
from ..facts.place import SEEN, Place, Unseen, Write, followed, mapped, places
from ..facts.premises import Calls, Premises
from ..kinds import kind
from ..kinds.view_scatter import check_reach
from ..layout import hidden_alias
from . import declared, fused

Visitors = dict[int, Callable[[Model, Node], None]]
_SYMBOLIC_MODULES = ("_operator", "math", "builtins", "torch", "torch.fx.experimental.symbolic_shapes")


def build(
    graph: Graph,
    options: Options = DEFAULT,
    *,
    premises: Premises = Premises(),  # noqa: B008  (frozen)
    calls: Calls | None = None,
) -> Model:
    """Return what is known about a functional graph.

    Args:
        graph: the functional graph.
        options: what the user chose, and what will run the rewritten graph; bytes that it cannot follow
            through a view are not written.
        premises: what earlier decisions about the graph taught.
        calls: what is known about calls of subgraphs; by default what their summaries say.

    Raises:
        GraphError: a tensor node without ``meta["val"]``, or a graph that already mutates something
            other than ``copy_`` into an input.
    """
    model, visitors = Model(graph, options, premises, calls), Visitors()
    _suppose_apart(model)
    for node in model.order:
        try:
            _visit(model, node, visitors)
        except ReinplaceError:
            raise
        except Exception as error:
            raise wording.malformed(node, error) from error
    _exit_reads(model)
    model.written_back = price.written_back(model)
    model.join_trees()
    model.fused = fused.fused(model, options)
    return model


def _suppose_apart(model: Model) -> None:
    """Take no input of a program that it writes for one that overlaps itself, unless it does in this call.

    Nothing guards its strides where they are symbols. Where it overlaps itself in a later call, eager mode
    writes bytes in place of which the program cannot tell whose they are.
    """
    copies = model.graph.find_nodes(op="call_function", target=torch.ops.aten.copy_.default)
    vals = (node.args[0].meta.get("val") for node in copies if is_epilogue(node))
    symbolic = [val for val in vals if isinstance(val, torch.Tensor) and not is_static(val)]
    for val in symbolic if symbolic and model.takes_program_inputs else ():
        model.geometry.suppose_apart(val)


def _visit(model: Model, node: Node, visitors: Visitors) -> None:
    op = node.op
    if op == "call_function":
        key = id(node.target)  # the graph keeps it alive
        visit = visitors.get(key)
        if visit is None:
            visit = visitors[key] = _visitor(node)
        visit(model, node)
    elif op in ("placeholder", "get_attr"):
        _visit_input(model, node)
    elif op == "output":
        _visit_output(model, node)
    else:
        _visit_other(model, node)


def _visit_input(model: Model, node: Node) -> None:
    """Place an input: in the storage of another one with which it may share bytes, or in one of its own.

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
        model.values[node] = _input_place(model, node, val, keys)
    else:
        model.values[node] = mapped(lambda tensor: _input_place(model, node, tensor, keys), val)


def _input_place(model: Model, node: Node, tensor: torch.Tensor, keys: list[int | str | None]) -> Place:
    mine: list[Any] = [k for k in (_torch.storage_key(tensor), *keys) if k is not None]
    is_kept = not model.kept_by_subgraphs.isdisjoint(mine)
    if mine and node.op == "placeholder" and not is_static(tensor) and model.inputs_apart:
        mine = [shared_by_inputs(tensor)]
    storage = next((model.given[k] for k in mine if k in model.given), None)
    if storage is None:
        storage = model.new_storage(node, is_input=True)
        if mine:
            model.whole[storage] = Region.flat(as_size(tensor.untyped_storage().nbytes()))
    elif keys and model.whole[storage] != Region.flat(as_size(tensor.untyped_storage().nbytes())):
        storage.close(Reason.UNKNOWN_OP, node)  # its fake value does not say which bytes these are
    if is_kept:
        storage.close(Reason.UNKNOWN_OP, node)
    model.given.update(dict.fromkeys(mine, storage))
    return model.at(storage, tensor)


def _visit_other(model: Model, node: Node) -> None:
    """Visit a node of what was declared, wraps operators, runs subgraphs, or is not understood."""
    if declared.visit(model, node):
        return
    if is_operator(node.target):
        _visit_operator(model, node)
    elif not (_visit_effect(model, node) or kind.visit_call(model, node)):
        _visit_unknown(model, node)


def _visit_effect(model: Model, node: Node) -> bool:
    """Visit an effectful call of an operator that mutates and aliases nothing; else return ``False``.

    The token orders effects among themselves. These nodes stay where they are, and no reader moves across
    them, so nothing more is to be kept. Torch runs no effectful operator that aliases its operands, so one
    with an in-place form has nothing that it could be rewritten to; a mutable operator with an effect comes
    as an ordinary wrapper without a token, which keeps its place among the other nodes.
    """
    if node.op != "call_function" or node.target is not _torch.hop("with_effects"):
        return False
    op: Any = node.args[1] if len(node.args) > 1 else None
    if not is_operator(op) or schema_of(op).mutable or any(r is not None for r in schema_of(op).returns):
        return False
    for _, place in model.operands((node.args[2:], node.kwargs)):
        model.add_read(node, place)
    model.values[node] = model.fresh(node, node.meta.get("val"))
    return True


def _visit_output(model: Model, node: Node) -> None:
    for leaf, place in model.operands(node.args):
        model.outputs.append((leaf, place))
        model.add_read(node, place, END)


def _visit_getitem(model: Model, node: Node) -> None:
    source, key = node.args[0], node.args[1]
    value = model.values.get(source) if isinstance(source, Node) else None
    if isinstance(value, Place) or isinstance(key, Node | slice):
        _visit_unknown(model, node)
    elif value is not None:
        model.values[node] = value[key]
        if isinstance(source, Node) and source in model.unseen:
            model.unseen[node] = model.unseen[source]


def _visit_operator(model: Model, node: Node) -> None:
    schema, val = schema_of(node.target), node.meta.get("val", node)
    if node.target is torch.ops.aten.copy_.default:
        _visit_mutation(model, node)  # its value is its destination: exported programs record none
    elif schema.returns and (val is node or (schema.makes_tensor and not has_tensor(val))):
        raise wording.no_value(node)
    elif schema.mutable:
        _visit_mutation(model, node)
    elif schema.hides_accesses or schema.views_several:
        _visit_unknown(model, node)
    elif schema.view or (schema.returns and schema.returns[0] is not None):
        _visit_view(model, node, schema)
    elif not kind.visit_operator(model, node):
        _visit_pure(model, node)


def _visit_mutation(model: Model, node: Node) -> None:
    destination = model.place(node.args[0]) if node.args else None
    source = model.place(node.args[1]) if len(node.args) > 1 else None
    is_copy = node.target is torch.ops.aten.copy_.default
    if not (is_copy and destination and source and destination.storage.is_input):
        raise GraphError(
            f"expected a functional graph (no mutation but copy_ into inputs), found {wording.at(node)}; was "
            "the graph reinplaced already? Pass the graph as AOTAutograd gives it to the post-grad stage."
        )
    model.values[node] = destination
    is_own = model.same_value(source, destination)
    if is_own and source.storage is destination.storage:
        model.idle.append(node)  # whatever lies there is copied onto itself
        return
    model.add_read(node, source)
    model.writes[destination.storage].append(Write(node, model.order[node], destination, source, is_own))


def _visit_view(model: Model, node: Node, schema: OpSchema) -> None:
    operand = argument(node, schema.returns[0] or "")
    value = model.values.get(operand) if isinstance(operand, Node) else None
    owner = value if isinstance(value, Place) else next(iter(places(value)), None)
    val = model.relaid.get(node, node.meta["val"])
    if owner is None:
        _visit_pure(model, node)
        return
    if schema.returns_operand:  # its fake value pretends to be a fresh tensor
        # Views of it lie in its fake value, which must therefore begin where the operand does.
        alike = isinstance(val, torch.Tensor) and Region.of(val) == Region.of(owner.value)
        model.values[node] = Place(owner.storage, owner.region, val) if alike else owner
        return
    by_offset = schema.names_offset and is_absolute(node)
    if by_offset and owner.storage in model.made_by:
        for tensor in tensors(val):
            born = places(model.values[owner.storage.node])
            whole = next((p.region for p in born if p.storage is owner.storage), None)
            if whole is not None:
                check_reach(model, node, model.at(owner.storage, tensor).region, whole)
    if by_offset and owner.storage.relaid and node not in model.relaid:
        # An offset into the old layout means nothing in the new one.
        owner.storage.close(Reason.LAYOUT, node)
    _note_unseen(model, node, operand)
    is_unsure = schema.view_or_copy and isinstance(operand, Node) and model.layouts.of(operand).untold
    views = (val,) if isinstance(val, torch.Tensor) else tuple(tensors(val))
    key = _torch.storage_key(owner.value)
    if not is_unsure and all(_torch.storage_key(view) == key for view in views):
        model.values[node] = model.inside(owner.storage, val)
        if schema.lowered_as_view and not schema.by_strides and isinstance(value, Place):
            _note_parts(model, node, value, once=not schema.repeats)
    elif schema.view_or_copy and not is_unsure:
        _visit_pure(model, node)
    else:
        # Whether it is a view depends on strides that are not told; or the metadata is stale (a pass
        # replaced an operand and kept the view's fake tensor): where it lies is not known, so nothing
        # may be written there.
        owner.storage.close(Reason.UNKNOWN_OP, node)
        region = model.whole.get(owner.storage, owner.region)
        model.values[node] = mapped(lambda t: Place(owner.storage, region, t), val)


def _note_parts(model: Model, node: Node, whole: Place, *, once: bool) -> None:
    for place in places(model.values[node]):
        model.geometry.know_part(place.region, whole.region, once=once)


def _note_unseen(model: Model, node: Node, operand: Any) -> None:
    """Record that what is written through a view may be a copy; what is read through it may be one, too."""
    behind = model.unseen.get(operand, SEEN)
    sees = model.target.sees_view
    computed = behind.computed if sees(node, of_input=False) else node
    of_input = behind.of_input if sees(node, of_input=True) else node
    if computed is not None or of_input is not None:
        model.unseen[node] = Unseen(computed, of_input)


def _visit_pure(model: Model, node: Node) -> None:
    """Visit an operator that reads its operands and returns fresh tensors."""
    schema = schema_of(node.target)
    operands = model.operands((node.args, node.kwargs) if node.kwargs else node.args)
    if not schema.meta_only:
        in_flight = schema.name.startswith("_c10d_functional::")
        until = wait_time(node, model.order) if in_flight else None
        for _, place in operands:
            model.add_read(node, place, until, in_flight=in_flight)
    value = model.fresh(node, model.relaid.get(node, node.meta.get("val")))
    for place in places(value) if node in model.relaid else ():
        place.storage.relaid, place.storage.follows = True, followed(operands)
    model.values[node] = hidden_alias.joined(model, node, operands, value)


def _visit_unknown(model: Model, node: Node) -> None:
    """Visit what has no schema: it reads everything it is given, for as long as it likes."""
    operands = model.operands((node.args, node.kwargs))
    val = node.meta.get("val")
    symbolic = getattr(node.target, "__module__", None) in _SYMBOLIC_MODULES
    if not operands and (symbolic or not any(True for _ in tensors(val))):
        return
    pure = higher_order.is_pure(node.target)
    for _, place in operands:
        model.add_read(node, place, None if pure else END)
        if not pure:
            place.storage.close(Reason.UNKNOWN_OP, node)
    model.values[node] = model.fresh(node, val, opaque=True)


def _exit_reads(model: Model) -> None:
    """Record that the caller looks at every input, whole, after the graph ran."""
    for storage in model.storages:
        if storage.is_input and storage in model.whole:
            place = next(iter(places(model.values[storage.node])))
            whole = Place(storage, model.whole[storage], place.value)
            model.add_read(storage.node, whole, END, is_exit=True)


def _visitor(node: Node) -> Callable[[Model, Node], None]:
    """Return what visits all nodes of one target: asked once for each target of a graph."""
    if node.target is operator.getitem:
        return _visit_getitem
    if declared.is_declared(node):
        return _visit_other
    return _visit_operator if is_operator(node.target) else _visit_other

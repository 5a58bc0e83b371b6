"""A wrapper that is left functional is its operator, called on copies of what that writes.

Inductor traces each wrapper anew, with torch's own copies, which takes it milliseconds. Here the copies, the
views and the call are written at once, with their fake values. Copied is what the node says
(``only_clone_these_tensors``), by default all; who waits for a wrapper waits for the call.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch
from torch.fx import Graph, Node
from torch.fx.node import map_arg

from .. import _torch
from ..errors import GraphError
from ..graph.alias import begin_of
from ..graph.emit import Emitter, eager_values
from ..graph.find_layouts import known
from ..graph.sizes import makes_sizes
from ..graph.spread import names_one, spread
from ..memory.region import Size, as_size
from ..ops import wrapper, wrapper_check
from ..ops.beginning import EXACT, begins_alike
from ..ops.schema import argument, is_operator, schema_of, tensors
from ..ops.wrapper_names import is_wrapper, wraps_operator
from ..reinplacing.kinds import out_wrapper, wrapped_v2
from ..reinplacing.kinds.kernel_launch import launch
from ..reinplacing.kinds.wrapper_results import handed_back, note_results
from ..reinplacing.layout.true_values import with_true_values
from .ground import Ground
from .rule import Places, Rule

_MARK = "only_clone_these_tensors"
_UNTOLD = "how its operands are laid out is not told"
_NAMED = "an offset into the storage of a result is named"
_Made = Mapping[Any, Any]  # what stands for a wrapper's results, by their positions or names


def call(graph: Graph) -> None:
    """Call the wrappers of a graph that Inductor lowers, and that has the values which it goes by."""
    for _ in _called(graph, lowered=True):
        pass


def _rewrite(graph: Graph) -> Places:
    """Call the wrappers of a graph that runs node by node, by the values which its kernels make."""
    yield from with_true_values(graph, lambda: list(_called(graph, lowered=False)), lowered=False, keep=True)


def _called(graph: Graph, *, lowered: bool) -> Places:
    ground = Ground(graph, lowered=True)
    found = [n for n in graph.nodes if n.op == "call_function" and is_wrapper(n.target)]
    # Views in a wrapper are counted from where storages began before any of them was replaced.
    begins = {n: [begin_of(base) for base in n.kwargs.get("_all_bases", ())] for n in found}
    untold = known(graph, lowered=lowered).staying(graph) if found else frozenset[Node]()
    stays = _staying(graph, found, untold)
    for node in found:
        yield node.name, node if stays[node] else None, stays[node]
        if stays[node]:
            continue
        call, made = _emitted(ground.emitter, node, begins[node])
        _wait_for(node, call)
        if isinstance(node.meta["val"], torch.Tensor):
            _stand_in(ground, node, made[0])
        else:
            _hand_out(ground, node, call, made)


def _why_not(node: Node) -> str:
    """Return why a wrapper stays one, empty where it is called."""
    if wraps_operator(node.target):
        if not node.args or not is_operator(node.args[0]):
            return "it wraps no operator"
        try:
            (out_wrapper if out_wrapper.sees_to(node) else wrapper_check).check(node)
        except GraphError as error:
            return str(error)
        if not out_wrapper.sees_to(node) and not wrapper_check.hands_back_operands(node):
            return "its results share storage in another way than its schema says"
    if not isinstance(node.meta["val"], torch.Tensor) and not all(_takes_one(node, u) for u in node.users):
        return "its results are not taken one by one"
    return "data tell its sizes" if makes_sizes(node) else ""


def _staying(graph: Graph, found: Sequence[Node], untold: Collection[Node]) -> dict[Node, str]:
    """Return why wrappers stay, empty where they are called.

    A copy begins where its storage does. A wrapper that is called counts from where its bases begin by then.
    """
    stays = {node: _why_not(node) or (_UNTOLD if node in untold else "") for node in found}
    while later := [node for node in found if not stays[node] and _begins_later(node)]:
        asking = (node for node in graph.nodes if stays.get(node) != "" and names_one(node))
        named = spread({value: EXACT for node in asking for value in _counted_from(node)}, _begun_by)
        more = dict.fromkeys(filter(named.__contains__, later), _NAMED)
        if not more:
            break
        stays.update(more)
    return stays


def _counted_from(node: Node) -> Sequence[Node]:
    """Return the operands by whose beginnings a node goes, if it goes by any."""
    schema = schema_of(node.target) if is_operator(node.target) else None
    if schema is None or not schema.is_scatter:
        return node.all_input_nodes
    into: Any = argument(node, schema.names[0])  # what is stored there may lie anywhere
    return (into,)


def _begun_by(node: Node) -> Sequence[Node]:
    """Return the operands that a node's value may begin like: what makes memory, begins at its beginning."""
    is_made = node.op != "call_function" or not begins_alike(node.target)
    return () if is_made else _counted_from(node)


def _begins_later(node: Node) -> bool:
    return any(as_size(val.storage_offset()) != 0 for val in tensors(node.meta.get("val")))


def _takes_one(node: Node, user: Node) -> bool:
    """Return whether a user takes one result, or only waits for all."""
    if user.target is _torch.hop("control_deps"):
        return node not in user.args[1:] and node not in user.kwargs.values()
    return user.target is operator.getitem and user.args[1] in _results(node)


def _results(node: Node) -> Any:
    val: Any = node.meta["val"]
    return val if isinstance(val, dict) else range(len(val))


def _emitted(emitter: Emitter, node: Node, begins: Sequence[Size]) -> tuple[Node, _Made]:
    """Insert the call of what a wrapper wraps; returns it, and what stands for the wrapper's results."""
    if out_wrapper.sees_to(node):
        call, buffers = out_wrapper.called(emitter, node, {})
        return call, dict(enumerate(buffers))
    if not wraps_operator(node.target):
        inner: dict[str, Any] = dict(node.kwargs["kwargs"])  # type: ignore[arg-type]
        names: Any = node.kwargs["tensors_to_clone"]
        inner |= {name: emitter.clone(node, inner[name]) for name in names}
        return launch(emitter, node, inner), inner
    of_bases = node.target is _torch.hop("auto_functionalized_v2")
    call, by_name, made = _emitted_v2(emitter, node, begins) if of_bases else _emitted_v1(emitter, node)
    count, val = note_results(call, node), node.meta["val"]
    own: dict[int, Any] = {0: call}
    if count > 1:
        items = [emitter.call(node, operator.getitem, (call, i)) for i in range(count)]
        for item, value in zip(items, val, strict=False):
            item.meta["val"] = value
        own = dict(enumerate(items))
    return call, {**own, **handed_back(node.args[0], by_name), **made}


def _emitted_v1(emitter: Emitter, node: Node) -> tuple[Node, dict[str, Any], _Made]:
    op: Any = node.args[0]
    first, only = wrapper.first_result(node), node.meta.pop(_MARK, None)
    by_name: dict[str, Any] = dict(node.kwargs)
    for i, name in enumerate(schema_of(op).mutable):
        value = by_name.get(name)
        if value is None or (only is not None and name not in only):
            continue
        if isinstance(value, Node):
            by_name[name] = emitter.clone(node, value, node.meta["val"][first + i])
        else:
            by_name[name] = [v if v is None else emitter.clone(node, v) for v in value]
    made = {first + i: by_name.get(name) for i, name in enumerate(schema_of(op).mutable)}
    return emitter.mutable_op(node, op, by_name, eager_values(node)), by_name, made


def _emitted_v2(emitter: Emitter, node: Node, begins: Sequence[Size]) -> tuple[Node, dict[str, Any], _Made]:
    first, only = wrapper.first_result(node), node.meta.pop(_MARK, None)
    bases: list[Any] = list(node.kwargs["_all_bases"])  # type: ignore[arg-type]
    for i, base in enumerate(bases):
        if only is None or i in only:
            bases[i] = emitter.clone(node, base, node.meta["val"][first + i])
    moved = [begin_of(base) - begin for base, begin in zip(bases, begins, strict=True)]
    call, by_name = wrapped_v2.called(emitter, node, bases, moved)
    return call, by_name, dict(enumerate(bases, first))


def _wait_for(node: Node, call: Node) -> None:
    """Have what waits for a wrapper wait for the call."""
    for user in [u for u in node.users if u.target is _torch.hop("control_deps")]:
        first = map_arg(user.args[0], lambda n: call if n is node else n)
        user.args = (first, *user.args[1:])


def _hand_out(ground: Ground, node: Node, call: Node, made: _Made) -> None:
    """Give the users of a wrapper's results what stands for them, and let go of the wrapper."""
    for user in list(node.users):
        value = made[user.args[1]]
        if isinstance(value, list | tuple):
            for item in list(user.users):
                ground.replace(item, value[item.args[1]])  # type: ignore[index]
            node.graph.erase_node(user)
        elif isinstance(value, Node):
            _stand_in(ground, user, value)
        else:  # nothing is there, and so nothing is done with it
            node.graph.erase_node(user)
    node.graph.erase_node(node)
    for item in [n for n in call.users if n.target is operator.getitem and not n.users]:
        node.graph.erase_node(item)


def _stand_in(ground: Ground, item: Node, value: Node) -> None:
    """Put a value in the place of a result; views of it are views of what it lies in now."""
    was, now = item.meta.get("val"), value.meta.get("val")
    if was is now or not isinstance(now, torch.Tensor):
        item.replace_all_uses_with(value)
        item.graph.erase_node(item)
    else:
        ground.replace(item, value)


RULE = Rule("wrappers", _rewrite)

"""Arithmetic that changes nothing: ``x + 0``, ``x - 0``, ``x * 1``, ``x / 1``, with numbers or constants.

It is ``x``, converted to the dtype of the result, and a copy where somebody could tell them apart. But
``-0. + 0.`` is ``0.``, and a complex product makes NaN of infinity: those stay. Inductor's rule, a part of
its folding of constants, knows neither. It also takes a product with the number 0 for 0, whatever it is of.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Graph, Node

from .. import _torch
from ..graph.alias import bases, viewed, written
from ..ops.schema import has_tensor, is_operator, schema_of, traits_of
from .ground import Ground
from .rule import Places, Rule, by_name

aten: Any = torch.ops.aten
prims: Any = torch.ops.prims
_UNKNOWN = object()


def _rewrite(graph: Graph) -> Places:
    ground = Ground(graph, is_joint=True)
    _keep_nans(graph)
    known = _constants(graph)
    for node in list(graph.nodes):
        neutral = _neutral(node)
        if neutral is None:
            continue
        values = [known.get(n, 2) if isinstance(n, Node) else n for n in node.args]
        at = next((i for i in (1, 0) if len(values) == 2 and values[i] in (_UNKNOWN, neutral)), None)
        if at is None or node.kwargs.get("alpha", 1) != 1:
            continue
        operand = node.args[1 - at]
        if not isinstance(operand, Node):
            continue
        why = _why_not(ground, node, operand, values[at], is_second=at == 1)
        if not why and not _replaced(ground, node, operand):
            why = "the result is laid out in another way"
        yield node.name, node if why else None, why


def _neutral(node: Node) -> int | None:
    """Return the number that changes nothing as the second operand of a node, if there is one."""
    is_plain = is_operator(node.target) and node.target._overloadname == "Tensor"  # type: ignore[union-attr]
    return traits_of(node.target).neutral if is_plain else None


def _constants(graph: Graph) -> dict[Node, Any]:
    """Return all that may be one number throughout, whatever the inputs are: the number, if it is known."""
    found: dict[Node, Any] = {}
    stored = [value for node in graph.nodes for value in written(node)]
    base = bases(graph) if stored else {}
    changed = {base[value] for value in stored}
    for node in graph.nodes:
        if (node.op == "get_attr" or base.get(node) in changed) and has_tensor(node.meta.get("val")):
            found[node] = _UNKNOWN
        elif node.op == "call_function" and is_operator(node.target):
            given = node.all_input_nodes
            if all(n in found or not has_tensor(n.meta.get("val")) for n in given):
                value = _value(node, found, any(has_tensor(n.meta.get("val")) for n in given))
                if value is not None:
                    found[node] = value
            elif _is_times_zero(node):
                found[node] = 0
    return found


def _value(node: Node, found: dict[Node, Any], has_operands: bool) -> Any:
    """Return the number that a node of constants holds, ``None`` where it may hold several."""
    val, source = node.meta.get("val"), viewed(node)
    if not isinstance(val, torch.Tensor):
        return None
    if node.target is aten.full.default:
        return _held(node.args[1], val.dtype)
    if node.target is prims.convert_element_type.default:
        return _held(found[node.args[0]], val.dtype)  # type: ignore[index]
    if source is not None:
        return _UNKNOWN if node.target is aten.view.dtype else found[source]
    is_arithmetic = _neutral(node) is not None or node.target is aten.neg.default
    if is_arithmetic and not any(val.dtype.is_complex for val in _values(node)):
        return _computed(node, found)
    return _UNKNOWN if has_operands or val.dim() == 0 else None


def _values(node: Node) -> list[torch.Tensor]:
    return [n.meta["val"] for n in (node, *node.all_input_nodes) if has_tensor(n.meta.get("val"))]


def _computed(node: Node, found: dict[Node, Any]) -> Any:
    """Return what numbers make, as their dtypes round it."""
    numbers: list[Any] = [found.get(n, _UNKNOWN) if isinstance(n, Node) else n for n in node.args]
    if not all(isinstance(n, bool | int | float) for n in numbers):
        return _UNKNOWN
    with _torch.undisturbed():
        given = [
            torch.full((), number, dtype=n.meta["val"].dtype) if isinstance(n, Node) else number
            for n, number in zip(node.args, numbers, strict=True)
        ]
        return _held(node.target(*given, **node.kwargs).item(), node.meta["val"].dtype)  # type: ignore[operator]


def _held(value: Any, dtype: torch.dtype) -> Any:
    """Return the number that a dtype holds of one, if it is known whether that is 0 or 1."""
    if not isinstance(value, bool | int | float):
        return _UNKNOWN
    is_real = dtype.is_floating_point or dtype.is_complex
    if dtype == torch.bool or value in (0, 1):
        return value if is_real else int(bool(value))
    if not is_real:
        return value if value in range(2, 128) else _UNKNOWN
    info = torch.finfo(dtype)
    return value if abs(value) > 2 * info.tiny and not abs(value - 1) <= 2 * info.eps else _UNKNOWN


def _is_times_zero(node: Node) -> bool:
    """Return whether Inductor takes a product for 0."""
    is_product = is_operator(node.target) and schema_of(node.target).name == "aten::mul"
    return is_product and any(isinstance(n, int) and n == 0 for n in node.args)


def _keep_nans(graph: Graph) -> None:
    """Multiply with a 0 that Inductor does not take for one: what is no number times 0 is none."""
    for node in filter(_is_times_zero, graph.nodes):
        val = node.meta.get("val")
        if isinstance(val, torch.Tensor) and (val.dtype.is_floating_point or val.dtype.is_complex):
            node.args = tuple(0.0 if isinstance(n, int) and n == 0 else n for n in node.args)


def _why_not(ground: Ground, node: Node, operand: Node, value: Any, *, is_second: bool) -> str:
    """Return why a node is not its operand, empty where it is, bit by bit."""
    dtype, is_sum = operand.meta["val"].dtype, node.target in (aten.add.Tensor, aten.sub.Tensor)
    if value is _UNKNOWN:
        return "the constant is not known"
    # Whole numbers have one zero and are finite: their imaginary parts are 0., and stay so.
    if node.meta["val"].dtype.is_complex and (dtype.is_floating_point or dtype.is_complex):
        return "complex arithmetic changes zeros and infinities"
    if node.target in (aten.sub.Tensor, aten.div.Tensor) and not is_second:
        return "the constant comes first"
    # -0. + 0. is 0., and -0. - -0. is; with the other zero both keep their sign.
    if is_sum and dtype.is_floating_point and (str(value) == "-0.0") is (node.target is aten.sub.Tensor):
        return "it changes the sign of zero"
    if not ground.alike(node, operand, is_laid_out=False, is_retyped=True):
        return "the result has another shape"
    return ""


def _replaced(ground: Ground, node: Node, operand: Node) -> bool:
    """Put what a node equals in its place: its operand, a copy of that, or what it is converted to.

    Returns:
        whether one of them is laid out as the node is.
    """
    dtype = node.meta["val"].dtype
    if dtype != operand.meta["val"].dtype:
        return ground.put(node, prims.convert_element_type.default, (operand, dtype))
    if ground.alike(node, operand) and ground.unite(node, operand):
        ground.replace(node, operand)
        return True
    return ground.copy(node, operand)


def reveal(graph: Graph) -> None:
    """Write what was hidden from Inductor's rule as it was."""
    for node in graph.nodes:
        if "other" in node.kwargs and _neutral(node) is not None:
            kwargs = dict(node.kwargs)
            node.args, node.kwargs = (*node.args, kwargs.pop("other")), kwargs


RULE = Rule("neutral", _rewrite, lambda node: by_name(node, "other"))

"""Random functional graphs with something wrong in them: what a pass may be handed by mistake."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from pytest_reinplace.passes import reinplace
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.fuzz.draws import Draws
from pytest_reinplace.passes.strategies import RandomGraph, random_graph

aten = torch.ops.aten

Change = Callable[[GraphModule, Draws], bool]  # whether there was anything to change

NONSENSE = (None, -1, 1 << 40, 2.5, "x", (), [None], {"a": 1}, torch.int8, slice(None), True, print)


def build(seed: int) -> tuple[RandomGraph, GraphModule, list[str]]:
    """Return the graph of a seed as it was, its malformed twin, and the names of the changes."""
    graph = random_graph(seed)
    gm, draws = graph.copy(), Draws.seeded(seed)
    draws.below(7)
    names: list[str] = []
    for _ in range(20):
        change = CHANGES[seed % len(CHANGES)] if not names else draws.of(CHANGES)
        if change(gm, draws):
            names.append(change.__name__)
        if names and not draws.chance(30):
            break
        if not names:
            seed += 1
    return graph, gm, names


def calls(gm: GraphModule) -> list[Node]:
    return [n for n in gm.graph.nodes if n.op == "call_function"]


def wrappers(gm: GraphModule) -> list[Node]:
    return [n for n in calls(gm) if "auto_functionalized" in str(n.target)]


def output(gm: GraphModule) -> Node:
    return next((n for n in gm.graph.nodes if n.op == "output"), next(iter(reversed(gm.graph.nodes))))


def some(nodes: list[Node], draws: Draws) -> Node | None:
    return draws.of(nodes) if nodes else None


def tensor_nodes(gm: GraphModule) -> list[Node]:
    return [n for n in gm.graph.nodes if hasattr(n.meta.get("val"), "fake_mode")]


# -- values ----------------------------------------------------------------------------------------


def no_value(gm: GraphModule, draws: Draws) -> bool:
    del draws.of([n for n in gm.graph.nodes if "val" in n.meta]).meta["val"]
    return True


def value_of_another_type(gm: GraphModule, draws: Draws) -> bool:
    node = draws.of([n for n in gm.graph.nodes if "val" in n.meta])
    node.meta["val"] = draws.of((None, 3, "text", [], [None], {}, object(), (1, 2), torch.ones(2), 2.5))
    return True


def fake(gm: GraphModule, draws: Draws, change: Callable[[torch.Tensor], Any]) -> bool:
    node = draws.of(tensor_nodes(gm))
    value = node.meta["val"]
    with value.fake_mode:
        node.meta["val"] = change(value)
    return True


def another_dtype(gm: GraphModule, draws: Draws) -> bool:
    return fake(gm, draws, lambda v: torch.empty_like(v, dtype=draws.of((torch.float32, torch.bool))))


def another_shape(gm: GraphModule, draws: Draws) -> bool:
    shape = draws.of(([], [0], [1, 1, 1], [97], [3, 0]))
    return fake(gm, draws, lambda v: torch.empty(shape, dtype=v.dtype))


def other_strides(gm: GraphModule, draws: Draws) -> bool:
    step = draws.of((0, 2, 7))
    return fake(
        gm, draws, lambda v: torch.empty_strided(v.shape, [s * step for s in v.stride()], dtype=v.dtype)
    )


def another_offset(gm: GraphModule, draws: Draws) -> bool:
    def moved(value: torch.Tensor) -> torch.Tensor:
        wide = torch.empty(4096, dtype=value.dtype)
        return wide.as_strided(value.shape, value.stride(), 11)

    return fake(gm, draws, moved)


def stale_storage(gm: GraphModule, draws: Draws) -> bool:
    return fake(gm, draws, lambda v: torch.empty_strided(v.shape, v.stride(), dtype=v.dtype))


def a_storage_of_somebody_else(gm: GraphModule, draws: Draws) -> bool:
    draws.of(tensor_nodes(gm)).meta["val"] = draws.of(tensor_nodes(gm)).meta["val"]
    return True


def a_fake_mode_of_its_own(gm: GraphModule, draws: Draws) -> bool:
    node = draws.of(tensor_nodes(gm))
    value = node.meta["val"]
    node.meta["val"] = GraphBuilder().fake_mode.from_tensor(torch.zeros(value.shape, dtype=value.dtype))
    return True


def a_real_value(gm: GraphModule, draws: Draws) -> bool:
    node = draws.of(tensor_nodes(gm))
    node.meta["val"] = torch.zeros(node.meta["val"].shape, dtype=node.meta["val"].dtype)
    return True


def a_sparse_value(gm: GraphModule, draws: Draws) -> bool:
    draws.of(tensor_nodes(gm)).meta["val"] = torch.eye(3).to_sparse()
    return True


def symbolic_nonsense(gm: GraphModule, draws: Draws) -> bool:
    from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

    env = ShapeEnv()
    mode = torch._subclasses.fake_tensor.FakeTensorMode(shape_env=env)
    node = draws.of(tensor_nodes(gm))
    value = node.meta["val"]
    context = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC] * value.dim())
    wide = torch.zeros([n + 2 for n in value.shape], dtype=value.dtype)
    symbolic = mode.from_tensor(wide, symbolic_context=context)
    if value.dim() and draws.chance(50):
        with mode:
            symbolic = symbolic.as_strided(symbolic.shape, symbolic.stride()[::-1], symbolic.shape[0])
    node.meta["val"] = symbolic
    return True


def strange_metadata(gm: GraphModule, draws: Draws) -> bool:
    node = draws.of(calls(gm))
    key = draws.of(("eager_input_vals", "stack_trace", "unbacked_bindings", "only_clone_these_tensors"))
    node.meta[key] = draws.of((None, 5, "x", [], {}, ((), {}), (1, 2, 3), {"a": 1}, [99]))
    return True


# -- arguments -------------------------------------------------------------------------------------


def swapped_arguments(gm: GraphModule, draws: Draws) -> bool:
    node = some([n for n in calls(gm) if len(n.args) > 1], draws)
    if node is None:
        return False
    args = list(node.args)
    i, j = draws.below(len(args)), draws.below(len(args))
    args[i], args[j] = args[j], args[i]
    node.args = tuple(args)
    return i != j


def erased_argument(gm: GraphModule, draws: Draws) -> bool:
    node = draws.of([n for n in gm.graph.nodes if n.args])
    args = list(node.args)
    del args[draws.below(len(args))]
    node.args = tuple(args)
    return True


def one_argument_more(gm: GraphModule, draws: Draws) -> bool:
    node = draws.of(calls(gm))
    node.args = (*node.args, draws.of([*NONSENSE, node.prev]))
    return True


def no_arguments(gm: GraphModule, draws: Draws) -> bool:
    node = draws.of(calls(gm))
    node.args, node.kwargs = (), {}
    return True


def nonsense_for_an_argument(gm: GraphModule, draws: Draws) -> bool:
    node = draws.of([n for n in gm.graph.nodes if n.args])
    args = list(node.args)
    args[draws.below(len(args))] = draws.of(NONSENSE)
    node.args = tuple(args)
    return True


def nonsense_for_a_keyword(gm: GraphModule, draws: Draws) -> bool:
    node = some([n for n in calls(gm) if n.kwargs], draws)
    if node is None:
        return False
    node.kwargs = {**node.kwargs, draws.of(list(node.kwargs)): draws.of(NONSENSE)}
    return True


def a_keyword_too_few(gm: GraphModule, draws: Draws) -> bool:
    node = some([n for n in calls(gm) if n.kwargs], draws)
    if node is None:
        return False
    gone = draws.of(list(node.kwargs))
    node.kwargs = {k: v for k, v in node.kwargs.items() if k != gone}
    return True


def a_keyword_too_many(gm: GraphModule, draws: Draws) -> bool:
    node = draws.of(calls(gm))
    node.kwargs = {**node.kwargs, draws.of(("foo", "_x_base_index", "self", "out")): draws.of(NONSENSE)}
    return True


def nested_lists(gm: GraphModule, draws: Draws) -> bool:
    node = draws.of([n for n in calls(gm) if n.args])
    i = draws.below(len(node.args))
    node.args = (*node.args[:i], [[node.args[i]], (node.args[i],)], *node.args[i + 1 :])
    return True


def a_node_for_a_number(gm: GraphModule, draws: Draws) -> bool:
    found = [(n, i) for n in calls(gm) for i, a in enumerate(n.args) if isinstance(a, int)]
    if not found:
        return False
    node, i = draws.of(found)
    node.args = (*node.args[:i], next(iter(gm.graph.nodes)), *node.args[i + 1 :])
    return True


def a_number_out_of_range(gm: GraphModule, draws: Draws) -> bool:
    found = [(n, i) for n in calls(gm) for i, a in enumerate(n.args) if type(a) is int]
    if not found:
        return False
    node, i = draws.of(found)
    node.args = (*node.args[:i], draws.of((-99, 99, 0, 1 << 62, -(1 << 62))), *node.args[i + 1 :])
    return True


# -- wrappers --------------------------------------------------------------------------------------


def a_wrapper_of_something_else(gm: GraphModule, draws: Draws) -> bool:
    node = some(wrappers(gm), draws)
    if node is None:
        return False
    options = (None, "op", aten.add.Tensor, aten.add, print, aten.index_put_.default, node.prev, 3)
    node.args = (draws.of(options), *node.args[1:])
    return True


def a_base_that_is_not_there(gm: GraphModule, draws: Draws) -> bool:
    found = [(n, k) for n in wrappers(gm) for k in n.kwargs if k.endswith("_base_index")]
    if not found:
        return False
    node, key = draws.of(found)
    node.kwargs = {**node.kwargs, key: draws.of((-1, 7, "x", 1.5, None, node.prev))}
    return True


def no_bases(gm: GraphModule, draws: Draws) -> bool:
    node = some([n for n in wrappers(gm) if "_all_bases" in n.kwargs], draws)
    if node is None:
        return False
    rest = {k: v for k, v in node.kwargs.items() if k != "_all_bases"}
    bases = draws.of(("gone", None, [], [None], 5, [3], [[node.prev]], node.prev))
    node.kwargs = rest if bases == "gone" else {**rest, "_all_bases": bases}
    return True


def a_length_that_is_wrong(gm: GraphModule, draws: Draws) -> bool:
    found = [(n, k) for n in wrappers(gm) for k in n.kwargs if k.endswith("_length")]
    if not found:
        return False
    node, key = draws.of(found)
    node.kwargs = {**node.kwargs, key: draws.of((-1, 9, "x", None, node.prev))}
    return True


def results_of_another_number(gm: GraphModule, draws: Draws) -> bool:
    node = some([n for n in wrappers(gm) if isinstance(n.meta.get("val"), list | tuple)], draws)
    if node is None:
        return False
    value = list(node.meta["val"])
    node.meta["val"] = draws.of((value[:-1], [*value, value[-1]], value[::-1], [None] * len(value), []))
    return True


def a_triton_wrapper_of_nothing(gm: GraphModule, draws: Draws) -> bool:
    from torch._higher_order_ops.triton_kernel_wrap import triton_kernel_wrapper_functional

    node = draws.of(calls(gm))
    inner: Any = draws.of(({"x": node}, {"x": 1}, {}, None, {"y": node}))
    kwargs = {"kernel_idx": draws.of((0, 987654, "k", None)), "constant_args_idx": 0, "grid": [(1, 1, 1)]}
    more = {"tma_descriptor_metadata": {}, "kwargs": inner, "tensors_to_clone": draws.of((["x"], [], None))}
    with gm.graph.inserting_after(node):
        made = gm.graph.call_function(triton_kernel_wrapper_functional, (), {**kwargs, **more})
    made.meta["val"] = draws.of(({"x": node.meta.get("val")}, None, {}, node.meta.get("val")))
    return True


# -- nodes -----------------------------------------------------------------------------------------


def an_unknown_target(gm: GraphModule, draws: Draws) -> bool:
    node = draws.of(calls(gm))
    node.target = draws.of((print, abs, torch.add, aten.add, operator.add, torch.ops.higher_order.cond, len))
    return True


def another_operator(gm: GraphModule, draws: Draws) -> bool:
    nodes = calls(gm)
    draws.of(nodes).target = draws.of(nodes).target
    return True


def an_operator_in_place(gm: GraphModule, draws: Draws) -> bool:
    draws.of(calls(gm)).target = draws.of((aten.add_.Tensor, aten.index_put_.default, aten.copy_.default))
    return True


def a_method(gm: GraphModule, draws: Draws) -> bool:
    node = draws.of(calls(gm))
    with gm.graph.inserting_after(node):
        made = gm.graph.call_method(draws.of(("sum", "zero_", "nothing_like_it")), (node,))
    if draws.chance(60):
        made.meta["val"] = node.meta.get("val")
    if draws.chance(50):
        node.replace_all_uses_with(made, delete_user_cb=lambda user: user is not made)
    return True


def a_module(gm: GraphModule, draws: Draws) -> bool:
    node = draws.of(calls(gm))
    gm.add_module("inner", torch.nn.Identity())
    with gm.graph.inserting_after(node):
        made = gm.graph.call_module("inner", (node,))
    if draws.chance(60):
        made.meta["val"] = node.meta.get("val")
    if draws.chance(50):
        node.replace_all_uses_with(made, delete_user_cb=lambda user: user is not made)
    return True


def an_attribute_that_is_not_there(gm: GraphModule, draws: Draws) -> bool:
    node = draws.of(calls(gm))
    with gm.graph.inserting_before(node):
        made = gm.graph.create_node("get_attr", draws.of(("nowhere", "a.b.c", "forward")))
    node.args = (*node.args[:-1], made)
    return True


def an_item_out_of_range(gm: GraphModule, draws: Draws) -> bool:
    node = some([n for n in calls(gm) if n.target is operator.getitem], draws)
    if node is None:
        return False
    node.args = (node.args[0], draws.of((99, -99, "x", None, 1.5, slice(0, 1), node.args[0])))
    return True


def an_item_of_something_else(gm: GraphModule, draws: Draws) -> bool:
    node = some([n for n in calls(gm) if n.target is operator.getitem], draws)
    if node is None:
        return False
    node.args = (draws.of([next(iter(gm.graph.nodes)), 3, None, [1, 2]]), *node.args[1:])
    return True


def a_wrapper_used_as_a_tensor(gm: GraphModule, draws: Draws) -> bool:
    wrapper = some(wrappers(gm), draws)
    later = [n for n in calls(gm) if wrapper is not None and wrapper < n]
    if not later or wrapper is None:
        return False
    node = draws.of(later)
    node.args = (wrapper, *node.args[1:])
    return True


# -- the graph -------------------------------------------------------------------------------------


def no_output(gm: GraphModule, draws: Draws) -> bool:
    last = output(gm)
    if last.op == "output":
        gm.graph.erase_node(last)
    return last.op == "output"


def two_outputs(gm: GraphModule, draws: Draws) -> bool:
    last = output(gm)
    with gm.graph.inserting_before(last):
        gm.graph.create_node("output", "output", (draws.of(calls(gm)),))
    return True


def the_same_output_twice(gm: GraphModule, draws: Draws) -> bool:
    node = output(gm)
    if node.op != "output" or not isinstance(node.args[0], list | tuple):
        return False
    node.args = ((*node.args[0], *node.args[0]),)
    return True


def an_output_of_anything(gm: GraphModule, draws: Draws) -> bool:
    output(gm).args = (draws.of([draws.of(calls(gm)), None, 3, {"a": calls(gm)[-1]}, [[calls(gm)]], "x"]),)
    return True


def used_before_it_is_made(gm: GraphModule, draws: Draws) -> bool:
    first, last = calls(gm)[0], calls(gm)[-1]
    if first is last:
        return False
    first.args = (last, *first.args[1:])
    return True


def a_late_placeholder(gm: GraphModule, draws: Draws) -> bool:
    node = draws.of(calls(gm))
    with gm.graph.inserting_after(node):
        made = gm.graph.placeholder("late")
    made.meta["val"] = node.meta.get("val")
    return True


def a_node_of_another_graph(gm: GraphModule, draws: Draws) -> bool:
    other = Graph().placeholder("stranger")
    other.meta["val"] = draws.of(tensor_nodes(gm)).meta["val"]
    node = draws.of([n for n in calls(gm) if n.args])
    node.args = (other, *node.args[1:])
    return True


def an_erased_node(gm: GraphModule, draws: Draws) -> bool:
    node = draws.of([n for n in calls(gm) if n.args])
    with gm.graph.inserting_before(node):
        gone = gm.graph.call_function(aten.neg.default, (next(iter(gm.graph.nodes)),))
    gone.meta["val"] = node.meta.get("val")
    gm.graph.erase_node(gone)
    node.args = (gone, *node.args[1:])
    return True


def reinplaced_already(gm: GraphModule, draws: Draws) -> bool:
    try:
        return bool(reinplace(gm).reinplaced)
    except Exception:  # noqa: BLE001  (an earlier change made it impossible)
        return False


def a_copy_into_anything(gm: GraphModule, draws: Draws) -> bool:
    into, source = draws.of(calls(gm)), draws.of(calls(gm))
    with gm.graph.inserting_before(output(gm)) if draws.chance(80) else gm.graph.inserting_before(into):
        options = ((into, source), (), (into,), (source, 3), ([into], source), (None, source))
        made = gm.graph.call_function(aten.copy_.default, draws.of(options))
    made.meta["val"] = into.meta.get("val")
    return True


CHANGES: tuple[Change, ...] = tuple(
    change
    for name, change in list(globals().items())
    if callable(change)
    and getattr(change, "__module__", "") == __name__
    and getattr(change, "__annotations__", {}) == {"gm": "GraphModule", "draws": "Draws", "return": "bool"}
)

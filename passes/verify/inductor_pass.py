"""Inductor's own reinplacing on a bare graph, to be judged and timed beside ours.

The steps are those of ``torch.compile``'s post-grad stage, in its order: view scatters are brought into one
form, ``reinplace_inplaceable_ops_core`` decides, and decompositions write down what it decided.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch.fx import GraphModule, Node

from .. import _torch
from ..inductor._torch import fake_tensor_updater, inductor_fake_mode, inductor_reinplacing, inductor_step
from ..ops.schema import tensors
from ..ops.wrapper import first_result


class Inductor:
    """Inductor's reinplacing of one graph, step by step.

    Args:
        gm: a functional graph; changed in place, not recompiled.
    """

    def __init__(self, gm: GraphModule) -> None:
        self._gm = gm
        self._fake_mode = _torch.fake_mode_of([t for n in gm.graph.nodes for t in tensors(n.meta.get("val"))])
        self._updater = fake_tensor_updater(gm)

    def remove_noops(self) -> None:
        """Drop what Inductor takes for an identity, clones among it; it does so before it reinplaces."""
        with inductor_fake_mode(self._fake_mode), _torch.dispatching():
            inductor_step("remove_noop_ops")(self._gm.graph)

    def canonicalize(self) -> None:
        """Bring view scatters into the form that the decision knows, and fake values up to date."""
        with inductor_fake_mode(self._fake_mode), _torch.dispatching():
            inductor_step("canonicalize_view_scatter_ops")(self._gm.graph)
            self._updater.incremental_update()

    def decide(self) -> None:
        """Decide: operators are exchanged, wrappers marked with the tensors that they still clone."""
        with inductor_fake_mode(self._fake_mode):
            inductor_reinplacing(self._gm.graph)

    def write_scatters(self) -> None:
        """Write view scatters down again, in place or functional as they were decided."""
        with inductor_fake_mode(self._fake_mode), _torch.dispatching():
            inductor_step("decompose_generalized_scatter")(self._gm.graph)

    def keep_scatters(self) -> None:
        """Write those scatters that were not decided in place as the functional ones that they were.

        Inductor writes some as a clone and a write into it. Run node by node that clone has other strides
        and another offset, which lowering may mend: such a difference is none of the decision's.
        """
        graph = self._gm.graph
        with inductor_fake_mode(self._fake_mode), _torch.dispatching():
            target = inductor_step("_generalized_scatter")
            for node in list(graph.find_nodes(op="call_function", target=target)):
                with graph.inserting_before(node):
                    scatter = inductor_step("_decompose_scatter_functional")(graph, node)
                node.replace_all_uses_with(scatter)
                graph.erase_node(node)

    def correct_marks(self) -> None:
        """Unmark what torch says (from 2.13 on) needs no clone because it is a view of another dtype."""
        step = inductor_step("fix_auto_functionalized_dtype_views")
        if step is not None:
            step(self._gm.graph)

    def drop_identities(self) -> None:
        """Drop copies of an input onto itself, which lowering drops once the wrappers are taken apart."""
        graph = self._gm.graph
        for node in list(graph.find_nodes(op="call_function", target=torch.ops.aten.copy_.default)):
            destination = node.args[0]
            if isinstance(destination, Node) and _in_place(node.args[1]) is destination:
                node.replace_all_uses_with(destination)
                graph.erase_node(node)

    def write_wrappers(self) -> None:
        """Replace every wrapper by the clones that are left and the mutable operator."""
        with inductor_fake_mode(self._fake_mode):
            inductor_step("decompose_triton_kernel_wrapper_functional")(self._gm.graph)
            inductor_step("decompose_auto_functionalized")(self._gm.graph)


def inductor(gm: GraphModule) -> None:
    """Rewrite a functional graph as Inductor's reinplacing decides it.

    Wrappers stay, marked with what they clone (``meta["only_clone_these_tensors"]``), which is how our
    checks run them. Their decomposition holds offsets that are right in a compiled graph only, where the
    result of a functional operator starts at offset 0 of its storage.
    """
    _rewrite(gm, Inductor(gm))


def inductor_stack(gm: GraphModule) -> None:
    """Rewrite a functional graph as :func:`inductor` does, after Inductor's removal of no-ops."""
    stage = Inductor(gm)
    stage.remove_noops()
    _rewrite(gm, stage)


def _rewrite(gm: GraphModule, stage: Inductor) -> None:
    stage.canonicalize()
    stage.decide()
    stage.keep_scatters()
    stage.write_scatters()
    stage.correct_marks()
    stage.drop_identities()
    gm.recompile()


def _in_place(value: Any) -> Any:
    """Return the tensor that a v2 wrapper's result is, where the wrapper is marked to write in place."""
    while isinstance(value, Node) and value.target is operator.getitem:
        node, key = value.args
        if not isinstance(node, Node) or node.target is not _torch.hop("auto_functionalized_v2"):
            break
        item: Any = int(key) - first_result(node)  # type: ignore[arg-type]
        if item < 0 or item in node.meta["only_clone_these_tensors"]:
            break
        value = node.kwargs["_all_bases"][item]  # type: ignore[index]
    return value


def passes() -> dict[str, Callable[[GraphModule], Any]]:
    """Return the passes that can be named without a module."""
    return {"inductor": inductor, "inductor-stack": inductor_stack}

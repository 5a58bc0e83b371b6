"""A copy of a graph and of the subgraphs that it calls, which rewriting the original leaves as it is."""

from __future__ import annotations

import warnings

from torch.fx import Graph, GraphModule

from .. import _torch


def copied(gm: GraphModule) -> GraphModule:
    """Return a copy with nodes of its own; tensors of the module and values in ``meta`` are shared."""
    graph = Graph()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns of symbolic sizes among the arguments
        output = graph.graph_copy(gm.graph, {}, return_output_node=True)
    assert isinstance(output, tuple)
    graph.output(output[0]).meta.update(output[1].meta)
    copy: GraphModule = _torch.lazy_graph_module(gm, graph)
    for name, child in subgraphs(copy):
        setattr(copy, name, copied(child))
    return copy


def subgraphs(gm: GraphModule) -> list[tuple[str, GraphModule]]:
    """Return the subgraphs of a module by their names."""
    return [(name, child) for name, child in gm.named_children() if isinstance(child, GraphModule)]


def all_graphs(gm: GraphModule) -> list[GraphModule]:
    """Return a module and all subgraphs below it, each once."""
    return [module for module in gm.modules() if isinstance(module, GraphModule)]

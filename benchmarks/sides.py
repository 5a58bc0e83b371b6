"""The two sides that are timed: each rewrites a fresh copy of a graph from end to end."""

from __future__ import annotations

import time
import tracemalloc

from torch.fx import Graph, GraphModule

from pytest_reinplace.passes.reinplacing.run import reinplace_graph
from pytest_reinplace.passes.verify.inductor_pass import Inductor
from pytest_reinplace.passes.verify.optimum.slots import slots


def copied(gm: GraphModule) -> GraphModule:
    """Return a copy with nodes of its own; fake values are shared, no side changes them."""
    graph = Graph()
    output = graph.graph_copy(gm.graph, {}, return_output_node=True)
    assert isinstance(output, tuple)
    graph.output(output[0]).meta.update(output[1].meta)
    return GraphModule(gm, graph)


class Ours:
    """Our pass: model, decision, report and rewrite.

    Args:
        gm: a functional graph; changed in place.
    """

    name = "ours"

    def __init__(self, gm: GraphModule) -> None:
        self.gm = gm

    def rewrite(self) -> None:
        """Rewrite the graph; this is what is timed."""
        reinplace_graph(self.gm.graph)


class Stock:
    """Inductor's pass: canonicalization, the core, and every decomposition of what it decided.

    The updater of fake values, which Inductor builds for all of its post-grad passes, is not timed.

    Args:
        gm: a functional graph; changed in place.
    """

    name = "inductor"

    def __init__(self, gm: GraphModule) -> None:
        self.gm = gm
        self.core_seconds = 0.0
        self._steps = Inductor(gm)

    def rewrite(self) -> None:
        """Rewrite the graph; this is what is timed, and within it the core alone."""
        self._steps.canonicalize()
        start = time.process_time()
        self._steps.decide()
        self.core_seconds = time.process_time() - start
        self._steps.write_scatters()
        self._steps.correct_marks()
        self._steps.write_wrappers()


def copies_left(gm: GraphModule) -> int:
    """Count the copies in a rewritten graph: clones, functional operators, and copies into inputs."""
    count = 0
    for node in gm.graph.nodes:
        count += len(slots(node))
        if "copy_" in str(node.target) and node.args[0].op == "placeholder":
            count += node.args[0] is not node.args[1]
    return count


def peak_bytes(gm: GraphModule) -> int:
    """Return what our pass allocates at most on a fresh copy of a graph, in bytes of Python's memory."""
    side = Ours(copied(gm))
    tracemalloc.start()
    try:
        side.rewrite()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

"""The ``graph`` backend: all of Inductor up to its lowering, then the graph itself is run.

No C++ or Triton is generated, so a compilation takes milliseconds. AOTAutograd, the decompositions, the
joint-graph passes, the partitioner and the post-grad passes are Inductor's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..base import _torch

if TYPE_CHECKING:
    from torch.fx import GraphModule


def compile_graph(gm: GraphModule, example_inputs: Any, **kwargs: Any) -> Callable[[list[Any]], Any]:
    """Run the post-grad passes over a graph and return a boxed callable that interprets the result.

    Takes what Inductor's ``compile_fx_inner`` takes; of its keywords only ``is_inference`` matters.
    """
    from ..passes.verify import take_elements

    _torch.run_post_grad(gm, example_inputs, is_inference=bool(kwargs.get("is_inference")))
    take_elements(gm)
    gm.recompile()

    def run(args: list[Any]) -> Any:
        held = list(args)
        args.clear()  # the boxed calling convention: the caller gives up its references
        return gm.forward(*held)

    run._boxed_call = True  # type: ignore[attr-defined]
    return run

"""The seam to the private names of torch that run the joint and post-grad stages alone."""

from __future__ import annotations

import contextlib
import copy
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.fx import GraphModule

from pytest_reinplace.capture.followed import Following
from pytest_reinplace.passes._torch import private

_FX = "torch._inductor.compile_fx"
Note = Callable[[str, GraphModule, float], None]


@contextlib.contextmanager
def configured(options: Mapping[str, Any]) -> Iterator[None]:
    """Set options of Inductor's for the block."""
    with private("torch._inductor", "config").patch({**options, "force_disable_caches": True}):
        yield


def backend(note: Note, following: Following | None = None) -> Callable[..., Any]:
    """Return a compiler for ``torch.compile`` that runs the two stages, and graphs as they were before.

    Args:
        note: is told the stage, the graph that left it and the CPU seconds that it took.
        following: follows the graphs, in whose ``watching`` this is called.
    """
    compile_fx = private(_FX, "compile_fx")
    joint = _stage("_recursive_joint_graph_passes")

    def timed(gm: GraphModule, *args: Any, **kwargs: Any) -> Any:
        start = time.process_time()
        result = joint(gm, *args, **kwargs)
        note("joint", gm, time.process_time() - start)
        return result

    def inner(gm: GraphModule, inputs: Sequence[Any], **kwargs: Any) -> Any:
        kept = copy.deepcopy(gm)
        is_backward, is_inference = (bool(kwargs.get(key)) for key in ("is_backward", "is_inference"))
        name = "[bw 0/0]" if is_backward else "[fw 0/0]"
        followed = None if following is None else following.compiling(name, gm, kwargs)
        seconds = post_grad(gm, inputs, is_inference=is_inference)
        note("backward" if is_backward else "forward", gm, seconds)

        def run(args: list[Any]) -> Any:
            return kept(*args)

        run._boxed_call = True  # type: ignore[attr-defined]
        return run if followed is None else followed.wrapped(run)

    def compiled(gm: GraphModule, inputs: Sequence[Any]) -> Any:
        module = private("torch._inductor", "compile_fx")
        module._recursive_joint_graph_passes = timed
        try:
            return compile_fx(gm, inputs, inner_compile=inner)
        finally:
            module._recursive_joint_graph_passes = joint

    return compiled


def post_grad(gm: GraphModule, inputs: Sequence[Any], *, is_inference: bool) -> float:
    """Run the post-grad stage over a graph; returns the CPU seconds that it took."""
    mode = private("torch._dynamo.utils", "detect_fake_mode")(inputs)
    private(_FX, "view_to_reshape")(gm)
    with private("torch._inductor.virtualized", "V").set_fake_mode(mode), torch.no_grad():
        start = time.process_time()
        _stage("_recursive_post_grad_passes")(gm, is_inference=is_inference)
        return time.process_time() - start


def _stage(name: str) -> Any:
    """Return a stage as it is now: ``private`` keeps what it was before somebody followed it."""
    return getattr(sys.modules[private(_FX, name).__module__], name)

"""A callable's functional graph, as Inductor's post-grad passes get it, with what it is called with."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..base import _torch
from . import arguments, call, failure
from ._torch import eager_of
from .state import State
from .twin import leaves

if TYPE_CHECKING:
    from torch.fx import GraphModule

    from ..capture.capture import Capture

_ADVICE = "reinplace.trace(fn, ...) traces one graph: trace the parts before and after that line on their own"


@dataclasses.dataclass(frozen=True, slots=True)
class Traced:
    """A functional graph and what it is called with.

    Args:
        gm: the graph, with fake values as ``meta["val"]``, the lines of the program as
            ``meta["stack_trace"]``, wrappers in the place of operators that write, and a ``copy_`` at its
            end into each input that the program writes.
        inputs: one for each placeholder, in their order: parameters and buffers, which are lifted, sizes
            where they are symbolic, and the arguments. Tensors are copies, made before anything was
            written; those that share storage in the program share it.
        backward: the backward graph, where ``grad`` asked for it.
    """

    gm: GraphModule
    inputs: tuple[Any, ...]
    backward: Traced | None = None


def traced(
    capture: Capture,
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    *,
    dynamic: bool | None = None,
    grad: bool = False,
) -> Traced:
    """Trace a callable, by the stack as it is; ``Reinplace.trace`` says how."""
    __tracebackhide__ = True
    import torch

    fn = eager_of(fn)
    arguments.check(fn, args, kwargs)
    fast = call.compiled(fn, fullgraph=True, dynamic=dynamic)
    recorder = _Recorder(grad)
    # Without a gradient no graph runs, and nothing is written.
    state = State(call.tensors(fn, args, kwargs)) if grad else None
    try:
        with capture.handing_to(recorder.compile), torch.set_grad_enabled(grad), contextlib.suppress(_Done):
            result = fast(*args, **kwargs)
            if grad and recorder.found:
                _differentiate(result)
    except Exception as error:  # noqa: BLE001  (told, whatever it is; ``from None`` hides torch's frames)
        raise failure.told(error, _ADVICE) from None
    finally:
        if state is not None:
            state.restore()
    if not recorder.found:
        raise ValueError(
            f"expected a callable that computes with tensors, got {fn!r}, which compiles no graph"
        )
    first, *rest = recorder.found
    return dataclasses.replace(first, backward=rest[0] if rest else None)


class _Done(Exception):
    """All graphs that were asked for are known."""


class _Recorder:
    """Stands in the place of Inductor's compiler, and notes what it is handed and called with."""

    def __init__(self, grad: bool) -> None:
        self.found: list[Traced] = []
        self._grad = grad

    def compile(self, gm: GraphModule, example_inputs: Any, **kwargs: Any) -> Callable[[list[Any]], Any]:
        """Take what ``compile_fx_inner`` takes; return a boxed callable, which runs the graph if it must."""
        from ..passes.verify import cloned, copied

        _torch.prepare_for_post_grad(gm, example_inputs)
        gm.recompile()
        graph, is_last = copied(gm), bool(kwargs.get("is_backward")) or not self._grad

        def run(args: list[Any]) -> Any:
            held = list(args)
            args.clear()  # the boxed calling convention: the caller gives up its references
            self.found.append(Traced(graph, tuple(cloned(held))))
            if is_last:
                raise _Done
            return gm.forward(*held)

        run._boxed_call = True  # type: ignore[attr-defined]
        return run


def _differentiate(result: Any) -> None:
    """Run the backward of all results, with gradients of ones."""
    import torch

    tensors = [leaf for leaf in leaves(result).values() if isinstance(leaf, torch.Tensor)]
    outputs = [tensor for tensor in tensors if tensor.requires_grad]
    if not outputs:
        raise ValueError("expected a result that requires a gradient, for grad=True asks for the backward")
    torch.autograd.backward(outputs, [torch.ones_like(output) for output in outputs])

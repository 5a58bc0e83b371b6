"""The pass under test: which one a name means, and how it is called."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import inspect
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..base import _torch
from ..base.choices import PASSES
from ..base.nearest import nearest_attribute
from ..judge.graph_facts import V1, V2, mutable_arguments, op_of

if TYPE_CHECKING:
    from torch.fx import Graph, GraphModule


class PassError(ValueError):
    """A pass under test cannot be found, or is nothing that can be called on a graph."""


def is_of_a_pass(error: BaseException) -> bool:
    """Return whether a pass under test raised an error, or what torch made another error of."""
    inner = getattr(error, "inner_exception", None)
    if isinstance(inner, BaseException) and inner is not error:
        return is_of_a_pass(inner)
    notes = getattr(error, "__notes__", ())
    return isinstance(error, PassError) or any(note.startswith("raised by pass ") for note in notes)


@dataclasses.dataclass(frozen=True, slots=True)
class PassUnderTest:
    """What rewrites the graph.

    Args:
        name: ``"inductor"``, ``"exact"``, ``"post_grad"`` or where the pass comes from.
        call: rewrites a graph module in place, ``None`` for Inductor's own stage.
        is_told: whether it is called with ``is_inference``.
    """

    name: str
    call: Callable[..., Any] | None = None
    is_told: bool = False

    @property
    def is_exact(self) -> bool:
        """Whether it is our pass, which reports by itself, with our rules before it or without."""
        return self.name in ("exact", "post_grad")

    @property
    def stage(self) -> Literal["reinplace", "post_grad"]:
        """How much of Inductor's post-grad stage is ours, as ``inductor_options`` takes it."""
        return "post_grad" if self.name == "post_grad" else "reinplace"

    @property
    def is_stock(self) -> bool:
        """Whether it is the stack as it is."""
        return self.name == "inductor"

    def rewrite(self, gm: GraphModule, *, is_inference: bool = True) -> None:
        """Run a pass that is neither stock nor exact; wrappers that it left alone clone everything."""
        assert self.call is not None
        self.call(gm, **({"is_inference": is_inference} if self.is_told else {}))
        clone_untouched(gm.graph)


def find(name: str, folder: Path | None = None) -> PassUnderTest:
    """Return the pass that a name means; ``folder`` is searched for modules after ``sys.path``.

    Raises:
        PassError: there is no such pass; names the part of the name that failed.
    """
    return PassUnderTest(name) if name in PASSES else of(located(name, folder), name)


def located(name: str, folder: Path | None = None) -> Any:
    """Return what a name ``package.module:attribute`` means, as it is.

    Raises:
        PassError: there is no such thing; names the part of the name that failed.
    """
    module_name, colon, attribute = name.partition(":")
    if not colon:
        raise PassError(f"expected one of {', '.join(PASSES)} or package.module:attribute, got {name!r}")
    with _importable(folder):
        try:
            found: Any = importlib.import_module(module_name)
        except Exception as error:
            what = f"{type(error).__name__}: {error}{_place(error)}{_sought(error, module_name, folder)}"
            raise PassError(f"pass {name!r}: module {module_name!r} cannot be imported: {what}") from error
    for part in attribute.split("."):
        if not hasattr(found, part):
            near = nearest_attribute(part, found)
            raise PassError(f"pass {name!r}: {found!r} has no attribute {part!r}{near}")
        found = getattr(found, part)
    return found


def of(function: Any, name: str | None = None) -> PassUnderTest:
    """Return a pass for a callable over a ``GraphModule`` or a ``Graph``, or a ``CustomGraphPass``.

    What it is called with, and what it may return, is that of ``passes.verify.on_graph_module``. A
    ``CustomGraphPass`` that takes ``is_inference`` (Inductor's ``CustomInferenceAwareGraphPass``) is told.
    """
    from ..passes.verify import name_of, on_graph_module

    name = name or name_of(function)
    if not callable(function):
        raise PassError(f"pass {name!r}: expected a callable over a graph, got {function!r}")
    base = _torch.custom_graph_pass()
    if isinstance(function, type):
        try:
            function = function()
        except TypeError as error:
            raise PassError(
                f"pass {name!r}: the class cannot be called without arguments: {error}"
            ) from error
        if not callable(function):
            raise PassError(f"pass {name!r}: its instances are not callable")
    is_told = isinstance(function, base) and "is_inference" in inspect.signature(function).parameters
    return PassUnderTest(name, on_graph_module(function, name), is_told)


def _sought(error: Exception, module: str, folder: Path | None) -> str:
    """Return where a module that is missing itself was looked for; one that it imports is another matter."""
    if not isinstance(error, ModuleNotFoundError) or error.name not in (module, module.partition(".")[0]):
        return ""
    return "; it is looked for on sys.path" + ("" if folder is None else f" and in {folder}")


def _place(error: Exception) -> str:
    """Return the line that raised an error while a module was imported, if Python code did."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [
        f
        for f in frames
        if not f.filename.startswith("<") and f.filename not in (__file__, importlib.__file__)
    ]
    return f" (at {lines[-1].filename}:{lines[-1].lineno})" if lines else ""


def clone_untouched(graph: Graph) -> None:
    """Mark the wrappers that a pass left alone to clone everything; torch 2.11 would clone nothing."""
    for node in graph.nodes:
        if "only_clone_these_tensors" in node.meta:
            continue
        if op_of(node) == V1:
            names = mutable_arguments(node.args[0])
            node.meta["only_clone_these_tensors"] = [n for n in names if node.kwargs.get(n) is not None]
        elif op_of(node) == V2:
            node.meta["only_clone_these_tensors"] = list(range(len(node.kwargs["_all_bases"])))


@contextlib.contextmanager
def _importable(folder: Path | None) -> Iterator[None]:
    if folder is None or str(folder) in sys.path:
        yield
        return
    sys.path.append(str(folder))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(str(folder))

"""What ``assert_graph`` is: graphs held against their texts in files, and against patterns of lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .call.trace import Traced
from .golden import file as golden
from .golden import pattern as patterns
from .golden.text import Writer

if TYPE_CHECKING:
    from pathlib import Path

    from torch.fx import Graph, GraphModule

    from .session.updating import Came


class AssertGraph:
    """Asserts what graphs are, as text.

    Args:
        test_file: the file of the test; the texts lie beside it.
        folder: where names are told from.
        came: notes a text that came, and says what to make of it.

    ``is_used`` says whether it was called: a test that never does it asserts nothing.
    """

    def __init__(self, test_file: Path, folder: Path, came: Came) -> None:
        self._test_file, self._folder, self._came = test_file, folder, came
        self.is_used: bool = False

    def __call__(
        self,
        name: str,
        before: GraphModule | Graph | Traced,
        after: GraphModule | Graph | Traced | Callable[..., Any] | None = None,
    ) -> GraphModule:
        """Assert that a graph, and what becomes of it, are as a file says; returns the last graph.

        The file is ``test_fold.graphs/NAME.graph`` beside ``test_fold.py``, and ``--reinplace-update``
        writes it. Nodes are called by what they compute, symbols are letters; types have strides where they
        are not row-major.

        Args:
            name: the file's name; parametrized tests need one for each case.
            before: a graph, or what ``reinplace.trace`` returns; it is left as it is.
            after: what becomes of it: another graph, or a pass, which is run on a copy. It is called as
                ``passes.verify.on_graph_module`` says; ``post_grad.find("cat_of_split").apply`` is one.

        Raises:
            TypeError: what is given is no graph and no pass.
            ValueError: the name cannot be that of a file.
            AssertionError: the text is another one, or there is none yet.
            Exception: what the pass raises.
        """
        __tracebackhide__ = True
        self.is_used = True
        path = golden.path_of(self._test_file, name)
        first = _graph_module(before)
        last = None if after is None else _after(first, after)
        text = golden.text_of(first, last)
        expected, is_accepted = self._came(path, text)
        if text != expected and not is_accepted:
            raise AssertionError(self._told(path, expected, text))
        return first if last is None else last

    def _told(self, path: Path, expected: str | None, text: str) -> str:
        inside = path.is_relative_to(self._folder)
        where = path.relative_to(self._folder).as_posix() if inside else str(path)
        hint = "hint: pytest --reinplace-update writes what came; read it before you commit it"
        if expected is None:
            return f"{where} is missing\n{hint}; it would be\n\n{text}"
        return f"the graph is not as in {where}\n{golden.difference(expected, text)}\n{hint}"

    def matches(self, graph: GraphModule | Graph | Traced, pattern: str) -> Mapping[str, str]:
        """Assert that a graph has the lines of a pattern; returns what its captures stand for.

        A line is one of the graph's text, with its types or without any, and comes right behind the line
        before it. ``...`` alone stands for any number of lines, and inside a line for any text. ``{name}``
        stands for a name, everywhere the same; ``{_}`` for any. ``not: LINE`` says that there is no such line
        between the lines around it. Anything may come in front of the first line and behind the last.

        Raises:
            TypeError: it is no graph.
            ValueError: the pattern has no lines.
            AssertionError: the graph does not have them; says where the match stopped and what came nearest.
        """
        __tracebackhide__ = True
        self.is_used = True
        found = patterns.match(Writer().lines(_graph_module(graph)), pattern)
        if found.names is None:
            raise AssertionError(found.text)
        return found.names


def _graph_module(given: object) -> GraphModule:
    __tracebackhide__ = True
    import torch
    from torch.fx import Graph, GraphModule

    given = given.gm if isinstance(given, Traced) else given
    if isinstance(given, Graph):
        given = given.owning_module or GraphModule(torch.nn.Module(), given)
    if not isinstance(given, GraphModule):
        raise TypeError(
            "expected an fx.GraphModule, its Graph or what reinplace.trace(fn, ...) returns, got "
            f"{type(given).__name__}"
        )
    return given


def _after(before: GraphModule, after: Any) -> GraphModule:
    """Return another graph, or what a pass makes of a copy of the first."""
    __tracebackhide__ = True
    from torch.fx import Graph, GraphModule

    from .passes.verify import copied, on_graph_module

    if isinstance(after, GraphModule | Graph | Traced):
        return _graph_module(after)
    if not callable(after):
        raise TypeError(f"expected a graph or a pass as what becomes of it, got {type(after).__name__}")
    rewritten = copied(before)
    on_graph_module(after)(rewritten)
    return rewritten

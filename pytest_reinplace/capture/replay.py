"""The passes under test once more over a functional graph, outside of a compilation."""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base import _torch
from . import install, pass_under_test
from .pass_under_test import PassUnderTest
from .post_grad import REINPLACE, PostGrad

if TYPE_CHECKING:
    from torch.fx import GraphModule

    from ..passes.verify import Finding


@dataclasses.dataclass(frozen=True, slots=True)
class Stage:
    """One stage of the post-grad passes.

    Args:
        name: what Inductor calls it.
        pass_name: the pass under test, or a custom one of the configuration, that ran there; else empty.
    """

    name: str
    pass_name: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Replay:
    """All post-grad passes, the one under test among them.

    Args:
        under_test: the pass.
        patches: the configuration of Inductor to run them with.
        is_inference: whether the graph is one without a backward.
    """

    under_test: PassUnderTest
    patches: Mapping[str, Any]
    is_inference: bool

    def run(
        self,
        gm: GraphModule,
        inputs: Sequence[Any],
        after_stage: Callable[[Stage, GraphModule], None] | None = None,
    ) -> tuple[GraphModule, GraphModule]:
        """Return a graph with fake values, and what the passes make of it; ``gm`` stays as it is.

        Args:
            gm: a functional graph.
            inputs: real tensors.
            after_stage: called with each stage of the main graph and what it left.
        """
        from ..passes.verify import copied

        rewritten = copied(gm)
        functional: list[GraphModule] = []
        followed: dict[int, PostGrad] = {}

        def stage(graph: GraphModule, name: str, carry_out: Callable[[], Any], custom: Any) -> Any:
            if graph is rewritten and not functional:
                functional.append(copied(graph))
            if self.under_test.is_stock:
                result = carry_out()
            else:
                post_grad = PostGrad(self.under_test, graph, is_inference=self.is_inference)
                follower = followed.setdefault(id(graph), post_grad)
                result = follower.stage(name, carry_out)
            if graph is rewritten and after_stage is not None:
                after_stage(Stage(name, self._pass_of(name, custom)), copied(graph))
            return result

        with _torch.inductor_patched(self.patches), _torch.watching_post_grad(stage, alone=True):
            _torch.run_post_grad(rewritten, _torch.fake_inputs(inputs), is_inference=self.is_inference)
        return functional[0] if functional else gm, rewritten

    def finding(self, gm: GraphModule, inputs: Sequence[Any]) -> Finding:
        """Return how what the passes make of a graph differs from it."""
        from ..passes.verify import check

        return check(*self.run(gm, inputs), inputs)

    def guilty_stage(self, gm: GraphModule, inputs: Sequence[Any]) -> tuple[Stage, Finding] | None:
        """Return the first stage that leaves a graph which differs, and how; ``None`` where none does."""
        from ..passes.verify import check

        left: list[tuple[Stage, GraphModule]] = []
        functional, _ = self.run(gm, inputs, lambda stage, graph: left.append((stage, graph)))
        for stage, graph in left:
            found = check(functional, graph, inputs)
            if found.is_different:
                return stage, found
        return None

    def _pass_of(self, stage: str, custom: Any) -> str:
        """Return the name of the pass that ran at a stage, empty where it was one of Inductor's own."""
        from ..passes import ReinplacePass
        from ..passes.verify import name_of

        if custom is not None:
            return "exact" if isinstance(custom, ReinplacePass) else name_of(custom)
        return self.under_test.name if stage == REINPLACE and not self.under_test.is_stock else ""


def load(path: str) -> None:
    """Run a file that registers operators, unless it is loaded already."""
    name = Path(path).stem
    loaded = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    if path in loaded:
        return
    sys.path.insert(0, str(Path(path).parent))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(name, module)
    spec.loader.exec_module(module)


def _custom(names: Sequence[str]) -> Any:
    """Return the custom passes that names mean; one alone as itself, for torch 2.11 takes no list."""
    found = [pass_under_test.located(name, Path.cwd()) for name in names]
    made = [one() if isinstance(one, type) else one for one in found]
    return made if len(made) > 1 else made[0]


def main(
    gm: GraphModule,
    inputs: Sequence[Any],
    *,
    pass_name: str,
    is_inference: bool,
    options: Mapping[str, Any] | None = None,
) -> None:
    """Run the passes over a graph and say how the result differs; exits with 1 if it does.

    This is what the programs call that ``--reinplace-verify`` writes.
    """
    given = {
        name: _custom(value) if name in _torch.POST_GRAD_HOOKS else value
        for name, value in (options or {}).items()
    }
    patches = install.options(under_test := pass_under_test.find(pass_name, Path.cwd()), given)
    replay = Replay(under_test, patches, is_inference)
    functional, rewritten = replay.run(gm, inputs)
    found = replay.finding(gm, inputs)
    print(f"# before the passes\n{functional.graph}\n\n# after them\n{rewritten.graph}\n")
    print(
        {"same": "both do the same", "not-checked": f"not checked: {found.text}"}.get(
            found.status, found.text
        )
    )
    if found.is_different:
        raise SystemExit(1)

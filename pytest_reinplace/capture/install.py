"""Which Inductor configuration puts a pass under test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..base import _torch

if TYPE_CHECKING:
    from .pass_under_test import PassUnderTest

_POST, _OFF = "post_grad_custom_post_pass", "disabled_passes"
_EARLIER = (
    "pre_grad_custom_pass",
    "joint_custom_pre_pass",
    "joint_custom_post_pass",
    "post_grad_custom_pre_pass",
)
_AROUND_FUSION = ("_pre_fusion_custom_pass", "_post_fusion_custom_pass")
# From torch 2.15 on it writes in place before the stage in whose place a pass gets a functional graph.
CHUNKING: str = "slice_scatter_chunking"


def options(under_test: PassUnderTest, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration to compile with: the user's ``given`` one, with the pass added to it.

    A post-grad pass of the user's keeps its place: the pass under test then runs in the place of
    Inductor's reinplacing, which comes later. A pass of the user's at another place runs before ours, and so
    do those before and after fusion.
    """
    patches = {**given, "force_disable_caches": True}
    if under_test.is_stock:
        return patches
    if not under_test.is_exact:
        return {**patches, _OFF: _with_disabled(CHUNKING, given)}
    from ..passes import inductor_options

    for name, value in inductor_options(stage=under_test.stage).items():
        theirs = _in_force(name, given)
        if name == _OFF:
            patches[name] = _with_disabled(value, given)
        elif name in _AROUND_FUSION:
            patches[name] = theirs if isinstance(theirs, type(value)) else type(value)(theirs)
        elif name in _EARLIER:
            patches[name] = value if theirs is None else _chain(theirs, value)
        elif name != _POST or theirs is None:
            patches[name] = value
    return patches


def _with_disabled(names: str, given: Mapping[str, Any]) -> str:
    return ",".join(part for part in (_in_force(_OFF, given), names) if part)


def _in_force(name: str, given: Mapping[str, Any]) -> Any:
    return given[name] if name in given else _torch.inductor_setting(name)


def _chain(first: Any, second: Any) -> Any:
    """Return a pass that runs the passes ``first`` (one, or a list of them) and then ``second``."""

    def both(graph: Any) -> None:
        for one in first if isinstance(first, list | tuple) else (first,):
            one(graph)
        if type(second) not in map(type, first if isinstance(first, list | tuple) else (first,)):
            second(graph)

    return both

"""The smallest part of a miscompiled graph that is still miscompiled, as a program."""

from __future__ import annotations

import contextlib
import dataclasses
import operator
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..base import _torch
from .verified import Verified

if TYPE_CHECKING:
    from torch.fx import GraphModule

    from ..passes.verify import Finding
    from .replay import Replay

_HEAD = '''"""{headline}

python FILE runs the passes over the graph below. It exits with 1 while the result differs.
"""

{imports}import torch

from pytest_reinplace.replay import load, main
'''


def reproduced(
    graph_id: str, before: GraphModule, inputs: Sequence[Any], found: Finding, replay: Replay
) -> Verified:
    """Return a finding with a small program that shows it, and the stage that is to blame.

    Args:
        graph_id: how the graph is called.
        before: the functional graph.
        inputs: what it was called with.
        found: what is wrong.
        replay: the passes.
    """
    verified = Verified(graph_id, found.status, found.text, found.node, found.source)
    try:
        return _with_program(verified, before, inputs, found, replay)
    except Exception as error:  # noqa: BLE001  (the finding stands, whatever happens to its illustration)
        why = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        return _replaced(verified, no_program=why)


def _with_program(
    verified: Verified, before: GraphModule, inputs: Sequence[Any], found: Finding, replay: Replay
) -> Verified:
    from ..passes.verify import Parts, UnprintableError

    def still_fails(part: GraphModule, given: list[Any]) -> bool:
        with contextlib.suppress(Exception):  # a part that the passes do not take is none that shows anything
            again = replay.finding(part, given)
            return again.is_different and again.kind == found.kind
        return False

    smallest = Parts(before, inputs).smallest(still_fails)
    if smallest is None:
        return _replaced(
            verified, no_program="the passes alone, run over the graph again, do not reproduce it"
        )
    part, given = smallest
    guilty = replay.guilty_stage(part, given)
    if guilty is not None:
        stage, first = guilty
        verified = _replaced(
            verified,
            stage=stage.name,
            pass_name=stage.pass_name,
            node=first.node or found.node,
            source=first.source or found.source,
        )
    count = sum(node.op == "call_function" for node in part.graph.nodes)
    try:
        return _replaced(verified, program=program(verified, part, given, replay), nodes=count)
    except UnprintableError as error:
        return _replaced(verified, no_program=str(error))


def program(verified: Verified, part: GraphModule, inputs: Sequence[Any], replay: Replay) -> str:
    """Return the program."""
    from ..passes.verify import graph_lines, input_lines, registering_files

    headline = f"{verified.graph} {verified.text}".replace("\\", "\\\\").replace('"""', "'''")
    body = [*graph_lines(part), "", "", *input_lines(inputs), "", ""]
    used = [
        name for name in ("base64", "math", "operator", "zlib") if any(f"{name}." in line for line in body)
    ]
    imports = "".join(f"import {name}\n" for name in used) + ("\n" if used else "")
    lines = [_HEAD.format(headline=headline, imports=imports)]
    for name, path in registering_files(part).items():
        lines.append(
            f"load({path!r})  # registers {name}" if path else f"# import here what registers {name}"
        )
    chosen, left_out = _printable(replay.patches)
    if left_out:
        lines.append(f"# Inductor's options that are objects are left out: {', '.join(left_out)}")
    lines += ["", "", *body]
    named = f"pass_name={replay.under_test.name!r}, is_inference={replay.is_inference}, options={chosen!r}"
    lines += ['if __name__ == "__main__":', f"    main(graph(), inputs(), {named})"]
    return "\n".join(lines) + "\n"


def _printable(patches: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the options that can be written down, and the names of the others that the pass does not bring.

    Custom post-grad passes are written as the list of their names.
    """
    from ..passes import ReinplacePass
    from ..passes.verify import name_of

    hooks = ("pre_grad_custom_pass", "joint_custom_pre_pass", "joint_custom_post_pass")
    around_fusion = ("_pre_fusion_custom_pass", "_post_fusion_custom_pass")
    ours = ("force_disable_caches", "disabled_passes", *_torch.POST_GRAD_HOOKS, *hooks, *around_fusion)
    given = {name: value for name, value in patches.items() if name not in ours}
    plain: dict[str, Any] = {
        name: v for name, v in given.items() if v is None or isinstance(v, bool | int | float | str)
    }
    for hook in _torch.POST_GRAD_HOOKS:
        value = patches[hook] if hook in patches else _torch.inductor_setting(hook)
        several = value if isinstance(value, list | tuple) else [value]
        if custom := [one for one in several if one is not None and not isinstance(one, ReinplacePass)]:
            given[hook] = value
            if all(map(_is_importable, custom)):
                plain[hook] = [name_of(one) for one in custom]
    return plain, sorted(set(given) - set(plain))


def _is_importable(custom: Any) -> bool:
    """Return whether a custom pass, or its class, is what its name means."""
    from ..passes.verify import name_of

    module, _, path = name_of(custom).partition(":")
    try:
        found = operator.attrgetter(path)(sys.modules[module])
    except (AttributeError, KeyError):
        return False
    return found is custom or found is type(custom)


def _replaced(verified: Verified, **changes: Any) -> Verified:
    return dataclasses.replace(verified, **changes)

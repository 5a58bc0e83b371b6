"""The layouts that a value may come to have, and running its users on fake tensors with each of them.

Results are laid out anew one by one, and each of them may be refused later. So an operator that is given
several of them is given any mixture: its own result then has to have a layout that was looked at.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import torch
from torch.fx import Node
from torch.fx.node import map_arg

from ... import _torch
from ...memory.region import Region
from ...ops.schema import tensors
from ..facts.model import Model

REFUSED = object()  # what running an operator gives that does not run
_MOST_MIXTURES = 16  # an operator with more of them keeps its operands' layouts


def given(model: Model, user: Node, laid: dict[Node, Any]) -> dict[Node, Any]:
    """Return the operands of a user that are laid out anew, now or before, each with its new value."""
    found = {n: laid.get(n, model.relaid.get(n)) for n in user.all_input_nodes}
    return {n: value for n, value in found.items() if value is not None}


def run(model: Model, user: Node, laid: dict[Node, Any]) -> Any:
    """Run a user on fake tensors, some of them laid out anew; ``REFUSED`` where it does not run."""
    if model.fake_mode is None:
        return REFUSED
    args, kwargs = map_arg((user.args, user.kwargs), lambda n: laid.get(n, n.meta.get("val")))
    try:
        with _torch.expecting_refusal(), model.fake_mode, _torch.dispatching(), torch.no_grad():
            return user.target(*args, **kwargs)  # type: ignore[operator]
    except Exception:  # noqa: BLE001  (any refusal means: this user needs the old layout)
        return REFUSED


def works_with_any(model: Model, user: Node, laid: dict[Node, Any], result: Any) -> bool:
    """Return whether a user's result has a known layout whichever of its operands are laid out anew.

    Args:
        model: the model under construction.
        user: the operator.
        laid: what is about to be laid out anew.
        result: what the operator returns when all of its operands are.
    """
    new = given(model, user, laid)
    if len(new) < 2:
        return True
    written = user.meta.get("val")
    if user in model.relaid and is_alike(model, result, written):
        return False  # with all of them it would be laid out as written, and with some it would not
    known = [result, written, *model.tried.get(user, ())]
    choices = [(n.meta["val"], *model.tried.get(n, ()), value) for n, value in new.items()]
    if math.prod(map(len, choices)) > _MOST_MIXTURES:
        return False
    for mixture in itertools.product(*choices):
        found = run(model, user, dict(zip(new, mixture, strict=True)))
        if found is REFUSED or not any(is_alike(model, found, layout) for layout in known):
            return False
    return True


def is_alike(model: Model, a: Any, b: Any) -> bool:
    """Return whether two values have the same strides, tensor by tensor; those of dimensions of one, too."""
    one, two = list(tensors(a)), list(tensors(b))
    equal = model.geometry.equal
    return len(one) == len(two) and all(
        s.shape == t.shape
        and all(equal(n, m) for n, m in zip(Region.of(s).strides, Region.of(t).strides, strict=True))
        for s, t in zip(one, two, strict=True)
    )


def note(model: Model, laid: dict[Node, Any]) -> None:
    """Take new layouts over into the model."""
    model.relaid.update(laid)
    for node, value in laid.items():
        model.tried.setdefault(node, []).append(value)

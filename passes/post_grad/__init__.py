"""Rules of Inductor's joint and post-grad stages that are legal wherever they apply, one file each.

Each has a ``name`` and is used alone, ``find("cat_of_split").apply(gm)``, or inside Inductor, in the place
of Inductor's own rule, by ``inductor_options(stage="post_grad")``. Whatever is not known to be legal stays,
with the reason; every node that they make has its fake value. Must not know how a write in place is decided.
"""

from __future__ import annotations

import difflib
import importlib

from .rule import Applied, GraphPass, Refusal, Rule

__all__ = ["ORDER", "Applied", "GraphPass", "Refusal", "find"]

# In the order in which they run. Those of the joint stage see forward and backward in one graph.
JOINT: tuple[str, ...] = ("no_ops", "neutral")
POST_GRAD: tuple[str, ...] = (
    *("asserts", "cat_of_split", "split_of_cat", "cat_of_cat", "no_ops", "cumsum", "scatter"),
    *("constructors", "locality"),
)
LAST: tuple[str, ...] = ("wrappers",)  # behind reinplacing, for what that leaves
ORDER: tuple[str, ...] = (*JOINT, *(name for name in POST_GRAD if name not in JOINT), *LAST)


def find(name: str) -> Rule:
    """Return the rule of a name; its module is imported when it is asked for.

    Raises:
        KeyError: there is no such rule; the message lists them, and says which one is near.
    """
    if name not in ORDER:
        near = difflib.get_close_matches(name, ORDER, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise KeyError(f"expected one of the rules {', '.join(ORDER)}, got {name!r}{hint}")
    rule: Rule = importlib.import_module(f".{name}", __package__).RULE
    return rule

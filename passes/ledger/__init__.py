"""What each pass of a pipeline, and each rule in it, did to a graph.

This room knows how a graph changes while somebody else's passes run: it looks before and after, and believes
nothing that a pass says of itself. It must not know how any pass decides, and it changes no graph.
"""

from __future__ import annotations

from .application import Application
from .blame import OF, Blame, blamed
from .checking import checked, unchecked
from .given import inner_inputs, joint_inputs
from .ledger import Crash, Ledger, PassRun
from .recording import record, recorded
from .watch import Watch, watching

__all__ = [
    "OF",
    "Application",
    "Blame",
    "Crash",
    "Ledger",
    "PassRun",
    "Watch",
    "blamed",
    "checked",
    "inner_inputs",
    "joint_inputs",
    "record",
    "recorded",
    "unchecked",
    "watching",
]

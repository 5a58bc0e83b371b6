"""The one application that answers: which pass, which rule, which node made it wrong, or made this copy?"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from ..errors import ReinplaceError
from .application import Application
from .ledger import Crash, Ledger

_FIRST: dict[str, Callable[[Application], bool]] = {
    "contract": lambda a: a.is_wrong,
    "copies": lambda a: bool(a.copies_added),
}
_MOST: dict[str, Callable[[Application], float]] = {
    "nodes": lambda a: a.nodes,
    "seconds": lambda a: a.seconds,
}
OF = (*_FIRST, *_MOST, "crash", "matches:RULE")


@dataclasses.dataclass(frozen=True, slots=True)
class Blame:
    """Who is to blame.

    Args:
        of: for what, as it was asked.
        application: the application; ``None`` for a crash.
        crash: the pass that raised; ``None`` for anything else.
    """

    of: str
    application: Application | None = None
    crash: Crash | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data, for JSON."""
        return {
            "of": self.of,
            "application": None if self.application is None else self.application.to_dict(),
            "crash": None if self.crash is None else dataclasses.asdict(self.crash),
        }

    def __str__(self) -> str:
        return str(self.application if self.application is not None else self.crash)


def blamed(ledger: Ledger, of: str = "contract") -> Blame | None:
    """Return who is to blame, ``None`` where nobody is.

    Args:
        ledger: for ``"contract"`` one that was checked.
        of: ``"contract"``, the first application that broke it; ``"copies"``, the first that brought one;
            ``"nodes"`` or ``"seconds"``, the one that added the most nodes, or took longest; ``"crash"``, the
            pass that raised; ``"matches:RULE"``, the first application of a rule.

    Raises:
        ReinplaceError: there is no such ``of``, or the ledger was not checked.
    """
    if of == "crash":
        return None if ledger.crash is None else Blame(of, crash=ledger.crash)
    rule = of.removeprefix("matches:") if of.startswith("matches:") else None
    if rule is None and of not in (*_FIRST, *_MOST):
        raise ReinplaceError(f"expected {', '.join(OF)}, got {of!r}")
    if of in _MOST:
        most = max(ledger.applications, key=_MOST[of], default=None)
        return None if most is None or _MOST[of](most) <= 0 else Blame(of, most)
    if of == "contract" and ledger.applications and not any(a.finding for a in ledger.applications):
        raise ReinplaceError('expected a ledger that was checked: record(..., inputs=..., check="rules")')
    asked = _FIRST[of] if rule is None else lambda a: rule in (a.rule, a.pass_name)
    first = next((a for a in ledger.applications if asked(a)), None)
    return None if first is None else Blame(of, first)

"""``pytest-reinplace blame``: which pass, which rule, which node made a function wrong, or made a copy."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base import wording
from ..base.nearest import nearest
from ..base.visible import visible
from ..record import plain
from . import inputs
from .errors import CommandError
from .explain import check

if TYPE_CHECKING:
    from ..capture.followed import Followed
    from ..passes.ledger import Blame, Ledger

_MATCHES = "matches:"


def run(
    function: str,
    shapes: Sequence[str],
    maker: str | None,
    pass_name: str,
    of: str,
    device: str,
    form: str,
    *,
    dynamic: bool = False,
) -> int:
    """Print who is to blame; returns 1 where somebody is, 0 where nobody is.

    Args:
        function: ``module:function``.
        shapes: its arguments, each as ``float32[2,5]``.
        maker: ``module:function`` that returns them instead.
        pass_name: the pass under test.
        of: what for, as ``passes.ledger.blamed`` takes it.
        device: where the tensors of ``shapes`` are.
        form: ``"text"``, ``"verbose"`` with every application, or ``"json"``.
        dynamic: whether sizes are symbols.

    Raises:
        CommandError: function, inputs, pass or ``of`` are wrong, or the function raises.
    """
    fn = inputs.find(function, "function")
    arguments = inputs.made_by(maker) if maker is not None else inputs.described(shapes, device)
    check(function, fn, arguments)
    followed = _followed(function, fn, arguments, pass_name, of, dynamic=dynamic or None)
    found = [_judged(one, of) for one in followed]
    if form == "json":
        print(json.dumps({"of": of, "graphs": [_plain(*one) for one in found]}, indent=2))
    else:
        print(f"{function}: pass {pass_name}, backend graph")
        lines = [line for one in found for line in _lines(*one, is_verbose=form == "verbose")]
        for line in [*(lines or ["no pass changed anything"]), *_unmatched(found, of)]:
            print(visible(line))
    return int(any(blame is not None for _, _, blame in found))


def _followed(
    name: str,
    fn: Callable[..., Any],
    arguments: inputs.Arguments,
    pass_name: str,
    of: str,
    *,
    dynamic: bool | None,
) -> list[Followed]:
    from ..call.ledgers import follow
    from ..capture.pass_under_test import PassError
    from ..entry.run import importable

    try:
        with importable(Path.cwd()):
            followed, error = follow(
                fn,
                arguments.args,
                arguments.kwargs,
                pass_name,
                Path.cwd(),
                dynamic=dynamic,
                checks=of == "contract",
            )
    except PassError as wrong:
        raise CommandError(f"--pass: {wrong}") from None
    crashed = any(one.ledger.crash is not None for one in followed)
    if error is not None and not (of == "crash" and crashed):
        crash = next((f"; {one.ledger.crash}" for one in followed if one.ledger.crash is not None), "")
        first = next(iter(str(error).splitlines()), "")
        advice = "; --of crash says which pass and rule raised" if crashed else ""
        raise CommandError(f"{name} raised {type(error).__name__}: {first}{crash}{advice}") from error
    if not followed:
        raise CommandError(f"{name}: no graph was compiled, so there is nobody to blame")
    return followed


def _judged(one: Followed, of: str) -> tuple[Followed, Ledger, Blame | None]:
    from ..passes import ReinplaceError
    from ..passes.ledger import blamed

    if of == "contract" and one.inputs is None:
        return one, one.ledger, None
    try:
        return one, one.ledger, blamed(one.ledger, of)
    except ReinplaceError as error:
        raise CommandError(f"--of: {error}") from None


def _lines(one: Followed, ledger: Ledger, blame: Blame | None, *, is_verbose: bool) -> list[str]:
    if not (is_verbose or blame or ledger.applications):
        return []
    before, after = ledger.copies
    told = [
        wording.plural(len(ledger.applications), "application"),
        f"{len(ledger.passes)} passes",
        f"copies {before} -> {after}",
    ]
    lines = [f"{one.name} {', '.join(told)}"]
    if blame is not None:
        lines.append(f"  {blame}")
    if is_verbose:
        lines += [f"    {application}" for application in ledger.applications]
    if unchecked := plain.applied().unchecked_of(a.to_dict() for a in ledger.applications):
        lines.append(f"  {unchecked}")
    return lines


def _unmatched(found: Sequence[tuple[Followed, Ledger, Blame | None]], of: str) -> Iterator[str]:
    """Yield that a rule did not fire anywhere, and which did: its name may be misspelt."""
    if not of.startswith(_MATCHES) or any(blame is not None for _, _, blame in found):
        return
    rule = of.removeprefix(_MATCHES)
    names = sorted(
        {n for _, ledger, _ in found for a in ledger.applications for n in (a.rule, a.pass_name) if n}
    )
    yield f"{rule} fired nowhere{nearest(rule, names) if names else ''}"


def _plain(one: Followed, ledger: Ledger, blame: Blame | None) -> dict[str, Any]:
    return {
        "graph": one.name,
        "blame": None if blame is None else blame.to_dict(),
        "checked": any(a.finding for a in ledger.applications),
        **ledger.to_dict(),
    }

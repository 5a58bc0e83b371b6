"""The lines of a hard program that write, each drawn as text; ``""`` where none came of it."""

from __future__ import annotations

import re
from collections.abc import Callable

from .reads import fitting, number, smooth, whole
from .scope import Scope

_OPERATOR = re.compile(r"tidy\.|kernels\[")
_NAME = re.compile(r"\b[a-z]\d*\b")
_CHANGES = (
    "mul_(2)",
    "mul_(3)",
    "zero_()",
    "fill_(7)",
    "neg_()",
    "clamp_(max=40)",
    "clamp_(min=9)",
    "add_(1)",
    "cumsum_(0)",
)


def drawn(scope: Scope, *, is_training: bool = False) -> str:
    """Return a line that was not run yet."""
    if is_training and scope.chance(0.45):
        return _kept(scope, f"{{}} = {smooth(scope)}")
    line: str = scope.draw.choice(_KINDS)(scope)
    if is_training and _OPERATOR.search(line) and scope.asks_for_gradients(_NAME.findall(line)):
        return ""  # the operators have no backward
    if is_training and line and " = " not in line and scope.chance(0.3):
        return f"with torch.no_grad(): {line}"
    return line


def _kept(scope: Scope, line: str, *, written: bool = True) -> str:
    """Return a line with a new name, which it makes."""
    name = scope.new()
    (scope.written if written else scope.read).append(name)
    return line.format(name)


def _store(scope: Scope) -> str:
    into = scope.target()
    kind = scope.draw.random()
    if kind < 0.25:
        return f"{into}.{scope.of(*_CHANGES)}"
    value = fitting(scope, into)
    if kind < 0.55 and into.endswith("]"):
        return f"{into} {scope.of('=', '=', '+=', '*=')} {value}"
    if kind < 0.62:
        one, is_dense = scope.value(value), getattr(scope.value(into), "is_contiguous", bool)()
        if getattr(one, "shape", None) == scope.shape(into) and is_dense:
            return f"torch.add({value}, {fitting(scope, into)}, out={into})"
    return (
        f"{into}.{scope.of('copy_', 'copy_', 'add_', 'sub_', 'mul_')}({value})"
        if not value.isdigit()
        else (f"{into}.{scope.of('add_', 'mul_', 'fill_')}({value})")
    )


def _placed(scope: Scope) -> str:
    """Write where an index says."""
    into = scope.target()
    made = (f"torch.{call}, device=x.device)" for call in ("arange(1, 3", "tensor([1]"))
    places = [*scope.places] * 2 + ["i + 1", "[0, 2]", *made]
    at, rows = scope.draw.choice(places), "torch.tensor([[1], [3]], device=x.device)"
    if not scope.shape(into):
        return ""
    value = fitting(scope, f"{into}[{at}]")
    as_tensor = at if not at.startswith("[") else "i"
    wide = fitting(scope, f"{into}[{as_tensor}]")
    return str(
        scope.of(
            f"{into}[{at}] = {value}",
            f"{into}[{at}] = {value}",
            f"{into}[{at}] += {value}",
            f"{into}[{at}] *= 2",
            f"{into}[:, {at}] = {fitting(scope, f'{into}[:, {at}]')}",
            f"{into}[[0, 2]] = {into}[[2, 0]]",
            f"{into}.index_put_(({as_tensor},), {wide}, accumulate={scope.of(True, False)})",
            f"{into}.index_add_(0, {as_tensor}, {wide})",
            f"{into}.index_copy_(0, {as_tensor}, {wide})",
            f"{into}.index_fill_(0, {as_tensor}, {number(scope)})",
            f"{into}.scatter_add_(0, i, {wide})",
            f"{into}.scatter_(1, {rows}, {number(scope)})",
            f"{into}.scatter_(0, {rows}, {fitting(scope, f'{into}[0:2, 0:1]')})",
        )
    )


def _masked(scope: Scope) -> str:
    into = scope.target()
    mask = f"{into} > {scope.draw.randrange(90)}" if scope.chance(0.6) else f"{fitting(scope, into)} > 40"
    return str(
        scope.of(
            f"{into}[{mask}] = {number(scope)}",
            f"{into}[{mask}] *= 2",
            f"{into}.masked_fill_({mask}, {number(scope)})",
            f"{into}.masked_scatter_({mask}, {scope.draw.choice(scope.read)} * 2)",
            f"{into}.copy_(torch.where({mask}, {into}, {fitting(scope, into)}))",
        )
    )


def _tidy(scope: Scope) -> str:
    """Call an operator that reads before it writes."""
    one, two, other = scope.target(), scope.target(), scope.target()
    if not (scope.is_apart(one, [two, other]) and scope.is_apart(two, [other])) and scope.chance(0.8):
        two, other = "torch.zeros(3, device=x.device)", "None"
    value = fitting(scope, one)
    value = value if scope.shape(value) else scope.part(scope.draw.choice(scope.read))
    lists = [f"[{one}, {two}]", f"[{one}, {two}], {other}", f"[{one}]", f"[{one}], {two}", f"[{two}], None"]
    calls = [
        f"tidy.scale({one})",
        f"tidy.scale({one})",
        f"tidy.fill_of({one}, {value})",
        f"tidy.both({one}, {two})",
    ]
    calls += [f"tidy.doubled({value}, {one})", f"tidy.some({scope.of(*lists)})", f"tidy.both({one}, {one})"]
    calls += [f"tidy.doubled({one}, {one})", f"tidy.slot({one}, {fitting(scope, f'{one}[0]')}, k)"]
    if scope.chance(0.15):
        return _kept(scope, f"{{}} = tidy.counted({one}, {value})")
    return str(scope.draw.choice(calls))


def _harsh(scope: Scope) -> str:
    """Call an operator that writes before it reads: nothing that it reads may lie where it writes."""
    one, two = scope.target(), scope.target()
    if not scope.is_apart(one, [two]):
        two = "None"
    value = fitting(scope, one)
    if not scope.shape(value):
        value = scope.draw.choice(scope.read)
    if not scope.is_apart(value, [one, two]):
        value = f"({value} * 1)"
    calls = [f"kernels['bump']({one})", f"kernels['mix']({one}, {value})", f"kernels['rows']({one}, {value})"]
    calls += [f"kernels['late']({value}, {one}, None)", f"kernels['maybe']({two}, {one}, {value})"]
    if two != "None":
        calls += [f"kernels['many']([{one}, {two}], {value})", f"kernels['pair']({one}, {two}, {value})"]
    if scope.chance(0.2):
        return _kept(scope, f"{{}} = kernels['fresh']({one}, {value})")
    return str(scope.draw.choice(calls))


def _list(scope: Scope) -> str:
    into = [scope.target() for _ in range(scope.of(1, 2, 2, 3))]
    into = [t for i, t in enumerate(into) if scope.is_apart(t, into[:i])]  # else the order counts
    joined, values = ", ".join(into), ", ".join(fitting(scope, t) for t in into)
    if scope.chance(0.3):
        factor = scope.of(number(scope), f"{scope.draw.choice(scope.read)}.max()")
        return f"torch._foreach_{scope.of('mul_', 'add_')}([{joined}], {factor})"
    how = scope.of("add_", "mul_", "copy_", "sub_", "maximum_")
    return f"torch._foreach_{how}([{joined}], [{values}])"


def _compute(scope: Scope) -> str:
    return _kept(scope, f"{{}} = {whole(scope)}", written=scope.chance(0.7))


def _make(scope: Scope) -> str:
    like = scope.draw.choice([*scope.written, *scope.read])
    made = (f"torch.zeros_like({like})", f"torch.empty_like({like}).copy_({fitting(scope, like)})")
    return _kept(
        scope, f"{{}} = {scope.of(*made, f'{like}.clone()', f'{like} * 1', f'torch.full_like({like}, 3)')}"
    )


def _name(scope: Scope) -> str:
    """Name a view, which is written later, or returned."""
    return _kept(scope, f"{{}} = {scope.target()}")


def _retyped(scope: Scope) -> str:
    """Write through a view of another dtype."""
    into = scope.target()
    some = ["view(torch.int32)", "view(torch.uint8)", "view(torch.int16)"]
    if scope.chance(0.5):
        some = ["real", "imag", "view_as_real"]
    how = scope.of(*some)
    view = f"torch.view_as_real({into})" if how == "view_as_real" else f"{into}.{how}"
    view = scope.part(view)
    if not scope.shape(view):
        return ""
    return str(
        scope.of(f"tidy.scale({view})", f"tidy.fill_of({view}, {fitting(scope, view)})", f"{view}.mul_(2)")
    )


def _sized(scope: Scope) -> str:
    """Compute what has a size that only the numbers tell."""
    one = scope.draw.choice(scope.written)
    rows, kind = f"({one}[:, 0] > 40)", scope.draw.randrange(6)
    if len(scope.shape(one) or ()) < 2:
        rows = f"({one} > 40)"
    if kind < 2:
        name = scope.new()
        scope.places.append(name)
        return f"{name} = {rows}.nonzero().squeeze(1)" if kind else f"{name} = torch.unique(i)"
    if kind == 2:
        name = scope.new()
        part = scope.of(f"{one}[:, :{name}]", f"{one}[:{name}]")
        return _kept(
            scope,
            f"{name} = i[1].item(); torch._check({name} >= 1); torch._check({name} <= 4); {{}} = {part} + 1",
        )
    some = (
        f"{one}[{one} > 30]",
        f"{one}.masked_select({one} > 30)",
        f"{scope.target()}.nonzero()",
        f"{one}.unique()",
    )
    return _kept(scope, f"{{}} = {scope.of(*some)}", written=False)


_KINDS: tuple[Callable[[Scope], str], ...] = (
    *(_store,) * 6,
    *(_placed,) * 4,
    *(_masked,) * 1,
    *(_tidy,) * 4,
    *(_harsh,) * 2,
    *(_list,) * 1,
    *(_compute,) * 5,
    *(_make,) * 2,
    *(_name,) * 2,
    _retyped,
    _sized,
)

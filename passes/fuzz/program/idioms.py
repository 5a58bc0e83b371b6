"""What programs do in several lines, with other names and parts each time: what lies between writes counts.

In a template ``{t}`` and ``{u}`` are tensors that are written, ``{p}`` is a part, ``{n}`` a number, ``{c}`` a
change in place; ``{a}``, ``{b}`` and ``{d}`` are new names.
"""

from __future__ import annotations

from .scope import Scope

_CHANGES = ("mul_(2)", "clamp_(max=4)", "add_(1)", "neg_()", "copy_({t} * 2 + 1)", "fill_(7)")
_PARTS = (
    "[0:1]",
    "[1:3]",
    "[k:]",
    "[:, 1:3]",
    "[1:3, 1:3]",
    "[0]",
    "[:, 2]",
    ".diagonal()",
    "[k]",
    "[1:2, :2]",
)
_SIZE = "{a} = i[1].item(); torch._check({a} >= 1); torch._check({a} <= 4)"

_ANY: tuple[tuple[str, ...], ...] = (
    # A border is set, the whole is read in another order, and all is changed.
    ("{t}{p} = {n}", "{a} = {t} + {t}.flip(0)", "{t}.{c}"),
    ("{t}{p}.index_fill_(0, torch.tensor([1], device=x.device), {n})", "{a} = {t} + {t}.flip(0)", "{t}.{c}"),
    ("{t}.scatter_(1, torch.tensor([[1], [3]], device=x.device), {n})", "{a} = {t} + {t}.flip(0)", "{t}.{c}"),
    ("{t}.view(-1)[torch.tensor([1], device=x.device)] = {n}", "{a} = {t} - {t}.roll(1, 0)", "{t}.{c}"),
    ("{t}[1:4] = {t}[0:3] + 1", "{t}[0] = {t}[3] * 2"),
    # A store, and an operator that writes a block of the same tensor.
    ("{t}[0] = {n}", "tidy.scale({t}[1:3, :2])"),
    ("{t}.mul_(3)", "tidy.both({t}[3:], {t}[1:2, :2])"),
    ("{t}[3:5] = {n}", "tidy.scale({t}[1:3, 1:3])"),
    ("tidy.scale({t}[1:3])", "tidy.scale({t}[2:, 1:])", "{a} = {t} + 1"),
    ("{t}[0] = {t}[1] * 2", "tidy.some([{t}[:1], {t}[3:]], {t}[1:2, :2])"),
    ("tidy.scale({t}[1:][1:, 1])", "{a} = {t} + 1"),
    # What was computed before an operator writes is used after it.
    ("{a} = {t} * 2", "tidy.scale({t}{p})", "{b} = {a} + 1"),
    ("{a} = {t}[0:4] + {n}", "{t}[1:5] = {u}[0:4] * 3"),
    ("{a} = {t} * 2", "tidy.scale({a}.t()[:3])", "{a}[3:, 2:].add_({t}[3:, 2:] * 2)"),
    ("tidy.doubled({t}, {u})", "tidy.doubled({u}, {u})"),
    ("{a} = {t} + 1", "tidy.both({a}, {a})", "{b} = {a} * 2"),
    # Sizes and places that only data tell.
    (
        "{a} = ({t}[:, 0] > 40).nonzero().squeeze(1)",
        "{b} = {t} * 1",
        "{b}[{a}] = {b}[{a}] * 3",
        "{b}[{a}] += v",
    ),
    ("{a} = torch.unique(i)", "{t}.index_add_(0, {a}, {t}[{a}])", "{t}[{a}] = {t}[{a}] * 2"),
    (_SIZE, "{b} = ({t}[:, :{a}] * 2).contiguous()", "{d} = {b} + 1", "tidy.scale({b})"),
    (_SIZE, "{b} = {t}[:, :{a}] + 1", "tidy.scale({t})"),
    ("{b} = {t}[:, ::2].index_put((torch.tensor([1], device=x.device),), v[::2])", "{d} = {b}.nonzero()"),
    # Results that are views, and copies that keep two apart.
    ("{t}[k:].mul_(2)", "{b} = {t}[k:]"),
    ("{t}[:, 3] = {t}[:, 0] * 2", "{b} = {t}[:, :4]"),
    ("{b} = {t} + 1", "{a} = {b}.clone()", "{d} = {b}.clone()"),
    ("{u}.copy_({t}.flip(0))", "{t}.{c}"),
    ("{t}[[0, 2]] = {t}[[2, 0]]", "{t}.mul_(2)"),
    ("{t}[i + 2] = {n}", "{t}[(i + 2) // 2] = {t}[i] + {t}[i + 1]"),
    ("{a} = {t} + 1", "tidy.scale({a}.real[1:3])", "{b} = {a} * 2"),
    ("{a} = {t} + 1", "tidy.scale(torch.view_as_real({a})[:2, 1])", "{b} = {a} * 2"),
)
_TRAINING: tuple[tuple[str, ...], ...] = (
    ("{a} = w * ({t} * 2)", "with torch.no_grad(): {t}.{c}"),
    ("{a} = (w * {t}).cos().clone().sin()", "{b} = {a}.cos().clone().sin()"),
    ("{a} = w * v", "{b} = {a}.clone()", "{d} = {b}.exp().clone() * {a}"),
    ("{a} = w * {t}", "{t}.copy_({a}.detach() * 0.5)", "{b} = {a} * v"),
    ("with torch.no_grad(): {t}.mul_(0.5).add_({a0} * 0.5)", "{b} = (w - {t}).square()"),
)


def drawn(scope: Scope, *, is_training: bool = False) -> list[str]:
    """Return the lines of an idiom, none of which was run yet; its names are new."""
    template = scope.draw.choice(_TRAINING if is_training and scope.chance(0.6) else _ANY)
    one, other = scope.draw.choice(scope.written), scope.draw.choice(scope.written)
    names = {"t": one, "u": other, "p": scope.of(*_PARTS), "n": str(scope.draw.randrange(2, 9))}
    names |= {"a": scope.new(), "b": scope.new(), "d": scope.new(), "a0": other}
    names["c"] = scope.of(*_CHANGES).format(t=one)
    scope.recent = one
    return [line.format(**names) for line in template]

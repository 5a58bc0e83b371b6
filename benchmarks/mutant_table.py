"""The mutants of the post-grad rules: each drops one condition that makes a rule legal, or bends one fact.

Left out is what no run of a rule's own result can show: which values may be written later, what they are
copied for, and what the backward of a joint graph reads; whether a number fits into a dtype, since a graph
raises before as after where it does not; how many sums are exact, since others are some roundings apart,
which every check allows; and the strides of copies, which are a compiler's where no other value shares
their storage. Tests of the rules hold those.
"""

from __future__ import annotations

from typing import NamedTuple

CATS = ("cat_of_split", "split_of_cat", "cat_of_cat")
CONSTANTS = ("cumsum", "scatter")
COPIES = ("cat_of_split", "split_of_cat", "neutral", "no_ops")


class Mutant(NamedTuple):
    """One mutant.

    Args:
        file: the module of ``passes/post_grad`` that is changed.
        old: what is written there, once.
        new: what the mutant has instead.
        rules: the rules that it is looked for in; that of the module by default.
    """

    file: str
    old: str
    new: str
    rules: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The mutant on one line."""
        return " ".join(f"{self.file}: {self.old} -> {self.new}".split())


MUTANTS = (
    Mutant(
        "cat_of_split",
        "if ground.alike(cat, source) and ground.unite(cat, source):",
        "if ground.alike(cat, source):",
    ),
    Mutant(
        "cat_of_split",
        '[p.args for p in pieces] != [(split, i) for i in range(len(split.meta["val"]))]',
        "[]",
    ),
    Mutant(
        "cat_of_split", "viewed(split) if dim_of(split, rank) == dim_of(cat, rank) else None", "viewed(split)"
    ),
    Mutant("cat_of_split", "if ground.alike(cat, source) and", "if"),
    Mutant("split_of_cat", "return _SHOWN if len(pieces) > 1 or", "return _SHOWN if"),
    Mutant("split_of_cat", "or not all(map(_is_usual, pieces))", ""),
    Mutant("split_of_cat", "if not why and not ground.sharing.unite(cat, *same):", "if False:"),
    Mutant("split_of_cat", "if _dtype(part) != dtype:", "if False:"),
    Mutant("split_of_cat", "(why := _told_by(user, name))", '(why := "")'),
    Mutant("split_of_cat", "if source in copies:", "if False:"),
    Mutant("split_of_cat", "or not all(map(ground.geometry.equal, value.shape, piece.shape))", ""),
    Mutant("split_of_cat", "value.dim() != piece.dim() or", ""),
    Mutant(
        "split_of_cat",
        "cat.target is not aten.cat.default or len(cat.users) > 1",
        "cat.target is not aten.cat.default",
    ),
    Mutant("split_of_cat", "asks = schema.by_strides or schema.names_offset or", "asks ="),
    Mutant(
        "cat_of_cat", "if not ground.geometry.at_most(as_size(size), as_size(first.shape[dim])):", "if False:"
    ),
    Mutant("cat_of_cat", "or not ground.geometry.at_most(0, as_size(size))", ""),
    Mutant("cat_of_cat", "if any(ground.sharing.is_written(n, inner, outer) for n in parts):", "if False:"),
    Mutant("cat_of_cat", "if rank and len(dims) == 1 and starts", "if rank and starts"),
    Mutant("cat_of_cat", "if rank and len(dims) == 1 and starts", "if rank and len(dims) == 1"),
    Mutant("cat_of_cat", "set(inner.users) != {outer, part} or", ""),
    Mutant("cat_of_cat", "or set(part.users) != {outer}", ""),
    Mutant("cat_of_cat", "if first.dim() != val.dim():", "if False:"),
    Mutant("cat_of_cat", "if len(parts) != 2 or", "if len(parts) < 2 or"),
    Mutant("held", "whole, info = math.trunc(value),", "whole, info = round(value),", CONSTANTS),
    Mutant("held", "return bool(value)", "return int(value)", CONSTANTS),
    Mutant("cumsum", "if any(name in written(user) for user, name in uses(constant)):", "if False:"),
    Mutant(
        "cumsum",
        'return emit(node, aten.clone.default, (repeated,), {"memory_format": torch.contiguous_format})',
        "return repeated",
    ),
    Mutant("cumsum", 'return made if made.meta["val"].dtype == dtype else', "return made if True else"),
    Mutant("cumsum", "dim = dim_of(node, val.dim())\n    sums", "dim = 0\n    sums"),
    Mutant("cumsum", "value = rounded(value, source)", "pass"),
    Mutant("cumsum", "if val.dim() == 0:", "if False:"),
    Mutant("held", "or dtype.is_complex:", "or False:", CONSTANTS),
    Mutant("cumsum", "if val.dtype == torch.bool or val.dtype.is_complex:", "if False:"),
    Mutant(
        "neutral",
        'and dtype.is_floating_point and (str(value) == "-0.0") is (node.target is aten.sub.Tensor):',
        "and False:",
    ),
    Mutant("neutral", "if node.target in (aten.sub.Tensor, aten.div.Tensor) and not is_second:", "if False:"),
    Mutant("neutral", "and ground.unite(node, operand):", "and [ground]:"),
    Mutant("neutral", "if not ground.alike(node, operand, is_laid_out=False, is_retyped=True):", "if False:"),
    Mutant("neutral", " or base.get(node) in changed", ""),
    Mutant("neutral", "values[i] in (_UNKNOWN, neutral)", "values[i] != 2"),
    Mutant("neutral", "return value if is_real else int(bool(value))", "return value"),
    Mutant("neutral", 'or node.kwargs.get("alpha", 1) != 1', ""),
    Mutant("neutral", 'if node.meta["val"].dtype.is_complex and', "if False and"),
    Mutant("no_ops", "goes = is_view(node) or ground.unite(node, operand)", "goes = True"),
    Mutant(
        "no_ops",
        "operand is None or not ground.alike(node, operand, is_laid_out=source is not None)",
        "operand is None",
    ),
    Mutant("ground", "pairs += zip(new.stride(), old.stride(), strict=True)", "pass", COPIES),
    Mutant("ground", "(new.dtype != old.dtype and not is_retyped)", "False", COPIES),
    Mutant(
        "ground",
        "return all(self.geometry.equal(as_size(one), as_size(other)) for one, other in pairs)",
        "return [pairs]",
        COPIES,
    ),
    Mutant(
        "ground",
        "(begins_alike or copy not in self._offsets) and",
        "",
        COPIES,
    ),
    Mutant(
        "sharing",
        "return copy.is_returned and (self.is_returned or self.is_given)",
        "return copy.is_returned and self.is_given",
        COPIES,
    ),
    Mutant(
        "sharing",
        "return copy.is_returned and (self.is_returned or self.is_given)",
        "return copy.is_returned and self.is_returned",
        COPIES,
    ),
    Mutant("sharing", "if copy.writes or any(", "if any(", COPIES),
    Mutant(
        "sharing",
        "if copy.writes or any(since < at <= copy.read for at in self.writes):",
        "if copy.writes:",
        COPIES,
    ),
    Mutant("sharing", "self.is_returned |= other.is_returned", "pass", COPIES),
    Mutant("sharing", "self.writes += other.writes", "pass", COPIES),
    Mutant(
        "sharing", "storage.is_returned, storage.read = True, math.inf", "storage.read = math.inf", COPIES
    ),
    Mutant(
        "sharing",
        "any(first < at <= last for at in self._storage(node).writes)",
        "any(first < at <= last for at in ())",
        CATS,
    ),
)

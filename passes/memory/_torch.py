"""The seam to torch's sizes: what is known of symbols, and the functions that sizes are made with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sympy

from .._torch import private


def statically_known(shape_env: Any, expr: Any) -> bool:
    """Return whether a sympy relation holds for all sizes; never adds a guard."""
    if expr is True or expr is False or (getattr(expr, "is_Boolean", False) and expr in (True, False)):
        return bool(expr)
    if shape_env is None:
        return False
    answer = shape_env._maybe_evaluate_static(expr)
    if answer is None and (exact := _without_remainders(shape_env, expr)) is not None:
        return statically_known(shape_env, exact)
    return bool(answer == True)  # noqa: E712  (sympy.true)


def floor_division() -> Any:
    """Return what ``a // b`` of sizes is."""
    return private("torch.utils._sympy.functions", "FloorDiv")


def greater() -> Any:
    """Return what the greater one of two sizes is."""
    return private("torch.utils._sympy.functions", "Max")


def lesser() -> Any:
    """Return what the lesser one of two sizes is."""
    return private("torch.utils._sympy.functions", "Min")


def _without_remainders(shape_env: Any, relation: Any) -> Any:
    """Return a relation with ``a / b`` for each ``a // b`` known to leave no remainder, else ``None``.

    The guards say which do. Those of torch 2.15 do not say any more what follows from it for whole shapes.
    """
    floor_div, mod = floor_division(), private("torch.utils._sympy.functions", "Mod")
    difference = relation.lhs - relation.rhs if getattr(relation, "is_Relational", False) else None
    if difference is None or not difference.has(floor_div):
        return None
    exact = {
        division: division.args[0] / division.args[1]
        for division in difference.atoms(floor_div)
        if shape_env._maybe_evaluate_static(sympy.Eq(mod(*division.args), 0)) == True  # noqa: E712
    }
    numerator, denominator = sympy.fraction(sympy.together(difference.xreplace(exact)))
    if not exact or not (denominator.is_Integer and denominator > 0):
        return None
    return relation.func(sympy.expand(numerator), 0, evaluate=True)


def size_hint(shape_env: Any, expr: Any) -> int:
    """Return the hinted value of a symbolic size, 0 where there is none (unbacked sizes)."""
    if isinstance(expr, int):
        return expr
    values = getattr(shape_env, "backed_var_to_val", None)
    if values is None:
        values = getattr(shape_env, "var_to_val", {})
    value = expr.xreplace(dict(values))
    return int(value) if value.is_number else 0


def data_symbols(sizes: Iterable[Any]) -> frozenset[Any]:
    """Return the symbols in some sizes that are known only when a graph runs, not from its inputs' sizes."""
    symbolic = [n for n in sizes if not isinstance(n, int)]
    if not symbolic:
        return frozenset()
    return frozenset(private("torch.fx.experimental.symbolic_shapes", "free_unbacked_symbols")(symbolic))

"""The gate: a measurement held against what is recorded, or against another side of the same run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence

from ..compare.figure import change, grown, wording_of
from ..compare.limit import Limit
from ..record.figures import STOCK, Measurement
from ..record.paired import Ratio, ratio

Again = Callable[[], Measurement]

# How often what looks slower is compiled anew before it is called so. One compilation in a dozen of some
# programs is slower by a tenth; that all of three are so by chance is once in a thousand runs.
_ANEW = 2


@dataclasses.dataclass(frozen=True, slots=True)
class Ruling:
    """What the gate says of an entry.

    Args:
        excesses: what is over a limit, a sentence each: the entry fails.
        remarks: what a reader should know, a sentence each: stale baselines, figures that nobody judged.
        is_recorded: whether there is a baseline; where there is none, that is the one excess or remark.
    """

    excesses: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    is_recorded: bool = True


def unrecorded(text: str, *, is_limited: bool) -> Ruling:
    """Say that nothing is recorded: a limit that was given is then held against nothing, which fails."""
    excesses, remarks = ((text,), ()) if is_limited else ((), (text,))
    return Ruling(excesses, remarks, is_recorded=False)


def against_side(measurement: Measurement, name: str, limits: Sequence[Limit], again: Again) -> Ruling:
    """Hold the pass under test against another side of the same run.

    Args:
        measurement: what was measured.
        name: the other side.
        limits: how much more the pass under test may cost.
        again: compiles and measures anew, to confirm what looks slower.
    """
    other, where = measurement.sides[name], f"with {name}, now with {measurement.pass_name}"
    figures = {**other.exact}
    excesses, remarks = list(_exact_excesses(figures, measurement, limits, where)), list[str]()

    def slower(found: Measurement) -> Ratio | None:
        return ratio(found.tested.times, found.sides[name].times)

    for limit in limits:
        if limit.metric == "runtime":
            found = _confirmed(limit, 1.0, measurement, slower, again, f"that of {name}")
            excesses += found.excesses
            remarks += found.remarks
    return Ruling(tuple(excesses), tuple(remarks))


def against_baseline(
    measurement: Measurement,
    recorded: Mapping[str, Mapping[str, int]],
    limits: Sequence[Limit],
    again: Again,
    *,
    is_limited: bool = False,
) -> Ruling:
    """Hold the pass under test against what is recorded for the device.

    Exact figures are compared as they are. Runtime is compared by its ratio to Inductor's pass, which was
    interleaved with it both now and when the baseline was taken: two runs agree on that ratio where they do
    not on seconds. Held against each other are what it surely was not above, and what it surely is not below.

    Args:
        measurement: what was measured.
        recorded: the entry's sides in the file of baselines.
        limits: how much more it may cost.
        again: compiles and measures anew, to confirm what looks slower.
        is_limited: whether the limits were given.
    """
    name = measurement.pass_name
    old = recorded.get(name)
    if old is None:
        text = f"no baseline for pass {name}: record it with --reinplace-update"
        return unrecorded(text, is_limited=is_limited)
    exact = {metric: figure for metric, figure in old.items() if metric not in ("runtime_ns", "ratio_ppm")}
    excesses = list(_exact_excesses(exact, measurement, limits, "recorded"))
    remarks = list(_stale(exact, measurement))
    usual = old.get("ratio_ppm", 0) / 1e6
    for limit in limits:
        if limit.metric != "runtime":
            continue
        if not usual or name == STOCK:
            remarks.append(f"runtime was not judged: no runtime of {name} beside {STOCK} is recorded")
            continue
        text = f"that of {STOCK}, where at most {usual:.3f} is recorded"
        found = _confirmed(limit, usual, measurement, _to_stock, again, text)
        excesses += found.excesses
        remarks += found.remarks
    return Ruling(tuple(excesses), tuple(remarks))


def _to_stock(found: Measurement) -> Ratio | None:
    stock = found.sides.get(STOCK)
    return None if stock is None else ratio(found.tested.times, stock.times)


def _exact_excesses(
    old: Mapping[str, int], measurement: Measurement, limits: Sequence[Limit], where: str
) -> Iterator[str]:
    now = measurement.tested.exact
    for limit in limits:
        metric = limit.metric
        if metric in old and metric in now and limit.is_exceeded(old[metric], now[metric]):
            both = metric, old[metric], now[metric]
            yield f"{wording_of(metric)} {change(*both)} ({where}), {grown(*both)}; allowed is {limit.text}"


def _confirmed(
    limit: Limit,
    usual: float,
    measurement: Measurement,
    measure: Callable[[Measurement], Ratio | None],
    again: Again,
    text: str,
) -> Ruling:
    """Say why a runtime is over its limit, when all of several compilations are sure of it."""
    allowed = usual * (1 + float(limit.amount) / 100)
    first = measure(measurement)
    if first is None or first.low <= allowed:
        return Ruling()
    found = [first]
    for _ in range(_ANEW):
        last = measure(again())
        if last is None:
            return Ruling()
        found.append(last)
        if last.low <= allowed:
            seen = ", then ".join(f"{one.median:.3f}" for one in found[:-1])
            now = f"compiled and measured anew it was {last.median:.3f}"
            return Ruling(remarks=(f"runtime was {seen} times {text}; {now}",))
    low, high = min(one.low for one in found), max(one.high for one in found)
    median = min(one.median for one in found)
    excess = (
        f"runtime {100 * (median / usual - 1):+.1f} %: {median:.3f} times {text} (surely {low:.3f} to "
        f"{high:.3f}), compiled and measured {len(found)} times; allowed is {limit.text}"
    )
    return Ruling((excess,))


def _stale(old: Mapping[str, int], measurement: Measurement) -> Iterator[str]:
    """Yield which figures are better than recorded: until they are recorded, they may get worse again."""
    now = measurement.tested.exact
    better = [metric for metric in old if metric in now and now[metric] < old[metric]]
    if better:
        both = ", ".join(f"{wording_of(m)} {change(m, old[m], now[m])}" for m in better)
        yield f"better than recorded: {both}; record it with --reinplace-update"

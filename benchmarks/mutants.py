"""Which mutants of the post-grad rules are found, and by what: ``python -m benchmarks.mutants``.

Each mutant drops one condition that makes a rule legal. All run over the random programs of
``passes/fuzz/calls.py`` until two checks have found them: that of each application alone,
``record(check="rules")``, and that of the whole graph behind all rules, ``verify.check``, with the tolerance
that it has for what other rules changed. Nothing may be found of the rules as they are.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import logging
import multiprocessing
import sys
import types
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch.fx import GraphModule

from pytest_reinplace.passes import post_grad
from pytest_reinplace.passes.fuzz.calls import made
from pytest_reinplace.passes.ledger import recorded
from pytest_reinplace.passes.verify import check, copied

from .mutant_table import MUTANTS, Mutant

_HERE = Path(post_grad.__file__).parent
_MODULES = ("times", "sharing", "rule", "held", "ground", *post_grad.ORDER)
AS_IT_IS = Mutant("", "", "", post_grad.ORDER)
APPLICATION, GRAPH = "each application", "the whole graph"
CHECKS = APPLICATION, GRAPH
_WAVE = 60  # graphs that a process runs at a time: those found are left out of the next
Found = dict[str, tuple[int, str]]


def rules_of(mutant: Mutant) -> Mapping[str, Any]:
    """Return all rules, in their order, as they are with one mutant.

    Raises:
        ValueError: what the mutant changes is not there once.
    """
    package = types.ModuleType(f"{post_grad.__name__}_mutant")
    package.__path__ = []
    sys.modules[package.__name__] = package
    made: dict[str, Any] = {}
    for name in _MODULES:
        path = _HERE / f"{name}.py"
        text = path.read_text()
        if name == mutant.file:
            if text.count(mutant.old) != 1:
                raise ValueError(
                    f"expected once in {path.name}, found {text.count(mutant.old)}: {mutant.old}"
                )
            text = text.replace(mutant.old, mutant.new)
        module = types.ModuleType(f"{package.__name__}.{name}")
        module.__package__, module.__file__ = package.__name__, str(path)
        sys.modules[module.__name__] = module
        exec(compile(text, str(path), "exec"), module.__dict__)
        made[name] = module
    return {name: made[name].RULE for name in post_grad.ORDER}


class Hunt:
    """Looks for one mutant.

    Args:
        mutant: which one.
    """

    def __init__(self, mutant: Mutant) -> None:
        self._names = mutant.rules or (mutant.file,)
        self._all = rules_of(mutant)
        self.found: Found = {}
        self.changed = 0

    @property
    def is_over(self) -> bool:
        """Whether both checks have found it."""
        return len(self.found) == len(CHECKS)

    def look(self, seed: int, gm: GraphModule, inputs: Sequence[Any], usual: Mapping[str, str]) -> None:
        """Run its rules over a graph, and check what they do otherwise than those that are right."""
        texts = {name: _text(self._all[name], gm) for name in self._names}
        other = [name for name in self._names if texts[name] != usual[name]]
        self.changed += bool(other)
        if other and APPLICATION not in self.found:
            self._note(APPLICATION, seed, self._by_application(gm, inputs, other))
        if other and GRAPH not in self.found:
            self._note(GRAPH, seed, self._by_graph(gm, inputs))

    def _note(self, name: str, seed: int, told: str) -> None:
        if told:
            self.found[name] = seed, told

    def _by_application(self, gm: GraphModule, inputs: Sequence[Any], names: Iterable[str]) -> str:
        for name in names:
            ledger, error = recorded(copied(gm), self._all[name].apply, inputs=inputs, check="rules")
            if error is not None:
                return f"{name} raises {type(error).__name__}"
            for application in ledger.applications:
                if application.is_wrong and application.finding is not None:
                    return application.finding.text
        return ""

    def _by_graph(self, gm: GraphModule, inputs: Sequence[Any]) -> str:
        after = copied(gm)
        try:
            for rule in self._all.values():
                rule.apply(after)
            after.graph.lint()
        except Exception as error:  # noqa: BLE001  (found, whatever it is)
            return f"raises {type(error).__name__}"
        found = check(gm, after, inputs)
        return found.text if found.is_different else ""


def _text(rule: Any, gm: GraphModule) -> str:
    after = copied(gm)
    try:
        rule.on_graph(after.graph)
        after.graph.lint()
    except Exception as error:  # noqa: BLE001  (another text)
        return f"raises {type(error).__name__}"
    return str(after.graph)


def hunted(seeds: Sequence[int], mutants: Sequence[Mutant] = MUTANTS) -> list[tuple[Found, int]]:
    """Return what each check found of each mutant first, and in how many graphs it did something else.

    The last one is the rules as they are.
    """
    with warnings.catch_warnings(), _without_logs():
        warnings.simplefilter("ignore")
        return _hunted(seeds, mutants)


@contextlib.contextmanager
def _without_logs() -> Iterator[None]:
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def _hunted(seeds: Sequence[int], mutants: Sequence[Mutant]) -> list[tuple[Found, int]]:
    hunts, right = [Hunt(mutant) for mutant in mutants], Hunt(AS_IT_IS)
    for seed in seeds:
        gm, inputs = made(seed)
        right.look(seed, gm, inputs, dict.fromkeys(post_grad.ORDER, str(gm.graph)))
        usual = {name: _text(post_grad.find(name), gm) for name in post_grad.ORDER}
        for hunt in hunts:
            if not hunt.is_over:
                hunt.look(seed, gm, inputs, usual)
    return [(hunt.found, hunt.changed) for hunt in [*hunts, right]]


def _merged(parts: Iterable[list[tuple[Found, int]]]) -> list[tuple[Found, int]]:
    """Put together what processes found of the same mutants."""
    total: list[tuple[Found, int]] = []
    for part in parts:
        if not total:
            total = [({}, 0) for _ in part]
        for i, (found, changed) in enumerate(part):
            both = [*total[i][0].items(), *found.items()]
            least = {name: min(one for n, one in both if n == name) for name, _ in both}
            total[i] = least, total[i][1] + changed
    return total


def _all(seeds: Sequence[int], jobs: int) -> list[tuple[Found, int]]:
    """Hunt in waves of processes; those that are found by all checks are left out of the next."""
    total: list[tuple[Found, int]] = [({}, 0) for _ in range(len(MUTANTS) + 1)]
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(jobs, mp_context=context) as processes:
        for start in range(0, len(seeds), _WAVE * jobs):
            alive = [i for i in range(len(MUTANTS)) if len(total[i][0]) < len(CHECKS)]
            wave = seeds[start : start + _WAVE * jobs]
            shards = [wave[i::jobs] for i in range(jobs)]
            mutants = [MUTANTS[i] for i in alive]
            for part in processes.map(hunted, shards, [mutants] * jobs):
                for i, one in zip([*alive, -1], part, strict=True):
                    total[i] = _merged([[total[i]], [one]])[0]
            done = sum(APPLICATION in found for found, _ in total[:-1])
            print(f"{start + len(wave)} graphs, {done} found", file=sys.stderr, flush=True)
    return total


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns 1 where the rules as they are are wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants", description=__doc__)
    parser.add_argument("--graphs", type=int, default=10000, help="how many (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: %(default)s)")
    options = parser.parse_args(argv)
    seeds = range(options.seed, options.seed + options.graphs)
    *results, right = _all(seeds, options.jobs)
    for mutant, (found, changed) in zip(MUTANTS, results, strict=True):
        line = [f"{name}: {found[name][0]}" if name in found else f"{name}: no" for name in CHECKS]
        print(f"{'; '.join(line)} ({changed} graphs differ)  {mutant.name}")
    for name in CHECKS:
        print(f"{sum(name in found for found, _ in results)} of {len(MUTANTS)} mutants found by {name}")
    for name, (seed, told) in right[0].items():
        print(f"WRONG as it is, {name}, seed {seed}: {told}")
    return 1 if right[0] else 0


if __name__ == "__main__":
    sys.exit(main())

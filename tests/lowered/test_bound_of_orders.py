"""The lower bound against every order of small random programs, each value released as soon as it can be.

``REINPLACE_ORDERS=5000 pytest tests/lowered/test_bound_of_orders.py`` tries so many programs.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import random
from collections.abc import Sequence

from .test_program import run, tensor

_COUNT = int(os.environ.get("REINPLACE_ORDERS", "150"))


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A kernel that writes one new value."""

    reads: tuple[str, ...]
    writes: str


@dataclasses.dataclass(frozen=True)
class Small:
    """A program: kernels in an order that works, bytes of all values, inputs that it releases, results."""

    kernels: tuple[Kernel, ...]
    nbytes: dict[str, int]
    given: tuple[str, ...]
    results: tuple[str, ...]

    @classmethod
    def random(cls, seed: int) -> Small:
        choose = random.Random(seed)
        given = tuple(f"arg{i}_1" for i in range(choose.randint(0, 3)))
        nbytes = {name: 4 * choose.randint(1, 16) for name in given}
        kernels: list[Kernel] = []
        for i in range(choose.randint(1, 5)):
            reads = choose.sample(sorted(nbytes), choose.randint(0, min(2, len(nbytes))))
            kernels.append(Kernel(tuple(reads), f"buf{i}"))
            nbytes[f"buf{i}"] = 4 * choose.randint(1, 16)
        made = [one.writes for one in kernels]
        return cls(tuple(kernels), nbytes, given, tuple(choose.sample(made, choose.randint(1, len(made)))))

    def text(self, seed: int) -> list[str]:
        """Return it as Inductor writes programs; what is not needed any more is released some lines later."""
        choose = random.Random(seed)
        lines = [f"{', '.join(self.given)}, = args"] if self.given else []
        lines.append("args.clear()")
        dead, gone = [name for name in self.given if self._last(name) < 0], set[str]()
        for i, one in enumerate(self.kernels):
            count = self.nbytes[one.writes] // 4
            lines.append(f"{one.writes} = empty_strided_cpu(({count}, ), (1, ), torch.float32)")
            lines.append(f"kernel({', '.join((*one.reads, one.writes))})")
            dead += [name for name in self.nbytes if self._last(name) == i]
            for name in [name for name in dead if name not in gone and choose.random() < 0.6]:
                lines.append(f"del {name}")
                gone.add(name)
        return [*lines, f"return ({', '.join(self.results)}, )"]

    def _last(self, name: str) -> int:
        """Return the number of the last kernel that needs a value; that of none for a result."""
        uses = [i for i, one in enumerate(self.kernels) if name in (*one.reads, one.writes)]
        return len(self.kernels) if name in self.results else max(uses, default=-1)

    def least(self) -> int:
        """Return the least peak of all orders, above the inputs."""
        return min(self._peak(order) for order in itertools.permutations(self.kernels) if self._works(order))

    def _works(self, order: Sequence[Kernel]) -> bool:
        known = set(self.given)
        for one in order:
            if not known.issuperset(one.reads):
                return False
            known.add(one.writes)
        return True

    def _peak(self, order: Sequence[Kernel]) -> int:
        def live(held: set[str], later: Sequence[Kernel]) -> set[str]:
            needed = {name for one in later for name in one.reads}
            return {name for name in held if name in needed or name in self.results}

        peak, before = 0, sum(self.nbytes[name] for name in self.given)
        held = live(set(self.given), order)
        for i, one in enumerate(order):
            held.add(one.writes)
            peak = max(peak, sum(self.nbytes[name] for name in held) - before)
            held = live(held, order[i + 1 :])
        return peak


def test_no_order_holds_less_than_the_bound() -> None:
    exact = lower = 0
    for seed in range(_COUNT):
        program = Small.random(seed)
        inputs = tuple(
            tensor(i + 1, program.nbytes[name] // 4, storage=program.nbytes[name])
            for i, name in enumerate(program.given)
        )
        text = program.text(seed)
        found = run(*text, inputs=inputs, released=frozenset(range(1, len(inputs) + 1)))
        least = program.least()
        assert found.bound <= least <= found.peak, (seed, text)
        exact += found.bound == least
        lower += least < found.peak
    assert exact > _COUNT // 3  # it says something
    assert lower > _COUNT // 10  # and there was an order to be found
    print(f"{exact} of {_COUNT} bounds are reached")

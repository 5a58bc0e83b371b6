"""A generated program, run on tensors without memory: every allocation, and when it is released.

Nothing is predicted. Python runs the program that Inductor has written, loops and branches included, so that
what is reused, deleted or held is what it is when kernels run, too. What a call into a library allocates for
itself is not seen here; see :mod:`.workspace`.
"""

from __future__ import annotations

import dataclasses
import re
import weakref
from collections.abc import Sequence
from typing import Any

from . import _torch
from .allocation import Allocation, Level, Origin, Taken
from .bound import Needed, bound, reached
from .called import Call, Given, Program
from .lines import Lines

_FILE = "<program of Inductor>"
_ASSIGNED = re.compile(r"\s*([\w.\[\], ()]+?) = ")
_RENAMED = re.compile(r"\s*(\w+) = (\w+(?:\[\d+\])?)(?:; del .*)?$")
_UNPACKED = re.compile(r"\s*([\w, ]+?),? = args$")
_TURNS = 2  # so many times a condition holds, where nobody knows how often it does
_TRIED = 8  # so many of its conditions are tried both ways
_PATHS = 64
_CPP = "CppWrapperCodeCache"
_UNNAMED = "(no name)"


class ProgramError(RuntimeError):
    """A generated program cannot be run without its kernels; says why."""


class UntoldError(ProgramError):
    """A call does not tell a number that its program asks for, or a size that depends on data."""


def taken(call: Call, device: str = "cpu") -> Taken:
    """Return the memory of one kind of device that a program takes in a call that was made.

    Raises:
        ProgramError: there is no Python wrapper, an operator does not say what it returns, or other lines
            ran.
    """
    run = _Run(call, call.answers, device, is_known=True)
    if call.lines and run.lines != list(call.lines):
        raise ProgramError("without its kernels it goes another way than it went in the real call")
    return run.taken()


def possible(program: Program, inputs: Sequence[Any], device: str = "cpu") -> Taken:
    """Return the memory that a program takes where no call tells its conditions: on the way that takes most.

    Args:
        program: the program.
        inputs: what it would be called with, as ``Call`` has them.
        device: the kind of device whose memory counts.

    Raises:
        ProgramError: as for ``taken``; or what it allocates depends on numbers that kernels compute.
    """
    ways: list[tuple[bool, ...]] = [()]
    best, count, all_paths = None, 0, True
    while ways and count < _PATHS:
        way = ways.pop()
        run = _Run(Call(program, tuple(inputs)), way, device, is_known=False)
        found, count = run.taken(), count + 1
        best = found if best is None or found.peak > best.peak else best
        more = range(len(way), min(len(run.answers), _TRIED))
        ways += [(*run.answers[:i], not run.answers[i]) for i in more]
        all_paths = all_paths and len(run.answers) <= _TRIED
    assert best is not None
    return dataclasses.replace(best, paths=count, all_paths=all_paths and not ways)


@dataclasses.dataclass(slots=True)
class _Storage:
    """A storage that lives: its number among what the program takes, and how many tensors hold it."""

    number: int
    holders: int = 0


class _Run:
    """One way through a program.

    Args:
        call: the program, and what it is called with.
        answers: what its first conditions are.
        device: the kind of device whose memory counts.
        is_known: whether these are all.
    """

    def __init__(self, call: Call, answers: Sequence[Any], device: str, *, is_known: bool) -> None:
        self._device = device
        self.answers: list[Any] = list(answers)
        self.lines: list[int] = []
        self._is_known = is_known
        self._results = list(call.results)
        self._program = call.program
        self._text = call.program.text.splitlines()
        self._levels: list[Level] = []
        self._found: list[Allocation] = []
        self._storages: dict[int, _Storage] = {}
        self._names: dict[str, int] = {}
        self._views: list[tuple[int, str]] = []  # by the last operator of a line; others make operands
        self._needed: list[Needed] = []
        self._pools: set[int] = set()
        self._asked = self._level = self._moment = 0
        self._is_over = False
        self._run(call)

    def _run(self, call: Call) -> None:
        import torch

        if _CPP in self._program.text:
            raise ProgramError("C++ programs (cpp_wrapper) are not supported: only Python programs are run")
        if "def call(" not in self._program.text:
            raise ProgramError("Inductor has kept no program of it")
        names = _torch.loaded(self._program.text, _FILE, self._need, self._pool)
        mode = _torch.fake_mode()
        for name, value in call.program.constants.items():
            names[name] = mode.from_tensor(value) if isinstance(value, torch.Tensor) else value
        constants = [one for one in names.values() if isinstance(one, torch.Tensor)]
        self._constants = {_torch.storage_key(one) for one in constants}
        following = Lines(lambda code: code.co_filename == _FILE, self._step)
        try:
            with torch.no_grad(), mode:
                given, held = self._given(call)
                with _torch.dispatching(self._dispatched), following:
                    result = names["call"](given)
                self._name_views()
        except ProgramError:
            raise
        except Exception as error:
            line = self._text[self.lines[-1] - 1].strip() if self.lines else "its first line"
            raise ProgramError(f"{line}: {type(error).__name__}: {str(error).strip()}") from error
        returning = [i for i, level in enumerate(self._levels) if level.text.startswith("return")]
        self._need(result, returning[-1] if returning else None)
        self._is_over = True  # what is returned, and what the caller holds, is not released by the program
        del result, held

    def _given(self, call: Call) -> tuple[list[Any], list[Any]]:
        """Return what the program is called with, and what of it somebody else holds."""
        import torch

        bases: dict[int, Any] = {}
        made: list[Any] = []
        for value in call.inputs:
            if not isinstance(value, Given):
                made.append(value)
                continue
            if value.address not in bases:
                bases[value.address] = torch.empty(value.nbytes, dtype=torch.uint8, device=value.device)
            empty = torch.empty(0, dtype=value.dtype, device=value.device)
            base = bases[value.address].untyped_storage()
            made.append(empty.set_(base, value.offset, value.size, value.stride))
        kept = {address: base for address, base in bases.items() if address not in call.released}
        for i, (value, tensor) in enumerate(zip(call.inputs, made, strict=True)):
            if isinstance(value, Given):
                self._hold(tensor, i, is_input=True)
        for base in kept.values():
            self._hold(base, is_input=True)
        return made, list(kept.values())

    def taken(self) -> Taken:
        """Return what the program took."""
        names = self._input_names()
        inputs = [dataclasses.replace(o, name=names.get(o.name, o.name)) for o in self._found if o.is_input]
        allocations = [self._with_origin(one) for one in self._found if not one.is_input]
        need = bound(self._found, self._needed, self._levels)
        return Taken(tuple(allocations), tuple(inputs), tuple(self._levels), need=need)

    def _input_names(self) -> dict[str, str]:
        """Return how the program calls what it is given, by what we called it."""
        texts = (self._text[line - 1] for line in self.lines)
        found = next((found for text in texts if (found := _UNPACKED.match(text))), None)
        return {f"input {i}": name.strip() for i, name in enumerate(found[1].split(","))} if found else {}

    def _with_origin(self, one: Allocation) -> Allocation:
        origins = [self._program.origins.get(name) for name in (one.name, *one.later)]
        source = self._program.source(one.line)
        found = next((origin for origin in origins if origin and origin.nodes), Origin((), source))
        return dataclasses.replace(one, origin=found)

    # -- what happens ----------------------------------------------------------------------------

    def _step(self, line: int) -> None:
        self._name_views()
        if self._levels:
            self._levels[-1] = dataclasses.replace(self._levels[-1], after=self._level)
        self.lines.append(line)
        text = self._text[line - 1].strip()
        self._levels.append(Level(line, text, self._level, self._level, self._moment))
        if renamed := _RENAMED.match(text.partition("#")[0].rstrip()):
            self._rename(renamed[2], renamed[1])

    def _name_views(self) -> None:
        """Note the variables to which the line before has given a storage that was there."""
        for number, name in self._views:
            self._call(number, name)
        self._views.clear()

    def _rename(self, old: str, new: str) -> None:
        if old in self._names:
            self._call(self._names[old], new)

    def _call(self, number: int, name: str) -> None:
        if name != _UNNAMED:
            self._names[name] = number
            one = self._found[number]
            if name not in (one.name, *one.later):
                self._found[number] = dataclasses.replace(one, later=(*one.later, name))

    def _dispatched(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Call an operator, and note the tensors that it makes."""
        import torch

        if func is torch.ops.aten._local_scalar_dense.default:
            return self._answer(args[0])
        result = self._result(func, args, kwargs)
        made = _torch.leaves(result)
        if any(isinstance(value, torch.Tensor) for value in made):
            self._views.clear()
        for i, value in enumerate(made):
            if isinstance(value, torch.Tensor) and _torch.storage_key(value) not in self._constants:
                self._hold(value, i if isinstance(result, tuple | list) else None)
        if _torch.computes(func):
            self._need((args, kwargs, result))
        return result

    def _pool(self, tensor: Any) -> None:
        self._pools.add(self._storages[_torch.storage_key(tensor)].number)

    def _need(self, given: Any, position: int | None = None) -> None:
        """Note what a call is given, and returns; or what the program returns."""
        import torch

        views: dict[int, list[Any]] = {}
        for one in _torch.leaves(given):
            if isinstance(one, torch.Tensor) and (found := self._storages.get(_torch.storage_key(one))):
                views.setdefault(found.number, []).append(one)
        sizes = {number: self._found[number].nbytes for number in views}
        for pool in self._pools & views.keys():
            sizes[pool] = min(sizes[pool], reached(views[pool]))
        self._needed.append(Needed(len(self.lines) - 1 if position is None else position, sizes))

    def _result(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Return what an operator does; where its sizes depend on data, what it did in the real call."""
        import torch

        if _torch.hands_on(func):
            return args[0]
        if not (self._is_known and _torch.depends_on_data(func)):
            return _torch.as_run(func, self._device)(*args, **kwargs)
        if not self._results:
            raise UntoldError(f"the real call did not call {func}")
        made = [
            torch.empty_strided(one.size, one.stride, dtype=one.dtype, device=one.device)
            for one in self._results.pop(0)
        ]
        return made[0] if len(made) == 1 else tuple(made)

    def _answer(self, value: Any) -> Any:
        """Return the number that a tensor of one element holds on this way."""
        import torch

        if self._asked == len(self.answers):
            if self._is_known:
                raise UntoldError("the real call asked for fewer numbers")
            if value.dtype != torch.bool:
                raise ProgramError("a number that kernels compute decides what follows, and no call told it")
            self.answers.append(self._asked < _TURNS)
        self._asked += 1
        return self.answers[self._asked - 1]

    def _hold(self, tensor: Any, index: int | None = None, *, is_input: bool = False) -> None:
        key = _torch.storage_key(tensor)
        target = f"input {index}" if is_input else self._target(index)
        if key in self._storages:
            if not is_input:
                self._views.append((self._storages[key].number, target))
        else:
            size = tensor.untyped_storage().nbytes() if tensor.device.type == self._device else 0
            if not is_input:
                self._change(size)
            self._storages[key] = _Storage(len(self._found))
            self._names[target] = len(self._found)
            line = self.lines[-1] if self.lines else 0
            text = self._text[line - 1].strip() if line else ""
            born = max(len(self.lines) - 1, 0)
            one = Allocation(target, size, line, text, born, is_input=is_input, moments=(self._moment, None))
            self._found.append(one)
        self._storages[key].holders += 1
        weakref.finalize(tensor, self._release, key).atexit = False

    def _target(self, index: int | None) -> str:
        found = _ASSIGNED.match(self._text[self.lines[-1] - 1]) if self.lines else None
        name = found[1] if found else _UNNAMED
        return name if index is None or not found else f"{name}[{index}]"

    def _release(self, key: int) -> None:
        storage = self._storages[key]
        storage.holders -= 1
        if storage.holders:
            return
        del self._storages[key]
        if self._is_over:
            return
        one = self._found[storage.number]
        self._change(-one.nbytes)
        self._found[storage.number] = dataclasses.replace(
            one, freed=max(len(self.lines) - 1, 0), moments=(one.moments[0], self._moment)
        )

    def _change(self, by: int) -> None:
        self._moment += 1
        self._level += by
        level = self._levels[-1]
        if self._level > level.highest:
            level = dataclasses.replace(level, highest=self._level, moment=self._moment)
        self._levels[-1] = dataclasses.replace(level, after=self._level)

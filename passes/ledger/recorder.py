"""Follows one graph while passes run over it, and keeps what each application changed."""

from __future__ import annotations

import contextlib
import operator
import time
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from torch.fx import GraphModule, Node

from ..ops.source import where
from .application import Application
from .ledger import Crash, Ledger, PassRun, Point
from .renamed import Moved
from .state import Attributes, Entry, State, Step, after, now

BETWEEN = "(between passes)"


class Recorder:
    """Keeps the ledger of one graph.

    A rule is asked only for the nodes around its match. When its pass is over the whole graph is looked at:
    what its rules do not account for is an application of the pass itself. So the applications always add up
    to what became of the graph, whatever a rule does.

    Args:
        gm: the graph, before the first pass.
        stage: what the first stage is called.
    """

    def __init__(self, gm: GraphModule, stage: str = "") -> None:
        self.gm: GraphModule = gm
        self.stage: str = stage
        self._attributes = Attributes(gm)
        self._state: State = now(gm.graph, {})
        self._attributes.note(self._state.values())
        self._known: dict[Node, Entry] = dict(self._state)
        self._steps: list[Step] = []
        self._open: list[str] = []
        self._in_rule = ""
        self._seconds = 0.0
        self.ledger: Ledger = Ledger(self._attributes, self._state)

    @contextlib.contextmanager
    def passed(self, name: str, stage: str = "") -> Iterator[None]:
        """Follow one pass, which may be inside another one; it may begin a stage."""
        self.look()
        self.stage = stage or self.stage
        self._open.append(name)
        start, count = time.perf_counter(), len(self.ledger.applications)
        self._seconds = 0.0
        try:
            yield
        except Exception as error:
            self._crashed(error)
            raise
        finally:
            seconds = time.perf_counter() - start
            self.look(seconds)
            self._open.pop()
            done = len(self.ledger.applications) - count
            self.ledger.passes.append(PassRun(self.stage, name, seconds, done))

    @contextlib.contextmanager
    def rule(self, name: str, matched: Iterable[Node], node: Node) -> Iterator[None]:
        """Follow one application of a rule, given the nodes that it matched."""
        if self._in_rule:  # made by another rule, and a part of it
            yield
            return
        self._in_rule = f"{name} at {node.name}"
        matched = {node: None, **dict.fromkeys(matched)}
        around, text, source = _around(matched), node.name, where(node)
        used = {one: tuple(one.users) for one in around}
        before = next(place for place in _backwards(node) if place not in matched)
        start = time.perf_counter()
        try:
            yield
        except Exception as error:
            self._crashed(error)
            raise
        finally:
            self._in_rule = ""
        renamed, taken = self._renamed(used, matched)
        around += [user for old in renamed for user in used[old]]
        around = [node for node in around if node not in taken] if taken else around
        step = self._changed([*around, *self._inserted(before, node)], renamed)
        seconds = time.perf_counter() - start
        self._seconds += seconds
        if step.gone or step.come or step.renamed:
            self._attributes.note(step.come)
            self._steps.append(step)
            self._note(step, name, text, source, seconds, Point(self._state, self._steps, len(self._steps)))

    def look(self, seconds: float = 0.0) -> None:
        """Look at the whole graph, and keep what no rule accounts for."""
        said = after(self._state, self._steps) if self._steps else self._state
        found = now(self.gm.graph, said)
        if found is not said:
            self._attributes.note(found.values())
            step = Step.between(said, found)
            first = step.first
            text, source = ("", None) if first is None else (first.name, _source(step))
            self._note(step, "", text, source, max(0.0, seconds - self._seconds), Point(found))
        if found is not self._state:
            self._state, self._known, self._steps = found, dict(found), []

    def _renamed(
        self, used: Mapping[Node, Sequence[Node]], matched: Container[Node]
    ) -> tuple[dict[Node, Node], set[Node]]:
        """Return the nodes whose users are all given another one now, and the users, which are taken so."""

        def known(user: Node) -> tuple[Any, Any] | None:
            """What copies is looked at by itself: what it copies may have another size."""
            entry = self._known.get(user)
            return None if entry is None or entry.copies or user in matched else (entry.args, entry.kwargs)

        renamed, taken = dict[Node, Node](), set[Node]()
        for old, users in used.items():
            moved = Moved.of(old, users, known)
            if moved is not None:
                renamed[old] = moved.new
                taken.update(moved.users)
                self._known.update((user, self._known[user].given_now()) for user in moved.users)
        return renamed, taken

    def _changed(self, around: Iterable[Node], renamed: Mapping[Node, Node]) -> Step:
        """Return what became of some nodes, with all that they are given now."""
        gone, come, new = list[Entry](), list[Entry](), list[Node]()
        pending, seen = [*around, *renamed.values()], set[Node]()
        while pending:
            node = pending.pop()
            if node in seen:
                continue
            seen.add(node)
            known, is_there = self._known.get(node), node.prev.next is node
            if known is not None and (not is_there or not known.is_now()):
                gone.append(self._known.pop(node))
            if is_there and node not in self._known:
                come.append(Entry.of(node))
                pending += node.all_input_nodes
                if known is None:
                    new.append(node)
        self._known.update((entry.node, entry) for entry in come)
        return Step(tuple(gone), tuple(come), _in_order({node: self._place(node) for node in new}), renamed)

    def _inserted(self, place: Node, node: Node) -> Iterator[Node]:
        """Yield what was put in front of a matched node, used or not."""
        while (place := place.next).op != "root" and (place not in self._known or place is node):
            yield place

    def _place(self, node: Node) -> Node | None:
        """Return the last known node in front of one, ``None`` at the beginning."""
        place = next(place for place in _backwards(node) if place in self._known or place.op == "root")
        return place if place.op != "root" else None

    def _note(
        self, step: Step, rule: str, node: str, source: str | None, seconds: float, point: Point
    ) -> None:
        old = [copy for entry in step.gone for copy in entry.copies]
        new = [copy for entry in step.come for copy in entry.copies]
        for copy in list(old):
            if copy in new:
                old.remove(copy)
                new.remove(copy)
        application = Application(
            number=len(self.ledger.applications),
            stage=self.stage,
            pass_name="/".join(self._open) or BETWEEN,
            rule=rule,
            node=node,
            source=source,
            nodes=len(step.come) - len(step.gone),
            copies_added=tuple(label for label, _ in new),
            copies_removed=tuple(label for label, _ in old),
            copy_bytes=sum(size for _, size in new) - sum(size for _, size in old),
            seconds=seconds,
        )
        self.ledger.add(application, point)

    def _crashed(self, error: Exception) -> None:
        if self.ledger.crash is None:
            at = "/".join(self._open) or BETWEEN
            self.ledger.crash = Crash(self.stage, at, self._in_rule, f"{type(error).__name__}: {error}")


def _backwards(node: Node) -> Iterator[Node]:
    """Yield the nodes in front of one, the last first, and the graph's root at the end."""
    while node.op != "root":
        node = node.prev
        yield node


def _around(matched: Iterable[Node]) -> list[Node]:
    """Return matched nodes, what they are given and their users, whose arguments a rule may change.

    A result that is taken out of a call of several is a part of the call.
    """
    nodes = list(matched)
    taken = [user for node in nodes for user in node.users if user.target is operator.getitem]
    nodes += taken
    return list(dict.fromkeys([*nodes, *(n for node in nodes for n in (*node.users, *node.all_input_nodes))]))


def _in_order(behind: dict[Node, Node | None]) -> dict[Node, Node | None]:
    """Return new nodes so that each comes after the one it stands behind."""
    ordered: dict[Node, Node | None] = {}
    for node in behind:
        chain = []
        while node in behind and node not in ordered:
            chain.append(node)
            previous = behind[node]
            if previous is None:
                break
            node = previous
        ordered.update((one, behind[one]) for one in reversed(chain))
    return ordered


def _source(step: Step) -> str | None:
    nodes = (entry.node for entry in (*step.gone, *step.come))
    return next((line for node in nodes if (line := where(node)) is not None), None)

"""What was decided for each candidate of a graph, as plain data that needs no torch."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any

from .hint_form import Asker, worded
from .reason import LIST, Reason, listing

_MOST_BLOCKERS = 3


@dataclasses.dataclass(frozen=True, slots=True)
class Blocker:
    """A node that holds a candidate back.

    Args:
        node: its name in the graph the pass was given.
        op: its operator; of a wrapper the one that it wraps, of a kernel launch the kernel.
        source: the user's line that made it, ``"file:line"``, or ``None`` when the graph has none.
    """

    node: str
    op: str
    source: str | None = None

    def __str__(self) -> str:
        return f"{self.node} ({self.op})" + (f" at {self.source}" if self.source else "")


@dataclasses.dataclass(frozen=True, slots=True)
class Other:
    """Another candidate of the same graph, as an outcome names it.

    Args:
        node: the name of its node.
        label: its label.
        source: its line, ``"file:line"``, or ``None`` when the graph has none.
    """

    node: str
    label: str
    source: str | None = None

    def __str__(self) -> str:
        return f"{self.label} at {self.source}" if self.source else self.label


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one candidate: one operand of one node.

    Args:
        label: ``<op>.<argument>``, as the design names it (``"mylib::kv_update.cache"``).
        op: the operator's name without overload (``"aten::index_put"``), or a Triton kernel's name.
        arg: the argument's name, with an index for a list element (``"self[3]"``).
        node: the name of the node in the functional graph.
        reinplaced: whether nothing is copied: the result lives in the operand's storage, or is fused.
        nbytes: bytes the copy holds; for symbolic sizes, of the hinted sizes.
        reason: why it was cloned; ``None`` when reinplaced.
        blockers: the nodes that hold it back, nearest first.
        source: the user's line, ``"file:line"``.
        hint: what the author can do about it; empty when reinplaced.
        added: whether it is no candidate of the program but a copy that our pass adds, to write a
            larger one in place or to keep an output apart.
        fused: whether it stays functional because Inductor computes it in one kernel with what makes or
            uses it, so that in place would cost more.
        allocates: whether the functional form copies nothing: every element is computed anew.
        moved: the readers of the old value that the pass runs before this write, so that it may be in place.
        graph: the subgraph that the node is in, by its path from the module (``"true_graph_0.body"``); empty
            for the graph itself. Nodes of different graphs may have the same name.
        follows: the clone that this one is there for alone: without that, this would be in place, too.
        spares: of a copy that our pass adds, the candidate that may be in place because of it.
        copies: a candidate that is in place, whose operand this clone copies whole.
    """

    label: str
    op: str
    arg: str
    node: str
    reinplaced: bool
    nbytes: int
    reason: Reason | None = None
    blockers: tuple[Blocker, ...] = ()
    source: str | None = None
    hint: str = ""
    added: bool = False
    fused: bool = False
    allocates: bool = False
    moved: tuple[Blocker, ...] = ()
    graph: str = ""
    follows: Other | None = None
    spares: Other | None = None
    copies: Other | None = None

    def __str__(self) -> str:
        where = f" in {self.graph}" if self.graph else ""
        where += f" at {self.source}" if self.source else ""
        if self.fused:
            return f"{self.label}: fused, nothing is copied{where}"
        if self.reinplaced or self.reason is None:
            after = f", once {', '.join(map(str, self.moved))} ran before it" if self.moved else ""
            return f"{self.label}: in place{where}{after}"
        text = f"{self.label}: cloned, {self.nbytes} B{where}: {self.why}"
        if self.blockers:
            text += "; held back by " + ", ".join(map(str, self.blockers))
        return text

    def bears(self, name: str) -> bool:
        """Return whether a name means this candidate.

        Args:
            name: its label (``"mylib::kv_update.cache"``), its operator alone, or its argument alone. A list
                argument without an index means all its elements. ``*`` stands for any text, ``?`` for any
                one character.
        """
        pattern = name.replace("[", "[[]")  # it begins an index, not a set of characters
        whole = self.arg.partition("[")[0]
        names = (self.label, self.op, self.arg, f"{self.op}.{whole}", whole)
        return any(fnmatchcase(text, pattern) for text in names)

    def lines(self, unknown: str = "for an unknown reason") -> list[str]:
        """Return why it was cloned: label, place, bytes and reason; then blockers and hint, if there are any.

        Args:
            unknown: what is said where there is no ``reason``.
        """
        where = f" in {self.graph}" if self.graph else ""
        where += f" at {self.source}" if self.source else ""
        first = f"{self.label}{where}: {bytes_text(self.nbytes)}, {self.why or unknown}"
        more = []
        if self.blockers:
            held, left = map(str, self.blockers[:_MOST_BLOCKERS]), len(self.blockers) - _MOST_BLOCKERS
            more.append(f"held back by {', '.join(held)}" + (f" and {left} more" if left > 0 else ""))
        if self.copies:
            more.append(copies_all_of(str(self.copies)))
        if self.hint:
            more.append(f"hint: {self.hint}")
        return [first, "  " + "; ".join(more)] if more else [first]

    def asked_by(self, asker: Asker, pass_name: str = "exact") -> Outcome:
        """Return the outcome with a hint for who asks.

        Args:
            asker: ``"test"``, ``"marked test"`` (it names the pass itself), ``"entry"``, ``"command"`` or
                ``"production"``.
            pass_name: the pass under test.
        """
        return dataclasses.replace(self, hint=worded(self.hint, asker, pass_name))

    @property
    def why(self) -> str:
        """Why it was cloned, a sentence without the final period; empty where that is not known."""
        if self.follows is not None:
            return consequence_of(str(self.follows))
        return "" if self.reason is None else self.reason.sentence

    @property
    def named(self) -> Other:
        """How other outcomes of the graph name this one."""
        return Other(self.node, self.label, self.source)

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as JSON-ready data."""
        data = dataclasses.asdict(self)
        data["reason"] = self.reason.value if self.reason else None
        data["blockers"] = [dataclasses.asdict(b) for b in self.blockers]
        data["moved"] = [dataclasses.asdict(b) for b in self.moved]
        return data

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Outcome:
        """Rebuild an outcome from ``to_dict``; raises ``KeyError`` or ``ValueError`` on other data."""
        reason = data["reason"]
        return cls(
            **{
                **data,
                "reason": Reason(reason) if reason is not None else None,
                "blockers": tuple(Blocker(**b) for b in data["blockers"]),
                "moved": tuple(Blocker(**b) for b in data.get("moved", ())),
                **{name: _other(data.get(name)) for name in OTHERS},
            }
        )


OTHERS = ("follows", "spares", "copies")
"""The fields of an outcome that name another one."""


def _other(data: dict[str, Any] | None) -> Other | None:
    return None if data is None else Other(**data)


def copies_all_of(name: str) -> str:
    """Return what else is said of a clone of what a candidate, ``"<label> at <line>"``, has in place."""
    return f"it copies the whole tensor that {name} writes in place"


def consequence_of(cause: str) -> str:
    """Return why a clone that follows from another one was made, ``"<label> at <line>"``."""
    return f"follows from the clone of {cause}"


def bytes_text(count: int) -> str:
    """Return bytes for a person, with the exact number: ``"1.5 KiB (1536 B)"``."""
    value, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{count} B" if unit == "B" else f"{value:.1f} {unit} ({count} B)"


@dataclasses.dataclass(frozen=True, slots=True)
class Report:
    """The outcomes of one graph, in graph order.

    Args:
        outcomes: one per candidate.
        graph: the id of the graph, ``"[fw 0/1]"`` in a session with several, else empty.
    """

    outcomes: tuple[Outcome, ...] = ()
    graph: str = ""

    @property
    def clones(self) -> list[str]:
        """Labels of the candidates that stayed clones, in graph order."""
        return [o.label for o in self.outcomes if not o.reinplaced]

    @property
    def reinplaced(self) -> list[str]:
        """Labels of the candidates that are in place, in graph order."""
        return [o.label for o in self.outcomes if o.reinplaced]

    @property
    def clone_bytes(self) -> int:
        """Bytes that the clones hold."""
        return sum(o.nbytes for o in self.outcomes if not o.reinplaced)

    def listed(self) -> Report:
        """Return the report in which each hint that tells how to list a clone lists all that are meant.

        Those that follow from one which is meant are listed with it. Where there are others, a comment says
        that the list is without them.
        """
        meant = [o for o in self.outcomes if LIST in o.hint]
        if not meant:
            return self
        causes = {o.named for o in meant}
        listed = [*meant, *(o for o in self.outcomes if o.follows in causes)]
        line = listing(o.label for o in listed)
        if others := len(self.clones) - len(listed):
            line += f"  # without the {'other clone' if others == 1 else f'{others} other clones'}"
        hints = {id(o): o.hint.partition(LIST)[0] + line for o in meant}
        found = (dataclasses.replace(o, hint=hints.get(id(o), o.hint)) for o in self.outcomes)
        return dataclasses.replace(self, outcomes=tuple(found))

    @classmethod
    def joined(cls, reports: Iterable[Report]) -> Report:
        """Join the reports of several graphs into one, in their order."""
        return cls(tuple(o for r in reports for o in r.outcomes))

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-ready data."""
        return {
            "graph": self.graph,
            "clones": self.clones,
            "reinplaced": self.reinplaced,
            "clone_bytes": self.clone_bytes,
            "outcomes": [o.to_dict() for o in self.outcomes],
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Report:
        """Rebuild a report from ``to_dict``."""
        return cls(tuple(Outcome.from_dict(o) for o in data["outcomes"]), data["graph"])

    def __str__(self) -> str:
        head = (
            f"{len(self.outcomes)} candidate{'' if len(self.outcomes) == 1 else 's'}: "
            f"{len(self.reinplaced)} in place, "
            f"{len(self.clones)} cloned ({self.clone_bytes} B)"
        )
        if self.graph:
            head = f"{self.graph} {head}"
        return "\n".join([head, *(f"  {o}" for o in self.outcomes)])

"""The model of a functional graph: where every value lives, who reads it, and what could be in place.

Built in one walk over the graph. Regions are given in the coordinates of the root that a storage would
have if every candidate were in place; leaving a candidate out moves whole storages, so whether two
regions of one buffer overlap never changes and is computed once.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
from typing import Any

import torch
from torch.fx import Graph, Node

from ... import _torch
from ...graph.find_layouts import known
from ...graph.layouts import Layouts
from ...graph.sizes import Named, fake_mode_of, given
from ...graph.spread import kept_by_subgraphs, names_offsets
from ...graph.summary import Summaries
from ...memory.geometry import Geometry
from ...memory.region import Region
from ...reason import Reason
from .candidate import Candidate
from .options import Options
from .pending import Shelves
from .place import Place, Read, Storage, Unseen, Value, Write, collect, mapped, places, reads_alike
from .premises import Calls, Premises
from .target import Target


class Model:
    """What is known about a functional graph; ``reinplacing/model/build.py`` fills it in.

    Args:
        graph: the functional graph.
        options: what the user chose, and what will run the rewritten graph.
        premises: what earlier decisions about the graph taught.
        calls: what is known about calls of subgraphs; by default what their summaries say.
    """

    def __init__(self, graph: Graph, options: Options, premises: Premises, calls: Calls | None) -> None:
        self.graph: Graph = graph
        self.calls: Calls = calls or calls_of(graph, options)
        self.options: Options = options
        self.target: Target = options.target
        order = premises.order
        self.reordered: dict[Node, tuple[Node, ...]] = order.reordered if order else {}
        self.unlocks: dict[tuple[Node, Any], tuple[Node, ...]] = order.unlocks if order else {}
        self.order: dict[Node, int] = {n: i for i, n in enumerate((order or graph).nodes)}
        self.values: dict[Node, Value] = {}
        self.storages: list[Storage] = []
        self.whole: dict[Storage, Region] = {}
        self.reads: dict[Storage, list[Read]] = collections.defaultdict(list)
        self.writes: dict[Storage, list[Write]] = collections.defaultdict(list)
        self.candidates: list[Candidate] = []
        self.candidates_of: dict[Node, list[Candidate]] = collections.defaultdict(list)
        self.made_by: dict[Storage, Candidate] = {}
        self.unsupported: list[tuple[Node, tuple[tuple[str, str], ...], int]] = []
        self.idle: list[Node] = []
        self.outputs: list[tuple[Node, Place]] = []
        self.relaid: dict[Node, Any] = {}
        self.unseen: dict[Node, Unseen] = {}
        self.tried: dict[Node, list[Any]] = {}  # all layouts looked at, the one in ``relaid`` the last
        aside = premises.aside | self.calls.known.staying(graph)
        self.premises: Premises = dataclasses.replace(premises, aside=aside)
        self.layouts: Layouts = self.calls.known.of(graph, self._pinning())
        self.given: dict[Any, Storage] = {}  # storages of inputs, by what two of the same bytes share
        self.fake_mode: Any = fake_mode_of(graph)
        self.geometry: Geometry = Geometry(getattr(self.fake_mode, "shape_env", None))
        self.written_back: dict[int, int] = {}
        self.trees: dict[Storage, Storage] = {}
        self.shelves: Shelves = Shelves(self.geometry, self.reads, self.trees)
        self._needed: dict[tuple[Storage, Region], bool] = {}
        self.fused: frozenset[int] = frozenset()

    def _pinning(self) -> list[Node]:
        """Return the nodes whose operands must begin where the graph says, if anybody goes by that.

        What stays functional makes what begins where its operand does, and who calls the graph may go by what
        it returns.
        """
        ends = self.graph.find_nodes(op="output") if self.calls.inner else ()
        return [*self.premises.aside, *ends]

    # -- storages and places -------------------------------------------------------------------

    def new_storage(self, node: Node, *, is_input: bool = False, opaque: bool = False) -> Storage:
        """Return a new storage born at ``node``."""
        storage = Storage(len(self.storages), node, is_input)
        if opaque:
            storage.close(Reason.UNKNOWN_OP, node)
        self.storages.append(storage)
        return storage

    def place(self, node: Any) -> Place | None:
        """Return where a node's tensor lives; ``None`` for what is no single tensor."""
        value = self.values.get(node) if isinstance(node, Node) else None
        return value if isinstance(value, Place) else None

    def at(self, storage: Storage, tensor: torch.Tensor) -> Place:
        """Return the place of a tensor inside a storage."""
        region, shift = Region.of(tensor), storage.shift
        return Place(storage, region if shift == 0 else region.shifted(shift), tensor)

    def inside(self, storage: Storage, val: Any) -> Value:
        """Return the places inside a storage of all tensors of a nested value."""
        if isinstance(val, torch.Tensor):
            return self.at(storage, val)
        return mapped(lambda t: self.at(storage, t), val)

    def operands(self, value: Any) -> list[tuple[Node, Place]]:
        """Return the nodes inside an argument, each with its places."""
        found: list[tuple[Node, Place]] = []
        collect(self.values, value, found)
        return found

    def add_read(
        self,
        node: Node,
        place: Place,
        time: float | None = None,
        hole: Region | None = None,
        into: Storage | None = None,
        is_exit: bool = False,
        in_flight: bool = False,
    ) -> None:
        """Record that ``node`` reads ``place`` until ``time`` (its own time by default)."""
        until = self.order[node] if time is None else time
        self.reads[place.storage].append(Read(node, until, place, hole, into, is_exit, in_flight))

    def add(self, candidate: Candidate) -> None:
        """Record a candidate; the last one of a storage is what makes it."""
        self.candidates.append(candidate)
        self.candidates_of[candidate.node].append(candidate)
        self.made_by[candidate.result] = candidate

    @functools.cached_property
    def sizes(self) -> Named:
        """The sizes that the graph is given."""
        return given(self.graph)

    @functools.cached_property
    def returned_trees(self) -> frozenset[Storage]:
        """The roots of returned buffers, were every candidate in place; asked for once all are there."""
        return frozenset(self.trees[place.storage] for _, place in self.outputs)

    @functools.cached_property
    def kept_by_subgraphs(self) -> frozenset[int | None]:
        """The storages of tensors that called subgraphs take from modules of their own."""
        return kept_by_subgraphs(self.graph)

    @functools.cached_property
    def takes_program_inputs(self) -> bool:
        """Whether the inputs are those of a program; asked for once some of them have symbols."""
        return self.target.takes_program_inputs(self.graph)

    @functools.cached_property
    def inputs_apart(self) -> bool:
        """Whether no view of an input has bytes of another one of its storage: named by an offset, it may."""
        return self.takes_program_inputs and not names_offsets(self.graph)

    @functools.cached_property
    def reads_by(self) -> dict[Node, list[Read]]:
        """The reads of each node; asked for when all are there, and for few graphs."""
        found: dict[Node, list[Read]] = collections.defaultdict(list)
        for read in itertools.chain.from_iterable(self.reads.values()):
            found[read.node].append(read)
        return found

    def fresh(self, node: Node, val: Any, *, opaque: bool = False) -> Value:
        """Return places in new storages for a result; leaves that share storage share it here too."""
        if isinstance(val, torch.Tensor):
            return Place(self.new_storage(node, opaque=opaque), Region.of(val), val)
        by_key: dict[int | None, Storage] = {}

        def one(tensor: torch.Tensor) -> Place:
            key = _torch.storage_key(tensor)
            storage = by_key.get(key) if key is not None else None
            if storage is None:
                storage = by_key[key] = self.new_storage(node, opaque=opaque)
            return self.at(storage, tensor)

        return mapped(one, val)

    def join_trees(self) -> None:
        """Record the root of each storage's buffer if every candidate were in place."""
        for storage in self.storages:
            maker = self.made_by.get(storage)
            if maker is None or maker.obstacle is not None:
                self.trees[storage] = storage
            else:
                self.trees[storage] = self.trees[maker.operand.storage]

    def is_needed(self, storage: Storage, region: Region) -> bool:
        """Return whether anybody looks at some bytes of a value, there or where they are handed on to."""
        key = (storage, region)
        if key not in self._needed:
            self._needed[key] = self._find_reader(storage, region)
        return self._needed[key]

    def _find_reader(self, storage: Storage, region: Region) -> bool:
        pending, seen = [storage], {storage}
        while pending:
            for read in self.reads[pending.pop()]:
                if self.geometry.overlap(read.place.region, region) is False:
                    continue
                if read.hole is not None and self.geometry.contains(read.hole, region):
                    continue
                if read.into is None:
                    return True
                if read.into not in seen:
                    seen.add(read.into)
                    pending.append(read.into)
        return False

    def same_value(self, a: Place, b: Place) -> bool:
        """Return whether element i of ``a`` is element i of ``b``, byte for byte and in meaning."""
        return reads_alike(a.value, b.value) and self.geometry.same(a.region, b.region)

    def dtype_of(self, storage: Storage) -> torch.dtype | None:
        """Return the dtype that a storage was born with."""
        born = (p for p in places(self.values.get(storage.node)) if p.storage is storage)
        return next((p.value.dtype for p in born), None)


def calls_of(graph: Graph, options: Options) -> Calls:
    """Return what is known of a graph's calls by itself."""
    target = options.target
    return Calls(Summaries(lowered=target.drops_identities), known(graph, lowered=target.makes_as_told))

"""The model of a functional graph: where every value lives, who reads it, and what could be in place.

Built in one walk over the graph. Regions are given in the coordinates of the root that a storage would
have if every candidate were in place; leaving a candidate out moves whole storages, so whether two
regions of one buffer overlap never changes and is computed once.
"""

from __future__ import annotations

import collections
import functools
import itertools
import operator
from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Graph, Node

from . import (
    _torch,
    chain,
    cost,
    declared,
    effects,
    hidden_alias,
    hop,
    inputs,
    kinds,
    subgraph_call,
    wellformed,
)
from .addressing import Addressing
from .candidate import Candidate
from .collectives import wait_time
from .errors import GraphError, ReinplaceError
from .options import DEFAULT, Options
from .pending import Shelves
from .place import END, Place, Read, Storage, Value, Write, collect, followed, mapped, places, reads_alike
from .reason import Reason
from .region import Geometry, Region
from .scatter import check_reach, is_absolute
from .schema import OpSchema, argument, has_tensor, is_lowered_view, is_operator, schema_of, tensors
from .setting import Setting
from .source import where
from .subgraph_call import Calls
from .summary import Summaries

_SYMBOLIC_MODULES = ("_operator", "math", "builtins", "torch", "torch.fx.experimental.symbolic_shapes")


class Model:
    """What is known about a functional graph; building it never changes the graph.

    Args:
        graph: the functional graph.
        options: what the user chose, and whether Inductor will lower the rewritten graph; then bytes
            that it cannot follow through a view are not written.
        setting: what earlier decisions about the graph taught.
        calls: what is known about calls of subgraphs; by default what their summaries say.

    Raises:
        GraphError: a tensor node without ``meta["val"]``, or a graph that already mutates something
            other than ``copy_`` into an input.
    """

    def __init__(
        self,
        graph: Graph,
        options: Options = DEFAULT,
        *,
        setting: Setting = Setting(),  # noqa: B008  (frozen)
        calls: Calls | None = None,
    ) -> None:
        self.graph: Graph = graph
        self.calls: Calls = calls or Calls(Summaries(lowered=options.lowered))
        self.options: Options = options
        self.moved: dict[Node, tuple[Node, ...]] = {} if (order := setting.order) is None else order.moved
        self.unlocks: dict[tuple[Node, Any], tuple[Node, ...]] = {} if order is None else order.unlocks
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
        self.held: set[Node] = set()  # scatters that store what their operand holds there anyway
        self.outputs: list[tuple[Node, Place]] = []
        self.relaid: dict[Node, Any] = {}
        self.layouts: dict[Node, list[Any]] = {}  # all that were looked at, the one in ``relaid`` the last
        self.addressing: Addressing = Addressing(self.order, self.calls.strides.untold_in(graph))
        self.setting: Setting = setting.leaving(self.addressing.lying)
        self.given: dict[int | str, Storage] = {}  # storages of inputs, by what two of the same bytes share
        self._visitors: dict[int, Callable[[Model, Node], None]] = {}
        self.fake_mode: Any = _torch.fake_mode_of(t for n in graph.nodes for t in tensors(n.meta.get("val")))
        self.geometry: Geometry = Geometry(getattr(self.fake_mode, "shape_env", None))
        self._visit_all()
        self.written_back: dict[int, int] = chain.written_back(self)
        self.trees: dict[Storage, Storage] = chain.trees(self)
        self.shelves: Shelves = Shelves(self.geometry, self.reads, self.trees)
        self._needed: dict[tuple[Storage, Region], bool] = {}
        self.fused: frozenset[int] = cost.fused(self, options)

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

    @property
    def lowered(self) -> bool:
        """Whether Inductor will lower the graph."""
        return self.options.lowered

    def at(self, storage: Storage, tensor: torch.Tensor) -> Place:
        """Return the place of a tensor inside a storage."""
        region, shift = Region.of(tensor), storage.shift
        return Place(storage, region if shift == 0 else region.shifted(shift), tensor)

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

    @functools.cached_property
    def held_inside(self) -> frozenset[int | None]:
        """The storages of tensors that called subgraphs take from modules of their own."""
        return inputs.held_inside(self.graph)

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

    # -- the walk ------------------------------------------------------------------------------

    def _visit_all(self) -> None:
        for node in self.order:
            try:
                self._visit(node)
            except ReinplaceError:
                raise
            except Exception as error:
                raise wellformed.malformed(node, error) from error
        self._exit_reads()

    def _visit(self, node: Node) -> None:
        op = node.op
        if op == "call_function":
            key = id(node.target)  # the graph keeps it alive
            visit = self._visitors.get(key)
            if visit is None:
                visit = self._visitors[key] = _visitor(node)
            visit(self, node)
        elif op in ("placeholder", "get_attr"):
            inputs.visit(self, node)
        elif op == "output":
            self._visit_output(node)
        else:
            self._visit_other(node)

    def _visit_other(self, node: Node) -> None:
        """Visit a node of what was declared, wraps operators, runs subgraphs, or is not understood."""
        if declared.visit(self, node):
            return
        if is_operator(node.target):
            self._visit_operator(node)
        elif effects.visit(self, node) or kinds.visit_wrapper(self, node):
            return
        elif not subgraph_call.visit(self, node):
            self._visit_unknown(node)

    def _visit_output(self, node: Node) -> None:
        for leaf, place in self.operands(node.args):
            self.outputs.append((leaf, place))
            self.add_read(node, place, END)

    def _visit_getitem(self, node: Node) -> None:
        source, key = node.args[0], node.args[1]
        value = self.values.get(source) if isinstance(source, Node) else None
        if isinstance(value, Place) or isinstance(key, Node | slice):
            self._visit_unknown(node)
        elif value is not None:
            self.values[node] = value[key]

    def _visit_operator(self, node: Node) -> None:
        schema, val = schema_of(node.target), node.meta.get("val", node)
        if node.target is torch.ops.aten.copy_.default:
            self._visit_mutation(node)  # its value is its destination: exported programs record none
        elif schema.returns and (val is node or (schema.makes_tensor and not has_tensor(val))):
            raise wellformed.no_value(node)
        elif schema.mutable:
            self._visit_mutation(node)
        elif schema.hides_accesses or schema.views_several:
            self._visit_unknown(node)
        elif schema.view or (schema.returns and schema.returns[0] is not None):
            self._visit_view(node, schema)
        elif not kinds.visit_candidate(self, node):
            self._visit_pure(node)

    def _visit_mutation(self, node: Node) -> None:
        destination = self.place(node.args[0]) if node.args else None
        source = self.place(node.args[1]) if len(node.args) > 1 else None
        is_copy = node.target is torch.ops.aten.copy_.default
        if not (is_copy and destination and source and destination.storage.is_input):
            raise GraphError(
                f"expected a functional graph (no mutation but copy_ into inputs), found {node.name} = "
                f"{node.target} at {where(node) or 'an unknown line'}; was the graph reinplaced already? "
                "Pass the graph as AOTAutograd gives it to the post-grad stage."
            )
        self.values[node] = destination
        is_own = self.same_value(source, destination)
        if is_own and source.storage is destination.storage:
            self.idle.append(node)  # whatever lies there is copied onto itself
            return
        self.add_read(node, source)
        self.writes[destination.storage].append(Write(node, self.order[node], destination, source, is_own))

    def _visit_view(self, node: Node, schema: OpSchema) -> None:
        operand = argument(node, schema.returns[0] or "")
        owner = next(iter(places(self.values.get(operand) if isinstance(operand, Node) else None)), None)
        val = self.relaid.get(node, node.meta["val"])
        if owner is None:
            self._visit_pure(node)
            return
        if schema.returns_operand:  # its fake value pretends to be a fresh tensor
            # Views of it lie in its fake value, which must therefore begin where the operand does.
            alike = isinstance(val, torch.Tensor) and Region.of(val) == Region.of(owner.value)
            self.values[node] = Place(owner.storage, owner.region, val) if alike else owner
            return
        if is_absolute(node) and owner.storage in self.made_by:
            for tensor in tensors(val):
                born = places(self.values[owner.storage.node])
                whole = next((p.region for p in born if p.storage is owner.storage), None)
                if whole is not None:
                    check_reach(self, node, self.at(owner.storage, tensor).region, whole)
        if is_absolute(node) and owner.storage.relaid and node not in self.relaid:
            # An offset into the old layout means nothing in the new one.
            owner.storage.close(Reason.LAYOUT, node)
        if self.lowered and not is_lowered_view(node, owner.storage.is_input):
            owner.storage.close(Reason.LOWERING, node)
        is_unsure = schema.view_or_copy and operand in self.addressing.untold
        shares = (_torch.storage_key(t) == _torch.storage_key(owner.value) for t in tensors(val))
        if not is_unsure and all(shares):
            self.values[node] = mapped(lambda t: self.at(owner.storage, t), val)
        elif schema.view_or_copy and not is_unsure:
            self._visit_pure(node)
        else:
            # Whether it is a view depends on strides that are not told; or the metadata is stale (a pass
            # replaced an operand and kept the view's fake tensor): where it lies is not known, so nothing
            # may be written there.
            owner.storage.close(Reason.UNKNOWN_OP, node)
            region = self.whole.get(owner.storage, owner.region)
            self.values[node] = mapped(lambda t: Place(owner.storage, region, t), val)

    def _visit_pure(self, node: Node) -> None:
        """Visit an operator that reads its operands and returns fresh tensors."""
        schema = schema_of(node.target)
        operands = self.operands((node.args, node.kwargs) if node.kwargs else node.args)
        if not schema.meta_only:
            in_flight = schema.name.startswith("_c10d_functional::")
            until = wait_time(node, self.order) if in_flight else None
            for _, place in operands:
                self.add_read(node, place, until, in_flight=in_flight)
        value = self.fresh(node, self.relaid.get(node, node.meta.get("val")))
        for place in places(value) if node in self.relaid else ():
            place.storage.relaid, place.storage.follows = True, followed(operands)
        self.values[node] = hidden_alias.joined(self, node, operands, value)

    def _visit_unknown(self, node: Node) -> None:
        """Visit what has no schema: it reads everything it is given, for as long as it likes."""
        operands = self.operands((node.args, node.kwargs))
        val = node.meta.get("val")
        symbolic = getattr(node.target, "__module__", None) in _SYMBOLIC_MODULES
        if not operands and (symbolic or not any(True for _ in tensors(val))):
            return
        pure = hop.is_pure(node.target)
        for _, place in operands:
            self.add_read(node, place, None if pure else END)
            if not pure:
                place.storage.close(Reason.UNKNOWN_OP, node)
        self.values[node] = self.fresh(node, val, opaque=True)

    def _exit_reads(self) -> None:
        """Record that the caller looks at every input, whole, after the graph ran."""
        for storage in self.storages:
            if storage.is_input and storage in self.whole:
                place = next(iter(places(self.values[storage.node])))
                whole = Place(storage, self.whole[storage], place.value)
                self.add_read(storage.node, whole, END, is_exit=True)

    def gain(self, candidate: Candidate) -> int:
        """Return the bytes that are copied when a candidate is refused: its own, and those written back."""
        return candidate.nbytes + self.written_back.get(candidate.index, 0)

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

    def nbytes(self, region: Region) -> int:
        """Return the bytes of a region, hinted when symbolic."""
        return self.geometry.hint(region.nbytes)


def _visitor(node: Node) -> Callable[[Model, Node], None]:
    """Return what visits all nodes of one target: asked once for each target of a graph."""
    if node.target is operator.getitem:
        return Model._visit_getitem
    if is_operator(node.target) and not declared.is_declared(node):
        return Model._visit_operator
    return Model._visit_other

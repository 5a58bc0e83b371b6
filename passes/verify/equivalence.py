"""The contract of a reinplacing pass, checked on real tensors: values, inputs, aliases."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node

from ..errors import ReinplaceError
from .execution import (
    PLAIN,
    Manner,
    Observer,
    RunError,
    address,
    attributes,
    cloned,
    leaves,
    run,
    same_randomness,
    stored_bytes,
)

Program = GraphModule | Callable[..., Any]


class EquivalenceError(ReinplaceError, AssertionError):
    """The rewritten graph breaks the contract; the message names the first difference.

    Args:
        message: the difference.
        kind: what differs: ``"output"``, ``"input"``, ``"alias"``, or ``"error"`` when it does not run.
    """

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclasses.dataclass(frozen=True, slots=True)
class Difference:
    """The first difference between two runs: its kind, as of ``EquivalenceError``, and a sentence."""

    kind: str
    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class Effects:
    """All that the caller can see of one run.

    Args:
        outputs: ``(name, value)`` of each returned leaf.
        inputs: ``(name, value)`` of each input and each tensor of the module, as the run left them.
    """

    outputs: list[tuple[str, Any]]
    inputs: list[tuple[str, Any]]


@dataclasses.dataclass(frozen=True, slots=True)
class Tolerance:
    """How far floating-point values may differ; all 0: not in one bit.

    Args:
        rtol: relative to the element.
        atol: absolute.
        scale: relative to the largest element of the tensor.
        any_nan: whether one NaN is like another, whatever its bits.
        signed_zeros: whether 0.0 and -0.0 are apart.
    """

    rtol: float = 0.0
    atol: float = 0.0
    scale: float = 0.0
    any_nan: bool = False
    signed_zeros: bool = False

    @property
    def is_zero(self) -> bool:
        """Whether numbers have to be equal bit by bit."""
        return not (self.rtol or self.atol or self.scale)

    def apart(self, one: torch.Tensor, two: torch.Tensor) -> torch.Tensor:
        """Return, for two floating-point tensors, which elements are too far from each other."""
        finite = one[torch.isfinite(one)].abs()
        largest = float(finite.max()) if self.scale and finite.numel() else 0.0
        atol = self.atol + self.scale * largest
        bad = ~torch.isclose(one, two, self.rtol, atol, equal_nan=True)
        return (bad | _other_zeros(one, two) if self.signed_zeros else bad).reshape(-1)


def _other_zeros(one: torch.Tensor, two: torch.Tensor) -> torch.Tensor:
    """Return which elements are 0.0 in one tensor and -0.0 in the other."""
    if one.is_complex():
        parts = (torch.view_as_real(t.resolve_conj().resolve_neg()) for t in (one, two))
        return _other_zeros(*parts).any(-1)
    return (one == 0) & (two == 0) & (torch.signbit(one) != torch.signbit(two))


def assert_equivalent(
    functional_gm: Program,
    rewritten_gm: Program,
    example_inputs: Sequence[Any],
    *,
    rtol: float = 0.0,
    atol: float = 0.0,
) -> None:
    """Check that a rewritten graph does, on these inputs, exactly what the functional graph does.

    Both run on their own deep copies of the inputs and of the module's tensors; copies keep strides,
    offsets and shared storage. Compared are: every output's type, dtype, device, shape, strides and
    values (bit by bit, so NaNs and signed zeros too); the final bytes of the whole storage of every input
    and buffer; and which outputs share storage with inputs or with each other, and where in it. Strides
    of dimensions with fewer than two elements mean nothing and are not compared. Nothing given is
    written to, and the copies require no gradient. Random operators draw from the same seed in both runs.

    Args:
        functional_gm: the specification, as AOTAutograd made it; or any callable.
        rewritten_gm: what a pass made of it; or any callable, such as a compiled graph.
        example_inputs: real tensors (and numbers), one for each placeholder.
        rtol: relative tolerance for floating-point values; for callables that compute in another order.
        atol: absolute tolerance for them.

    Raises:
        EquivalenceError: the first difference, and the first node that computes it, where both graphs
            have a node of that name.
        ReinplaceError: the inputs are no real tensors or too few.
    """
    tolerance = Tolerance(rtol, atol)
    expected = effects(functional_gm, example_inputs)
    try:
        actual = effects(rewritten_gm, example_inputs)
    except RunError as error:
        raise EquivalenceError(f"the rewritten graph raises at {error}", "error") from error
    found = difference(*in_common(expected, actual), tolerance)
    if found is None:
        return
    text = found.text
    if isinstance(functional_gm, GraphModule) and isinstance(rewritten_gm, GraphModule):
        first = first_node(functional_gm, rewritten_gm, example_inputs, tolerance)
        text += f"; the first node that differs is {first[0].format_node()}: {first[1]}" if first else ""
    raise EquivalenceError(text, found.kind)


def in_common(expected: Effects, actual: Effects) -> tuple[Effects, Effects]:
    """Return two runs without the buffers that only one of the graphs takes from its module."""
    ours, theirs = ({name for name, _ in run.inputs} for run in (expected, actual))
    both = ours & theirs
    one, two = (
        Effects(run.outputs, [(name, value) for name, value in run.inputs if name in both])
        for run in (expected, actual)
    )
    return one, two


def effects(
    program: Program, inputs: Sequence[Any], observer: Observer | None = None, manner: Manner = PLAIN
) -> Effects:
    """Run a graph or a callable on deep copies of ``inputs`` and return what the caller would see."""
    graph = program if isinstance(program, GraphModule) else None
    own = attributes(graph) if graph is not None else {}
    copies = cloned([*inputs, *own.values()])
    given, attrs = copies[: len(inputs)], dict(zip(own, copies[len(inputs) :], strict=True))
    with same_randomness(given):
        if graph is not None:
            outputs = run(graph, given, attrs, observer, manner)
        else:
            outputs = program(*given)
    names = _input_names(graph, len(inputs))
    return Effects(
        list(_named_outputs(graph, outputs)),
        [*zip(names, given, strict=True), *((f"buffer {n}", t) for n, t in attrs.items())],
    )


def _input_names(graph: GraphModule | None, count: int) -> list[str]:
    if graph is None:
        return [f"input {i}" for i in range(count)]
    names = [n.name for n in graph.graph.nodes if n.op == "placeholder"]
    return [f"input {i} ({name})" for i, name in enumerate(names[:count])]


def _named_outputs(graph: GraphModule | None, outputs: Any) -> Iterator[tuple[str, Any]]:
    nodes: list[Any] = []
    if graph is not None:
        output = next(n for n in reversed(graph.graph.nodes) if n.op == "output")
        nodes = [node for _, node in leaves(output.args[0])]
    for i, (_, value) in enumerate(leaves(outputs)):
        node = nodes[i] if i < len(nodes) else None
        yield f"output {i}" + (f" ({node.name})" if isinstance(node, Node) else ""), value


def difference(expected: Effects, actual: Effects, tolerance: Tolerance | None = None) -> Difference | None:
    """Return the first difference, or ``None`` when there is none."""
    tolerance = tolerance or Tolerance()
    if len(expected.outputs) != len(actual.outputs):
        return Difference("output", f"expected {len(expected.outputs)} outputs, got {len(actual.outputs)}")
    for (name, one), (_, two) in zip(expected.outputs, actual.outputs, strict=True):
        text = _value_difference(one, two, tolerance)
        if text:
            return Difference("output", f"{name}: {text}")
    text = _input_difference(expected, actual, tolerance)
    if text:
        return Difference("input", text)
    text = _alias_difference(expected, actual)
    return Difference("alias", text) if text else None


def _value_difference(one: Any, two: Any, tolerance: Tolerance) -> str | None:
    if not isinstance(one, torch.Tensor) or not isinstance(two, torch.Tensor):
        same = type(one) is type(two) and (one == two or (one != one and two != two))
        return None if same else f"expected {_short(one)}, got {_short(two)}"
    for what in ("layout", "dtype", "device", "shape"):
        if getattr(one, what) != getattr(two, what):
            return f"expected {what} {getattr(one, what)}, got {getattr(two, what)}"
    if one.layout == torch.strided and one.numel():
        strides = [(a, b) for a, b, n in zip(one.stride(), two.stride(), one.shape, strict=True) if n > 1]
        if any(a != b for a, b in strides):
            return f"expected strides {one.stride()}, got {two.stride()}"
    return _element_difference(one, two, tolerance)


def _short(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    return repr(value)


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """Return the elements' bytes, one row per element."""
    flat = (
        tensor.detach().clone(memory_format=torch.contiguous_format).resolve_conj().resolve_neg().reshape(-1)
    )
    return flat.view(torch.uint8).reshape(flat.numel(), -1)


def _element_difference(one: torch.Tensor, two: torch.Tensor, tolerance: Tolerance) -> str | None:
    if one.layout != torch.strided:
        one, two = one.to_dense(), two.to_dense()
    if not one.numel():
        return None
    is_float = one.is_floating_point() or one.is_complex()
    if is_float and not tolerance.is_zero:
        bad = tolerance.apart(one, two)
    elif torch.equal(_bits(one), _bits(two)):
        return None
    else:
        bad = (_bits(one) != _bits(two)).any(1)
        if is_float and tolerance.any_nan:
            bad &= ~(one.isnan() & two.isnan()).reshape(-1)
    count = int(bad.sum())
    if not count:
        return None
    first = int(bad.nonzero()[0])
    where = [int(i) for i in torch.unravel_index(torch.tensor(first), one.shape)]
    was, now = one.reshape(-1)[first].item(), two.reshape(-1)[first].item()
    return f"{count} of {one.numel()} elements differ, first at {where}: expected {was}, got {now}"


def _input_difference(expected: Effects, actual: Effects, tolerance: Tolerance) -> str | None:
    """Compare what inputs and buffers hold, then the bytes of their storages that no input shows."""
    pairs = [
        (name, one, two)
        for (name, one), (_, two) in zip(expected.inputs, actual.inputs, strict=True)
        if isinstance(one, torch.Tensor)
    ]
    for name, one, two in pairs:
        text = _value_difference(one, two, tolerance)
        if text:
            return f"{name} ends with other values: {text}"
    for name, one, two in pairs:
        if one.layout == torch.strided and not torch.equal(stored_bytes(one), stored_bytes(two)):
            shown = [(a, b) for _, a, b in pairs if a.layout == torch.strided and address(a) == address(one)]
            if not torch.equal(_unshown([a for a, _ in shown]), _unshown([b for _, b in shown])):
                return f"{name}: bytes of its storage outside the input were written"
    return None


def _unshown(tensors: list[torch.Tensor]) -> torch.Tensor:
    """Return a copy of the bytes of one storage, zero where one of the tensors shows them."""
    copies = cloned(tensors)
    for copy in copies:
        sizes = [1 if stride == 0 else n for n, stride in zip(copy.size(), copy.stride(), strict=True)]
        copy.as_strided(sizes, copy.stride()).zero_()
    return stored_bytes(copies[0])


def _alias_difference(expected: Effects, actual: Effects) -> str | None:
    """Compare which values share storage, and how far apart they begin there."""
    names = [name for name, _ in (*expected.inputs, *expected.outputs)]
    one = _relation([v for _, v in (*expected.inputs, *expected.outputs)])
    two = _relation([v for _, v in (*actual.inputs, *actual.outputs)])
    for name, (owner, offset), (other, shift) in zip(names, one, two, strict=True):
        if owner != other:
            if other is not None:
                return f"{name} shares storage with {names[other]}; in the functional graph it does not"
            assert owner is not None
            return f"{name} no longer shares storage with {names[owner]}, as it does in the functional graph"
        if offset != shift and owner is not None:
            return f"{name} begins {shift} bytes after {names[owner]}, expected {offset}"
    return None


def _relation(values: list[Any]) -> list[tuple[int | None, int]]:
    """Return for each value the first other one that it shares storage with, and the bytes between."""
    first: dict[int, int] = {}
    found: list[tuple[int | None, int]] = []
    for i, value in enumerate(values):
        is_dense = isinstance(value, torch.Tensor) and value.layout == torch.strided and value.numel() > 0
        key = address(value) if is_dense else 0
        owner = first.setdefault(key, i) if key else i
        if owner == i:
            found.append((None, 0))
        else:
            found.append((owner, value.data_ptr() - values[owner].data_ptr()))
    return found


def first_node(
    one: GraphModule,
    two: GraphModule,
    inputs: Sequence[Any],
    tolerance: Tolerance,
    manner: Callable[[GraphModule], Manner] = lambda graph: PLAIN,
) -> tuple[Node, str] | None:
    """Return the first node whose value is already another one when it is made, and how it differs.

    Nodes are told by their names; ``None`` where no node of both graphs differs.
    """
    made: dict[str, list[Any]] = {}
    found: list[tuple[Node, str]] = []

    def record(node: Node, value: Any) -> None:
        made[node.name] = cloned([leaf for _, leaf in leaves(value)])

    def compare(node: Node, value: Any) -> None:
        old, new = made.get(node.name), [leaf for _, leaf in leaves(value)]
        if found or old is None or len(old) != len(new) or isinstance(value, GraphModule):
            return
        for was, now in zip(old, new, strict=True):
            text = _value_difference(was, now, tolerance)
            if text:
                found.append((node, text))
                return

    effects(one, inputs, record, manner(one))
    effects(two, inputs, compare, manner(two))
    return found[0] if found else None

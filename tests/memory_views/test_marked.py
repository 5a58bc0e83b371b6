"""Which storages are copies of lowering, and which are clones."""

from __future__ import annotations

from pytest_reinplace.base.lowering_copy import LoweringCopy
from pytest_reinplace.lowered.allocation import Allocation, Origin
from pytest_reinplace.memory_views.marked import key_of, marked
from pytest_reinplace.passes import Outcome, Reason

from .calls import allocation


def copy(buffer: str, *, meant: bool = False) -> LoweringCopy:
    return LoweringCopy("mylib::op.x", 64, "strides", buffer, "buf9", meant=meant)


def clone(
    node: str,
    nbytes: int = 64,
    source: str | None = "model.py:3",
    graph: str = "",
    label: str = "aten::index_put.self",
) -> Outcome:
    return Outcome(
        label, "aten::index_put", "self", node, False, nbytes, Reason.STILL_READ, source=source, graph=graph
    )


def storage(name: str, *nodes: str, nbytes: int = 64, source: str = "", clones: bool = False) -> Allocation:
    return allocation(name, nbytes, origin=Origin(nodes, source, clones))


def told(
    *taken: Allocation, copies: tuple[LoweringCopy, ...] = (), clones: tuple[Outcome, ...] = ()
) -> dict[str, tuple[str, str]]:
    """Return what is said of storages, by their names."""
    return {name: found for (name, _), found in marked(taken, copies, clones).items()}


def kinds(
    *taken: Allocation, copies: tuple[LoweringCopy, ...] = (), clones: tuple[Outcome, ...] = ()
) -> dict[str, str]:
    return {name: kind for name, (kind, _) in told(*taken, copies=copies, clones=clones).items()}


def test_a_copy_is_known_by_its_buffer_and_says_why() -> None:
    found = told(storage("buf0"), storage("buf1[0]"), copies=(copy("buf1"),))
    assert found == {"buf1[0]": ("copy", "mylib::op.x: mylib::op asks for other strides")}


def test_a_copy_that_the_program_means_is_a_value() -> None:
    assert kinds(storage("buf1"), copies=(copy("buf1", meant=True),)) == {}


def test_a_storage_that_a_copy_takes_over_is_that_of_the_value() -> None:
    found = told(allocation("buf0", later=("buf1",)), copies=(copy("buf1"),))
    assert found == {"buf0": ("value", "also holds a copy, mylib::op.x: mylib::op asks for other strides")}


def test_a_clone_that_a_copy_takes_over_says_both() -> None:
    one = allocation("buf0", later=("buf1",), origin=Origin(("index_put",)))
    kind, why = told(one, copies=(copy("buf1"),), clones=(clone("index_put"),))["buf0"]
    assert kind == "clone"
    assert why.split("; ")[1] == "also holds a copy, mylib::op.x: mylib::op asks for other strides"


def test_a_clone_is_known_by_its_node_and_says_why() -> None:
    taken = storage("buf0", "mm"), storage("buf1", "iota", "index_put")
    found = told(*taken, clones=(clone("index_put"),))
    assert found == {"buf1": ("clone", f"aten::index_put.self: {Reason.STILL_READ.sentence}")}


def test_each_turn_of_a_loop_takes_the_same_clone() -> None:
    turns = [storage("buf1", "index_put"), storage("buf0", "mm"), storage("buf1", "index_put")]
    found = marked(turns, [], [clone("index_put")])
    assert [key_of(one) in found for one in turns] == [True, False, True]


def test_a_node_of_a_subgraph_is_none_of_the_graph() -> None:
    clones = (clone("index_put", graph="true_graph_0"),)
    assert kinds(storage("buf1", "index_put"), clones=clones) == {}
    assert kinds(storage("true_graph_0_buf1", "index_put"), clones=clones) == {"true_graph_0_buf1": "clone"}


def test_a_clone_that_was_in_a_wrapper_is_known_by_bytes_and_line() -> None:
    wrapped = clone("auto_functionalized_v2", source="model.py:5", label="mylib::five.x")
    other = clone("auto_functionalized_v2_1", source="model.py:8", label="mylib::eight.x")
    found = told(
        storage("buf0", "clone_default", source="model.py:8", clones=True),
        storage("buf1", "clone_default_1", source="model.py:5", clones=True),
        storage("buf2", "clone", source="model.py:5", clones=True),  # no candidate is left for it
        clones=(wrapped, other),
    )
    labels = {name: why.split(": ")[0] for name, (_, why) in found.items()}
    assert labels == {"buf0": "mylib::eight.x", "buf1": "mylib::five.x"}


def test_a_clone_of_other_bytes_is_no_candidate() -> None:
    wrapped = clone("auto_functionalized_v2")
    assert kinds(storage("buf0", "clone", nbytes=8, clones=True), clones=(wrapped,)) == {}
    assert kinds(storage("buf0", "mm", clones=False), clones=(wrapped,)) == {}

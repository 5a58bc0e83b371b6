"""Entries that are compiled ahead of time: by AOTInductor, and by the graph backend."""

from __future__ import annotations

import copy
import dataclasses
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._inductor import config

from pytest_reinplace.call.program import BuilderError
from pytest_reinplace.capture.capture import Capture
from pytest_reinplace.entry.ahead_of_time import AheadOfTime
from pytest_reinplace.entry.entry import SUFFIX, Entry, load
from pytest_reinplace.entry.run import build, configured, run
from pytest_reinplace.measure.sides import Effort, measured
from pytest_reinplace.passes.oracle.setting import Setting

# Keys and values in one buffer: Inductor's pass copies it for each write, and once more to put it back.
STOCK = [*("aten::index_put.self", "aten::select_scatter.self") * 2, "aten::copy_.self"]
# What our pass leaves is the same with every torch; what Inductor's leaves is looked up with these.
LISTED = torch.__version__.startswith(("2.11.", "2.13."))
BUILDERS = """
import torch
from pytest_reinplace import Program

class Cache(torch.nn.Module):
    def __init__(self, places, device, persistent=True):
        super().__init__()
        self.register_buffer("cache", torch.zeros(2, 2, 4, 8, device=device))
        self.register_buffer("places", torch.zeros(places, dtype=torch.int64, device=device), persistent)
        self.scale = torch.nn.Linear(8, 8, device=device)

    def forward(self, token, *, more):
        rows = torch.arange(2, device=token.device)
        keys, values = self.cache.unbind()
        keys.index_put_((rows, self.places), self.scale(token))
        values.index_put_((rows, self.places), token + more)
        self.places.add_(1).remainder_(4)
        return (keys * values).sum(1)

def step(device, places=2, persistent=False):
    torch.manual_seed(0)
    token = torch.randn(2, 8, device=device)
    return Program(Cache(places, device, persistent), (token,), {"more": token * 2})

def function(device):
    return Program(torch.sin, (torch.ones(3),))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    found = tmp_path_factory.mktemp("ahead")
    (found / "ahead_builders.py").write_text(BUILDERS)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(found)
        yield found


def written(folder: Path, text: str = "", name: str = "step") -> Entry:
    path = folder / f"one{SUFFIX}"
    clones = f"{{exact: [], inductor: {STOCK}}}" if LISTED else "{exact: []}"
    path.write_text(f"builder: ahead_builders:{name}\nahead_of_time: true\nclones: {clones}\n{text}")
    return load(path)


@dataclasses.dataclass
class Libraries:
    """One module, its eager copy, and a library for each pass, all over the same buffers."""

    module: Any
    eager: Any
    fast: dict[str, AheadOfTime]
    clones: dict[str, list[str]]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def begin(self) -> None:
        self.module.load_state_dict(self.eager.state_dict())
        for one in (self.module, self.eager):
            one.places.zero_()
            one.cache.zero_()


@pytest.fixture(scope="module")
def quick() -> Iterator[None]:
    """Compile without optimization, with one precompiled header for kernels and what calls them."""
    with Setting().in_force(), config.patch({"aot_inductor.compile_wrapper_opt_level": "O3"}):
        yield


@pytest.fixture(scope="module")
def libraries(folder: Path, quick: None) -> Libraries:
    """Compile once for each pass; a library takes its compiler seconds."""
    entry = written(folder)
    program = build(entry, entry.presets["cpu"])
    fast: dict[str, AheadOfTime] = {}
    clones = {}
    eager = copy.deepcopy(program.fn)
    for name in ("exact", "inductor"):
        fast[name] = AheadOfTime(entry, program.fn, None)  # type: ignore[arg-type]
        with configured(entry), Capture(name, "inductor") as capture, torch.no_grad():
            fast[name](*program.args, **program.kwargs)
        clones[name] = capture.report.clones
    return Libraries(program.fn, eager, fast, clones, program.args, dict(program.kwargs))


def test_what_is_compiled_is_captured_and_judged(libraries: Libraries) -> None:
    assert libraries.clones["exact"] == []
    assert libraries.clones["inductor"] == STOCK or not LISTED


@pytest.mark.parametrize("names", [("exact",), ("inductor",), ("exact", "inductor", "exact")])
def test_buffers_of_the_module_itself_advance(libraries: Libraries, names: tuple[str, ...]) -> None:
    libraries.begin()
    with torch.no_grad():
        for name in names * 3:
            came = libraries.fast[name](*libraries.args, **libraries.kwargs)
            torch.testing.assert_close(came, libraries.eager(*libraries.args, **libraries.kwargs))
            torch.testing.assert_close(libraries.module.cache, libraries.eager.cache)
            assert libraries.module.places.tolist() == libraries.eager.places.tolist()
    assert libraries.module.places.tolist() == [3 * len(names) % 4] * 2


def test_a_library_sees_what_is_put_into_buffers_and_weights(libraries: Libraries) -> None:
    libraries.begin()
    with torch.no_grad():
        for one in (libraries.module, libraries.eager):
            one.scale.weight.fill_(0.5)
            one.places.fill_(3)
            one.cache.fill_(2)
        came = libraries.fast["exact"](*libraries.args, **libraries.kwargs)
        torch.testing.assert_close(came, libraries.eager(*libraries.args, **libraries.kwargs))


@pytest.mark.usefixtures("quick")
def test_an_entry_is_measured_on_its_own_buffers(folder: Path) -> None:
    entry = written(folder)
    with measured(
        entry, entry.presets["cpu"], "inductor", "inductor", folder, effort=Effort(0.01, 3)
    ) as found:
        (verdict,) = found.verdicts
        side = found.sides["inductor"]
        assert verdict.problems() == []
        left = [o for g in verdict.graphs for o in g.report.outcomes if not o.reinplaced]
        assert (side.clones, side.clone_bytes) == (len(left), sum(o.nbytes for o in left))
        assert len(left) == len(STOCK) or not LISTED
        assert side.moved_bytes is None
        assert side.times
        assert found.sides["eager"].times


@pytest.mark.parametrize("pass_name", ["exact", "inductor"])
def test_the_graph_backend_compiles_what_was_exported(folder: Path, pass_name: str) -> None:
    entry = written(folder)
    verdict = run(entry, entry.presets["cpu"], pass_name, "graph", folder)
    assert verdict.problems() == []
    assert not LISTED or verdict.clones == ([] if pass_name == "exact" else STOCK)


@pytest.mark.parametrize("backend", ["graph", "inductor"])
@pytest.mark.parametrize("places", [[], [1]])
def test_a_written_buffer_of_one_element_is_refused(folder: Path, places: list[int], backend: str) -> None:
    entry = written(folder, f"args: {{places: {places}}}\n")
    with pytest.raises(BuilderError) as error:
        run(entry, entry.presets["cpu"], "exact", backend, folder)
    assert "'places' of ahead_builders:step is written, but has one element" in str(error.value)
    assert "'options: {joint_graph_constant_folding: false}'" in str(error.value)


def test_without_folding_a_buffer_may_have_one_element(folder: Path) -> None:
    text = "args: {places: [1]}\noptions: {joint_graph_constant_folding: false}\n"
    entry = written(folder, text)
    assert run(entry, entry.presets["cpu"], "exact", "graph", folder).problems() == []


def test_only_modules_are_exported(folder: Path) -> None:
    entry = written(folder, name="function")
    with pytest.raises(BuilderError, match=r"ahead_of_time is true; expected .* a torch\.nn\.Module, got"):
        run(entry, entry.presets["cpu"], "exact", "graph", folder)


def test_a_capture_sees_the_first_compilation_of_a_process(tmp_path: Path) -> None:
    """Inductor is not loaded yet there, and ``torch.compile`` is never called."""
    (tmp_path / "first.py").write_text(
        textwrap.dedent(
            """
            import contextlib
            import sys

            import torch
            from pytest_reinplace.capture.capture import Capture

            class Counting(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.register_buffer("counts", torch.zeros(8))

                def forward(self, at, x):
                    self.counts[at] = x
                    return self.counts * 2

            class Seen(Exception):
                pass

            inputs = torch.tensor([1, 2]), torch.ones(2)
            with torch.no_grad(), Capture("exact", "inductor") as capture:
                exported = torch.export.export(Counting(), inputs)
                exported.module()
                assert "torch._inductor.compile_fx" not in sys.modules  # exporting alone loads no compiler

                def stop(_):
                    raise Seen

                config = {"_post_fusion_custom_pass": stop}
                with contextlib.suppress(Exception):  # what comes after the passes takes long
                    torch._inductor.aoti_compile_and_package(exported, inductor_configs=config)
            print(capture.report.reinplaced)
            """
        )
    )
    done = subprocess.run(
        [sys.executable, "first.py"], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stdout.splitlines()[-1] == "['aten::index_put.self']"

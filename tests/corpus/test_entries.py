"""The entries of the corpus: complete, buildable on each device, and as expected on the CPU."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import inspect
from collections import Counter
from pathlib import Path

import pytest
import torch
from torch.fx import GraphModule
from torch.torch_version import TorchVersion

import pytest_reinplace.corpus
from pytest_reinplace import Program
from pytest_reinplace.capture.followed import Followed, Following
from pytest_reinplace.entry.entry import SUFFIX, Entry, load
from pytest_reinplace.entry.run import built, run
from pytest_reinplace.measure import baseline
from pytest_reinplace.passes.inductor.schedule.races import Races
from pytest_reinplace.passes.ledger import Ledger
from pytest_reinplace.passes.ledger.copies import copies_of
from pytest_reinplace.passes.verify import watching_schedules

# Other graphs on other torches: on 2.15 masked values are no index_put, on 2.11 the forward hands its zeros
# to the backward, which makes them itself later.
_TRACED_OTHERWISE = ("lattice-boltzmann", "moe-capacity-training", "seq2seq-teacher-forcing")
_LISTED_ON = "2.13."  # what Inductor leaves as clones is that of this torch; what it computes is right on all
FOLDER = Path(pytest_reinplace.corpus.__file__).parent
ENTRIES = {path.name.removesuffix(SUFFIX): load(path) for path in sorted(FOLDER.glob(f"*{SUFFIX}"))}


# What Inductor's own pass computes wrongly: what a backward reads of an input that was written meanwhile, and
# a copy of an input that is made after its source was written.
_WRONG_WITH_STOCK = ("bert-training", "cloth-constraints", "lstm-training")


@pytest.fixture(params=ENTRIES)
def entry(request: pytest.FixtureRequest) -> Entry:
    found = ENTRIES[request.param]
    for package in found.requires:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"package {package!r} is not installed")
    return found


def test_the_corpus_has_the_families_it_names() -> None:
    assert set(ENTRIES) >= {
        "adafactor-step", "adam-8bit-step", "adamw-foreach", "adan-step", "arnoldi-basis",
        "augment-boxes", "augment-colors", "augment-mosaic", "automaton-history", "beam-search-step",
        "bert-training", "biquad-cascade", "cholesky-blocks", "cholesky-columns", "cloth-constraints",
        "conjugate-gradients", "continuous-batching", "ctc-alphas", "ddim-inpainting",
        "delta-rule-inverse", "delta-rule-recurrent", "depth-buffer", "diffusers-tiled-decode",
        "diffusers-unet-step", "echo-canceller", "edit-distance-rows", "edit-distance-table",
        "fdtd-maxwell", "floyd-warshall", "game-of-life", "gemma-sliding", "generalized-advantages",
        "gpt-fast-decode", "gpt2-decode", "gram-schmidt", "grammar-bitmask", "graph-attention-library",
        "graph-attention-training", "greedy-nms", "hadamard-butterflies", "heat-jacobi", "hmm-forward",
        "householder-least-squares", "int-position-decode", "ising-checkerboard", "knapsack-row",
        "lamb-step", "lattice-boltzmann", "lattice-boltzmann-masked", "lion-step", "llama-decode",
        "llama-int8-cache", "llama-paged", "logits-processors", "lstm-outputs", "lstm-training",
        "lu-pivoting", "mamba-decode", "mamba2-decode", "mamba2-training", "masked-autoencoder",
        "masked-diffusion-decode", "mixtral-decode", "mixtral-training", "moe-capacity-training",
        "moe-permute", "molecular-dynamics", "multi-diffusion", "multistep-solver", "muon-step",
        "muon-torch", "online-cepstral-mean", "particle-in-cell", "poisson-red-black",
        "prefix-sum-tree", "pytorch-optimizer-adan", "pytorch-optimizer-lamb", "pytorch-optimizer-soap",
        "qwen-decode", "replay-buffer-index", "replay-buffer-slices", "reverb-delay-lines",
        "ring-buffer", "running-statistics", "rwkv-decode", "sampling-penalties", "schedule-free-step",
        "schedulefree-adamw", "seq2seq-teacher-forcing", "serving-four-layers-v1",
        "serving-four-layers-v2", "serving-quant-v1", "serving-quant-v2", "serving-sampler",
        "serving-speculative", "serving-v1", "serving-v2", "shared-pools-v1", "shared-pools-v2",
        "shifted-windows", "soap-step", "soap-turn", "soft-dtw", "soft-nms", "softmax-splatting",
        "spec-augment", "speculative-tree-compact", "speculative-verify", "streaming-conv",
        "streaming-conv-roll", "streaming-denoiser", "sum-tree-replay", "t5-cross-attention",
        "tiled-decoder", "timm-resnet-training", "timm-vit-training", "torchao-adamw-8bit",
        "triangular-solve", "tridiagonal-thomas", "triton-autotuned", "triton-cache-write",
        "triton-rms-norm", "triton-rope", "vectorized-environment", "vit-training", "viterbi-path",
        "vocoder-overlap-add", "vtrace-targets", "wave-leapfrog", "whisper-cross-attention",
        "whole-training-step",
    }  # fmt: skip


RECORDED = sorted((FOLDER / baseline.FOLDER).glob("*.yaml"))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_baselines_are_of_entries_and_all_sides(path: Path) -> None:
    found = baseline.load(path)
    assert set(found.entries) <= set(ENTRIES)
    for name, sides in found.entries.items():
        preset = ENTRIES[name].presets["cuda" if path.stem.startswith("cuda") else "cpu"]
        assert set(sides) == {"eager", "exact", "inductor"} - set(preset.unrunnable)
        assert {"torch", "commit"} <= set(found.taken[name])


def test_an_entry_says_what_it_is_and_where_it_comes_from(entry: Entry) -> None:
    assert entry.description
    assert entry.source.startswith("https://")
    assert entry.tags
    assert entry.name == entry.path.name.removesuffix(SUFFIX)


def test_an_entry_has_presets_and_clone_lists_for_all(entry: Entry) -> None:
    for device in ("cpu", "cuda"):
        wrong = {"inductor"} if entry.name in _WRONG_WITH_STOCK else set()
        assert {"exact", "inductor"} - set(entry.presets[device].clones) == wrong


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_builder_takes_the_arguments_of_each_preset(entry: Entry, device: str) -> None:
    module, name = entry.builder.split(":")
    builder = getattr(importlib.import_module(module), name)
    inspect.signature(builder).bind(device=device, **entry.presets[device].args)


def test_a_builder_returns_fresh_programs(entry: Entry) -> None:
    preset = entry.presets["cpu"]
    with built(entry, preset) as first, built(entry, preset) as second:
        assert isinstance(first, Program)
        assert first.fn is not second.fn


@pytest.mark.parametrize("name", ["tensor-parallel-block", "fsdp-copy-in"])
def test_an_entry_leaves_the_process_group_that_it_made(name: str) -> None:
    with built(ENTRIES[name], ENTRIES[name].presets["cpu"]):
        assert torch.distributed.is_initialized()
    assert not torch.distributed.is_initialized()


@pytest.fixture
def ledgers(monkeypatch: pytest.MonkeyPatch) -> list[Ledger]:
    """Return the ledgers that are checked in a test, as they come; of each the copies add up."""
    found, checked = list[Ledger](), Followed.checked

    def kept(self: Followed) -> Ledger:
        found.append(checked(self))
        if found[-1].applications:
            check_copies(found[-1])
        return found[-1]

    monkeypatch.setattr(Followed, "checked", kept)
    return found


def copies(gm: GraphModule) -> Counter[tuple[str, int]]:
    return Counter(copy for node in gm.graph.nodes for copy in copies_of(node))


def check_copies(ledger: Ledger) -> None:
    """Each copy that is left was in the program, or an application brought it; and so do bytes add up."""
    start, end = copies(ledger.graph_before(0)), copies(ledger.graph_after(len(ledger.applications) - 1))
    labels = Counter(label for label, _ in start.elements())
    labels.update(label for a in ledger.applications for label in a.copies_added)
    labels.subtract(label for a in ledger.applications for label in a.copies_removed)
    assert +labels == Counter(label for label, _ in end.elements()) and not -labels
    nbytes = [sum(size for _, size in some.elements()) for some in (start, end)]
    assert nbytes[1] - nbytes[0] == sum(a.copy_bytes for a in ledger.applications)


@pytest.mark.parametrize("pass_name", ["exact", "inductor"])
def test_an_entry_is_as_expected_on_the_cpu(entry: Entry, pass_name: str, ledgers: list[Ledger]) -> None:
    preset = entry.presets["cpu"]
    is_listed = pass_name == "exact" and entry.name not in _TRACED_OTHERWISE
    if not (is_listed or torch.__version__.startswith(_LISTED_ON)):
        preset = dataclasses.replace(preset, clones={})
    following = Following(checks=True)
    verdict = run(entry, preset, pass_name, "graph", FOLDER, following=following)
    assert ledgers and not any(graph.unfollowed for graph in verdict.graphs)
    wrong = [str(a) for ledger in ledgers for a in ledger.applications if a.is_wrong]
    assert not wrong or (pass_name == "inductor" and entry.name in _WRONG_WITH_STOCK)
    if pass_name == "inductor" and entry.name in _WRONG_WITH_STOCK:
        assert verdict.differences or not preset.clones, (
            "right with Inductor's own pass: take it off the list"
        )
        verdict = dataclasses.replace(verdict, differences=())
    if verdict.problems():
        pytest.fail(str(verdict), pytrace=False)


def test_a_write_into_one_part_of_a_concatenation_spoils_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    entry, found = ENTRIES["gnn-scatter-add"], list[str]()
    with watching_schedules(found.append):
        run(entry, entry.presets["cpu"], "exact", "inductor", FOLDER)
        assert found == []
        monkeypatch.setattr(Races, "are_apart", lambda *args: False)
        run(entry, entry.presets["cpu"], "exact", "inductor", FOLDER)
    # Torch 2.15 computes no part into the concatenation where one of them is written.
    expected = ["cat reads"] if TorchVersion(torch.__version__) < (2, 15) else []
    assert [text[:9] for text in found] == expected

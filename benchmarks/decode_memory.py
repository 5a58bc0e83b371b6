"""The README's picture, memory of decode steps before and after: ``python benchmarks/decode_memory.py``.

Its figures are the baselines of the corpus, ``corpus/baselines/cuda-sm90-h200.yaml``. It writes
``docs/decode-memory.svg`` and needs neither a GPU nor torch.
"""

from __future__ import annotations

import dataclasses
import html
import pathlib

import yaml

from pytest_reinplace.base.wording import plural
from pytest_reinplace.compare.figure import shown
from pytest_reinplace.measure.baseline import Baselines, load
from pytest_reinplace.record.figures import STOCK

_TREE = pathlib.Path(__file__).parents[1]
BASELINES = _TREE / "corpus" / "baselines" / "cuda-sm90-h200.yaml"
PICTURE = _TREE / "docs" / "decode-memory.svg"
OURS = "exact"

_LEAST = 0.01  # what differs by less, as a fraction of Inductor's peak, would be two bars of one length
_WIDTH, _LEFT, _BAR, _TOP, _ROW, _FOOT = 700, 16, 500, 84, 78, 50
# The light colours are attributes, which every viewer knows; a style sheet changes them where it is dark.
_LIGHT = {"ink": "#1f2328", "quiet": "#59636e", "card": "#ffffff", "stock": "#8c959f", "ours": "#1f6feb"}
_DARK = {"ink": "#f0f6fc", "quiet": "#9198a1", "card": "#0d1117", "stock": "#6e7681", "ours": "#4493f8"}


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """A decode step of the corpus, with Inductor's own pass and with ours.

    Args:
        entry: its name.
        about: what it is, the beginning of the entry's description.
        peaks: bytes above the level before the call: Inductor's, ours.
        clones: how many copies of candidates: Inductor's, ours.
    """

    entry: str
    about: str
    peaks: tuple[int, int]
    clones: tuple[int, int]

    @property
    def differs(self) -> bool:
        """Whether the two peaks are told apart in a picture."""
        return abs(self.peaks[0] - self.peaks[1]) > _LEAST * self.peaks[0]


def steps(found: Baselines) -> list[Step]:
    """Return every decode step that was measured on both sides, by how much of the peak is saved.

    A decode step is an entry whose builder is called ``decode_step``.
    """
    result = []
    for entry, sides in found.entries.items():
        text = (_TREE / "corpus" / f"{entry}.reinplace.yaml").read_text()
        document = yaml.safe_load(text)
        if document["builder"].endswith(":decode_step") and {STOCK, OURS} <= sides.keys():
            stock, ours = sides[STOCK], sides[OURS]
            peaks = stock["peak_bytes"], ours["peak_bytes"]
            about = document["description"].partition(",")[0]
            result.append(Step(entry, about, peaks, (stock["clones"], ours["clones"])))
    return sorted(result, key=lambda step: (step.peaks[1] / step.peaks[0], step.entry))


def picture(found: Baselines) -> str:
    """Return the SVG: two bars for each decode step whose peaks differ, and how many do not."""
    every = steps(found)
    drawn = [step for step in every if step.differs]
    more = sum(step.peaks[1] > step.peaks[0] for step in every)
    torch = sorted({found.taken[step.entry]["torch"] for step in every})
    height = _TOP + _ROW * len(drawn) + _FOOT
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="14">',
        "<title>Peak memory of one decode step, with Inductor's own pass and with ours</title>",
        "<style>@media (prefers-color-scheme: dark) {",
        *(f"  .{kind} {{ fill: {colour} }}" for kind, colour in _DARK.items()),
        "}</style>",
        f'<rect {_kind("card")} stroke="#8c959f" x="0.5" y="0.5" width="{_WIDTH - 1}" '
        f'height="{height - 1}" rx="8"/>',
        _text(_LEFT, 32, "Peak memory of one decode step", 'font-size="18" font-weight="bold"'),
        *_key(_LEFT, "stock", "torch.compile"),
        *_key(_LEFT + 140, "ours", "torch.compile with our pass"),
        _text(_LEFT + 400, 58, "each pair has its own scale", kind="quiet"),
    ]
    for index, step in enumerate(drawn):
        lines += _row(step, _TOP + _ROW * index)
    foot = f"{len(every) - len(drawn)} further decode steps differ by less than 1 %; " + (
        f"{more} hold more with our pass." if more else "none holds more with our pass."
    )
    lines += [
        _text(_LEFT, height - 34, foot, kind="quiet"),
        _text(
            _LEFT,
            height - 14,
            f"H200, torch {', '.join(torch)}; memory above the level before the call.",
            kind="quiet",
        ),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _kind(kind: str) -> str:
    return f'class="{kind}" fill="{_LIGHT[kind]}"'


def _text(x: float, y: int, text: str, more: str = "", kind: str = "ink") -> str:
    return f'<text {_kind(kind)} x="{x:g}" y="{y}"{" " * bool(more)}{more}>{html.escape(text)}</text>'


def _bar(kind: str, x: int, y: int, width: float, height: int) -> str:
    return f'<rect {_kind(kind)} x="{x}" y="{y}" width="{width:g}" height="{height}"/>'


def _key(x: int, kind: str, text: str) -> list[str]:
    return [_bar(kind, x, 47, 12, 12), _text(x + 18, 58, text)]


def _row(step: Step, y: int) -> list[str]:
    """Return one decode step; its bars are parts of its own larger peak."""
    most = max(step.peaks)
    lines = [_text(_LEFT, y + 14, step.about, 'font-weight="bold"')]
    pairs = zip(("stock", "ours"), step.peaks, step.clones, strict=True)
    for index, (kind, peak, clones) in enumerate(pairs):
        width, top = max(round(_BAR * peak / most, 1), 1), y + 22 + 20 * index
        label = f"{shown('peak_bytes', peak)}, {plural(clones, 'clone')}"
        lines += [_bar(kind, _LEFT, top, width, 16), _text(_LEFT + width + 8, top + 13, label)]
    return lines


if __name__ == "__main__":
    PICTURE.write_text(picture(load(BASELINES)))
    print(f"{PICTURE.relative_to(_TREE)}: written from {BASELINES.relative_to(_TREE)}")

"""What Inductor, or functionalization before it, does wrong, and what we do about it: one row each.

A defence costs lines, compile time and sometimes a copy, and nobody notices when torch no longer needs it. So
each can be switched off. ``tests/passes/inductor/defect_programs.py`` has a program that is wrong then, or
holds more; ``pytest -s tests/passes/inductor/defects_off.py`` runs them on the torch at hand. A row that no
supported torch needs is to be deleted, and its defence with it.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator

VERSIONS = ("2.11", "2.13", "2.15")  # of torch, that are supported


@dataclasses.dataclass(frozen=True, slots=True)
class Defect:
    """Something that goes wrong without us.

    Args:
        name: how it is switched off.
        symptom: what goes wrong.
        by: the function that sees to it, ``"module.function"``, by its module in this package.
        right: the versions of torch on which its program was right without the defence.
        unknown: those on which it was not run.
        gpu: whether its program needs a GPU: where none was at hand it was not run.
    """

    name: str
    symptom: str
    by: str
    right: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    gpu: bool = False

    @property
    def seen(self) -> tuple[str, ...]:
        """The versions on which its program was not right."""
        return tuple(v for v in VERSIONS if v not in (*self.right, *self.unknown))


_FROM_NOOPS = "no-op removal drops what keeps two values apart"


_ROWS = (
    # -- functionalization ---------------------------------------------------------------------------
    Defect(
        "slices-from-storage",
        "A v2 wrapper counts a slice of an input that begins inside its storage from the storage's start.",
        "mend.wrapper_views.count_from_bases",
    ),
    Defect(
        "offset-before-a-store",
        "A view of an input that begins inside its storage, made before a store, is written elsewhere.",
        "mend.wrapper_views.count_from_bases",
    ),
    Defect(
        "real-view-of-complex",
        "What a v2 wrapper writes of a complex base through a view of real numbers is counted in those.",
        "mend.real_views.count_in_reals",
    ),
    Defect(
        "offset-of-a-view",
        "The symbolic offset of a view is lowered to that of its buffer.",
        "mend.wrapper_views.count_from_bases",
    ),
    Defect(
        "offset-after-a-store",
        "What a v2 wrapper writes of an input that was stored into is counted from where the input begins.",
        "mend.wrapper_views.move_with_bases",
        right=("2.15",),
    ),
    # -- the joint graph -----------------------------------------------------------------------------
    Defect(
        "late-epilogue",
        f"An input is copied from after another epilogue wrote it: {_FROM_NOOPS}.",
        "protect.ProtectPass",
        right=("2.15",),
    ),
    Defect(
        "widened-items",
        f"A view of larger items would begin between two of them, and the compile fails: {_FROM_NOOPS}.",
        "protect.ProtectPass",
    ),
    Defect("merged-outputs", f"Two outputs share storage: {_FROM_NOOPS}.", "protect.ProtectPass"),
    Defect(
        "recomputed-from-written",
        "The backward computes again from an input what the forward computed before it wrote that input.",
        "mend.epilogues.save_readers",
    ),
    Defect(
        "forgotten-factor",
        "A sum with a factor, of which a part is a matrix product, is computed without the factor.",
        "mend.factors.write_out",
        right=("2.15",),
    ),
    Defect(
        "forgotten-factor-of-lists",
        "A difference of lists with a factor is computed without the factor.",
        "mend.factors.write_out",
        right=("2.13", "2.15"),
    ),
    # -- wrappers that stay --------------------------------------------------------------------------
    Defect(
        "unmarked-wrapper",
        "A wrapper without a mark of what it clones clones nothing.",
        "stage.clone_all",
        right=("2.13", "2.15"),
    ),
    Defect(
        "clone-at-an-offset",
        "What a wrapper clones of a part, or of a view of another dtype, is found at a wrong offset.",
        "mend.wrapper_operands.copy_operands",
    ),
    Defect(
        "region-that-writes",
        "A clone is not put before a nested region that writes what was cloned.",
        "stage.ReinplacePass",
    ),
    # -- lowering ------------------------------------------------------------------------------------
    Defect(
        "spoiled-by-a-kernel",
        "A value is computed after a kernel has written what it is computed from.",
        "mend.stored_early.realize",
    ),
    Defect(
        "written-twice",
        "What a kernel is given for two arguments, and writes, is computed for each, into memory of its own.",
        "mend.stored_early.realize",
    ),
    Defect(
        "viewed-before-written",
        "What a kernel writes in strides of its own is read in the strides of a view that was made before.",
        "mend.stored_early.realize",
        right=("2.15",),
    ),
    Defect(
        "spoiled-by-a-scatter",
        "What a scatter stores, or where, is read after elements of it were stored.",
        "mend.stored_early.realize",
    ),
    Defect(
        "view-in-its-own-copy",
        "A view of a value is computed in the loop that stores it over what it is computed from.",
        "mend.copied_views.clone_sources",
    ),
    Defect(
        "spoiled-by-a-list",
        "An element of a list is computed after another one has been stored where it is computed from.",
        "mend.stored_early.realize",
    ),
    Defect(
        "unseen-write",
        "A buffer that is made of nothing is made again where it is read, after a kernel has written it.",
        "mend.marked_written.mark",
        right=("2.15",),
    ),
    Defect(
        "offsets-from-input",
        "An offset into an input that begins inside its storage is counted from where the input begins.",
        "mend.input_offsets.rebase",
        right=("2.13", "2.15"),
    ),
    Defect(
        "offset-of-a-called-view",
        "A view of complex numbers counts from where the storage of an input begins, in any later call, too.",
        "mend.input_offsets.rebase",
    ),
    Defect(
        "offset-in-a-copy",
        "What is put into a copy of an input by an offset is put where the input's storage has that offset.",
        "mend.input_offsets.put_into_copies",
        unknown=("2.11", "2.15"),
    ),
    Defect(
        "strides-of-a-view",
        "A view by strides of a view of what is computed is taken of the elements of that view alone.",
        "mend.input_offsets.rebase",
    ),
    Defect(
        "gaps-of-a-scatter",
        "A view by strides is taken of what was stored into an input with gaps, as if it had none.",
        "mend.input_offsets.rebase",
    ),
    Defect(
        "refused-kernel",
        "An in-place operator that has a decomposition is not compiled.",
        "stage.call_kernels",
    ),
    Defect(
        "chances-as-a-number",
        "The tensor of chances of bernoulli_ is written into the program as if it were a number.",
        "target.InductorTarget",
    ),
    Defect(
        "exchanged-buffer",
        "Lists, fills and masked values are stored into another buffer; views of the first keep the old one.",
        "target.lost_by_exchange",
        right=("2.15",),
    ),
    Defect(
        "returned-in-part",
        "A result that is concatenated lies in the concatenation, which is returned as well.",
        "mend.concatenated.keep_apart",
    ),
    # -- the scheduler -------------------------------------------------------------------------------
    Defect(
        "racing-fusion",
        "From the second write into a buffer on, a reader shares a kernel with a store over what it reads.",
        "schedule.veto.FusionVeto",
        right=("2.15",),
    ),
    Defect(
        "forgotten-order",
        "Loops that are computed anew for a kernel on a CPU forget which writes they come after.",
        "schedule.veto.FusionVeto",
        right=("2.13", "2.15"),
    ),
    Defect(
        "forgotten-symbol",
        "The size of a slice is computed before the size that it is computed from is known.",
        "schedule.unbacked.order",
        right=("2.13", "2.15"),
    ),
    Defect(
        "views-by-kernels",
        "What reads a view that a kernel returned (of a complex tensor) comes before a write through others.",
        "schedule.kernel_views.order",
        right=("2.15",),
    ),
    Defect(
        "held-results",
        "What a call of a kernel wrote in place is held until the whole program returns.",
        "schedule.results.let_go",
        right=("2.15",),
    ),
    Defect(
        "windows-of-a-view",
        "What a kernel is given for windows of a view is a copy, or the whole buffer.",
        "mend.windows.reshape",
        right=("2.15",),
    ),
    Defect(
        "list-of-one",
        "A kernel for a list of one element is not compiled.",
        "mend.single_lists.singles",
        unknown=VERSIONS,
        gpu=True,
    ),
)
DEFECTS: dict[str, Defect] = {row.name: row for row in _ROWS}
_off: set[str] = set()


def defended(name: str) -> bool:
    """Return whether we do something about a defect: always, but for ``undefended``."""
    return name not in _off


def switched_off() -> tuple[str, ...]:
    """Return the names of all that is switched off: what is compiled like this is no use to others."""
    return tuple(sorted(_off))


@contextlib.contextmanager
def undefended(*names: str) -> Iterator[None]:
    """Do nothing about some defects inside; raises ``KeyError`` for a name that none has."""
    added = {DEFECTS[name].name for name in names} - _off
    _off.update(added)
    try:
        yield
    finally:
        _off.difference_update(added)

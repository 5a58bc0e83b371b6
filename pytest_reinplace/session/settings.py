"""The options that are in force in a session, as data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..compare.limit import Limit


# Not a data class: it is made in every session of pytest, in a quarter of the time.
class Settings(NamedTuple):
    """The options as they were given; ``None`` where nothing was said."""

    report: bool = False
    json: Path | None = None
    markdown: Path | None = None
    html: Path | None = None
    pass_name: str | None = None
    backend: str | None = None
    device: str | None = None
    verify: bool = False
    verify_rules: bool = False
    ledger: bool = False
    memory: bool = False
    compare: Path | None = None
    fail_on: tuple[Limit, ...] = ()
    measure: bool = False
    against: str | None = None
    baseline_dir: Path | None = None
    update: bool = False
    update_new_only: bool = False
    update_clones: bool = False
    update_diff: bool = False
    disable: bool = False

    @property
    def updates(self) -> bool:
        """Whether baselines are recorded."""
        return (self.update or self.update_new_only) and not self.update_diff

    @property
    def rewrites(self) -> bool:
        """Whether lists of expected clones are rewritten, or it is shown how they would be."""
        return self.update or self.update_clones or self.update_diff

    @property
    def rewrites_graphs(self) -> bool:
        """Whether the texts of graphs are written, or it is shown how they would be."""
        return self.update or self.update_diff

    @property
    def measures(self) -> bool:
        """Whether corpus entries are measured."""
        return self.measure or self.against is not None or self.updates

    @property
    def paths(self) -> dict[str, Path]:
        """The files that are to be written, by the options that name them."""
        given = {
            "--reinplace-json": self.json,
            "--reinplace-markdown": self.markdown,
            "--reinplace-html": self.html,
        }
        return {option: path for option, path in given.items() if path is not None}

    @property
    def reports(self) -> bool:
        """Whether a report is wanted, which is on every test that compiles."""
        return self.report or bool(self.paths)

    @property
    def collects(self) -> bool:
        """Whether something is made of all tests together once they have run."""
        checks = self.verify or self.verify_rules or self.measures or self.compare is not None
        return self.reports or checks or self.rewrites

    @property
    def follows(self) -> bool:
        """Whether it is recorded what each pass and each rule does."""
        is_limited = self.compare is not None and any(limit.needs_ledger for limit in self.fail_on)
        return self.verify_rules or self.ledger or is_limited

    @property
    def explains_peaks(self) -> bool:
        """Whether it is recorded what the programs hold whose peaks tests measure."""
        is_limited = self.compare is not None and any(limit.needs_memory for limit in self.fail_on)
        return self.memory or is_limited

    @property
    def pictured(self) -> bool:
        """Whether a report is wanted that shows the graphs themselves."""
        return self.json is not None or self.html is not None

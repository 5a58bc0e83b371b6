"""What a measured entry reports: its figures and what the gate says of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..record.figures import Measurement
from .gate import Ruling

if TYPE_CHECKING:
    from ..record.record import Record


@dataclasses.dataclass(frozen=True, slots=True)
class Result:
    """A measurement with its ruling, as it travels with the report of its test.

    Args:
        measurement: the figures.
        ruling: what the gate says of them.
        is_right: whether the entry computed what eager does, with the expected clones.
    """

    measurement: Measurement
    ruling: Ruling
    is_right: bool

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            **self.measurement.to_dict(),
            "excesses": list(self.ruling.excesses),
            "remarks": list(self.ruling.remarks),
            "right": self.is_right,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Result:
        """Return what :meth:`to_dict` gave."""
        ruling = Ruling(tuple(data["excesses"]), tuple(data["remarks"]))
        return cls(Measurement.from_dict(data), ruling, bool(data["right"]))


def results_of(records: Iterable[Record]) -> list[Result]:
    """Return what was measured in a session, by test id."""
    return [Result.from_dict(record.measured) for record in records if record.measured is not None]

"""Which bytes the values of a graph would lie in if every candidate were in place."""

from __future__ import annotations

import collections

from .model import Model
from .place import Storage


def trees(model: Model) -> dict[Storage, Storage]:
    """Return the root of each storage's buffer if every candidate were in place."""
    found: dict[Storage, Storage] = {}
    for storage in model.storages:
        candidate = model.made_by.get(storage)
        if candidate is None or candidate.obstacle is not None:
            found[storage] = storage
        else:
            found[storage] = found[candidate.operand.storage]
    return found


def written_back(model: Model) -> dict[int, int]:
    """Return, for each candidate on the way from an input to a copy_ into it, the bytes of that copy."""
    found: dict[int, int] = collections.defaultdict(int)
    for storage, writes in model.writes.items():
        for write in writes:
            way, value = [], write.source.storage
            while value in model.made_by and model.made_by[value].obstacle is None:
                way.append(model.made_by[value].index)
                value = model.made_by[value].operand.storage
            if value is storage and write.is_own:
                for index in way:
                    found[index] += model.nbytes(write.place.region)
    return found

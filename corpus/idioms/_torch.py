"""The seam to torch: every private torch name that the programs use is looked up here and nowhere else."""

from __future__ import annotations

import importlib
from typing import Any


def scan() -> Any:
    """Return torch's ``scan(step, state, rows)``, which has no public name yet.

    Raises:
        RuntimeError: this torch has none where it was in torch 2.11 to 2.15.
    """
    try:
        return importlib.import_module("torch._higher_order_ops.scan").scan
    except (ImportError, AttributeError) as error:
        raise RuntimeError(f"expected torch._higher_order_ops.scan.scan, found none ({error})") from error

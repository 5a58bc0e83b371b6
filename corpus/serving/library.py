"""Custom operators of corpus entries: defined from schemas, once in a process."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch


def define(
    namespace: str, schemas: Mapping[str, str], kernels: Mapping[str, Callable[..., None]]
) -> torch.library.Library:
    """Define operators that write into their arguments and return nothing.

    Args:
        namespace: they live as ``torch.ops.<namespace>.<name>``.
        schemas: arguments and results by name.
        kernels: what runs, by name, on any device.

    Returns:
        The library, which the operators live as long as.
    """
    library = torch.library.Library(namespace, "DEF")
    for name, schema in schemas.items():
        library.define(name + schema)
        library.impl(name, kernels[name], "CompositeExplicitAutograd")
        torch.library.register_fake(f"{namespace}::{name}", _writes_only, lib=library)
    return library


def _writes_only(*args: object) -> None:
    """Stand for an operator on fake tensors: every one returns nothing."""

"""The arguments that a function is explained with: described tensors, or what a callable returns."""

from __future__ import annotations

import dataclasses
import importlib
import re
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from ..base.nearest import nearest, nearest_attribute
from ..base.visible import visible
from ..entry.run import importable
from .errors import CommandError

if TYPE_CHECKING:
    import torch

_SPEC = re.compile(r"([a-z0-9_]+)\[([0-9,\s]*)\]", re.ASCII)
_MOST_BYTES = 1 << 40


@dataclasses.dataclass(frozen=True, slots=True)
class Arguments:
    """How a function is called."""

    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def find(name: str, what: str) -> Any:
    """Return the callable that ``module:attribute`` means; modules in the working folder are found as well.

    Raises:
        CommandError: there is none; names the part that failed.
    """
    module_name, colon, attribute = name.partition(":")
    if not colon or not all(part.isidentifier() for part in [*module_name.split("."), *attribute.split(".")]):
        raise CommandError(f"{what}: expected module:function, got {visible(name, 200)!r}{_meant(name)}")
    with importable(Path.cwd()):
        try:
            found: Any = importlib.import_module(module_name)
        except Exception as error:
            if not isinstance(error, ModuleNotFoundError):
                traceback.print_exc()
            what_failed = f"{type(error).__name__}: {error}"
            if getattr(error, "name", None) in (module_name, module_name.partition(".")[0]):
                sought = f"; modules are looked for on sys.path and in the working folder, {Path.cwd()}"
                what_failed += _meant(name) or sought
            raise CommandError(
                f"{what} {name!r}: {module_name!r} cannot be imported: {what_failed}"
            ) from error
    for part in attribute.split("."):
        owner = found
        try:
            found = getattr(found, part)
        except AttributeError:
            raise CommandError(
                f"{what} {name!r}: {owner!r} has no attribute {part!r}{nearest_attribute(part, owner)}"
            ) from None
    if not callable(found) or isinstance(found, type):
        kind = type(found).__name__
        if isinstance(found, type):
            kind = f"a class: make an instance in a module, and name that, as in {module_name}:model"
        raise CommandError(f"{what} {name!r}: expected a function or a module instance, got {kind}")
    return found


def _meant(name: str) -> str:
    """Return the module that the path of a file means, with a question."""
    path, colon, attribute = name.partition(":")
    dotted = ".".join(PurePath(path.removesuffix(".py")).parts)
    is_name = all(part.isidentifier() for part in [*dotted.split("."), *attribute.split(".")])
    return f": did you mean {f'{dotted}:{attribute}'!r}?" if colon and is_name and dotted != path else ""


def made_by(name: str) -> Arguments:
    """Return what a callable makes: a tuple or list of arguments, a mapping of keywords, or one argument.

    Raises:
        CommandError: there is no such callable, or it raises.
    """
    make = find(name, "--inputs")
    try:
        with importable(Path.cwd()):
            made = make()
    except Exception as error:
        traceback.print_exc()
        raise CommandError(f"--inputs {name!r} raised {type(error).__name__}: {error}") from error
    if isinstance(made, tuple | list):
        return Arguments(tuple(made))
    if isinstance(made, Mapping):
        return Arguments((), made)
    return Arguments((made,))


def described(specs: Sequence[str], device: str) -> Arguments:
    """Return tensors like ``float32[8,16]``; several may stand in one text, with spaces between.

    Floating-point tensors are random, always the same; all others are zero, which every index may be.

    Raises:
        CommandError: a description or the device is wrong.
    """
    import torch

    generator = torch.Generator().manual_seed(0)
    found = []
    for spec in specs:
        parts = re.findall(r"[^\s\[\]]+(?:\[[^\]]*\]?)?|\S+", spec)
        found += [_tensor(part, device, generator) for part in parts or [spec]]
    return Arguments(tuple(found))


def _tensor(spec: str, device: str, generator: torch.Generator) -> torch.Tensor:
    import torch

    form = _SPEC.fullmatch(spec)
    sizes = form[2].split(",") if form and form[2].strip() else []
    if form is None or not all(size.strip().isdigit() and len(size.strip()) <= 18 for size in sizes):
        raise CommandError(f"--shape: expected a tensor like float32[8,16], got {visible(spec, 100)!r}")
    dtype = getattr(torch, form[1], None)
    if not isinstance(dtype, torch.dtype):
        names = [name for name in dir(torch) if isinstance(getattr(torch, name), torch.dtype)]
        raise CommandError(f"--shape: no dtype is called {form[1]!r}{nearest(form[1], names)}")
    shape = [int(size) for size in sizes]
    nbytes = dtype.itemsize
    for size in shape:
        nbytes *= size
    if nbytes > _MOST_BYTES:
        raise CommandError(f"--shape: expected at most {_MOST_BYTES} bytes, got {nbytes} for {spec!r}")
    try:
        if dtype.is_floating_point or dtype.is_complex:
            wide = torch.complex64 if dtype.is_complex else torch.float32
            return torch.randn(shape, generator=generator, dtype=wide).to(device=device, dtype=dtype)
        return torch.zeros(shape, dtype=dtype, device=device)
    except (RuntimeError, AssertionError) as error:  # no such device, no memory
        raise CommandError(f"--shape {spec!r} on {device}: {str(error).splitlines()[0]}") from error

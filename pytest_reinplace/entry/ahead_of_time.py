"""A module compiled ahead of time: exported, made a library by AOTInductor, which writes its buffers.

Stock AOTInductor takes a buffer of one element for a constant even where the program writes it, so that it
has the same content after every call (https://github.com/pytorch/pytorch/issues/165444). Programs with such
a buffer are refused, unless the entry's options switch that folding off.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base import _torch
from ..call.program import BuilderError, Program

if TYPE_CHECKING:
    import torch
    from torch.export import ExportedProgram

    from .entry import Entry

Compiler = Callable[[Any], Callable[..., Any]]

_FOLDING = "joint_graph_constant_folding"


def chosen(entry: Entry, backend: str, just_in_time: Compiler) -> Compiler:
    """Return what compiles an entry's program: ``just_in_time``, or that which compiles it ahead of time.

    Args:
        entry: the entry.
        backend: ``"inductor"``; with ``"graph"`` there is no code to make a library of, so that what was
            exported is compiled by ``just_in_time``.
        just_in_time: ``torch.compile``, with the entry's options.
    """
    if not entry.ahead_of_time:
        return just_in_time
    return lambda module: AheadOfTime(entry, module, just_in_time if backend == "graph" else None)


def check(entry: Entry, program: Program) -> None:
    """Raise :class:`BuilderError` where a program is nothing that can be exported."""
    import torch

    if not isinstance(program.fn, torch.nn.Module):
        raise BuilderError(
            f"{entry.where}: ahead_of_time is true; expected {entry.builder} to return a Program whose fn is "
            f"a torch.nn.Module, got {program.fn!r}; only modules can be exported"
        )


class AheadOfTime:
    """A module as a callable that is exported and compiled when it is first called, with what it is given.

    What it writes it writes into the buffers of the module itself.

    Args:
        entry: the entry, for messages.
        module: its program.
        just_in_time: compiles what was exported; ``None``: AOTInductor does.

    Raises:
        BuilderError: when called, where it writes a buffer that AOTInductor would take for a constant.
    """

    def __init__(self, entry: Entry, module: torch.nn.Module, just_in_time: Compiler | None) -> None:
        self._entry, self._module, self._just_in_time = entry, module, just_in_time
        self._fast: Callable[..., Any] | None = None
        self._held: Mapping[str, torch.Tensor] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the compiled module."""
        if self._fast is None:
            self._fast = self._compiled(args, kwargs)
        return self._fast(*args, **kwargs)

    def _compiled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[..., Any]:
        import torch

        exported = torch.export.export(self._module, args, kwargs)
        self._refuse_folded(exported)
        if self._just_in_time is not None:
            return self._just_in_time(exported.module())
        with tempfile.TemporaryDirectory(prefix="pytest-reinplace-") as folder:
            path = str(Path(folder, "program.pt2"))
            _torch.compile_library(exported, path)
            library = _torch.load_library(path, _device_index(self._module))
        self._held = self._lent(exported, library.get_constant_fqns())
        library.load_constants(self._held, check_full_update=True, user_managed=True)
        return library  # type: ignore[no-any-return]

    def _lent(self, exported: ExportedProgram, names: list[str]) -> dict[str, torch.Tensor]:
        """Return the tensors that a library asks for; it points at them and does not keep them alive."""
        own = {
            **exported.constants,  # those that its code makes, and copies of some that are the module's
            **dict(self._module.named_parameters(remove_duplicate=False)),
            **dict(self._module.named_buffers(remove_duplicate=False)),
        }
        if missing := sorted(set(names) - set(own)):
            raise BuilderError(
                f"{self._entry.where}: AOTInductor made constants of its own ({', '.join(missing)}), which "
                "writes do not reach; remove the option that does so from 'options', such as freezing"
            )
        return {name: own[name] for name in names}

    def _refuse_folded(self, exported: ExportedProgram) -> None:
        """Raise where the program writes a tensor of one element, unless nothing would be folded."""
        if not _torch.inductor_setting(_FOLDING):
            return
        import torch

        tensors = {**exported.constants, **exported.state_dict}
        small = {name for name, t in tensors.items() if isinstance(t, torch.Tensor) and t.numel() == 1}
        if small and (written := sorted(small & _written(exported))):
            raise BuilderError(
                f"{self._entry.where}: {', '.join(map(repr, written))} of {self._entry.builder} is written, "
                "but has one element. AOTInductor takes it for a constant, so that each call starts from the "
                f"same value; give it more elements, or set 'options: {{{_FOLDING}: false}}'"
            )


def _written(exported: ExportedProgram) -> set[str]:
    """Return the names of the module's tensors that an exported program writes."""
    signature = exported.run_decompositions({}).graph_signature
    parameters = getattr(signature, "parameters_to_mutate", {})
    return {*signature.buffers_to_mutate.values(), *parameters.values()}


def _device_index(module: torch.nn.Module) -> int:
    """Return the number of the GPU that a module is on, -1 where it is on none."""
    tensors = [*module.parameters(), *module.buffers()]
    return next((t.device.index for t in tensors if t.is_cuda and t.device.index is not None), -1)


__all__ = ["AheadOfTime", "check", "chosen"]

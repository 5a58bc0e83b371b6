"""User Triton kernels on CPU tensors: captured by torch.compile, run by Triton's interpreter.

On a machine with a GPU only launches on CPU tensors are others than ever. Where Triton is not installed,
every context here does nothing.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
from collections.abc import Callable, Iterator
from typing import Any

from . import _triton


def needed() -> bool:
    """Return whether Triton is installed but has no device to run on. Imports torch."""
    if importlib.util.find_spec("triton") is None:
        return False
    import torch

    return not torch.cuda.is_available() and not _triton.works()


@contextlib.contextmanager
def capturing() -> Iterator[None]:
    """Let ``torch.compile`` capture user kernels on CPU tensors, and analyse what each writes."""
    if not needed():
        yield
        return
    with _triton.believed(), _triton.pretended_gpu():
        yield


@contextlib.contextmanager
def executing() -> Iterator[None]:
    """Run user kernels on CPU tensors by Triton's interpreter: eager launches and FX graphs alike.

    A kernel costs about half a millisecond for each program of its grid, so keep grids small. An
    autotuned kernel runs with its first configuration.
    """
    if importlib.util.find_spec("triton") is None:
        yield
        return
    jit, tuner = _triton.jit_function(), _triton.autotuner()
    with (
        _triton.replaced(jit, "run", _on_cpu_tensors(_run_jit, jit.run)),
        _triton.replaced(tuner, "run", _on_cpu_tensors(_run_autotuner, tuner.run)),
    ):
        yield


@contextlib.contextmanager
def working() -> Iterator[None]:
    """Let user Triton kernels work on the CPU in every way: eager, captured, and through all of Inductor.

    Compile and call inside the block: ``torch.compile(f)(x)`` uses the real Inductor, and only the
    launch of user kernels is replaced.
    """
    if importlib.util.find_spec("triton") is None:
        yield
        return
    owner = _triton.async_compile()
    compile_triton = functools.partialmethod(_compile_generated, owner.triton)
    options_known = _triton.launch_options_known() if needed() else contextlib.nullcontext()
    with capturing(), executing(), options_known, _triton.replaced(owner, "triton", compile_triton):
        yield


def _gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def _on_cpu_tensors(interpreted: Callable[..., None], original: Callable[..., Any]) -> Callable[..., Any]:
    """Return what launches a kernel: interpreted on CPU tensors, and on a GPU's as ever.

    Without a GPU every launch is interpreted. Triton itself takes CPU tensors in pinned memory.
    """
    import torch

    if not _gpu():
        return interpreted

    def run(kernel: Any, *args: Any, **kwargs: Any) -> Any:
        tensors = [v for v in (*args, *kwargs.values()) if isinstance(v, torch.Tensor)]
        is_on_cpu = tensors and all(t.device.type == "cpu" and not t.is_pinned() for t in tensors)
        return (interpreted if is_on_cpu else original)(kernel, *args, **kwargs)

    return run


def _run_jit(kernel: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> None:
    """Stand in for ``JITFunction.run``."""
    if warmup:
        return
    with _triton.language_patched():
        _triton.interpret(kernel, grid, args, kwargs)


def _run_autotuner(tuner: Any, *args: Any, **kwargs: Any) -> None:
    """Stand in for ``Autotuner.run``: the first configuration, with its hook and no benchmark."""
    config = tuner.configs[0]
    options = config.all_kwargs()
    if config.pre_hook is not None:
        config.pre_hook({**dict(zip(tuner.arg_names, args, strict=False)), **kwargs, **options})
    tuner.fn.run(*args, **{**kwargs, **options})


def _compile_generated(
    self: Any, original: Any, kernel_name: str, source_code: str, device_str: str = "cuda"
) -> Any:
    """Stand in for ``AsyncCompile.triton``: user kernels on CPU tensors are interpreted, others as ever."""
    if "custom_kernel=True" not in source_code or (device_str != "cpu" and _gpu()):
        return original(self, kernel_name, source_code, device_str)
    return _InterpretedLaunch(_triton.load_generated(source_code, kernel_name))


class _InterpretedLaunch:
    """What generated code calls to launch a user kernel."""

    def __init__(self, tuner: Any) -> None:
        self._tuner = tuner
        self._kernel = tuner.fn
        self._fixed = {**tuner.triton_meta["constants"], **tuner.configs[0].kwargs}
        # An integer of one and a None are constants too, but generated code passes something for them.
        declared = {self._kernel.arg_names[i] for i in self._kernel.constexprs}
        self._passed = [n for n in self._kernel.arg_names if n not in declared or n not in self._fixed]

    def run(self, *args: Any, stream: Any = None, **kwargs: Any) -> None:
        """Launch the kernel; ``args`` are its arguments not declared constant, then those of the grid."""
        names = [*self._passed, *self._tuner.inductor_meta.get("extra_launcher_args", [])]
        values = {**dict(zip(names, args, strict=True)), **self._fixed}
        grid = _triton.generated_grid(self._tuner, values)
        chosen = {name: values[name] for name in self._kernel.arg_names if name in values}
        with _triton.language_patched():
            _triton.interpret(self._kernel, grid, (), chosen)

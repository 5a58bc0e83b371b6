"""The seam to Triton: every name of Triton, and of what corpus entries need of Inductor, that is not public.

Each is looked up when it is first needed; a missing one raises :class:`TritonSeamError` naming it and
the versions. Nothing here imports torch or triton at module level.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..base._torch import version
from ..base.nearest import nearest


class TritonSeamError(RuntimeError):
    """A private name of Triton or torch that running kernels on the CPU needs is missing."""


def private(module: str, name: str = "") -> Any:
    """Return ``module.name`` (``name`` may be dotted, or empty for the module itself).

    Raises :class:`TritonSeamError` when it is missing.
    """
    try:
        value: Any = importlib.import_module(module)
        for part in name.split(".") if name else ():
            value = getattr(value, part)
    except (ImportError, AttributeError) as error:
        raise TritonSeamError(
            f"expected {module}{name and '.'}{name}, found none ({error}) in torch {_version('torch')} with "
            f"triton {_version('triton')}; user Triton kernels run on the CPU with triton 3.6 to 3.9"
        ) from error
    return value


def _version(package: str) -> str:
    return version(package) or "(not installed)"


@contextlib.contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[Any]:
    """Set ``owner.name`` to ``value`` for the block; yields the original and puts it back."""
    if not hasattr(owner, name):
        raise TritonSeamError(f"expected {owner!r} to have {name!r} (triton {_version('triton')})")
    original = getattr(owner, name)
    kept = vars(owner).get(name, original)  # a static method is more than the function that it gives
    setattr(owner, name, value)
    try:
        yield original
    finally:
        setattr(owner, name, kept)


def works() -> bool:
    """Return whether torch itself believes that Triton kernels can run on this machine."""
    return _answer()


def _answer() -> bool:
    """Ask torch whether Triton works, on the CPU too; since torch 2.15 that has to be said."""
    has_triton = private("torch.utils._triton", "has_triton")
    says = {"include_cpu": True} if "include_cpu" in inspect.signature(has_triton).parameters else {}
    return bool(has_triton(**says))


@contextlib.contextmanager
def believed() -> Iterator[None]:
    """Make torch believe that Triton works here.

    ``has_triton`` is imported by name into many modules, so it is not replaced: its cached answer is,
    by asking it again while a ``"cpu"`` entry stands in Triton's table of backends.
    """
    has_triton = private("torch.utils._triton", "has_triton")
    table = private("triton.backends", "backends")
    caches = [has_triton, *_backend_caches()]
    _forget(caches)
    table["cpu"] = None
    try:
        answer = _answer()
    finally:
        del table["cpu"]
    try:
        if not answer:
            raise TritonSeamError(
                "torch.utils._triton.has_triton() answered False although Triton has a cpu backend "
                f"(torch {_version('torch')}); user Triton kernels cannot be captured on this machine"
            )
        yield
    finally:
        _forget(caches)


def _backend_caches() -> list[Any]:
    """Return the cached functions that remember the backend of the active driver."""
    return [private("torch.utils._triton", name) for name in ("triton_backend", "triton_hash_with_backend")]


def _forget(caches: list[Any]) -> None:
    for cached in caches:
        if not hasattr(cached, "cache_clear"):
            raise TritonSeamError(f"expected {cached!r} to be a functools.cache (torch {_version('torch')})")
        cached.cache_clear()


@contextlib.contextmanager
def pretended_gpu() -> Iterator[None]:
    """Give Triton an active driver that describes a GPU and never launches anything.

    Torch's analysis of what a kernel writes compiles it to Triton IR, which asks the driver for a
    target. Without one the analysis fails with a mere log warning and counts every tensor as written.
    """
    config = private("triton.runtime.driver", "driver")
    with replaced(config, "_active", _pretended_driver()):
        yield


def _pretended_driver() -> Any:
    import torch

    base = private("triton.backends.driver", "DriverBase")
    target = _gpu()

    class PretendedDriver(base):  # type: ignore[misc, valid-type]
        """Answers what Triton asks before a launch."""

        def __init__(self) -> None:
            """Ask nothing of the machine."""

        @classmethod
        def is_active(cls) -> bool:
            return True

        def map_python_to_cpp_type(self, ty: str) -> str:
            return ty

        def get_current_target(self) -> Any:
            return target

        def get_active_torch_device(self) -> Any:
            return torch.device("cpu")

        def get_benchmarker(self) -> Any:
            raise TritonSeamError("a Triton kernel was to be benchmarked on a machine without a GPU")

        def get_current_device(self) -> int:
            return 0

        def get_current_stream(self, device: int = 0) -> int:
            return 0

        def get_device_interface(self) -> None:
            return None

    return PretendedDriver()


@contextlib.contextmanager
def launch_options_known() -> Iterator[None]:
    """Let Inductor sort the keywords of a launch on CPU tensors by the pretended GPU's options.

    Since torch 2.15 it asks Triton's backend of the device which of them are its own, as ``num_warps`` is,
    and which the kernel's; the CPU has no backend to ask. Older ones do not ask.
    """
    helpers = private("torch._inductor.runtime.triton_helpers")
    name, refusal = "get_backend_options_for_target", "raise_if_triton_unavailable"
    original = getattr(helpers, name, None)
    if original is None:
        yield
        return
    interface = private("torch._dynamo.device_interface", "CpuInterface")
    with (
        replaced(interface, refusal, staticmethod(_accept)),
        replaced(helpers, name, lambda _: original(_gpu())),
    ):
        yield


def _accept(device: Any = None) -> None:
    """Stand in for the refusal of a device that Triton has no backend for."""


def _gpu() -> Any:
    """Return Triton's description of the GPU that is pretended."""
    return private("triton.backends.compiler", "GPUTarget")("cuda", 90, 32)


def jit_function() -> Any:
    """Return the class of ``@triton.jit`` functions."""
    return private("triton.runtime.jit", "JITFunction")


def autotuner() -> Any:
    """Return the class of ``@triton.autotune`` kernels."""
    return private("triton.runtime.autotuner", "Autotuner")


def interpret(kernel: Any, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Run a ``@triton.jit`` kernel over its grid with Triton's interpreter."""
    executor_type = private("triton.runtime.interpreter", "GridExecutor")
    executor = executor_type(
        _interpretable(kernel), kernel.arg_names, _plain_grid(kernel, grid, args, kwargs)
    )
    # GridExecutor reads annotations itself and knows no strings, which is what they all are in a module
    # with `from __future__ import annotations`.
    executor.constexprs = [parameter.name for parameter in kernel.params if parameter.is_constexpr]
    executor(*args, **kwargs)


def _plain_grid(kernel: Any, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[int, ...]:
    """Return the grid as numbers; the interpreter would call it with wrapped values."""
    if callable(grid):
        grid = grid({**dict(zip(kernel.arg_names, args, strict=False)), **kwargs})
    return tuple(int(extent) for extent in grid)


def _interpretable(kernel: Any) -> Callable[..., Any]:
    """Return the kernel's Python function, rewritten as the interpreter needs it (cached by Triton)."""
    return private("triton.runtime.interpreter", "InterpretedFunction")(kernel.fn).rewrite()  # type: ignore[no-any-return]


@contextlib.contextmanager
def language_patched() -> Iterator[None]:
    """Let interpreted kernels run, calling each other; ``triton.language`` is as before afterwards.

    Triton's interpreter patches the language again for each ``@triton.jit`` function that a kernel calls
    (``tl.sum`` is one) and never takes that back, after which no kernel compiles to Triton IR any more:
    every later capture would count all tensors as written. So patches are recorded, made once for each
    set of names, and undone in reverse order.
    """
    interpreter = private("triton.runtime.interpreter")
    tensor_type = private("triton.language", "tensor")
    scopes: dict[int, Any] = {}

    def patch_once(function: Any) -> Any:
        names = id(function.__globals__)
        if names not in scopes:
            scopes[names] = patch_language(function)
            # Triton 3.6 turns an array of one element into a number in a way that numpy 2.4 refuses.
            scopes[names].set_attr(tensor_type, "__index__", lambda tensor: int(tensor.handle.data.item()))
        return _NothingToRestore()

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return interpreter.InterpretedFunction(self.fn)(*args, **kwargs)

    with (
        replaced(interpreter, "_patch_lang", patch_once) as patch_language,
        replaced(jit_function(), "__call__", call),
    ):
        try:
            yield
        finally:
            for scope in reversed(scopes.values()):
                scope.restore()


class _NothingToRestore:
    """What the interpreter gets for a scope of patches: restoring is done by :func:`language_patched`."""

    def restore(self) -> None:
        """Leave the patches in place."""


def async_compile() -> Any:
    """Return the class whose ``triton`` method compiles the Triton kernels of generated code."""
    return private("torch._inductor.async_compile", "AsyncCompile")


def load_generated(source: str, name: str) -> Any:
    """Return the tuner object of a user kernel in generated code, without compiling it."""
    return getattr(private("torch._inductor.codecache", "PyCodeCache.load")(source), name)


def generated_grid(tuner: Any, values: dict[str, Any]) -> tuple[int, ...]:
    """Return the launch grid of a generated user kernel for its argument values."""
    expression = private("torch._inductor.runtime.triton_heuristics", "GridExpr")
    grid = expression.from_meta(tuner.inductor_meta, tuner.configs[0]).eval_slow(values)
    return tuple(int(extent) for extent in grid)


@contextlib.contextmanager
def inductor_config(options: Mapping[str, Any]) -> Iterator[None]:
    """Set Inductor's configuration for the block; raises ``ValueError`` for an unknown name."""
    if not options:
        yield
        return
    config = private("torch._inductor.config")
    for name in options:
        if not hasattr(config, name):
            raise ValueError(f"unknown Inductor option {name!r}{nearest(name, config.get_config_copy())}")
    with config.patch(dict(options)):
        yield

"""The seam to torch: every private torch name that the plugin uses is looked up here and nowhere else.

A name is resolved when it is first needed; a missing one raises :class:`SeamError` naming it and the torch
version. Nothing here imports torch at module level.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import logging
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any


class SeamError(RuntimeError):
    """A private name of torch that capturing needs is missing in the installed version."""


def private(module: str, name: str = "") -> Any:
    """Return ``module.name`` (``name`` may be dotted, or empty for the module itself).

    Raises :class:`SeamError` when this torch does not have it.
    """
    try:
        value: Any = importlib.import_module(module)
        for part in name.split(".") if name else ():
            value = getattr(value, part)
    except (ImportError, AttributeError) as error:
        raise SeamError(
            f"expected {module}{name and '.'}{name} in torch {version()}, found none ({error}); "
            "pytest-reinplace supports torch 2.11 to 2.15"
        ) from error
    return value


def version(package: str = "torch") -> str | None:
    """Return the installed version of a package without importing it, ``None`` where there is none."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


@contextlib.contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Set ``owner.name`` to ``value`` for the block and put the original back."""
    if not hasattr(owner, name):
        raise SeamError(f"expected {owner!r} to have {name!r} in torch {version()}, found none")
    original = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, original)


def reset() -> None:
    """Forget everything that ``torch.compile`` compiled; free where Dynamo was never loaded."""
    if "torch._dynamo" not in sys.modules:
        return
    private("torch._dynamo", "reset")()
    wrap = "torch._higher_order_ops.triton_kernel_wrap"
    if wrap in sys.modules:  # later torch does so itself; in 2.11 kernels are numbered on, test after test
        private(wrap, "kernel_side_table.reset_table")()


def forget_kernels() -> None:
    """Let Inductor load its kernels anew when it compiles next, and choose anew what each is compiled for."""
    private("torch._inductor.utils", "clear_caches")()


def inductor_is_loaded() -> bool:
    """Return whether Inductor's compiler has been imported."""
    return "torch._inductor.compile_fx" in sys.modules


def load_inductor() -> None:
    """Import Inductor's compiler."""
    private("torch._inductor.compile_fx")


@contextlib.contextmanager
def before_first_compile(callback: Callable[[], None]) -> Iterator[None]:
    """Call ``callback`` when ``torch.compile`` is called, and when it compiles; imports no Inductor.

    AOTInductor loads the compiler and then makes a module of the exported program: there it is called, too.
    """
    import torch

    owner = private("torch", "_TorchCompileInductorWrapper")
    exported = torch.export.ExportedProgram

    def after_callback(
        original: Callable[..., Any], compiles: Callable[[], bool] = lambda: True
    ) -> Callable[..., Any]:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            if compiles():
                callback()
            return original(self, *args, **kwargs)

        return call

    with (
        replaced(owner, "__init__", after_callback(owner.__init__)),
        replaced(owner, "__call__", after_callback(owner.__call__)),
        replaced(exported, "module", after_callback(exported.module, inductor_is_loaded)),
    ):
        yield


CompileFx = Callable[..., Any]


@contextlib.contextmanager
def compiling_with(redirect: Callable[[CompileFx, CompileFx], CompileFx]) -> Iterator[None]:
    """Replace Inductor's ``compile_fx`` by ``redirect(compile_fx, compile_fx_inner)``."""
    module = private("torch._inductor.compile_fx")
    new = redirect(private("torch._inductor.compile_fx", "compile_fx"), module.compile_fx_inner)
    with replaced(module, "compile_fx", new):
        yield


@contextlib.contextmanager
def compiling_inner_with(redirect: Callable[[CompileFx], CompileFx]) -> Iterator[None]:
    """Replace what ``compile_fx_inner`` calls, by whatever name it was called, by ``redirect(it)``."""
    module = private("torch._inductor.compile_fx")
    inner = private("torch._inductor.compile_fx", "_compile_fx_inner")
    with replaced(module, "_compile_fx_inner", redirect(inner)):
        yield


def compile_library(exported: Any, path: str) -> None:
    """Compile an exported program by AOTInductor; the package at ``path`` (``.pt2``) holds no tensors."""
    compiled = private("torch._inductor", "aoti_compile_and_package")
    compiled(
        exported,
        package_path=path,
        inductor_configs={"aot_inductor.package_constants_in_so": False},
    )


def load_library(path: str, device_index: int) -> Any:
    """Load a package of AOTInductor; ``device_index`` is that of its GPU, -1 for the current one."""
    return private("torch._inductor", "aoti_load_package")(path, device_index=device_index)


Stage = Callable[[Any, str, Callable[[], Any], Any], Any]
POST_GRAD_HOOKS: tuple[str, ...] = ("post_grad_custom_pre_pass", "post_grad_custom_post_pass")


@contextlib.contextmanager
def watching_post_grad(stage: Stage, *, alone: bool = False) -> Iterator[None]:
    """Hand each stage of the post-grad passes to ``stage(graph_module, name, run, custom)``.

    ``run()`` carries the stage out; what ``stage`` returns is what the stage returns. ``custom`` is the pass
    that the configuration has for this stage, ``None`` where it is one of Inductor's own.

    Args:
        stage: who is handed each stage.
        alone: whether whoever watches around this block is passed over.
    """
    owner = private("torch.fx.passes.graph_transform_observer", "GraphTransformObserver")

    def around(original: Callable[..., Any]) -> Callable[..., Any]:
        torchs = getattr(original, "torchs", original)
        carry_out = torchs if alone else original

        def apply(self: Any, pass_fn: Callable[..., Any]) -> Any:
            if self.subsystem != "post_grad_passes":
                return original(self, pass_fn)
            custom = _configured(self.passname, pass_fn)
            return stage(self.gm, self.passname, lambda: carry_out(self, pass_fn), custom)

        apply.torchs = torchs  # type: ignore[attr-defined]
        return apply

    with (
        replaced(owner, "apply_graph_pass", around(owner.apply_graph_pass)),
        replaced(owner, "apply_gm_pass", around(owner.apply_gm_pass)),
    ):
        yield


def _configured(stage: str, pass_fn: Any) -> Any:
    """Return the custom pass that a stage carries out; Inductor runs one of its own by the same name."""
    pass_fn = getattr(pass_fn, "func", pass_fn)  # one that is told is_inference is a partial
    given = inductor_setting(stage) if stage in POST_GRAD_HOOKS else None
    several = given if isinstance(given, list | tuple) else [given]
    return next((one for one in several if one is not None and pass_fn is getattr(one, "func", one)), None)


@contextlib.contextmanager
def after_post_grad(callback: Callable[[Any], None]) -> Iterator[None]:
    """Call ``callback`` with each graph that all post-grad passes have been run on, with its subgraphs."""
    module = private("torch._inductor.compile_fx")
    original = private("torch._inductor.compile_fx", "_recursive_post_grad_passes")
    depth = 0

    def passes(gm: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal depth
        depth += 1
        try:
            result = original(gm, *args, **kwargs)
        finally:
            depth -= 1
        if depth == 0:
            callback(gm)
        return result

    with replaced(module, "_recursive_post_grad_passes", passes):
        yield


def inductor_patched(patches: Any) -> Any:
    """Return a context with another Inductor configuration."""
    return private("torch._inductor.config", "patch")(dict(patches))


@contextlib.contextmanager
def tuning_in(alone: Callable[[], contextlib.AbstractContextManager[None]]) -> Iterator[Callable[[], float]]:
    """Time the candidates of a generated kernel inside ``alone()``, wherever the block runs one first.

    What a kernel is compiled for is chosen by these timings, once: beside somebody else's kernels a worse
    one may be chosen, and whatever is measured afterwards is slower, however often it is repeated.

    Yields:
        What returns how many seconds ``alone`` has been waited for so far.
    """
    tuner = private("torch._inductor.runtime.triton_heuristics", "CachingAutotuner")
    original = private("torch._inductor.runtime.triton_heuristics", "CachingAutotuner.benchmark_all_configs")
    waited = 0.0

    def benchmark_all_configs(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal waited
        start = time.perf_counter()
        with alone():
            waited += time.perf_counter() - start
            return original(self, *args, **kwargs)

    with replaced(tuner, "benchmark_all_configs", benchmark_all_configs):
        yield lambda: waited


def without_autograd_cache() -> Any:
    """Return a context in which AOTAutograd compiles every graph anew; it warns of nothing."""
    return private("torch._functorch.config", "patch")({"enable_autograd_cache": False})


def fake_inputs(values: Any) -> list[Any]:
    """Return fake tensors with the sizes of real ones, in a mode of their own; what is none stays."""
    import torch

    shapes = private("torch.fx.experimental.symbolic_shapes", "ShapeEnv")()
    mode = private("torch._subclasses.fake_tensor", "FakeTensorMode")(
        allow_non_fake_inputs=True, shape_env=shapes
    )
    return [
        mode.from_tensor(value, static_shapes=True) if isinstance(value, torch.Tensor) else value
        for value in values
    ]


def has_fake(values: Any) -> bool:
    """Return whether one of the values is a tensor without data."""
    fake = private("torch._subclasses.fake_tensor", "FakeTensor")
    return any(isinstance(value, fake) or getattr(value, "is_meta", False) for value in values)


def nbytes_of(values: Any) -> int:
    """Return the bytes of the tensors among values."""
    import torch

    return sum(value.nbytes for value in values if isinstance(value, torch.Tensor))


def regenerated_outputs(graph: Any) -> frozenset[int]:
    """Return which outputs of the forward graph that is being compiled AOTAutograd makes anew for the caller.

    They are views of an input or of another output, and only their sizes and strides are used.
    """
    context = private("torch._guards", "TracingContext").try_get()
    infos = getattr(getattr(context, "fw_metadata", None), "output_info", ())
    anew = ("is_input", "alias_of_input", "alias_of_intermediate")
    found = set()
    for i, origin in enumerate(origins(graph)):
        is_result = type(origin).__name__ == "PlainAOTOutput" and origin.idx < len(infos)
        if is_result and infos[origin.idx].output_type.name.startswith(anew):
            found.add(i)
    return frozenset(found)


def saved_outputs(graph: Any) -> frozenset[int]:
    """Return which outputs of a forward graph nobody sees but its backward."""
    names = [type(origin).__name__ for origin in origins(graph)]
    return frozenset(i for i, name in enumerate(names) if name.startswith("SavedForBackwards"))


def origins(graph: Any) -> list[Any]:
    """Return what each output is for AOTAutograd, nothing where that has not made the graph.

    A part of a tensor subclass is what the whole is.
    """
    found = []
    for origin in graph.output_node().meta.get("desc") or ():
        while type(origin).__name__.startswith("Subclass"):
            origin = origin.base
        found.append(origin)
    return found


def compile_id() -> str:
    """Return the id of the running compilation (``"0/1"``), empty where there is none."""
    found = private("torch._guards", "CompileContext").current_compile_id()
    return "" if found is None else str(found)


def inductor_setting(name: str) -> Any:
    """Return an Inductor configuration value that is in force."""
    return getattr(private("torch._inductor.config"), name)


def custom_graph_pass() -> Any:
    """Return the base class of Inductor's custom graph passes."""
    return private("torch._inductor.custom_graph_pass", "CustomGraphPass")


def prepare_for_post_grad(gm: Any, example_inputs: Any) -> Any:
    """Do to an AOTAutograd graph what Inductor does before its post-grad passes; return the fake mode."""
    import torch

    private("torch._inductor.compile_fx", "view_to_reshape")(gm)
    with torch.no_grad():
        return private("torch._inductor.compile_fx", "fake_tensor_prop")(gm, example_inputs)


def run_post_grad(gm: Any, example_inputs: Any, *, is_inference: bool) -> None:
    """Do to an AOTAutograd graph what Inductor does before lowering it, all post-grad passes included."""
    compile_fx = private("torch._inductor.compile_fx")
    fake_mode = prepare_for_post_grad(gm, example_inputs)
    with virtualized().set_fake_mode(fake_mode), compile_fx.get_cuda_device_context(gm):
        private("torch._inductor.compile_fx", "_recursive_post_grad_passes")(gm, is_inference=is_inference)


def run_stock_reinplacing(gm: Any) -> None:
    """Run Inductor's own reinplacing stage alone over a functional graph."""
    updater = private("torch._inductor.fx_utils", "FakeTensorUpdater")
    values = [node.meta["val"] for node in gm.graph.nodes if "val" in node.meta]
    fake_mode = private("torch._guards", "detect_fake_mode")(values)
    with virtualized().set_fake_mode(fake_mode):
        # The argument was the graph until it became the graph module.
        takes_graph = "graph" in updater.__init__.__annotations__
        private("torch._inductor.fx_passes.reinplace", "reinplace_inplaceable_ops")(
            updater(gm.graph if takes_graph else gm), gm.graph
        )


def virtualized() -> Any:
    """Return Inductor's dynamically scoped state."""
    return private("torch._inductor.virtualized", "V")


def size_hint(size: Any) -> int:
    """Return a size as a number: of a symbolic one the value it had when it was traced, else 0."""
    if isinstance(size, int):
        return size
    hint = size.node.hint if size.node.has_hint() else None
    return int(hint) if hint is not None else 0


@contextlib.contextmanager
def counting_moved_bytes() -> Iterator[Callable[[], int]]:
    """Let Inductor count the bytes that its kernels read and write; yields what returns how many by then.

    It counts only where somebody listens to the log of its metrics.
    """
    compile_fx = private("torch._inductor.compile_fx")
    metrics = private("torch._inductor.metrics")
    before = private("torch._inductor.metrics", "num_bytes_accessed")

    class Listening(logging.Logger):
        def isEnabledFor(self, level: int) -> bool:
            return True

        def handle(self, record: logging.LogRecord) -> None:
            pass

    with replaced(compile_fx, "inductor_metrics_log", Listening("inductor_metrics")):
        yield lambda: int(metrics.num_bytes_accessed - before)

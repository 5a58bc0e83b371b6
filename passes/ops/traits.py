"""What operators do beyond what their schemas say: one row for each, and the safe answer for every other one.

A new operator is one line here, or one more name in a line. A row is looked up once, when the operator's
contract is made (``schema.py``): asking it costs what reading an attribute does. A name with an overload
stands for that overload, and its row for all that is known of it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch

aten: Any = torch.ops.aten


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What is known of an operator beside its schema; by default nothing.

    Args:
        shares_first: whether its result shares its first operand's storage although no schema says so.
        writes_nothing: whether it writes nothing although its schema says so.
        returns_operand: whether its result is its operand itself, whatever fake tensors say.
        hides_alias: whether it may return its operand itself although its schema does not say so.
        hides_accesses: whether it writes operands, or reads bytes beside them, that its schema does not name.
        view_or_copy: whether its schema says that it is a view, and it copies where none is possible.
        meta_only: whether it reads sizes and strides, never the elements.
        lowered_as_view: whether Inductor lowers it to a view of the same buffer. Of other views it makes
            kernels whose result it takes for an unrelated tensor: writes through them may be lost.
        maps_indices: whether Inductor lowers it to a view that tells each element's place, and no strides.
        repeats: whether it is a view that may show an element of its operand several times.
        is_copy: whether it is a copy, and nothing else.
        is_index_put: whether it writes elements of its first operand that indices name.
        writes_through: of a view scatter, the view of its first operand that it writes.
        is_computed_scatter: whether Inductor computes a view scatter element by element; the others it
            lowers to a copy of the operand and a store.
        names_offset: whether it may name bytes by an offset into the storage, not into its operand.
        asks_offset: whether its result is told by where in its storage the operand begins.
        asks_strides: whether its result is told by how the operand is laid out.
        retypes: whether it is a view of another dtype, for a beginning that its item size divides.
        by_strides: whether it names bytes by strides of its own, which mean others in another layout.
        regroups: whether it groups dimensions anew, of elements that keep their order.
        keeps_order: whether it keeps the order of elements, counted row by row, and their number.
        picks: whether it picks elements: not pointwise, but computed where it is used all the same.
        is_factory: whether it makes a tensor of nothing.
        is_unfilled: whether it makes memory that holds nothing yet.
        calls_kernel: whether Inductor lowers it to a call of a kernel, or fills in a template, which no
            store is fused with that does not take its result.
        scans: whether Inductor computes it on a GPU and calls its kernel on a CPU, where it scans nothing.
        identity: the position of the operand that no-op removal may put in its place.
        neutral: the constant with which, as its other operand, Inductor folds it away.
        stores: the argument that it stores as it is, without looking at what was there.
        copies_first: whether it hands on what it does not overwrite: functional, it copies its first
            operand. The others compute each element anew; they copy nothing and need fresh memory.
        ignores_first: whether it takes nothing but shape and strides of its first operand.
        in_place: its in-place form (``""`` for the usual name) and its overload, where they are not called
            like itself. Of an operator that takes a tensor for all of a list it takes one for each.
        is_mislowered: whether Inductor cannot compile it although it has a lowering.
        untold: whether its results are laid out by no rule that holds for all operands, or by one that only
            its kernel follows: fake tensors tell their strides where all operands are contiguous.
        untold_of_one: whether they do but for operands with a dimension of one.
        iterated: whether torch's iterator over elements lays its results out, as those of a sum.
        laid_out: the format of its results, whatever fake tensors say of operands that are not contiguous.
    """

    shares_first: bool = False
    writes_nothing: bool = False
    returns_operand: bool = False
    hides_alias: bool = False
    hides_accesses: bool = False
    view_or_copy: bool = False
    meta_only: bool = False
    lowered_as_view: bool = False
    maps_indices: bool = False
    repeats: bool = False
    is_copy: bool = False
    is_index_put: bool = False
    writes_through: Any = None
    is_computed_scatter: bool = False
    names_offset: bool = False
    asks_offset: bool = False
    asks_strides: bool = False
    retypes: bool = False
    by_strides: bool = False
    regroups: bool = False
    keeps_order: bool = False
    picks: bool = False
    is_factory: bool = False
    is_unfilled: bool = False
    calls_kernel: bool = False
    scans: bool = False
    identity: int | None = None
    neutral: int | None = None
    stores: str | None = None
    copies_first: bool = False
    ignores_first: bool = False
    in_place: tuple[str, str] | None = None
    is_mislowered: bool = False
    untold: bool = False
    untold_of_one: bool = False
    iterated: bool = False
    laid_out: torch.memory_format | None = None

    @property
    def is_scatter(self) -> bool:
        """Whether it returns its first operand with a part written: a view scatter, or an ``index_put``."""
        return self.is_index_put or self.writes_through is not None


_VIEW, _META, _SAME = Traits(lowered_as_view=True), Traits(meta_only=True), Traits(identity=0)
_UNTOLD, _ITERATED = Traits(untold=True), Traits(untold=True, iterated=True)
_CONTIGUOUS = torch.contiguous_format


_ROWS: tuple[tuple[str, Traits], ...] = (
    # Views, and what may be one. `_unsafe_view` is a view in all but name, `lift` returns its operand, and
    # so does `device_put` where it is on the device already; `wait_tensor` hands on its collective's buffer.
    ("aten::select aten::t aten::permute aten::transpose aten::detach aten::split", _VIEW),
    ("aten::split_with_sizes aten::unbind aten::chunk", _VIEW),
    ("aten::expand", Traits(lowered_as_view=True, repeats=True)),
    ("aten::diagonal", Traits(lowered_as_view=True, maps_indices=True)),
    ("aten::unfold", Traits(lowered_as_view=True, maps_indices=True, repeats=True)),
    ("aten::slice", Traits(lowered_as_view=True, identity=0)),
    ("aten::alias", Traits(lowered_as_view=True, identity=0, keeps_order=True)),
    ("aten::squeeze aten::unsqueeze", Traits(lowered_as_view=True, keeps_order=True)),
    ("aten::view", Traits(lowered_as_view=True, identity=0, regroups=True)),
    ("aten::view.dtype", Traits(lowered_as_view=True, identity=0, regroups=True, retypes=True)),
    ("aten::view_as_complex prims::view_of_dtype", Traits(retypes=True)),
    ("prims::view_of", Traits(shares_first=True)),
    ("aten::_unsafe_view", Traits(shares_first=True, lowered_as_view=True, regroups=True)),
    ("aten::reshape", Traits(view_or_copy=True, lowered_as_view=True, regroups=True)),
    ("aten::flatten", Traits(view_or_copy=True, regroups=True)),
    ("aten::contiguous aten::reshape_as aten::to aten::ravel", Traits(view_or_copy=True)),
    ("aten::lift", Traits(shares_first=True, returns_operand=True, hides_alias=True)),
    ("prims::device_put", Traits(hides_alias=True, identity=0)),
    (
        "_c10d_functional::wait_tensor",
        Traits(shares_first=True, returns_operand=True, lowered_as_view=True),
    ),
    # By strides. Copies by strides read bytes of the storage that their operand need not show.
    ("aten::as_strided", Traits(lowered_as_view=True, by_strides=True, names_offset=True)),
    ("prims::as_strided", Traits(writes_nothing=True, by_strides=True, names_offset=True)),
    ("aten::_reshape_alias prims::as_strided_scatter", Traits(by_strides=True)),
    ("aten::as_strided_copy", Traits(hides_accesses=True, by_strides=True, asks_offset=True)),
    ("aten::_reshape_alias_copy", Traits(hides_accesses=True, by_strides=True)),
    # Sizes and strides.
    ("aten::sym_size aten::sym_numel aten::size aten::numel aten::dim aten::is_same_size", _META),
    ("aten::rand_like aten::randn_like aten::randint_like aten::new_empty aten::new_zeros", _META),
    ("aten::new_ones aten::new_full aten::new_empty_strided", _META),
    (
        "aten::sym_stride aten::stride aten::is_contiguous aten::sym_is_contiguous "
        "aten::is_non_overlapping_and_dense",
        Traits(meta_only=True, asks_strides=True),
    ),
    ("aten::sym_storage_offset aten::storage_offset", Traits(meta_only=True, asks_offset=True)),
    # Tensors made of nothing. A user of `empty` may choose a layout while nothing is written into it.
    ("aten::empty_like aten::zeros_like aten::ones_like", Traits(meta_only=True, is_factory=True)),
    ("aten::full_like", Traits(meta_only=True, is_factory=True)),
    ("aten::full aten::arange prims::iota aten::scalar_tensor", Traits(is_factory=True)),
    ("aten::zeros aten::ones aten::empty", Traits(is_factory=True)),
    ("aten::empty_permuted aten::empty_quantized", Traits(is_factory=True)),
    ("aten::empty.memory_format aten::empty_strided", Traits(is_factory=True, is_unfilled=True)),
    # Copies, and what may be one.
    ("aten::clone", Traits(is_copy=True, identity=0, keeps_order=True)),
    ("aten::copy", Traits(is_copy=True, identity=1, keeps_order=True)),
    ("aten::repeat aten::ceil aten::floor aten::round aten::trunc aten::pow", _SAME),
    ("prims::convert_element_type", _SAME),
    ("aten::pow.Scalar", Traits(identity=0, untold=True)),
    ("aten::cat", Traits(identity=0)),
    ("aten::constant_pad_nd", Traits(identity=0, picks=True)),
    ("aten::flip", Traits(picks=True)),
    ("aten::gather", Traits(picks=True)),
    ("aten::index aten::_unsafe_index", Traits(picks=True, untold_of_one=True)),
    ("aten::add aten::sub", Traits(neutral=0)),
    ("aten::mul aten::div", Traits(neutral=1)),
    (
        "aten::div.Scalar_mode aten::div.Tensor_mode",
        Traits(neutral=1, untold=True, iterated=True),
    ),
    # Their first operand, with a part written.
    ("aten::slice_scatter", Traits(writes_through=aten.slice.Tensor, is_computed_scatter=True, identity=1)),
    ("aten::select_scatter", Traits(writes_through=aten.select.int, is_computed_scatter=True)),
    ("aten::diagonal_scatter", Traits(writes_through=aten.diagonal.default)),
    (
        "aten::as_strided_scatter",
        Traits(writes_through=aten.as_strided.default, by_strides=True, names_offset=True),
    ),
    ("aten::_unsafe_index_put", Traits(is_index_put=True)),
    ("aten::index_put", Traits(is_index_put=True, stores="values", copies_first=True)),
    ("aten::put aten::index_copy", Traits(stores="source", copies_first=True)),
    ("aten::scatter", Traits(stores="src", copies_first=True)),
    ("aten::scatter_add aten::scatter_reduce", Traits(copies_first=True)),
    ("aten::index_add aten::index_reduce aten::masked_fill", Traits(copies_first=True)),
    ("aten::masked_scatter aten::tril aten::triu", Traits(copies_first=True)),
    ("aten::index_fill", Traits(copies_first=True, laid_out=torch.preserve_format)),
    # No schema tells that their first operand's old elements play no part: they are only overwritten.
    ("aten::fill aten::random aten::exponential aten::geometric", Traits(ignores_first=True)),
    ("aten::cauchy aten::log_normal", Traits(ignores_first=True)),
    ("aten::zero aten::uniform", Traits(ignores_first=True, untold=True)),
    ("aten::normal_functional", Traits(ignores_first=True, in_place=("normal_", "default"))),
    ("aten::bernoulli.p", Traits(ignores_first=True, in_place=("bernoulli_", "float"))),
    # Inductor has no in-place form of lists and one tensor for all of them.
    (
        "aten::_foreach_add.Tensor aten::_foreach_mul.Tensor aten::_foreach_div.Tensor",
        Traits(in_place=("", "List")),
    ),
    # Inductor writes the tensor of chances into its program as if it were a number (torch 2.11 to 2.15).
    ("aten::bernoulli_.Tensor", Traits(is_mislowered=True)),
    ("aten::mm aten::bmm aten::addmm aten::baddbmm aten::convolution", Traits(calls_kernel=True)),
    ("aten::_int_mm aten::_scaled_mm", Traits(calls_kernel=True)),
    ("aten::cumsum aten::cumprod", Traits(scans=True)),
    # Receives write into the tensors that they are given, and hand them on: their schemas say neither. Batch
    # norms that are no longer made write their running statistics.
    ("_c10d_functional::irecv _c10d_functional::batch_p2p_ops", Traits(hides_accesses=True)),
    ("aten::cudnn_batch_norm aten::miopen_batch_norm", Traits(hides_accesses=True)),
    ("aten::native_batch_norm", Traits(hides_accesses=True, untold=True)),
    # Results with other strides than fake tensors say. Collectives whose kernels make every result
    # contiguous Inductor calls on copies of its own making.
    ("aten::roll", Traits(laid_out=_CONTIGUOUS)),
    (
        "_c10d_functional::all_reduce_coalesced _c10d_functional::broadcast",
        Traits(untold=True, laid_out=_CONTIGUOUS),
    ),
    ("aten::angle aten::complex aten::copysign aten::divide.Scalar_mode aten::divide.Tensor_mode", _ITERATED),
    ("aten::floor_divide aten::hardsigmoid_backward aten::hardswish_backward aten::heaviside", _ITERATED),
    ("aten::logaddexp aten::logaddexp2 aten::logical_and aten::logical_or aten::logical_xor", _ITERATED),
    ("aten::logit_backward aten::polar aten::special_xlog1py aten::special_xlogy aten::xlogy", _ITERATED),
    ("aten::_fft_c2c aten::_fft_c2r aten::_fft_r2c aten::_foreach_pow aten::_standard_gamma", _UNTOLD),
    ("aten::_log_softmax_backward_data aten::_weight_norm_interface aten::channel_shuffle", _UNTOLD),
    ("aten::binary_cross_entropy aten::binary_cross_entropy_backward aten::isin aten::ldexp", _UNTOLD),
    ("aten::fft_fft2 aten::fft_fftn aten::fft_ifft2 aten::fft_ifftn aten::log_sigmoid", _UNTOLD),
    ("aten::log_sigmoid_forward aten::native_dropout_backward aten::normal aten::poisson", _UNTOLD),
    ("aten::resize_as aten::rrelu aten::_native_batch_norm_legit aten::batch_norm_backward", _UNTOLD),
    ("aten::glu_backward aten::hardtanh_backward aten::huber_loss_backward aten::max_unpool2d", _UNTOLD),
    ("aten::max_unpool3d aten::mse_loss_backward aten::native_batch_norm_backward", _UNTOLD),
    ("aten::native_group_norm_backward aten::native_layer_norm_backward", _UNTOLD),
    ("aten::nll_loss2d_forward aten::reflection_pad2d_backward aten::reflection_pad3d", _UNTOLD),
    ("aten::reflection_pad3d_backward aten::replication_pad2d aten::replication_pad2d_backward", _UNTOLD),
    ("aten::replication_pad3d aten::replication_pad3d_backward aten::smooth_l1_loss_backward", _UNTOLD),
)
ROWS: dict[str, Traits] = {name: row for names, row in _ROWS for name in names.split()}


def row_of(name: str, overload: str) -> Traits:
    """Return what is known of an overload of an operator; the defaults where there is no row."""
    return ROWS.get(f"{name}.{overload}") or ROWS.get(name) or Traits()


def overloads(question: Callable[[Traits], object]) -> tuple[Any, ...]:
    """Return the overloads, but those that write into an ``out=``, of whose rows a question is true."""
    found: dict[str, Any] = {}
    for name in (name for name, row in ROWS.items() if question(row)):
        space, _, rest = name.partition("::")
        packet, _, only = rest.partition(".")
        every = getattr(getattr(torch.ops, space), packet, None)
        known = every.overloads() if every is not None else ()
        named = [o for o in known if o == only or not only]
        found.update((f"{every}.{o}", getattr(every, o)) for o in named if not o.endswith("out"))
    return tuple(found.values())

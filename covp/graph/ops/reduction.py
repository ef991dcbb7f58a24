"""Reductions over axes: SUM, MEAN, the largest and the least, products, norms, logic.

float32 is added element by element in the order of memory and rounded each time, as kernels do: a
mean of dequantized integers often lies half-way between two steps, where another order would show.
Integers wrap modulo their size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from covp.errors import ModelError
from covp.graph.arithmetic import Arithmetic, Scaling
from covp.graph.graph import Op
from covp.graph.index_map import IndexMap, everything, reduce_axes
from covp.graph.ops.definition import (
    OPS,
    Array,
    Domains,
    OpDefinition,
    Shape,
    check_type,
    given,
    ieee,
)
from covp.graph.quantization import quantize_multiplier

Axes = tuple[int, ...]
Reduce = Callable[[Array, Axes], Any]

_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_NUMBERS = ("float32", *_INTEGERS)


@dataclass(frozen=True)
class Reduction:
    """The declaration of a reduction.

    Attributes:
        compute: of plain numbers.
        types: names of the plain types that it takes.
        quantized: the types of stored values that it takes.
    """

    compute: Reduce
    types: tuple[str, ...]
    quantized: tuple[str, ...] = ()


def _largest(x: Array, axes: Axes) -> Any:
    if x.dtype.kind == "f":
        return x.max(axis=axes, initial=-np.inf)
    return x.max(axis=axes, initial=_end(x.dtype, "min"))


def _least(x: Array, axes: Axes) -> Any:
    if x.dtype.kind == "f":
        return x.min(axis=axes, initial=np.inf)
    return x.min(axis=axes, initial=_end(x.dtype, "max"))


def _end(dtype: np.dtype[Any], name: str) -> Any:
    return name == "max" if dtype == np.bool_ else getattr(np.iinfo(dtype), name)


def _in_order(add: np.ufunc, x: Array, axes: Axes, start: int) -> Any:
    """Combine elements one by one in the order of memory, in their type."""
    if x.dtype.kind != "f":
        return add.reduce(x, axis=axes, dtype=x.dtype)
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    extents = [x.shape[axis] for axis in kept]
    rows = x.transpose(*kept, *sorted(axes)).reshape(*extents, count(x.shape, axes))
    first = np.full((*rows.shape[:-1], 1), start, x.dtype)
    return add.accumulate(np.concatenate([first, rows], axis=-1), axis=-1)[..., -1]


def _sum(x: Array, axes: Axes) -> Any:
    return _in_order(np.add, x, axes, 0)


def _mean(x: Array, axes: Axes) -> Any:
    if x.dtype.kind == "f":
        return _sum(x, axes) / x.dtype.type(count(x.shape, axes))
    total = x.sum(axis=axes, dtype=np.uint64 if x.dtype.kind == "u" else np.int64)
    # truncate: numpy rounds down
    quotient, rest = np.divmod(total, total.dtype.type(max(count(x.shape, axes), 1)))
    return quotient + ((rest != 0) & (total < 0))


def _log_of_exponentials(x: Array, axes: Axes) -> Any:
    largest = np.max(x, axis=axes, initial=-np.inf, keepdims=True)
    largest = np.where(np.isfinite(largest), largest, np.float32(0))
    powers = _sum(np.exp(x - largest), axes)
    return np.log(powers) + largest.squeeze(axes)


_STORED = ("int8", "int16")
REDUCTIONS: dict[str, Reduction] = {
    "MEAN": Reduction(_mean, _NUMBERS, _STORED),
    "REDUCE_ALL": Reduction(lambda x, axes: x.all(axis=axes), ("bool",)),
    "REDUCE_ANY": Reduction(lambda x, axes: x.any(axis=axes), ("bool",)),
    "REDUCE_L1": Reduction(lambda x, axes: _sum(np.abs(x), axes), _NUMBERS),
    "REDUCE_L2": Reduction(lambda x, axes: np.sqrt(_sum(x * x, axes)), ("float32",)),
    "REDUCE_LOG_SUM": Reduction(lambda x, axes: np.log(_sum(x, axes)), ("float32",)),
    "REDUCE_LOG_SUM_EXP": Reduction(_log_of_exponentials, ("float32",)),
    "REDUCE_MAX": Reduction(_largest, (*_NUMBERS, "bool"), (*_STORED, "uint8")),
    "REDUCE_MIN": Reduction(_least, (*_NUMBERS, "bool"), (*_STORED, "uint8")),
    "REDUCE_PROD": Reduction(lambda x, axes: _in_order(np.multiply, x, axes, 1), _NUMBERS),
    "REDUCE_SUM_SQUARE": Reduction(lambda x, axes: _sum(x * x, axes), _NUMBERS),
    "SUM": Reduction(_sum, _NUMBERS, _STORED),
}
"""The rule of each kind."""
SAME_SCALE = ("REDUCE_MAX", "REDUCE_MIN")


def count(shape: Shape, axes: Axes) -> int:
    """Return the elements that are reduced to one."""
    return int(np.prod([shape[axis] for axis in axes], dtype=np.int64))


def _shape(op: Op) -> list[Shape]:
    a, source = op.attributes, op.input(0)
    if op.kind in SAME_SCALE and source.quantization is not None:
        scales = [(t.scale, t.zero_point) for t in (source, op.output)]
        if scales[0] != scales[1]:
            raise ModelError("its input and output have different scales; TFLM rejects it too")
    if a.axes is None:
        wide = op.kind == "MEAN" and source.dtype != np.float32
        if wide or op.kind == "REDUCE_LOG_SUM_EXP" or source.quantization is not None:
            raise ModelError(f"the axes of {op.kind} must be constant")
        return [op.output.shape]
    if a.keep_dims:
        return [tuple(1 if axis in a.axes else n for axis, n in enumerate(source.shape))]
    return [tuple(n for axis, n in enumerate(source.shape) if axis not in a.axes)]


def _reference(op: Op, values: Sequence[Array | None]) -> list[Array]:
    x, axes = given(values, 0), op.attributes.axes
    if axes is None:
        axes = tuple(sorted({int(axis) % x.ndim for axis in given(values, 1).reshape(-1)}))
    if op.input(0).quantization is not None and op.kind not in SAME_SCALE:
        result = _quantized_mean(op, x, axes)
    else:
        if x.dtype.kind == "f" and op.kind in SAME_SCALE and not op.attributes.nan_counts:
            end = -np.inf if op.kind == "REDUCE_MAX" else np.inf
            x = np.where(np.isnan(x), x.dtype.type(end), x)
        with ieee():
            result = np.asarray(REDUCTIONS[op.kind].compute(x, axes)).astype(x.dtype)
    return [result.reshape(op.output.shape)]


def mean_factor(op: Op, elements: int) -> tuple[int, int]:
    """Return the multiplier and shift for the sum of ``elements`` values minus zero points.

    Source: reference_ops::QuantizedMeanOrSum, which puts 1 / count into the factor of MEAN; TFLM
    and LiteRT use it for equal quantization on both sides too (older ones divided there).
    """
    multiplier, shift = quantize_multiplier(op.input(0).scale / op.output.scale)
    if op.kind == "SUM":
        return multiplier, shift
    extra = min(elements.bit_length() - 1, 32, 31 + shift)
    return (multiplier << extra) // elements, shift - extra


def mean_scaling(op: Op, elements: int) -> Scaling:
    """Return the numbers of the same; of onnxruntime QLinearGlobalAveragePool's.

    Source: core/mlas/lib/qlgavgpool.cpp.
    """
    out, info = op.output, np.iinfo(op.output.dtype)
    divisor = np.float32(elements if op.kind == "MEAN" else 1)
    single = np.float32(op.input(0).scale) / (np.float32(out.scale) * divisor)
    clamp = int(info.min), int(info.max)
    fixed = [mean_factor(op, elements)]
    return Arithmetic.of(op).scaling(op, fixed, [single], clamp)


def _quantized_mean(op: Op, x: Array, axes: Axes) -> Array:
    elements = count(x.shape, axes)
    total = x.sum(axis=axes, dtype=np.int64) - op.input(0).zero_point * elements
    return Arithmetic.of(op).finish(total, mean_scaling(op, elements)).astype(x.dtype)


def _types(op: Op) -> None:
    rule, source = REDUCTIONS[op.kind], op.input(0)
    if op.output.dtype != source.dtype:
        raise ModelError(
            f"tensor {op.output.name} is {op.output.dtype} and {source.name} is {source.dtype}; "
            "one type is needed, convert the model again",
            tensor=op.output.name,
        )
    quantized = source.quantization is not None and source.dtype != np.float32
    check_type(source, *(rule.quantized if quantized else rule.types))


_IN_ANY_ORDER = frozenset({"REDUCE_ALL", "REDUCE_ANY", "REDUCE_MAX", "REDUCE_MIN"})


def _reads(op: Op) -> list[IndexMap]:
    a = op.attributes
    if a.axes is None:
        return everything(op)
    return reduce_axes(op, a.axes, a.keep_dims, "any order" if op.kind in _IN_ANY_ORDER else "sum")


def _axes_that_fit(op: Op) -> Domains:
    """Return the first axes that give the output's shape, for axes that come at run time."""
    if op.attributes.axes is None:
        source = op.input(0).shape
        for axes in combinations(range(len(source)), op.input(1).size):
            kept = [n for axis, n in enumerate(source) if axis not in axes]
            units = [1 if axis in axes else n for axis, n in enumerate(source)]
            if list(op.output.shape) in (kept, units):
                return {1: (np.array(axes), np.array(axes))}
    return {}


for _kind in REDUCTIONS:
    OPS[_kind] = OpDefinition(
        _shape, _reference, types=_types, domains=_axes_that_fit, reads=_reads
    )

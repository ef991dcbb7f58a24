"""BATCH_MATMUL: matrix products of two tensors, both of which may come at run time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from covp.errors import ModelError
from covp.graph.arithmetic import Arithmetic, Scaling
from covp.graph.float_scaling import requantization_factor
from covp.graph.graph import Op
from covp.graph.index_map import Index, IndexMap, Space
from covp.graph.ops.definition import OPS, Array, OpDefinition, Shape, given, ieee, of_one_type
from covp.graph.ops.int16 import check_int16
from covp.graph.quantization import quantize_multiplier


@dataclass(frozen=True)
class BatchMatMul:
    """BATCH_MATMUL: (..., M, K) times (..., K, N); the axes before broadcast as in numpy.

    Attributes:
        adj_x, adj_y: the last two axes of the first, of the second input are swapped: it is stored
            as (..., K, M), as (..., N, K).
    """

    adj_x: bool = False
    adj_y: bool = False


def product_multiplier(first: float, second: float, result: float) -> tuple[int, int]:
    """Return the factor of a sum of products of two quantized tensors: multiplier and shift.

    The two scales are multiplied in single precision (GetQuantizedConvolutionMultipler, which
    tensorflow/lite/micro/kernels/batch_matmul.cc calls).

    Args:
        first, second, result: scales of the factors and of the output.
    """
    product = float(np.float32(first) * np.float32(second))
    return quantize_multiplier(product / result)


def matmul_factor(op: Op) -> tuple[int, int]:
    """Return the `product_multiplier` of an int8 or int16 BATCH_MATMUL."""
    return product_multiplier(op.input(0).scale, op.input(1).scale, op.output.scale)


def matmul_scaling(op: Op) -> Scaling:
    """Return the numbers of an int8 or int16 BATCH_MATMUL: one factor, the whole type as clamp."""
    out, info = op.output, np.iinfo(op.output.dtype)
    scales = (t.quantization.scale for t in (op.input(0), op.input(1), out) if t.quantization)
    clamp = int(info.min), int(info.max)
    factor = requantization_factor(*scales)
    return Arithmetic.of(op).scaling(op, [matmul_factor(op)], factor, clamp)


def _matrix(shape: Shape, adjoint: bool) -> tuple[int, int]:
    rows, columns = shape[-2:]
    return (columns, rows) if adjoint else (rows, columns)


def _shape(op: Op) -> list[Shape]:
    a: BatchMatMul = op.attributes
    first, second = op.input(0).shape, op.input(1).shape
    if min(len(first), len(second)) < 2:
        raise ModelError(f"shapes {first} and {second} are not two matrices")
    rows, depth = _matrix(first, a.adj_x)
    other, columns = _matrix(second, a.adj_y)
    check_int16(op.input(0), op.input(1), op.output)
    if depth != other:
        raise ModelError(f"shapes {first} and {second} do not fit a matrix product")
    try:
        batch = np.broadcast_shapes(first[:-2], second[:-2])
    except ValueError:
        raise ModelError(f"the batches of {first} and {second} do not broadcast") from None
    return [(*batch, rows, columns)]


def _reference(op: Op, values: Sequence[Array | None]) -> list[Array]:
    a: BatchMatMul = op.attributes
    x, y = given(values, 0), given(values, 1)
    x = np.swapaxes(x, -1, -2) if a.adj_x else x
    y = np.swapaxes(y, -1, -2) if a.adj_y else y
    out = op.output
    if out.dtype == np.float32:
        with ieee():
            return [np.asarray(np.matmul(x, y), np.float32)]
    if out.quantization is None:
        with ieee():  # plain integers wrap
            return [np.asarray(np.matmul(x, y), out.dtype)]
    if out.dtype == np.int16:
        sums = np.matmul(x.astype(np.int64), y.astype(np.int64))
    else:
        # exact in double: at most 2**16 a product, far fewer than 2**37 products
        centred = [
            values.astype(np.float64) - op.input(position).zero_point
            for position, values in enumerate((x, y))
        ]
        sums = np.matmul(*centred).astype(np.int64)
    return [Arithmetic.of(op).finish(sums, matmul_scaling(op)).astype(out.dtype)]


def _reads(op: Op) -> list[IndexMap]:
    a: BatchMatMul = op.attributes
    space = Space(op)
    *batch, row, column = space.axes
    element = space.loop(_matrix(op.input(0).shape, a.adj_x)[1])
    found = []
    for position, pair, swapped in ((0, (row, element), a.adj_x), (1, (element, column), a.adj_y)):
        *own, _, _ = op.input(position).shape
        outside = batch[len(batch) - len(own) :]
        place = [Index() if n == 1 else axis for n, axis in zip(own, outside, strict=True)]
        found.append((*place, *(pair[::-1] if swapped else pair)))
    return [space.make_map(*found)]


def _macs(op: Op) -> int:
    return op.output.size * _matrix(op.input(0).shape, op.attributes.adj_x)[1]


OPS["BATCH_MATMUL"] = OpDefinition(
    _shape,
    _reference,
    _macs,
    of_one_type("int8", "int16", "float32", "int32", data=None),
    reads=_reads,
    is_product=True,
)

"""int8 BATCH_MATMUL as plain numbers: a 1x1 convolution with weights that come at run time."""

from __future__ import annotations

import math
from dataclasses import dataclass

from covp.errors import ModelError
from covp.graph.attributes import Padding
from covp.graph.graph import Op
from covp.graph.ops.matmul import BatchMatMul, matmul_factor
from covp.graph.quantization import activation_range
from covp.graph.typed_convolution import Convolution


@dataclass(frozen=True, eq=False)
class QuantizedMatMul(Convolution):
    """An int8 BATCH_MATMUL: the rows of the first operand are pixels, one below the other.

    Attributes:
        input_zero_point, weight_zero_point, output_zero_point: of the first and the second operand
            and the output.
        multiplier, shift: of all sums; shift is positive to the left.
        clamp: lowest and highest output, in stored units.
        input_by_depth: the first operand is stored (depth, rows), not (rows, depth).
        weights_by_depth: the second is stored (depth, columns), not (columns, depth).
        input_repeats, weights_repeat: one matrix for all of several products.
    """

    input_zero_point: int
    weight_zero_point: int
    output_zero_point: int
    multiplier: int
    shift: int
    clamp: tuple[int, int]
    input_by_depth: bool
    weights_by_depth: bool
    input_repeats: bool
    weights_repeat: bool


def resolve_matmul(op: Op) -> QuantizedMatMul:
    """Return the integers of an int8 BATCH_MATMUL.

    Raises:
        ModelError: an operand repeats along some axes of the batch and not along others.
    """
    a: BatchMatMul = op.attributes
    first, second, result = op.input(0), op.input(1), op.output
    *batches, rows, columns = result.shape
    batch = math.prod(batches)
    repeats = []
    for tensor in (first, second):
        own = math.prod(tensor.shape[:-2])
        if own not in (1, batch):
            raise ModelError(f"{op.name}: {tensor.name} repeats along a part of the batch")
        repeats.append(own != batch)
    depth = first.shape[-2 if a.adj_x else -1]
    multiplier, shift = matmul_factor(op)
    return QuantizedMatMul(
        batch=batch,
        in_height=rows,
        in_width=1,
        in_channels=depth,
        out_height=rows,
        out_width=1,
        out_channels=columns,
        kernel=(1, 1),
        stride=(1, 1),
        dilation=(1, 1),
        padding=Padding(),
        depthwise=False,
        input_zero_point=first.zero_point,
        weight_zero_point=second.zero_point,
        output_zero_point=result.zero_point,
        multiplier=multiplier,
        shift=shift,
        clamp=activation_range("none", result.scale, result.zero_point, result.dtype),
        input_by_depth=a.adj_x,
        weights_by_depth=not a.adj_y,
        input_repeats=repeats[0],
        weights_repeat=repeats[1],
    )

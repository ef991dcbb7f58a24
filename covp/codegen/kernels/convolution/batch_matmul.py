"""BATCH_MATMUL: blocks of rows times columns with all sums in registers, any strides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from covp.codegen.c_text import indent
from covp.codegen.kernels.loop_nest import LoopNest, broadcast_strides, dense_strides
from covp.codegen.kernels.operands import Operands
from covp.codegen.kernels.requantize.finisher import finisher
from covp.codegen.layer import KernelRequest, LayerCode, kernel
from covp.graph.graph import Op
from covp.graph.ops.matmul import matmul_scaling

Shape = tuple[int, ...]


@dataclass(frozen=True)
class MatrixProduct:
    """The shape and strides, in elements, of a BATCH_MATMUL.

    Attributes:
        rows, columns, depth: M, N and K of each product.
        batches: the index space of the products, and the strides of both inputs and the output.
        x: from one row, and from one k, to the next of the first input.
        y: from one k, and from one column, to the next of the second.
    """

    rows: int
    columns: int
    depth: int
    batches: LoopNest
    x: tuple[int, int]
    y: tuple[int, int]

    @staticmethod
    def of(op: Op) -> MatrixProduct:
        """Return the numbers of an operator."""
        first, second, result = op.input(0).shape, op.input(1).shape, op.output.shape
        x, y = (first[-1], 1), (second[-1], 1)
        batches = LoopNest.over(
            result[:-2],
            x=_batch_strides(first, result),
            y=_batch_strides(second, result),
            output=dense_strides(result)[:-2],
        )
        return MatrixProduct(
            result[-2],
            result[-1],
            first[-2] if op.attributes.adj_x else first[-1],
            batches,
            x[::-1] if op.attributes.adj_x else x,
            y[::-1] if op.attributes.adj_y else y,
        )


def _batch_strides(shape: Shape, result: Shape) -> Shape:
    """Return the elements between neighbours of each axis of the output before the last two."""
    step = shape[-2] * shape[-1]
    return tuple(step * n for n in broadcast_strides(shape[:-2], result[:-2]))


@kernel("BATCH_MATMUL", "float32", "int32")
def emit_matmul(request: KernelRequest) -> LayerCode:
    """Emit products of numbers as they are; int32 modulo 2**32."""
    product = MatrixProduct.of(request.op)
    if request.op.output.dtype == np.float32:
        tile = _Tile(product, "float", "float", "0.0f")
    else:
        # unsigned, because signed overflow is undefined
        tile = _Tile(product, "int32_t", "uint32_t", "0", load="(uint32_t){}", store="(int32_t){}")
    return _emit(request, tile, [], [])


@kernel("BATCH_MATMUL", "int8")
def emit_int8_matmul(request: KernelRequest) -> LayerCode:
    """Emit products of (byte - zero point); sums are requantized like a convolution's."""
    op = request.op
    product = MatrixProduct.of(op)
    zeros = op.input(0).zero_point, op.input(1).zero_point
    bound = product.depth * math.prod(128 + abs(zero) for zero in zeros)
    requantizer = finisher(request.core, request.arithmetic, matmul_scaling(op), bound)
    constants = ", ".join(str(int(column[0])) for column in requantizer.columns())
    wraps = requantizer.wraps
    tile = _Tile(
        product,
        "int8_t",
        "uint32_t" if wraps else "int32_t",
        "0",
        load="(uint32_t){}" if wraps else "{}",
        store=f"(int8_t)requantize((int32_t){{}}, {constants})",
        zeros=zeros,
    )
    return _emit(request, tile, [requantizer.function()], [requantizer.includes])


@kernel("BATCH_MATMUL", "int16")
def emit_int16_matmul(request: KernelRequest) -> LayerCode:
    """Emit products with sums of 64 bits: two products of int16 may leave 32."""
    op = request.op
    product = MatrixProduct.of(op)
    bound = product.depth << 30
    requantizer = finisher(request.core, request.arithmetic, matmul_scaling(op), bound)
    constants = ", ".join(str(int(column[0])) for column in requantizer.columns())
    total = "int64_t"
    cast = "" if requantizer.sum_type == total else f"({requantizer.sum_type})"
    tile = _Tile(
        product,
        "int16_t",
        total,
        "0",
        store=f"(int16_t)requantize({cast}{{}}, {constants})",
        factor="int32_t",
        product_text="(int64_t){} * {}",
    )
    return _emit(request, tile, [requantizer.function()], [requantizer.includes])


@dataclass(frozen=True)
class _Tile:
    """The types and C expressions by which a block of sums is computed.

    Attributes:
        element, total: C types of the tensors' elements and of the sums.
        start: C constant at which sums begin.
        load, store: C expressions of a factor from an element, of the output from a sum.
        zeros: subtracted from the elements of both inputs.
        factor: C type of factors; the sums' where it is empty.
        product_text: C expression of the product of two factors.
    """

    product: MatrixProduct
    element: str
    total: str
    start: str
    load: str = "{}"
    store: str = "{}"
    zeros: tuple[int, int] = (0, 0)
    factor: str = ""
    product_text: str = "{} * {}"

    def function(self, rows: int, columns: int) -> str:
        """Return C text of ``tileRxC(x, y, to)``."""
        p, kind = self.product, self.element
        sums = [(r, c) for r in range(rows) for c in range(columns)]
        body = [
            f"{self.total} " + ", ".join(f"s{r}{c} = {self.start}" for r, c in sums) + ";",
            f"for (int32_t k = 0; k < {p.depth}; k++) {{",
            indent([self._factor("x", r, p.x[0]) for r in range(rows)]),
        ]
        for c in range(columns):
            body.append(indent([self._factor("y", c, p.y[1])]))
            products = [self.product_text.format(f"x{r}", f"y{c}") for r in range(rows)]
            body += [f"    s{r}{c} += {product};" for r, product in enumerate(products)]
        body += [f"    x += {p.x[1]};", f"    y += {p.y[0]};", "}"]
        body += [f"to[{r * p.columns + c}] = {self.store.format(f's{r}{c}')};" for r, c in sums]
        return (
            f"static void tile{rows}x{columns}(const {kind} *x, const {kind} *y, {kind} *to)\n"
            f"{{\n{indent(body)}\n}}\n"
        )

    def _factor(self, name: str, number: int, stride: int) -> str:
        zero = self.zeros[name == "y"]
        value = f"{name}[{number * stride}]" + (f" - ({zero})" if zero else "")
        value = self.load.format(f"({value})" if zero else value)
        return f"{self.factor or self.total} {name}{number} = {value};"


_ROWS, _COLUMNS = 2, 4  # sums, pointers and factors that fit 13 registers


def _emit(
    request: KernelRequest, tile: _Tile, definitions: Sequence[str], includes: Sequence[str]
) -> LayerCode:
    """Emit loops over batches, rows and columns; what is left of either is a smaller block."""
    op, p = request.op, tile.product
    rows, columns = _split(p.rows, _ROWS), _split(p.columns, _COLUMNS)
    functions = [tile.function(r, c) for r, _, _ in rows for c, _, _ in columns]
    calls = []
    for r, first_row, last_row in rows:
        inner = []
        for c, first, last in columns:
            at = f"y + column * {p.y[1]}"
            inner += [
                f"for (int32_t column = {first}; column < {last}; column += {c})",
                f"    tile{r}x{c}(x + row * {p.x[0]}, {at}, to + row * {p.columns} + column);",
            ]
        calls += [
            f"for (int32_t row = {first_row}; row < {last_row}; row += {r}) {{",
            indent(inner),
            "}",
        ]

    def product(ahead: int) -> list[str]:
        kind = tile.element
        return [
            f"const {kind} *x = input0 + {p.batches.at('x', ahead)};",
            f"const {kind} *y = input1 + {p.batches.at('y', ahead)};",
            f"{kind} *to = output + {p.batches.at('output', ahead)};",
            *calls,
        ]

    return Operands.of(op, (0, 1)).layer(
        request,
        p.batches.loops(product),
        [*definitions, *functions],
        includes,
        schedule=f"{_ROWS} rows x {_COLUMNS} columns",
    )


def _split(extent: int, block: int) -> list[tuple[int, int, int]]:
    """Return (size, first, end) of the blocks that make up an extent."""
    whole = extent - extent % block
    parts = [(block, 0, whole), (extent - whole, whole, extent)]
    return [part for part in parts if part[1] < part[2]]

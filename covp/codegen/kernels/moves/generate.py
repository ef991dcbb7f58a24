"""RANGE, FILL, SHAPE and COMPRESS."""

from __future__ import annotations

import math

from covp.codegen.c_text import c_type, indent
from covp.codegen.kernels.moves.copy import c_element, copy_loops, fill_loops
from covp.codegen.kernels.operands import Operands
from covp.codegen.kernels.pointwise.pointwise_formulas import unsigned_type
from covp.codegen.layer import KernelRequest, LayerCode, kernel
from covp.graph.ops.layout import ELEMENT_TYPES


@kernel("RANGE", "float32", "int16", "int32", "int64")
def emit_range(request: KernelRequest) -> LayerCode:
    """Emit RANGE: start + i * step for each element i; integers wrap."""
    op, dtype = request.op, request.op.output.dtype
    number = c_type(dtype)
    wide = number if dtype.kind == "f" else unsigned_type(dtype)
    body = [
        f"for (int32_t i = 0; i < {op.output.size}; i++) {{",
        f"    output[i] = ({number})(({wide})input0[0] + ({wide})i * ({wide})input1[0]);",
        "}",
    ]
    return Operands.of(op, (0, 2)).layer(request, body)


@kernel("FILL", *ELEMENT_TYPES)
def emit_fill(request: KernelRequest) -> LayerCode:
    """Emit loops that store the value everywhere."""
    op = request.op
    body = fill_loops((op.output.size,), ("output", (1,), 0), "input[0]")
    return Operands.of(op).layer(request, body)


@kernel("SHAPE", *ELEMENT_TYPES)
def emit_shape(request: KernelRequest) -> LayerCode:
    """Emit SHAPE: stores of constants, because shapes are static."""
    op = request.op
    body = [f"output[{n}] = {extent};" for n, extent in enumerate(op.input(0).shape)]
    return Operands.of(op, ()).layer(request, body)


@kernel("COMPRESS", *ELEMENT_TYPES)
def emit_compress(request: KernelRequest) -> LayerCode:
    """Emit COMPRESS: a copy of one run of elements for each condition that is true."""
    op, a = request.op, request.op.attributes
    shape = op.input(0).shape
    outer, run = math.prod(shape[: a.axis]), math.prod(shape[a.axis + 1 :])
    element = c_type(op.output.dtype)
    copy = copy_loops((run,), ("from", (1,), 0), ("to", (1,), 0), op.output.dtype.itemsize)
    body = [
        *fill_loops((op.output.size,), ("output", (1,), 0), c_element(0, op.output.dtype)),
        f"for (int32_t o = 0; o < {outer}; o++) {{",
        f"    {element} *to = output + o * {a.count * run};",
        "    int32_t found = 0;",
        f"    for (int32_t n = 0; n < {op.input(1).size} && found < {a.count}; n++) {{",
        f"        const {element} *from = input0 + (o * {shape[a.axis]} + n) * {run};",
        "        if (input1[n]) {",
        indent(copy, 3),
        f"            to += {run};",
        "            found++;",
        "        }",
        "    }",
        "}",
    ]
    return Operands.of(op, (0, 1)).layer(request, body)

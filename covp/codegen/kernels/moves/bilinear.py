"""RESIZE_BILINEAR: neighbours and weights of rows and columns are tables."""

from __future__ import annotations

import numpy as np

from covp.codegen.c_text import c_array, c_type, indent
from covp.codegen.kernels.operands import Operands
from covp.codegen.layer import KernelRequest, LayerCode, kernel
from covp.graph.ops.bilinear import BITS, neighbours


@kernel("RESIZE_BILINEAR", "int8", "uint8", "int16", "float32")
def emit_bilinear(request: KernelRequest) -> LayerCode:
    """Emit loops over four weights for each pixel, then its channels."""
    op = request.op
    batch, height, width, channels = op.input(0).shape
    result = op.output.shape
    floating = op.output.dtype == np.float32
    element = c_type(op.output.dtype)
    tables = []
    for name, axis, step in (("rows", 0, width * channels), ("columns", 1, channels)):
        found = neighbours(op, axis)
        pairs = np.stack([found.lower, found.upper], axis=1) * step
        tables.append(c_array(name, pairs.astype(np.int32), "starts of both neighbours"))
        weight = found.weight.astype(np.float32 if floating else np.int32)
        tables.append(c_array(f"{name}_weight", weight, "of the second"))
    # 16 bits weighed with 20 leave 32
    number = "float" if floating else "int64_t" if op.output.dtype == np.int16 else "int32_t"
    one = "1.0f" if floating else str(1 << BITS)
    pixel = [
        f"const {number} wy = rows_weight[y], wx = columns_weight[x];",
        f"const {element} *a = image + rows[2 * y] + columns[2 * x];",
        f"const {element} *b = image + rows[2 * y + 1] + columns[2 * x];",
        f"const {element} *c = image + rows[2 * y] + columns[2 * x + 1];",
        f"const {element} *d = image + rows[2 * y + 1] + columns[2 * x + 1];",
        *_weigh(number, one, channels, floating, element),
    ]
    body = [
        f"const {element} *image = input;",
        f"for (int32_t n = 0; n < {batch}; n++, image += {height * width * channels}) {{",
        f"    for (int32_t y = 0; y < {result[1]}; y++) {{",
        f"        for (int32_t x = 0; x < {result[2]}; x++) {{",
        indent(pixel, 3),
        "        }",
        "    }",
        "}",
    ]
    return Operands.of(op).layer(request, body, tables)


def _weigh(number: str, one: str, channels: int, floating: bool, element: str) -> list[str]:
    """Return the loop over channels; float products in LiteRT's order, which rounds each."""
    loop = f"for (int32_t i = 0; i < {channels}; i++) {{"
    if floating:
        return [
            loop,
            f"    *output++ = a[i] * ({one} - wy) * ({one} - wx) + b[i] * wy * ({one} - wx)",
            f"        + c[i] * ({one} - wy) * wx + d[i] * wy * wx;",
            "}",
        ]
    half, bits = 1 << (2 * BITS - 1), 2 * BITS
    return [
        f"const {number} ll = ({one} - wy) * ({one} - wx), ul = wy * ({one} - wx);",
        f"const {number} lu = ({one} - wy) * wx, uu = wy * wx;",
        loop,
        f"    const {number} sum = a[i] * ll + b[i] * ul + c[i] * lu + d[i] * uu;",
        f"    *output++ = ({element})((sum + (sum > 0 ? {half} : -{half})) / (1 << {bits}));",
        "}",
    ]

"""RESIZE_NEAREST_NEIGHBOR: the source rows and columns are tables."""

from __future__ import annotations

import numpy as np

from covp.codegen.c_text import c_array, c_type, indent
from covp.codegen.kernels.moves.copy import copy_loops
from covp.codegen.kernels.operands import Operands
from covp.codegen.layer import KernelRequest, LayerCode, kernel
from covp.graph.ops.layout import ELEMENT_TYPES, nearest_indices


@kernel("RESIZE_NEAREST_NEIGHBOR", *ELEMENT_TYPES)
def emit_resize(request: KernelRequest) -> LayerCode:
    """Emit copies of pixels, whose channels lie together."""
    op, a = request.op, request.op.attributes
    batch, height, width, channels = op.input(0).shape
    rows, columns = (
        nearest_indices(source, target, a.align_corners, a.half_pixel_centers)
        for source, target in zip((height, width), a.size, strict=True)
    )
    tables = [
        c_array("rows", np.array(rows, np.int32) * width * channels, "start of each source row"),
        c_array("columns", np.array(columns, np.int32) * channels, "start of each source pixel"),
    ]
    element = op.output.dtype.itemsize
    copy = copy_loops((channels,), ("from", (1,), 0), ("output", (1,), 0), element)
    pointer = c_type(op.output.dtype)
    body = [
        f"for (int32_t image = 0; image < {batch}; image++) {{",
        f"    const {pointer} *source = input + image * {height * width * channels};",
        f"    for (int32_t y = 0; y < {a.size[0]}; y++) {{",
        f"        for (int32_t x = 0; x < {a.size[1]}; x++) {{",
        f"            const {pointer} *from = source + rows[y] + columns[x];",
        indent(copy, 3),
        f"            output += {channels};",
        "        }",
        "    }",
        "}",
    ]
    return Operands.of(op).layer(request, body, tables)

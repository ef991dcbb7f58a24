"""CIRCULAR_BUFFER: old rows move up, new ones are copied after them."""

from __future__ import annotations

import math

from covp.codegen.c_text import indent
from covp.codegen.kernels.operands import Operands
from covp.codegen.layer import KernelRequest, LayerCode, kernel


@kernel("CIRCULAR_BUFFER", "int8", "uint8", "int16", "int32", "float32")
def emit_circular_buffer(request: KernelRequest) -> LayerCode:
    """Emit a memmove and a memcpy for each index before the axis; the output may be the buffer."""
    op = request.op
    axis, shape = op.attributes.axis, op.output.shape
    row = math.prod(shape[axis + 1 :])
    whole, new = row * shape[axis], row * op.input(1).shape[axis]
    kept, outer = whole - new, math.prod(shape[:axis])
    size = op.output.dtype.itemsize
    at = (f" + i * {whole}", f" + i * {new}") if outer > 1 else ("", "")
    body = [f"memcpy(output{at[0]} + {kept}, input1{at[1]}, {new * size});"]
    if kept:
        body.insert(0, f"memmove(output{at[0]}, input0{at[0]} + {new}, {kept * size});")
    if outer > 1:
        body = [f"for (int32_t i = 0; i < {outer}; i++) {{", indent(body), "}"]
    if not kept:
        body.insert(0, "(void)input0;")
    return Operands.of(op, (0, 1)).layer(
        request, body, includes=["#include <string.h>"], in_place=[op.input(0)]
    )

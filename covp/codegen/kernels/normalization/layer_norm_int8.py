"""int8 layer normalization: two passes over a row, integers throughout."""

from __future__ import annotations

from string import Template

import numpy as np

from covp.codegen.c_text import c_array
from covp.codegen.kernels.clamp import clamp, clamp_includes
from covp.codegen.kernels.operands import Operands
from covp.codegen.layer import KernelRequest, LayerCode, kernel
from covp.graph.ops.layer_norm_int8 import FRACTION, layer_norm_integers


@kernel("LAYER_NORMALIZATION_INT8", "int8")
def emit_layer_norm(request: KernelRequest) -> LayerCode:
    """Emit loops row by row; may run in place."""
    op = request.op
    k = layer_norm_integers(op)
    body = _BODY.substitute(
        depth=k.depth,
        rows=op.output.size // k.depth,
        epsilon=k.epsilon,
        fraction=FRACTION,
        unroll=next(n for n in (4, 3, 2, 1) if k.depth % n == 0),
        clamp=clamp(request.core, "result", -128, 127),
    )
    tables = [
        c_array("factors", k.factor.astype(np.int32), "gamma over the output's scale"),
        c_array("offsets", k.offset, "beta, zero point and a half"),
    ]
    return Operands.of(op).layer(
        request,
        body.splitlines(),
        [*tables, _ROOT],
        [clamp_includes(request.core, -128, 127)],
        in_place=[op.input(0)],
    )


_ROOT = """\
/* floor(sqrt(value)), of 16 bits, a bit at a time */
static uint32_t square_root(uint32_t value)
{
    uint32_t root = 0, rest = value;
    for (uint32_t bit = 1u << 30; bit; bit >>= 2) {
        uint32_t both = root + bit;
        root >>= 1;
        if (rest >= both) {
            rest -= both;
            root += bit;
        }
    }
    return root;
}
"""
_BODY = Template("""\
for (int32_t row = 0; row < $rows; row++, input += $depth, output += $depth) {
    int32_t total = 0, squares = 0;
#pragma GCC unroll $unroll
    for (int32_t i = 0; i < $depth; i++) {
        total += input[i];
        squares += input[i] * input[i];
    }
    uint64_t spread = (uint64_t)((int64_t)squares * $depth - (int64_t)total * total) << $fraction;
    spread += ${epsilon}u;
    spread = spread ? spread : 1;
    int32_t h = 16 - $fraction / 2;
    while (!(spread >> 62)) {
        spread <<= 2;
        h--;
    }
    uint32_t reciprocal = 0x80000000u / square_root((uint32_t)(spread >> 32));
    int32_t left = h < 3 ? 3 - h : 0;
    int32_t scale = (int32_t)(reciprocal << (17 - h - left));
#pragma GCC unroll $unroll
    for (int32_t i = 0; i < $depth; i++) {
        int32_t distance = (input[i] * $depth - total) * (1 << left);
        int32_t y = (int32_t)(((int64_t)distance * scale) >> 32);
        int32_t result = (int32_t)(((int64_t)y * factors[i] + offsets[i]) >> 32);
        $clamp
        output[i] = (int8_t)result;
    }
}""")

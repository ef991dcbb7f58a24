"""float32 ROTARY_EMBEDDING: pair by pair; the output may take the input's memory."""

from __future__ import annotations

from covp.codegen.c_text import indent
from covp.codegen.kernels.loop_nest import dense_strides
from covp.codegen.kernels.operands import Operands
from covp.codegen.layer import KernelRequest, LayerCode, kernel
from covp.graph.ops.rotary_embedding import POSITIONS, RotaryEmbedding, split


@kernel("ROTARY_EMBEDDING", "float32")
def emit_rotary_embedding(request: KernelRequest) -> LayerCode:
    """Emit the rotations; a position outside the table is that of its nearer end."""
    op = request.op
    a: RotaryEmbedding = op.attributes
    batch, heads, sequence, size = split(op)
    has_positions = len(op.inputs) > POSITIONS and op.inputs[POSITIONS] is not None
    operands = Operands.of(op, (0, 1, 2, POSITIONS) if has_positions else (0, 1, 2))
    half = a.turned // 2
    strides = dense_strides((batch, heads, sequence, size))
    if len(op.input(0).shape) == 3:
        per_batch, per_token, per_head, _ = dense_strides((batch, sequence, heads, size))
        strides = (per_batch, per_head, per_token, 1)
    row = f"b * {sequence} + s"
    first = [f"int32_t row = {row};"]
    if has_positions:
        last = op.input(1).shape[0] - 1
        first = [
            f"int32_t row = (int32_t)input3[{row}];",
            f"row = row < 0 ? 0 : row > {last} ? {last} : row;",
        ]
    one, two = ("2 * i", "2 * i + 1") if a.interleaved else ("i", f"i + {half}")
    turn = [
        "float cosine = input1[row + i], sine = input2[row + i];",
        f"float one = x[{one}], two = x[{two}];",
        f"y[{one}] = cosine * one - sine * two;",
        f"y[{two}] = sine * one + cosine * two;",
    ]
    rest = f"for (int32_t i = {a.turned}; i < {size}; i++)\n    y[i] = x[i];"
    place = " + ".join(f"{n} * {stride}" for n, stride in zip("bhs", strides, strict=False))
    body = [
        *first,
        f"row *= {half};",
        f"for (int32_t h = 0; h < {heads}; h++) {{",
        indent(
            [
                f"const float *x = input0 + {place};",
                f"float *y = output + {place};",
                f"for (int32_t i = 0; i < {half}; i++) {{",
                indent(turn),
                "}",
                *([rest] if a.turned < size else []),
            ]
        ),
        "}",
    ]
    loops = [f"for (int32_t b = 0; b < {batch}; b++)"]
    loops += [indent([f"for (int32_t s = 0; s < {sequence}; s++) {{", indent(body), "}"])]
    return operands.layer(request, loops, in_place=(op.input(0),))

"""CONV_ND and TRANSPOSE_CONV, float32, int8 and int16: a few outputs of a group at a time."""

from __future__ import annotations

import numpy as np

from covp.codegen.c_text import c_array, c_type, indent
from covp.codegen.kernels.operands import Operands
from covp.codegen.kernels.pointwise.elementwise import float_clamp
from covp.codegen.kernels.requantize.finisher import finisher, sum_bound
from covp.codegen.kernels.window_nd import WindowND
from covp.codegen.layer import KernelRequest, LayerCode, kernel
from covp.graph.graph import Op
from covp.graph.typed_convolution import resolve


@kernel("CONV_ND", "float32")
@kernel("TRANSPOSE_CONV", "float32")
def emit_float(request: KernelRequest) -> LayerCode:
    """Emit a float convolution, whose weights and bias may be inputs at run time."""
    op = request.op
    positions = [n for n, tensor in enumerate(op.inputs[:3]) if tensor is not None]
    together = _outputs_at_once(op)
    clamp = float_clamp("sum", op.attributes.activation)
    activate = f"static inline float activate(float sum)\n{{\n{clamp}    return sum;\n}}\n"
    bias = [f"input2[o + {n}]" if 2 in positions else "0.0f" for n in range(together)]
    # TFLM adds the bias of a transposed convolution to the sum, that of others is where it starts
    late = op.kind == "TRANSPOSE_CONV" and 2 in positions
    start = ["0.0f"] * together if late else bias
    sums = [f"s{n} + {bias[n]}" if late else f"s{n}" for n in range(together)]
    writes = [f"output[o + {n}] = activate({value});" for n, value in enumerate(sums)]
    body = _body(op, "float", start, "s{n} += from[c] * w[{at}];", writes)
    return Operands.of(op, positions).layer(
        request, body, [activate], schedule=f"{together} outputs at once"
    )


@kernel("CONV_ND", "int8", "int16")
@kernel("TRANSPOSE_CONV", "int8", "int16")
def emit_quantized_sums(request: KernelRequest) -> LayerCode:
    """Emit products of (element - zero point): taps outside the image add nothing."""
    op = request.op
    problem = resolve(op)
    # the largest |element - zero point|
    most = 1 << 15 if op.output.dtype == np.int16 else 255
    bound = sum_bound(problem, problem.bias, most)
    requantizer = finisher(request.core, problem.arithmetic, problem.scaling, bound)
    number = requantizer.sum_type
    columns = requantizer.columns()
    together = _outputs_at_once(op)
    constants = [c_array("bias", problem.bias.astype(number.removesuffix("_t"), copy=False))]
    constants += [c_array(f"column{n}", column) for n, column in enumerate(columns)]
    element = c_type(op.output.dtype)
    writes = []
    for n in range(together):
        arguments = ", ".join([f"s{n}", *(f"column{i}[o + {n}]" for i in range(len(columns)))])
        writes.append(f"output[o + {n}] = ({element})requantize({arguments});")
    start = [f"bias[o + {n}]" for n in range(together)]
    centred = f"(from[c] - ({problem.input_zero_point}))" if problem.input_zero_point else "from[c]"
    body = _body(op, number, start, f"s{{n}} += {centred} * w[{{at}}];", writes)
    definitions = [*constants, requantizer.function()]
    return Operands.of(op, (0, 1)).layer(
        request,
        body,
        definitions,
        [requantizer.includes] if requantizer.includes else [],
        schedule=f"{together} outputs at once, {requantizer.form}",
    )


def _outputs_at_once(op: Op) -> int:
    """Return how many outputs share the loads of an input value."""
    outputs = op.input(1).shape[0] // op.attributes.groups
    return next(n for n in (4, 3, 2, 1) if outputs % n == 0)


def _body(op: Op, number: str, start: list[str], tap: str, writes: list[str]) -> list[str]:
    """Return the loops.

    Args:
        op: the convolution.
        number: C type of a sum.
        start: of each sum of outputs that are computed together.
        tap: statement that adds to sum {n}; its weight is ``w[{at}]``.
        writes: statements that write the outputs.
    """
    a, weights = op.attributes, op.input(1).shape
    depth, outputs = weights[-1], weights[0]
    filters = int(np.prod(weights[1:]))
    transposed = op.kind == "TRANSPOSE_CONV"
    before = a.before if transposed else [pads[0] for pads in a.padding]
    shapes = op.input(0).shape, op.output.shape
    window = WindowND(*shapes, weights[1:-1], a.stride, a.dilation, before, transposed)
    element, weight = c_type(op.input(0).dtype), c_type(op.input(1).dtype)
    channel = "0" if a.groups == 1 else f"o / {outputs // a.groups} * {depth}"
    sums = [tap.format(n=n, at=f"c + {n * filters}" if n else "c") for n in range(len(start))]
    taps = [
        f"const {element} *from = image + {window.tap(channel)};",
        f"const {weight} *w = input1 + o * {filters} + ({window.weight}) * {depth};",
        f"for (int32_t c = 0; c < {depth}; c++) {{",
        indent(sums),
        "}",
    ]
    pixel = [
        f"for (int32_t o = 0; o < {outputs}; o += {len(start)}) {{",
        f"    {number} {', '.join(f's{n} = {value}' for n, value in enumerate(start))};",
        indent(window.taps(taps)),
        indent(writes),
        "}",
    ]
    return window.loops(pixel, element)

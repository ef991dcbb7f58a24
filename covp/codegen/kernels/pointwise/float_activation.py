"""float32 LOGISTIC, TANH, RELU, RELU6, LEAKY_RELU and SOFTMAX."""

from __future__ import annotations

from covp.codegen.c_text import c_float, indent
from covp.codegen.kernels.operands import Operands
from covp.codegen.kernels.pointwise.each import emit_each
from covp.codegen.layer import KernelRequest, LayerCode, kernel
from covp.graph.graph import Op

_MATH = "#include <math.h>"


@kernel("LOGISTIC", "float32")
@kernel("TANH", "float32")
@kernel("RELU", "float32")
@kernel("RELU6", "float32")
@kernel("LEAKY_RELU", "float32")
def emit_float_activation(request: KernelRequest) -> LayerCode:
    """Emit one value at a time; may run in place."""
    op = request.op
    function = f"static inline float activate(float x)\n{{\n    return {_formula(op)};\n}}\n"
    if op.kind in ("LOGISTIC", "TANH"):  # calls out
        return emit_each(request, "activate(@)", [function], [_MATH], most=1)
    return emit_each(request, "activate(@)", [function])


def _formula(op: Op) -> str:
    if op.kind == "LOGISTIC":
        return "1.0f / (1.0f + expf(-x))"
    if op.kind == "TANH":
        return "tanhf(x)"
    if op.kind == "LEAKY_RELU":
        return f"x < 0.0f ? x * {c_float(op.attributes.alpha)} : x"
    above = "x > 6.0f ? 6.0f : x" if op.kind == "RELU6" else "x"
    return f"x < 0.0f ? 0.0f : {above}"


@kernel("SOFTMAX", "float32")
def emit_float_softmax(request: KernelRequest) -> LayerCode:
    """Emit SOFTMAX: exp(x - max) over the sum of the row; may run in place."""
    op = request.op
    depth = op.input(0).shape[-1]
    beta = op.attributes.beta
    distance = "from[i] - most" if beta == 1.0 else f"(from[i] - most) * {c_float(beta)}"
    row = [
        f"const float *from = input + row * {depth};",
        "float most = from[0];",
        f"for (int32_t i = 1; i < {depth}; i++)",
        "    most = from[i] > most ? from[i] : most;",
        "float sum = 0.0f;",
        f"for (int32_t i = 0; i < {depth}; i++) {{",
        f"    output[i] = expf({distance});",
        "    sum += output[i];",
        "}",
        f"for (int32_t i = 0; i < {depth}; i++)",
        "    output[i] /= sum;",
        f"output += {depth};",
    ]
    head = f"for (int32_t row = 0; row < {op.output.size // depth}; row++) {{"
    body = [head, indent(row), "}"]
    return Operands.of(op).layer(request, body, includes=[_MATH], in_place=[op.input(0)])

"""TOPK_V2: each element is inserted where it belongs among the best so far."""

from __future__ import annotations

from covp.codegen.c_text import c_type, indent
from covp.codegen.kernels.operands import Operands
from covp.codegen.layer import KernelRequest, LayerCode, kernel
from covp.graph.ops.definition import PLAIN_INTEGERS


@kernel("TOPK_V2", "float32", *PLAIN_INTEGERS)
def emit_top_k(request: KernelRequest) -> LayerCode:
    """Emit a search that keeps the best in the outputs themselves."""
    op = request.op
    depth, count = op.input(0).shape[-1], op.attributes.count
    value, place = c_type(op.input(0).dtype), c_type(op.outputs[1].dtype)
    better = ">" if op.attributes.largest else "<"
    operands = Operands.of(op, outputs=2)
    if not op.output.size:
        return operands.layer(request, [*(f"(void){name};" for name in operands.arguments)])
    row = [
        f"const {value} *x = input + row * {depth};",
        f"{value} *best = output0 + row * {count};",
        f"{place} *places = output1 + row * {count};",
        "int32_t kept = 0;",
        f"for (int32_t i = 0; i < {depth}; i++) {{",
        indent(
            [
                f"if (kept == {count} && !(x[i] {better} best[kept - 1]))",
                "    continue;",
                f"int32_t j = kept < {count} ? kept++ : {count - 1};",
                f"for (; j > 0 && x[i] {better} best[j - 1]; j--) {{",
                "    best[j] = best[j - 1];",
                "    places[j] = places[j - 1];",
                "}",
                "best[j] = x[i];",
                "places[j] = i;",
            ]
        ),
        "}",
    ]
    rows = op.input(0).size // depth
    body = [f"for (int32_t row = 0; row < {rows}; row++) {{", indent(row), "}"]
    return operands.layer(request, body)

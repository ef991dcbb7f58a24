"""int8 AVERAGE_POOL_2D and MAX_POOL_2D: four channels at a time over each window."""

from __future__ import annotations

from typing import Any

from covp.codegen.c_text import indent
from covp.codegen.kernels.clamp import clamp, clamp_includes
from covp.codegen.layer import Argument, KernelRequest, LayerCode, kernel, prototype
from covp.graph.quantization import activation_range


@kernel("AVERAGE_POOL_2D", "int8")
@kernel("MAX_POOL_2D", "int8")
def emit_pool(request: KernelRequest) -> LayerCode:
    """Windows are cut at the image's border; what lies outside does not count."""
    op = request.op
    a: Any = op.attributes
    batch, height, width, channels = op.input(0).shape
    _, out_height, out_width, _ = op.output.shape
    arguments: dict[str, Argument] = {"input": op.input(0), "output": op.output}
    limits = activation_range(a.activation, op.output.scale, op.output.zero_point, op.output.dtype)
    together = next(n for n in (4, 2, 1) if channels % n == 0)
    # without padding every window is whole: loop bounds and the divisor are constants
    whole = not a.padding.any
    rows, columns = (str(a.filter[0]), str(a.filter[1])) if whole else ("rows", "columns")
    inner = _window(request, together, rows, columns, limits)
    window = [
        f"const int8_t *corner = image + (top * {width} + left) * {channels};",
        f"for (int32_t c = 0; c < {channels}; c += {together}) {{",
        indent(inner),
        "}",
        f"output += {channels};",
    ]
    cut = [] if whole else _cut(a, height, width)
    body = [
        "const int8_t *image = input;",
        f"for (int32_t b = 0; b < {batch}; b++, image += {height * width * channels})",
        f"    for (int32_t y = 0; y < {out_height}; y++)",
        f"        for (int32_t x = 0; x < {out_width}; x++) {{",
        indent(
            [
                f"int32_t top = y * {a.stride[0]} - {a.padding.top};",
                f"int32_t left = x * {a.stride[1]} - {a.padding.left};",
                *cut,
                *window,
            ],
            3,
        ),
        "        }",
    ]
    source = "\n".join(
        [
            request.headline,
            "#include <stdint.h>",
            clamp_includes(request.core, *limits),
            prototype(request.function, op, arguments),
            "{",
            indent(body),
            "}\n",
        ]
    )
    return LayerCode(op, request.function, source, arguments, (), f"{together} channels at once")


def _cut(a: Any, height: int, width: int) -> list[str]:
    return [
        f"int32_t rows = {a.filter[0]}, columns = {a.filter[1]};",
        f"if (top + rows > {height}) rows = {height} - top;",
        f"if (left + columns > {width}) columns = {width} - left;",
        "if (top < 0) { rows += top; top = 0; }",
        "if (left < 0) { columns += left; left = 0; }",
    ]


def _window(
    request: KernelRequest, together: int, rows: str, columns: str, limits: tuple[int, int]
) -> list[str]:
    _, _, width, channels = request.op.input(0).shape
    average = request.op.kind == "AVERAGE_POOL_2D"
    if average:
        start, step = "0", "s{0} += p[{0}];"
    else:
        start, step = "-128", "if (p[{0}] > s{0}) s{0} = p[{0}];"
    lines = [
        "const int8_t *p = corner + c;",
        "int32_t " + ", ".join(f"s{i} = {start}" for i in range(together)) + ";",
        f"for (int32_t i = 0; i < {rows}; i++) {{",
        f"    for (int32_t j = 0; j < {columns}; j++, p += {channels}) {{",
        *("        " + step.format(i) for i in range(together)),
        "    }",
        f"    p += ({width} - {columns}) * {channels};",
        "}",
    ]
    for i in range(together):
        if average:
            count = f"({rows} * {columns})"
            lines.append(f"s{i} = (s{i} + (s{i} > 0 ? {count} / 2 : -({count} / 2))) / {count};")
        lines.append(clamp(request.core, f"s{i}", *limits))
        lines.append(f"output[c + {i}] = (int8_t)s{i};")
    return lines

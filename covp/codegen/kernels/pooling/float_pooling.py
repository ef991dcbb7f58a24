"""float32 AVERAGE_POOL_2D and MAX_POOL_2D: several channels of a window together."""

from __future__ import annotations

import numpy as np

from covp.codegen.c_text import c_float, indent
from covp.codegen.kernels.operands import Operands
from covp.codegen.kernels.pointwise.elementwise import float_clamp
from covp.codegen.kernels.window import Window
from covp.codegen.layer import KernelRequest, LayerCode, kernel


@kernel("AVERAGE_POOL_2D", "float32")
@kernel("MAX_POOL_2D", "float32")
def emit_float_pool(request: KernelRequest) -> LayerCode:
    """Windows are cut at the image's border; what lies outside does not count."""
    op, a = request.op, request.op.attributes
    channels = op.output.shape[3]
    together = next(n for n in (4, 3, 2, 1) if channels % n == 0)
    window = Window(op.input(0).shape, op.output.shape, a.filter, a.stride, a.padding)
    names = [f"s{n}" for n in range(together)]
    if op.kind == "AVERAGE_POOL_2D":
        start, results = "0.0f", [f"{s} / count" for s in names]
        taps = [f"{s} += from[{n}];" for n, s in enumerate(names)]
    else:
        start, results = c_float(float(np.finfo(np.float32).min)), names
        taps = [f"{s} = from[{n}] > {s} ? from[{n}] : {s};" for n, s in enumerate(names)]
    pixel = [
        *(_count(window) if op.kind == "AVERAGE_POOL_2D" else []),
        f"for (int32_t c = 0; c < {channels}; c += {together}) {{",
        f"    float {', '.join(f'{s} = {start}' for s in names)};",
        indent(window.walk("float", "c", taps)),
        *(f"    output[c + {n}] = activate({result});" for n, result in enumerate(results)),
        "}",
    ]
    clamp = float_clamp("result", a.activation)
    activate = f"static inline float activate(float result)\n{{\n{clamp}    return result;\n}}\n"
    schedule = f"{together} channels at once"
    body = window.loops(pixel, "float")
    return Operands.of(op).layer(request, body, [activate], schedule=schedule)


def _count(window: Window) -> list[str]:
    if window.whole:
        return [f"const float count = {window.size[0] * window.size[1]}.0f;"]
    rows, columns = "last_row - first_row", "last_column - first_column"
    return [f"float count = (float)(({rows}) * ({columns}));"]

"""RESIZE_NEAREST_NEIGHBOR and RESIZE_BILINEAR: source rows, columns and weights are tables.

INTERPOLATE along one axis, and RESIZE_TAPS: the tables of a Resize whose scales come late.
"""

from __future__ import annotations

import math

import numpy as np

from covp.codegen.c_text import c_array, c_float, c_type, indent
from covp.codegen.kernels.moves.copy import copy_loops
from covp.codegen.kernels.operands import Operands
from covp.codegen.layer import KernelRequest, LayerCode, kernel
from covp.graph.ops.bilinear import BITS, neighbours
from covp.graph.ops.interpolate import ResizeTaps
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


@kernel("INTERPOLATE", "float32")
def emit_interpolate(request: KernelRequest) -> LayerCode:
    """Emit weighted sums; the elements after the axis lie together."""
    op, axis = request.op, request.op.attributes.axis
    shape, (size, taps) = op.input(0).shape, op.input(1).shape
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    element = f"from[at * {inner} + i]" if inner > 1 else "from[at]"
    indices = op.input(1).data
    if indices is None or indices.min() < 0:
        element = f"(at < 0 ? {c_float(op.attributes.outside)} : {element})"
    body = [
        "const float *from = input0;",
        f"for (int32_t o = 0; o < {outer}; o++) {{",
        f"    for (int32_t y = 0; y < {size}; y++) {{",
        f"        for (int32_t i = 0; i < {inner}; i++) {{",
        "            float sum = 0.0f;",
        f"            for (int32_t t = 0; t < {taps}; t++) {{",
        f"                const int32_t at = input1[y * {taps} + t];",
        f"                sum += {element} * input2[y * {taps} + t];",
        "            }",
        "            *output++ = sum;",
        "        }",
        "    }",
        f"    from += {shape[axis] * inner};",
        "}",
    ]
    return Operands.of(op, (0, 1, 2)).layer(request, body)


@kernel("RESIZE_TAPS", "float32", "int64")
def emit_taps(request: KernelRequest) -> LayerCode:
    """Emit the tables' computation in double precision, as in the definition."""
    op, a = request.op, request.op.attributes
    positions = [n for n, tensor in enumerate(op.inputs) if tensor is not None]
    wanted = "input0" if len(positions) > 1 else "input"
    place = _place(a, "input1")
    body = [
        *_scale(a, wanted, op.input(0).dtype == np.float32),
        f"const double width = scale * {a.extent};",
        "(void)width;",
        f"for (int32_t y = 0; y < {a.size}; y++) {{",
        f"    const double x = {place};",
        indent(_nearest(a) if a.mode == "nearest" else _weights(a)),
        "}",
    ]
    definitions = [_FLOOR] if a.mode == "nearest" else [_FLOOR, _filter(a)]
    return Operands.of(op, positions, len(op.outputs)).layer(request, body, definitions)


_FLOOR = """\
static inline int32_t floor_of(double x)
{
    const int32_t whole = (int32_t)x;
    return whole - (x < whole);
}

static inline int32_t clamped(int32_t at, int32_t extent)
{
    return at < 0 ? 0 : at < extent ? at : extent - 1;
}
"""


def _scale(a: ResizeTaps, wanted: str, is_scale: bool) -> list[str]:
    if is_scale:
        return [f"const double scale = (double){wanted}[{a.position}];"]
    each = [f"(double){wanted}[{n}] / {extent}" for n, extent in enumerate(a.extents)]
    if a.policy == "stretch":
        return [f"const double scale = {each[a.position]};"]
    sign = "<" if a.policy == "not_larger" else ">"
    lines = [f"double scale = {each[0]};"]
    for value in each[1:]:
        lines.append(f"scale = {value} {sign} scale ? {value} : scale;")
    return lines


def _place(a: ResizeTaps, roi: str) -> str:
    last = a.extent - 1
    if a.coordinates == "align_corners":
        return f"width == 1.0 ? 0.0 : y * {last}.0 / (width - 1.0)"
    if a.coordinates == "asymmetric":
        return "y / scale"
    if a.coordinates == "tf_crop_and_resize":
        start, end = (f"(double){roi}[{n * len(a.extents) + a.position}]" for n in (0, 1))
        return (
            f"width == 1.0 ? ({start} + {end}) * {last} / 2.0 :\n"
            f"        {start} * {last} + y * ({end} - {start}) * {last} / (width - 1.0)"
        )
    middle = "(y + 0.5) / scale - 0.5"
    if a.coordinates == "pytorch_half_pixel":
        return f"width == 1.0 ? -0.5 : {middle}"
    if a.coordinates == "half_pixel_symmetric":
        return f"{middle} + {a.extent / 2} * (1.0 - {a.size} / width)"
    return middle


def _nearest(a: ResizeTaps) -> list[str]:
    nearest = {
        "floor": "floor_of(x)",
        "ceil": "-floor_of(-x)",
        "round_prefer_floor": "-floor_of(0.5 - x)",
        "round_prefer_ceil": "floor_of(x + 0.5)",
    }[a.rounding]
    return [f"output[y] = clamped({nearest}, {a.extent});"]


def _filter(a: ResizeTaps) -> str:
    if a.mode == "linear":
        lines = ["return d < 1.0 ? 1.0 - d : 0.0;"]
    else:
        cubic = float(a.cubic)
        lines = [
            "if (d <= 1.0) {",
            f"    return ({cubic + 2!r} * d - ({cubic + 3!r})) * d * d + 1.0;",
            "}",
            f"return d < 2.0 ? (({cubic!r} * d - ({5 * cubic!r})) * d + ({8 * cubic!r})) * d"
            f" - ({4 * cubic!r}) : 0.0;",
        ]
    return "\n".join(["static double filter(double d)", "{", indent(lines), "}\n"])


def _weights(a: ResizeTaps) -> list[str]:
    reach = 1 if a.mode == "linear" else 2
    shrink = "(scale < 1.0 ? scale : 1.0)" if a.antialias else "1.0"
    outside = f"at < 0 || at >= {a.extent} ? 0.0 : " if a.exclude_outside else ""
    lines = [
        f"const double shrink = {shrink};",
        f"const int32_t first = floor_of(x - {reach} / shrink) + 1;",
        "double sum = 0.0;",
        f"for (int32_t t = 0; t < {a.taps}; t++) {{",
        "    const int32_t at = first + t;",
        "    const double away = (at < x ? x - at : at - x) * shrink;",
        f"    const double weight = {outside}filter(away);",
        f"    output0[y * {a.taps} + t] = clamped(at, {a.extent});",
        f"    output1[y * {a.taps} + t] = (float)weight;",
        "    sum += weight;",
        "}",
        f"for (int32_t t = 0; t < {a.taps}; t++) {{",
        f"    output1[y * {a.taps} + t] /= (float)sum;",
        "}",
    ]
    if a.coordinates == "tf_crop_and_resize":
        lines += [
            f"for (int32_t t = 0; (x < 0.0 || x > {a.extent - 1}) && t < {a.taps}; t++) {{",
            f"    output0[y * {a.taps} + t] = -1;",
            f"    output1[y * {a.taps} + t] = {c_float(1 / a.taps)};",
            "}",
        ]
    return lines

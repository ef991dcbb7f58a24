"""DETECTION_POSTPROCESS: the best box again and again, each time without those it overlaps.

In single precision, where TFLM has double on the way to the corners: those are equal within 1e-6 of
the image, and so are overlaps; which boxes are dropped differs only where one is that close to the
limit.
"""

from __future__ import annotations

from string import Template

import numpy as np

from covp.codegen.c_text import c_array, c_float
from covp.codegen.kernels.operands import Operands
from covp.codegen.layer import Argument, KernelRequest, LayerCode, Scratch, kernel
from covp.graph.graph import Tensor
from covp.graph.ops.detection import ANCHORS, BOXES, SCORES


@kernel("DETECTION_POSTPROCESS", "float32", "uint8", "int8")
def emit_detection(request: KernelRequest) -> LayerCode:
    """Emit the layer; scratch holds the corners and the best score of each box."""
    op, a = request.op, request.op.attributes
    boxes, scores = op.input(BOXES), op.input(SCORES)
    count, row = scores.shape[1], scores.shape[2]
    names = ("encoded", "scores", "anchors")
    arguments: dict[str, Argument] = {}
    constants = []
    for name, position in zip(names, (BOXES, SCORES, ANCHORS), strict=True):
        tensor = op.input(position)
        if tensor.data is None:
            arguments[name] = tensor
        else:
            constants.append(c_array(name, tensor.data, tensor.name))
    arguments |= dict(zip(("boxes", "classes", "best", "found"), op.outputs, strict=True))
    arguments["scratch"] = Scratch(20 * count)
    body = _BODY.substitute(
        count=count,
        width=boxes.shape[2],
        row=row,
        background=row - a.classes,
        classes=a.classes,
        most=a.most,
        least=c_float(a.score),
        overlap=c_float(a.overlap),
        encoded=_real(boxes, "encoded[i * $width + k]".replace("$width", str(boxes.shape[2]))),
        score=_real(scores, "own[k]"),
        best_score=_real(scores, "own[kind]"),
        anchor=_real(op.input(ANCHORS), "anchors[i * 4 + k]"),
        type=_c_type(scores),
        y=c_float(a.scales[0]),
        x=c_float(a.scales[1]),
        h=c_float(a.scales[2]),
        w=c_float(a.scales[3]),
    )
    return Operands(arguments, "\n".join(constants)).layer(
        request, body.splitlines(), [_OVERLAP], ["#include <math.h>"]
    )


def _c_type(tensor: Tensor) -> str:
    return "float" if tensor.dtype == np.float32 else f"{tensor.dtype.name}_t"


def _real(tensor: Tensor, element: str) -> str:
    """Return C of an element as a real number."""
    if tensor.dtype == np.float32:
        return element
    return f"((float){element} - {c_float(tensor.zero_point)}) * {c_float(tensor.scale)}"


_OVERLAP = """\
static float overlap(const float *a, const float *b)
{
    float first = (a[2] - a[0]) * (a[3] - a[1]), second = (b[2] - b[0]) * (b[3] - b[1]);
    if (first <= 0.0f || second <= 0.0f)
        return 0.0f;
    float high = fminf(a[2], b[2]) - fmaxf(a[0], b[0]);
    float wide = fminf(a[3], b[3]) - fmaxf(a[1], b[1]);
    float common = (high > 0.0f ? high : 0.0f) * (wide > 0.0f ? wide : 0.0f);
    return common / (first + second - common);
}
"""
_BODY = Template("""\
float *corners = scratch, *score = corners + 4 * $count;
for (int32_t i = 0; i < $count; i++) {
    const $type *own = scores + i * $row + $background;
    float top = -__builtin_inff(), box[4], anchor[4];
    for (int32_t k = 0; k < $classes; k++) {
        float value = $score;
        top = value > top ? value : top;
    }
    score[i] = top >= $least ? top : -__builtin_inff();
    for (int32_t k = 0; k < 4; k++) {
        box[k] = $encoded;
        anchor[k] = $anchor;
    }
    float y = box[0] / $y * anchor[2] + anchor[0], x = box[1] / $x * anchor[3] + anchor[1];
    float h = 0.5f * expf(box[2] / $h) * anchor[2], w = 0.5f * expf(box[3] / $w) * anchor[3];
    float *corner = corners + 4 * i;
    corner[0] = y - h;
    corner[1] = x - w;
    corner[2] = y + h;
    corner[3] = x + w;
}
int32_t count = 0;
for (int32_t n = 0; n < $most; n++) {
    int32_t top = -1;
    for (int32_t i = 0; i < $count; i++)
        if (score[i] > -__builtin_inff() && (top < 0 || score[i] > score[top]))
            top = i;
    if (top < 0) {
        classes[n] = best[n] = 0.0f;
        for (int32_t k = 0; k < 4; k++)
            boxes[4 * n + k] = 0.0f;
        continue;
    }
    const $type *own = scores + top * $row + $background;
    int32_t kind = 0;
    for (int32_t k = 1; k < $classes; k++)
        kind = own[k] > own[kind] ? k : kind;
    classes[n] = (float)kind;
    best[n] = $best_score;
    for (int32_t k = 0; k < 4; k++)
        boxes[4 * n + k] = corners[4 * top + k];
    count++;
    score[top] = -__builtin_inff();
    for (int32_t i = 0; i < $count; i++)
        if (overlap(corners + 4 * top, corners + 4 * i) > $overlap)
            score[i] = -__builtin_inff();
}
found[0] = (float)count;""")

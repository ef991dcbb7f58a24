"""DETECTION_POSTPROCESS: boxes from their encodings, the best that do not overlap.

Source: tensorflow/lite/micro/kernels/detection_postprocess.cc, the fast form with one class a box,
and tensorflow/lite/kernels/detection_postprocess.cc for quantized inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from covp.errors import ModelError
from covp.graph.graph import Op, Tensor
from covp.graph.ops.definition import OPS, Array, OpDefinition, Shape, check_type, given, ieee

BOXES, SCORES, ANCHORS = 0, 1, 2
"""Positions of the inputs: (1, boxes, 4 or more), (1, boxes, classes), (boxes, 4)."""


@dataclass(frozen=True)
class DetectionPostprocess:
    """Outputs are boxes (ymin, xmin, ymax, xmax), classes, scores, and how many there are.

    Attributes:
        most: boxes that are given; those that are not found are zeros.
        classes: without the background, which comes first where there is one more of them.
        score: the least that counts.
        overlap: intersection over union above which the box of the smaller score is dropped.
        scales: of the encodings' y, x, h and w.
    """

    most: int
    classes: int
    score: float
    overlap: float
    scales: tuple[float, float, float, float]


def detection_shapes(most: int) -> list[Shape]:
    """Return the outputs' shapes; files state others, as LiteRT finds them when it runs."""
    return [(1, most, 4), (1, most), (1, most), (1,)]


def _shapes(op: Op) -> list[Shape]:
    boxes, scores, anchors = (op.input(p).shape for p in (BOXES, SCORES, ANCHORS))
    a = op.attributes
    fits = len(boxes) == len(scores) == 3 and boxes[0] == scores[0] == 1 and boxes[2] >= 4
    if not fits or boxes[1] != scores[1] or anchors != (boxes[1], 4):
        raise ModelError(f"boxes {boxes}, scores {scores} and anchors {anchors} do not fit")
    if scores[2] - a.classes not in (0, 1):
        raise ModelError(f"{scores[2]} scores a box do not fit {a.classes} classes")
    return detection_shapes(a.most)


def _types(op: Op) -> None:
    for position in (BOXES, SCORES, ANCHORS):
        check_type(op.input(position), "float32", "uint8", "int8")
    for tensor in op.outputs:
        check_type(tensor, "float32")


def dequantize(tensor: Tensor, value: Array) -> Array:
    """Return real numbers in single precision."""
    if tensor.dtype == np.float32:
        return value
    centred = value.astype(np.float32) - np.float32(tensor.zero_point)
    return np.asarray(centred * np.float32(tensor.scale))


def _reference(op: Op, values: Sequence[Array | None]) -> list[Array]:
    a = op.attributes
    encoded, scores, anchors = (
        dequantize(op.input(p), given(values, p)) for p in (BOXES, SCORES, ANCHORS)
    )
    with ieee():
        boxes = _decode_boxes(encoded[0, :, :4], anchors, a.scales)
        own = scores[0, :, scores.shape[2] - a.classes :]
        classes = own.argmax(axis=1)
        best = own.max(axis=1)
        active = best >= np.float32(a.score)
        chosen: list[int] = []
        while len(chosen) < a.most and active.any():
            top = int(np.where(active, best, -np.inf).argmax())
            chosen.append(top)
            active[top] = False
            active &= ~(_overlaps(boxes[top], boxes) > np.float32(a.overlap))
    results = [np.zeros(shape, np.float32) for shape in detection_shapes(a.most)]
    found = len(chosen)
    results[0][0, :found] = boxes[chosen]
    results[1][0, :found] = classes[chosen]
    results[2][0, :found] = best[chosen]
    results[3][0] = found
    return results


def _decode_boxes(encoded: Array, anchors: Array, scales: tuple[float, ...]) -> Array:
    """Return corners from centres and sizes, computed in double precision and kept in single."""
    y, x, h, w = np.moveaxis(encoded.astype(np.float64) / np.array(scales, np.float32), 1, 0)
    own_y, own_x, own_h, own_w = np.moveaxis(anchors.astype(np.float64), 1, 0)
    middle = [(y * own_h + own_y).astype(np.float32), (x * own_w + own_x).astype(np.float32)]
    half = [
        (0.5 * np.exp(h) * own_h).astype(np.float32),
        (0.5 * np.exp(w) * own_w).astype(np.float32),
    ]
    corners = [m - s for m, s in zip(middle, half, strict=True)]
    corners += [m + s for m, s in zip(middle, half, strict=True)]
    return np.stack(corners, axis=1)


def _overlaps(box: Array, boxes: Array) -> Array:
    """Return the intersection over union of a box with each; 0 where one of them has no area."""
    own = (box[2] - box[0]) * (box[3] - box[1])
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    low, high = np.maximum(box[:2], boxes[:, :2]), np.minimum(box[2:], boxes[:, 2:])
    common = np.maximum(high - low, 0).prod(axis=1)
    ratio = common / (own + areas - common)
    return np.asarray(np.where((own <= 0) | (areas <= 0), np.float32(0), ratio))


# no map: boxes are sorted by their scores, and each is compared with all before it
OPS["DETECTION_POSTPROCESS"] = OpDefinition(_shapes, _reference, types=_types)

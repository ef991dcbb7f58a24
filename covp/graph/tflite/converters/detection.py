"""The custom operator at the end of detectors of the SSD family."""

from __future__ import annotations

import math
from typing import Any

from flatbuffers import flexbuffers

from covp.errors import ModelError
from covp.graph.graph import Op
from covp.graph.ops.detection import DetectionPostprocess, detection_shapes
from covp.graph.tflite.converters.common import register


@register("DETECTION_POSTPROCESS")
def _detection(op: Op, content: bytes) -> DetectionPostprocess:
    """Read the options from a FlexBuffer's map; the shapes of the outputs follow from them."""
    options: dict[str, Any] = flexbuffers.Loads(bytearray(content)) if content else {}
    if options.get("use_regular_nms") or int(options.get("max_classes_per_detection", 1)) != 1:
        raise ModelError(
            "only its fast form with one class a box is supported; convert the model with "
            "use_regular_nms=false and max_classes_per_detection=1"
        )
    scales = tuple(float(options[f"{axis}_scale"]) for axis in "yxhw")
    score, overlap = (float(options[f"nms_{limit}_threshold"]) for limit in ("score", "iou"))
    most, classes = int(options["max_detections"]), int(options["num_classes"])
    if not all(math.isfinite(value) for value in (*scales, score)) or min(scales) <= 0:
        raise ModelError("its scales are not positive numbers")
    if not 0 < overlap <= 1 or not 0 < most <= 1 << 16 or classes < 1:
        raise ModelError(
            f"{most} detections of {classes} classes, overlap {overlap:g}: out of range"
        )
    if len(op.inputs) != 3 or len(op.outputs) != 4:
        raise ModelError("it needs three inputs and four outputs")
    for tensor, shape in zip(op.outputs, detection_shapes(most), strict=True):
        tensor.shape = shape
    return DetectionPostprocess(
        most, classes, score, overlap, (scales[0], scales[1], scales[2], scales[3])
    )

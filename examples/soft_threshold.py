"""A quantized operator that covp does not know, as one declaration.

sign(x) * max(|x| - threshold, 0), the activation of sparse coding: a custom operator
"SoftThreshold" on int8, whose option in the model file is the threshold as a float32. With
``reference`` and ``reads`` it runs on every core (a table of 256 results), streams, and its
reference takes many samples in one call.

    covp run model.tflite -p riscv32 --operators examples/soft_threshold.py
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from covp.graph.graph import Op
from covp.graph.index_map import elementwise
from covp.graph.user_operators import UserOperator, register_operator


@dataclass(frozen=True)
class Threshold:
    """The operator's attributes; ``at`` is in the input's real numbers."""

    at: float = 0.5


def reference(op: Op, values: Sequence[Any]) -> list[Any]:
    """Return the output's stored values, rounded to the nearest, ties to even."""
    source, out, at = op.input(0), op.output, (op.attributes or Threshold()).at
    real = (values[0].astype(np.float64) - source.zero_point) * source.scale
    kept = np.sign(real) * np.maximum(np.abs(real) - at, 0)
    stored = np.rint(kept / out.scale) + out.zero_point
    return [np.clip(stored, -128, 127).astype(np.int8)]


def convert(op: Op, options: bytes) -> Threshold:
    """Return the attributes of the operator's option in the model file."""
    return Threshold(*struct.unpack("<f", options)) if options else Threshold()


SOFT_THRESHOLD = register_operator(
    UserOperator("SoftThreshold", reference, convert=convert, reads=elementwise)
)

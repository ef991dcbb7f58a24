"""Strategies of `OperatorCase`: operators of one input and no weights. Part of `layers`."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from covp.graph.attributes import (
    LeakyRelu,
    Mean,
    Pad,
    ResizeNearest,
    Split,
    StridedSlice,
    Transpose,
)
from covp.testing import quantizations, tensors
from covp.testing.case import DTYPES, build_cases
from covp.testing.cases import OperatorCase

S = st.SearchStrategy

FUNCTIONS = ("LOGISTIC", "TANH", "RELU", "RELU6", "LEAKY_RELU")
CONVERSIONS = ("QUANTIZE", "DEQUANTIZE")
MOVES = ("RESHAPE", "TRANSPOSE", "PAD", "PADV2", "STRIDED_SLICE", "SPLIT")

_STORED = quantizations.zero_points("int8")
_SCALES = quantizations.scales()


def functions(*kinds: str, max_scale: float = 1.0, **fields: Any) -> S[OperatorCase]:
    """Return a strategy of elementwise functions, among them activations.

    LOGISTIC and TANH have the output quantization that TFLite asks for.

    Args:
        kinds: some of `FUNCTIONS`; all of them by default.
        max_scale: the largest of int8 inputs, at least 1/64.
        fields: of `OperatorCase`.
    """

    def of(kind: str) -> S[OperatorCase]:
        fixed = {"LOGISTIC": (1 / 256, -128), "TANH": (1 / 128, 0)}.get(kind)
        alpha = st.floats(0, 1, width=32)
        drawn = {
            "kind": kind,
            "dtype": DTYPES,
            "shape": tensors.shapes(max_extent=9),
            "attributes": st.builds(LeakyRelu, alpha) if kind == "LEAKY_RELU" else None,
            "scale": quantizations.scales(highest=max_scale),
            "zero_point": _STORED,
            "output_scale": _SCALES if fixed is None else fixed[0],
            "output_zero_point": _STORED if fixed is None else fixed[1],
        }
        return build_cases(OperatorCase, drawn, fields)

    return st.one_of([of(kind) for kind in kinds or FUNCTIONS])


@st.composite
def means(draw: st.DrawFn, /, **fields: Any) -> OperatorCase:
    """Draw MEAN over some axes, requantized or not; ``fields`` are of `OperatorCase`."""
    shape = draw(tensors.shapes(max_extent=8))
    axes = draw(st.sets(st.integers(0, len(shape) - 1), min_size=1))
    drawn = {
        "kind": "MEAN",
        "shape": shape,
        "dtype": DTYPES,
        "attributes": Mean(tuple(sorted(axes)), draw(st.booleans())),
        "scale": _SCALES,
        "zero_point": _STORED,
        "output_scale": st.none() | _SCALES,
        "output_zero_point": _STORED,
    }
    return draw(build_cases(OperatorCase, drawn, fields))


@st.composite
def moves(draw: st.DrawFn, /, *kinds: str, max_extent: int = 5, **fields: Any) -> OperatorCase:
    """Draw an operator that moves values and computes nothing.

    Args:
        kinds: some of `MOVES`; all of them by default.
        max_extent: the largest extent of an axis; SPLIT's is up to four times as long.
        fields: of `OperatorCase`, but not its shape and attributes.
    """
    kind = draw(st.sampled_from(kinds or MOVES))
    shape = draw(tensors.shapes(max_extent=max_extent))
    dtype = fields.pop("dtype", DTYPES)
    dtype = draw(dtype) if isinstance(dtype, S) else dtype
    quantized = np.dtype(dtype) in (np.int8, np.uint8, np.int16)
    stored = draw(quantizations.zero_points(dtype)) if quantized else 0
    drawn: dict[str, Any] = {
        "kind": kind,
        "dtype": dtype,
        "scale": _SCALES,
        "zero_point": stored,
        "shape": shape,
    }
    if kind == "SPLIT":
        axis, parts = draw(st.integers(0, len(shape) - 1)), draw(st.integers(1, 4))
        longer = (*shape[:axis], shape[axis] * parts, *shape[axis + 1 :])
        drawn |= {"shape": longer, "outputs": parts, "attributes": Split(axis)}
    elif kind == "RESHAPE":
        drawn["reshaped"] = (*draw(st.permutations(shape)), 1)
    elif kind == "TRANSPOSE":
        drawn["attributes"] = Transpose(tuple(draw(st.permutations(range(len(shape))))))
    elif kind == "STRIDED_SLICE":
        drawn["attributes"] = draw(_slices(shape))
    else:  # PAD's value is the real 0
        values = quantizations.zero_points(dtype if quantized else "int8")
        value = draw(values) if kind == "PADV2" else stored
        drawn["attributes"] = draw(_pads(shape, float(value)))
    return draw(build_cases(OperatorCase, drawn, fields))


def _pads(shape: tensors.Shape, value: float) -> S[Pad]:
    sides = st.integers(0, 3)
    return st.tuples(*[st.tuples(sides, sides)] * len(shape)).map(lambda pads: Pad(pads, value))


@st.composite
def _slices(draw: st.DrawFn, shape: tensors.Shape) -> StridedSlice:
    slices: list[tuple[int, int | None, int]] = []
    shrink: list[int] = []
    for axis, extent in enumerate(shape):
        start, step = draw(st.integers(0, extent - 1)), draw(st.integers(1, 3))
        form = draw(st.sampled_from(["whole", "range", "backwards", "drop"]))
        if form == "drop" and len(shrink) < len(shape) - 1:
            slices.append((start, start + 1, 1))
            shrink.append(axis)
        elif form == "backwards":
            slices.append((start, None, -step))
        elif form == "range":
            slices.append((start, draw(st.integers(start + 1, extent)), step))
        else:
            slices.append((0, extent, 1))
    return StridedSlice(tuple(slices), tuple(shrink))


def resizes(max_size: int = 15, **fields: Any) -> S[OperatorCase]:
    """Return RESIZE_NEAREST_NEIGHBOR up to ``max_size`` squared; ``fields`` of `OperatorCase`."""
    sizes = st.integers(1, max_size)
    # TFLite rejects the two together
    rules = st.sampled_from([(False, False), (True, False), (False, True)])
    drawn = {
        "kind": "RESIZE_NEAREST_NEIGHBOR",
        "dtype": DTYPES,
        "shape": tensors.shapes(min_rank=4, max_extent=6),
        "attributes": st.builds(
            lambda size, rule: ResizeNearest(size, *rule), st.tuples(sizes, sizes), rules
        ),
    }
    return build_cases(OperatorCase, drawn, fields)


def conversions(*kinds: str, **fields: Any) -> S[OperatorCase]:
    """Return a strategy of QUANTIZE from float32 or int8 and DEQUANTIZE from int8.

    Args:
        kinds: some of `CONVERSIONS`; both by default.
        fields: of `OperatorCase`.
    """

    def of(kind: str) -> S[OperatorCase]:
        drawn: dict[str, Any] = {
            "kind": kind,
            "shape": tensors.shapes(max_extent=9),
            "scale": _SCALES,
            "zero_point": _STORED,
        }
        if kind == "QUANTIZE":
            drawn |= {"dtype": DTYPES, "output_dtype": "int8"}
            drawn |= {"output_scale": _SCALES, "output_zero_point": _STORED}
        else:
            drawn |= {"dtype": "int8", "output_dtype": "float32"}
        return build_cases(OperatorCase, drawn, fields)

    return st.one_of([of(kind) for kind in kinds or CONVERSIONS])

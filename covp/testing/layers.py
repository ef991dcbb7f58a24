"""Strategies of layers, for each kind of operator.

Each accepts fields of the case that it draws, as a value or as a strategy, in place of its own:

    convolutions("CONV_2D", dtype="int8", kernel=(3, 3), stride=st.sampled_from([(1, 1), (2, 2)]))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from covp.errors import UsageError
from covp.graph.attributes import Activation
from covp.graph.typed_convolution import CONVOLUTIONS
from covp.testing import quantizations, tensors
from covp.testing.case import DTYPES, build_cases
from covp.testing.cases import ConcatenationCase, ElementwiseCase, MatMulCase, PoolCase, SoftmaxCase
from covp.testing.convolution_case import ConvCase
from covp.testing.operators import (
    CONVERSIONS,
    FUNCTIONS,
    MOVES,
    conversions,
    functions,
    means,
    moves,
    resizes,
)

S = st.SearchStrategy

ELEMENTWISE = ("ADD", "SUB", "MUL")
POOLS = ("AVERAGE_POOL_2D", "MAX_POOL_2D")

ACTIVATIONS: S[Activation] = st.sampled_from(["none", "relu", "relu6", "relu_n1_to_1"])
"""All that a TFLite file can fuse; most accelerators know the first three."""

__all__ = [
    "ACTIVATIONS",
    "CONVERSIONS",
    "CONVOLUTIONS",
    "ELEMENTWISE",
    "FUNCTIONS",
    "MOVES",
    "POOLS",
    "STRATEGIES",
    "concatenations",
    "conversions",
    "convolutions",
    "elementwise",
    "functions",
    "layers",
    "matmuls",
    "means",
    "moves",
    "paddings",
    "pools",
    "resizes",
    "softmaxes",
]

_STORED = quantizations.zero_points("int8")
_SCALES = quantizations.scales()
_USUAL_ACTIVATIONS = st.sampled_from(["none", "relu", "relu6"])


def _pairs(largest: int) -> S[tuple[int, int]]:
    return st.tuples(st.integers(1, largest), st.integers(1, largest))


def convolutions(
    *kinds: str, max_size: int = 9, max_channels: int = 20, max_kernel: int = 3, **fields: Any
) -> S[ConvCase]:
    """Return a strategy of layers with weights.

    Args:
        kinds: some of `CONVOLUTIONS`; all of them by default.
        max_size: the largest height and width of an image that needs no more for a window.
        max_channels: the largest number of input and of output channels.
        max_kernel: the largest height and width of a kernel; strides go to 3.
        fields: of `ConvCase`.

    Raises:
        UsageError: ``fields`` names one that `ConvCase` lacks.
    """
    return st.one_of(
        [
            _convolutions(kind, max_size, max_channels, max_kernel, fields)
            for kind in kinds or CONVOLUTIONS
        ]
    )


def _convolutions(
    kind: str, max_size: int, max_channels: int, max_kernel: int, fields: dict[str, Any]
) -> S[ConvCase]:
    channels = _pairs(max_channels)
    if kind == "DEPTHWISE_CONV_2D":
        usual = [n for n in (4, 8, 12, 16, 1, 3, 6) if n <= max_channels]
        equal = st.sampled_from(usual).map(lambda n: (n, n))
        channels = st.one_of(equal, equal, channels)
    drawn = {
        "kind": kind,
        "dtype": DTYPES,
        "batch": st.integers(1, 2),
        "size": _pairs(max_size),
        "channels": channels,
        "kernel": _pairs(max_kernel),
        "stride": _pairs(3),
        "dilation": st.sampled_from([(1, 1), (1, 1), (1, 1), (2, 1), (2, 2)]),
        "same": st.booleans(),
        "bias": st.booleans(),
        "activation": _USUAL_ACTIVATIONS,
        "zero_points": st.tuples(_STORED, _STORED),
        "output_scale": st.sampled_from([1.0, 0.05, 3.0]),
    }
    return build_cases(ConvCase, drawn, fields)


def paddings(reach: int = 3) -> S[tuple[int, int, int, int]]:
    """Return a strategy of (top, bottom, left, right), each less than ``reach``."""
    return st.tuples(*[st.integers(0, reach - 1)] * 4)


def elementwise(*kinds: str, broadcast: bool = False, **fields: Any) -> S[ElementwiseCase]:
    """Return a strategy of sums, differences and products of two tensors.

    Args:
        kinds: some of `ELEMENTWISE`; all of them by default.
        broadcast: the operands are of different shapes, and either may be the larger one.
        fields: of `ElementwiseCase`.
    """
    drawn = {
        "kind": st.sampled_from(kinds or ELEMENTWISE),
        "shape": st.tuples(st.integers(1, 3), st.integers(1, 40), st.integers(1, 9)),
        "zero_points": st.tuples(_STORED, _STORED, _STORED),
        "scales": st.tuples(_SCALES, _SCALES, _SCALES),
        "activation": _USUAL_ACTIVATIONS,
    }
    if not broadcast:
        return build_cases(ElementwiseCase, drawn, fields)
    return tensors.broadcast_shapes().flatmap(
        lambda two: build_cases(
            ElementwiseCase, {**drawn, "shape": two[0], "other": two[1]}, fields
        )
    )


def pools(*kinds: str, max_size: int = 9, max_filter: int = 3, **fields: Any) -> S[PoolCase]:
    """Return a strategy of pools.

    Args:
        kinds: some of `POOLS`; both by default.
        max_size: the largest height and width of an image that needs no more for a filter.
        max_filter: the largest height and width of a filter; strides go to 3.
        fields: of `PoolCase`.
    """
    drawn = {
        "kind": st.sampled_from(kinds or POOLS),
        "size": _pairs(max_size),
        "channels": st.integers(1, 9),
        "filter": _pairs(max_filter),
        "stride": _pairs(3),
        "same": st.booleans(),
        "activation": _USUAL_ACTIVATIONS,
    }
    return build_cases(PoolCase, drawn, fields)


def softmaxes(max_depth: int = 40, **fields: Any) -> S[SoftmaxCase]:
    """Return a strategy of SOFTMAX over up to ``max_depth`` values; ``fields`` of `SoftmaxCase`."""
    drawn = {"rows": st.integers(1, 3), "depth": st.integers(1, max_depth), "scale": _SCALES}
    return build_cases(SoftmaxCase, drawn, fields)


def concatenations(max_parts: int = 5, **fields: Any) -> S[ConcatenationCase]:
    """Return CONCATENATION of 2 to ``max_parts`` tensors; ``fields`` are of `ConcatenationCase`."""
    extents = st.integers(1, 3)
    drawn = {
        "lengths": st.lists(st.integers(1, 6), min_size=2, max_size=max_parts).map(tuple),
        "shape": st.lists(extents, min_size=2, max_size=4).map(tuple),
        "axis": st.integers(0, 3),
    }
    return build_cases(ConcatenationCase, drawn, fields).map(
        lambda case: replace(case, axis=min(case.axis, len(case.shape) - 1))
    )


def matmuls(max_extent: int = 20, **fields: Any) -> S[MatMulCase]:
    """Return BATCH_MATMUL of up to ``max_extent`` rows and columns; ``fields`` of `MatMulCase`."""
    extent = st.integers(1, max_extent)
    batches = [((), ()), ((3,), (3,)), ((2, 1), (2, 1)), ((), (2,)), ((3,), (1,)), ((2, 2), (2,))]
    drawn = {
        "batches": st.sampled_from(batches),
        "rows": extent,
        "depth": extent,
        "columns": extent,
        "adjoint": st.tuples(st.sampled_from([False, False, False, True]), st.booleans()),
        "zero_points": st.tuples(_STORED, _STORED, _STORED),
        "output_scale": st.sampled_from([1.0, 0.05, 3.0]),
        "dtype": DTYPES,
        "constant": st.sampled_from([False, False, True]),
    }
    return build_cases(MatMulCase, drawn, fields)


STRATEGIES: dict[str, Callable[[str], S[Any]]] = {
    **dict.fromkeys(CONVOLUTIONS, convolutions),
    **dict.fromkeys(ELEMENTWISE, elementwise),
    **dict.fromkeys(POOLS, pools),
    **dict.fromkeys(FUNCTIONS, functions),
    **dict.fromkeys(MOVES, moves),
    "SOFTMAX": lambda kind: softmaxes(),
    "BATCH_MATMUL": lambda kind: matmuls(),
    "CONCATENATION": lambda kind: concatenations(),
    "MEAN": lambda kind: means(),
    "REDUCE_MAX": lambda kind: means(kind=kind, output_scale=None),
    "RESIZE_NEAREST_NEIGHBOR": lambda kind: resizes(),
    **dict.fromkeys(CONVERSIONS, conversions),
}
"""Operator kind to the strategy of its layers."""


def layers(*kinds: str) -> S[Any]:
    """Return layers of any of these kinds of operators; of all that are known by default.

    Raises:
        UsageError: nothing draws layers of a kind.
    """
    for kind in kinds:
        if kind not in STRATEGIES:
            raise UsageError(f"nothing draws layers of {kind}; known are {', '.join(STRATEGIES)}")
    return st.one_of([STRATEGIES[kind](kind) for kind in kinds or STRATEGIES])

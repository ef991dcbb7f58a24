"""Strategies of layers at the borders of what a unit can do: sizes, sums, shifts, biases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from covp.accelerator.backend import AcceleratorBackend
from covp.testing import layers, quantizations
from covp.testing.cases import ConcatenationCase, ElementwiseCase, PoolCase
from covp.testing.convolution_case import ConvCase

S = st.SearchStrategy

_MOST_MACS = 3_000_000
_MOST_ELEMENTS = 120_000
"""The limit of a tensor: several have to fit the bench's memory, and one layer must not take the
time of hundreds."""
_STORED = st.one_of(quantizations.zero_points("int8"), st.sampled_from([-128, 127, 0]))
_SMALL = st.integers(1, 4)
_ROUND = st.sampled_from([1, 2, 4, 8, 16, 32, 64])
"""Extents of which rows, images and tiles have a round number of bytes."""


def marks(backend: AcceleratorBackend, limits: Sequence[int]) -> list[int]:
    """Return extents at which a unit's counters, registers and memories may end.

    Powers of two, the unit's parameters and its limits, each with its neighbours.

    Args:
        backend: of the unit.
        limits: that it states, see `covp.testing.verify.stages`.
    """
    given = [2**n for n in range(2, 17)]
    given += [v for v in backend.values.values() if type(v) is int and 2 <= v <= 1 << 16]
    given += [n for n in limits if n <= 1 << 16]
    beside = {n + d for n in given for d in (-1, 0, 1)} | {2 * n + d for n in given for d in (0, 1)}
    most = min(1 << 16, max((n for n in limits if n > 64), default=1 << 16) + 1)
    return sorted(n for n in beside if 2 <= n <= most)


def _extents(points: list[int], most: int) -> S[int]:
    """Return a strategy of extents: marks, and whatever lies between them up to ``most``."""
    most = min(most, points[-1])
    inside = [n for n in points if n <= most] or [1]
    fours = st.integers(1, max(1, most // 4)).map(lambda n: 4 * n)  # as many units want them
    return st.one_of(st.sampled_from(inside), st.sampled_from(inside), st.integers(1, most), fours)


def convolutions(kind: str, points: list[int]) -> S[ConvCase]:
    """Draw layers with weights: one dimension long, or all of middle size."""
    small = st.tuples(st.integers(1, 5), st.integers(1, 5))
    one = st.just((1, 1))
    narrow = st.tuples(_SMALL, _SMALL)
    kernels = st.sampled_from([(1, 1), (1, 1), (3, 3), (2, 3), (1, 3)])
    pair = _one_long(_extents(points, 60_000), st.integers(1, 3))
    deep = _extents(points, 8192)
    middle = _extents(points, 80)
    usual: dict[str, Any] = {"size": small, "channels": narrow, "kernel": kernels}
    if kind == "FULLY_CONNECTED":
        usual = {"size": one, "kernel": one}
        shapes: list[dict[str, Any]] = [
            usual | {"channels": st.tuples(_extents(points, 60_000), st.integers(1, 2))},
            usual | {"channels": st.tuples(deep, _SMALL)},
            usual | {"channels": st.tuples(_SMALL, deep)},
            usual | {"channels": st.tuples(_ROUND, _ROUND), "batch": st.sampled_from([1, 2, 4])},
            usual | {"channels": st.tuples(_extents(points, 600), _extents(points, 600))},
            usual | {"channels": st.tuples(middle, middle)},
            usual | {"channels": narrow, "batch": _extents(points, 300)},
        ]
    else:
        equal = kind == "DEPTHWISE_CONV_2D"

        def channels(strategy: S[int]) -> S[tuple[int, int]]:
            if equal:
                return st.one_of(strategy, strategy.map(lambda n: max(4, n & ~3))).map(
                    lambda n: (n, n)
                )
            return st.one_of(
                st.tuples(strategy, _SMALL),
                st.tuples(_SMALL, strategy),
                st.tuples(strategy, strategy),
            )

        if equal:
            usual["channels"] = st.sampled_from([(4, 4), (8, 8), (1, 1), (3, 3), (2, 4)])
        shapes = [
            usual | {"size": pair},
            usual
            | {
                "size": st.tuples(_ROUND, _ROUND),
                "channels": st.tuples(_ROUND, _ROUND)
                if not equal
                else _ROUND.map(lambda n: (n, n)),
                "same": True,
            },
            usual
            | {
                "size": st.tuples(st.integers(1, 12), st.integers(1, 12)),
                "kernel": st.tuples(st.integers(1, 7), st.integers(1, 7)),
                "padding": layers.paddings(4),
            },
            usual
            | {
                "size": st.tuples(st.integers(8, 14), st.integers(8, 14)),
                "kernel": st.tuples(st.integers(8, 17), st.integers(8, 17)),
                "padding": layers.paddings(16),
            },
            usual | {"size": st.tuples(_extents(points, 300), _extents(points, 300))},
            usual | {"channels": channels(_extents(points, 2048))},
            usual | {"channels": channels(deep), "kernel": one},
            usual | {"size": st.tuples(middle, middle), "channels": channels(middle)},
            usual | {"kernel": _one_long(_extents(points, 260), _SMALL), "stride": narrow},
            usual
            | {
                "kernel": st.tuples(st.integers(1, 11), st.integers(1, 11)),
                "size": st.tuples(st.integers(1, 30), st.integers(1, 30)),
                "stride": _one_long(_extents(points, 40), _SMALL),
            },
        ]
    return st.one_of([_arithmetic(kind, shape) for shape in shapes])


def _arithmetic(kind: str, shape: dict[str, Any]) -> S[ConvCase]:
    """Return a strategy of cases of a shape: random or largest sums, usual or wide scales."""
    fields: dict[str, Any] = {
        "dtype": "int8",
        "batch": st.sampled_from([1, 1, 1, 2]),
        "stride": st.sampled_from([(1, 1), (1, 1), (2, 2), (1, 2), (2, 1), (3, 3)]),
        "dilation": st.sampled_from([(1, 1)] * 5 + [(2, 2)]),
        "zero_points": st.tuples(_STORED, _STORED),
        "bias": st.sampled_from([True, True, False]),
        "per_channel": st.sampled_from([True, True, True, False]),
    } | shape
    kinds: list[dict[str, Any]] = [
        {"output_scale": st.sampled_from([1.0, 0.3, 3.0])},
        {"extreme": True, "output_scale": st.sampled_from([1.0, 3.0])},
        {"largest": True, "zero_points": st.tuples(st.sampled_from([127, -128, 0]), _STORED)},
        {"spread_multipliers": True, "bias": True},
        {  # shifts by little, where double rounding shows
            "weight_limit": st.integers(1, 3),
            "zeros": st.sampled_from([0.0, 0.6, 0.9]),
            "output_scale": st.sampled_from([0.25, 1.0, 4.0, 16.0]),
        },
    ]
    return st.one_of([layers.convolutions(kind, **{**fields, **more}) for more in kinds]).map(
        _affordable
    )


def _one_long(long: S[int], short: S[int]) -> S[tuple[int, int]]:
    return st.one_of(st.tuples(long, short), st.tuples(short, long))


def _affordable(case: ConvCase) -> ConvCase:
    """Shrink a layer's extents where it would take too long or too much memory."""
    for _ in range(100):
        height, width = (
            max(s, (k - 1) * d + 1)
            for s, k, d in zip(case.size, case.kernel, case.dilation, strict=True)
        )
        wide, deep = case.channels
        if case.kind == "FULLY_CONNECTED":
            height = width = 1
        taps = case.kernel[0] * case.kernel[1] if case.kind != "FULLY_CONNECTED" else 1
        rows = -(-height // case.stride[0]) * -(-width // case.stride[1])
        if case.kind == "FULLY_CONNECTED":
            rows = 1
        if case.kind == "DEPTHWISE_CONV_2D":
            deep = -(-deep // wide) * wide
        weights = taps * deep * (1 if case.kind == "DEPTHWISE_CONV_2D" else wide)
        largest = max(
            case.batch * height * width * wide, case.batch * rows * deep, weights, deep * 12
        )
        if largest <= _MOST_ELEMENTS and case.batch * rows * weights <= _MOST_MACS:
            return case
        sizes = {
            "size": max(case.size) if case.kind != "FULLY_CONNECTED" else 0,
            "channels": max(case.channels) - 1,
            "kernel": taps - 1 if taps > 1 else 0,
            "batch": case.batch - 1,
        }
        # the smaller of two large ones shrinks first: the long one is what the case is about
        field = min((n for n in sizes if sizes[n] > 3), key=lambda n: sizes[n], default="size")
        case = replace(case, **{field: _halve(getattr(case, field), case.kind)})
    return case


def _halve(value: Any, kind: str) -> Any:
    if isinstance(value, int):
        return max(1, value // 2)
    a, b = value
    if a == b and kind == "DEPTHWISE_CONV_2D":
        half = a // 2 if a < 8 else a // 2 & ~3
        return (max(1, half),) * 2
    return (a, b // 2) if 1 < b <= a or (a == 1 and b > 1) else (max(1, a // 2), b)


def elementwise(kind: str, points: list[int]) -> S[ElementwiseCase]:
    """Return a strategy of long rows and of scales far apart."""
    scales = st.floats(2**-10, 1.0, width=32)
    shapes = st.one_of(
        st.tuples(st.just(1), _extents(points, 40_000)),
        st.tuples(st.just(1), _extents(points, 400), _extents(points, 40), _SMALL),
    )
    return layers.elementwise(
        kind,
        shape=shapes,
        scales=st.tuples(scales, scales, scales),
        zero_points=st.tuples(_STORED, _STORED, _STORED),
    )


def pools(kind: str, points: list[int]) -> S[PoolCase]:
    """Return a strategy of pools with long images, many channels or large windows."""
    long = _one_long(_extents(points, 4096), _SMALL)
    large = st.tuples(st.integers(1, 24), st.integers(1, 24))
    usual: dict[str, Any] = {"zero_point": _STORED}
    return st.one_of(
        layers.pools(kind, **usual, size=long),
        layers.pools(kind, **usual, size=large, filter=large, stride=large),
        layers.pools(kind, **usual, channels=_extents(points, 1024)),
        layers.pools(kind, **usual, size=large, channels=_extents(points, 40)),
    ).map(_affordable_pool)


def _affordable_pool(case: PoolCase) -> PoolCase:
    while True:
        height, width = (max(s, f) for s, f in zip(case.size, case.filter, strict=True))
        if height * width * case.channels <= 60_000:
            return case
        case = replace(
            case,
            channels=max(1, case.channels // 2),
            size=(max(1, case.size[0] // 2), max(1, case.size[1] // 2)),
        )


def concatenations(points: list[int]) -> S[ConcatenationCase]:
    """Return a strategy of many and of long parts."""
    lengths = st.lists(_extents(points, 3000), min_size=2, max_size=4).map(tuple)
    several = st.lists(st.integers(1, 40), min_size=2, max_size=12).map(tuple)
    shape = st.tuples(_SMALL, _SMALL, _SMALL)
    return st.one_of(
        layers.concatenations(lengths=lengths),
        layers.concatenations(lengths=several, shape=shape),
        layers.concatenations(shape=st.tuples(st.just(1), st.just(1), _extents(points, 3000))),
    )


def _functions(kind: str, points: list[int]) -> S[Any]:
    shapes = st.one_of(
        st.tuples(st.just(1), _extents(points, 40_000)),
        st.tuples(st.just(1), _extents(points, 300), st.integers(1, 30), _SMALL),
    )
    return layers.functions(kind, shape=shapes)


def _softmaxes(kind: str, points: list[int]) -> S[Any]:
    return st.one_of(
        layers.softmaxes(rows=_extents(points, 300)),
        layers.softmaxes(depth=_extents(points, 1100), scale=st.floats(2**-8, 1.0, width=32)),
    )


_BORDERS: dict[str, Callable[[str, list[int]], S[Any]]] = {
    **dict.fromkeys(layers.CONVOLUTIONS, convolutions),
    **dict.fromkeys(layers.ELEMENTWISE, elementwise),
    **dict.fromkeys(layers.POOLS, pools),
    **dict.fromkeys(layers.FUNCTIONS, _functions),
    "SOFTMAX": _softmaxes,
    "CONCATENATION": lambda kind, points: concatenations(points),
}


def borders(kind: str, backend: AcceleratorBackend, limits: Sequence[int]) -> S[Any] | None:
    """Return layers of a kind at the borders of an accelerator, or None where nothing draws them.

    Args:
        kind: of the operators.
        backend, limits: see `marks`.
    """
    strategy = _BORDERS.get(kind)
    return None if strategy is None else strategy(kind, marks(backend, limits))

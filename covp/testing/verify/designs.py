"""`designs`: small layers with every pair of values that drivers and units tell apart.

Each field of a layer takes its values evenly and independently of the others, so that some eighty
layers have nearly all pairs: strides beyond windows, a width of 1 with a tall kernel, padding on
one side with a stride, clamps with each zero point.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from covp.testing import Case, ConcatenationCase, ConvCase, ElementwiseCase, PoolCase, SoftmaxCase

_EACH = 80
"""Layers of a kind."""
_ACTIVATIONS = ("none", "none", "relu", "relu6", "relu_n1_to_1")
_ZEROS = (0, -128, 127, -1, 5, -37)
_KERNELS = (1, 2, 3, 3, 4, 5, 7)
_STRIDES = (1, 1, 1, 2, 2, 3, 4, 5, 6, 8)
_DILATIONS = (1, 1, 1, 1, 1, 1, 2, 3)
_CHANNELS = (1, 2, 3, 4, 5, 8, 12, 16, 17, 24)
_MANY = (31, 32, 33, 64, 65, 70, 128, 130)
_CONTENTS = ("random", "random", "extreme", "lowest", "highest", "alternating", "outlier")
_LEVELS = ((), (), (), (), (-128,), (0,), (-1,), (-127, 127), (0, 1), tuple(range(1, 128)))
_SCALES = (0.5, 0.25, 1.0, 0.05, 0.03, 0.1, 2**-6, 0.7)


class _Draw:
    """Independent values, the same in each run."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def one(self, values: Any) -> Any:
        """Draw one of the values."""
        return values[int(self._rng.integers(len(values)))]

    def pair(self, values: Any) -> tuple[Any, Any]:
        """Draw two numbers, one of which is as often 1, or both equal, as not."""
        a, b = self.one(values), self.one(values)
        first, second = self.one([(a, b), (a, b), (a, a), (a, 1), (1, b)])
        return first, second

    def below(self, most: int) -> int:
        """Draw a number from 0 to less than ``most``."""
        return int(self._rng.integers(most))


def designs(kind: str) -> Iterator[Case]:
    """Yield the layers of a kind of operator; none for a kind without any."""
    make = _MAKERS.get(kind)
    draw = _Draw(2 + len(kind))
    for seed in range(_EACH if make is not None else 0):
        yield make(kind, draw, seed)  # type: ignore[misc]


def _image(draw: _Draw, windows: tuple[int, int], strides: tuple[int, int]) -> tuple[int, int]:
    """Draw the extents of an image that a few windows and a remainder fill."""
    first, second = (
        window + stride * draw.one((0, 1, 1, 2, 3, 4)) + draw.below(stride)
        for window, stride in zip(windows, strides, strict=True)
    )
    return first, second


def _convolution(kind: str, draw: _Draw, seed: int) -> ConvCase:
    kernel, stride = draw.pair(_KERNELS), draw.pair(_STRIDES)
    dilation = draw.pair(_DILATIONS)
    reach = (
        (kernel[0] - 1) * dilation[0] + 1,
        (kernel[1] - 1) * dilation[1] + 1,
    )
    channels = draw.one(_CHANNELS), draw.one(_CHANNELS)
    if draw.below(4) == 0:
        channels = draw.one(((channels[0], draw.one(_MANY)), (draw.one(_MANY), channels[1])))
    if kind == "DEPTHWISE_CONV_2D":
        channels = (channels[0], channels[0] * draw.one((1, 1, 1, 2, 3)))
    padding = tuple(draw.below(side) for side in (reach[0], reach[0], reach[1], reach[1]))
    return ConvCase(
        kind,
        batch=draw.one((1, 1, 1, 2, 3)),
        size=_image(draw, reach, stride),
        channels=channels,
        kernel=kernel,
        stride=stride,
        dilation=dilation,
        same=draw.one((True, False)),
        padding=draw.one((None, None, None, None, padding)),
        **_with_weights(draw, seed),
    )


def _fully_connected(kind: str, draw: _Draw, seed: int) -> ConvCase:
    extents = (*_CHANNELS, *_MANY, 200, 257)
    return ConvCase(
        kind,
        batch=draw.one((1, 1, 2, 3, 7)),
        channels=(draw.one(extents), draw.one(extents)),
        **_with_weights(draw, seed),
    )


def _with_weights(draw: _Draw, seed: int) -> dict[str, Any]:
    form = draw.one(("plain", "plain", "plain", "spread_multipliers", "extreme", "largest"))
    levels = draw.one(_LEVELS) if form == "plain" else ()
    return {
        "bias": draw.one((True, True, False)) or form == "spread_multipliers",
        "activation": draw.one(_ACTIVATIONS),
        "zero_points": (draw.one(_ZEROS), draw.one(_ZEROS)),
        "output_scale": draw.one((1.0, 1.0, 0.05, 0.3, 3.0)),
        "per_channel": draw.one((True, True, True, False)),
        "levels": levels,
        "seed": seed,
    } | ({} if form == "plain" else {form: True})


def _pool(kind: str, draw: _Draw, seed: int) -> PoolCase:
    window, stride = draw.pair(_KERNELS), draw.pair(_STRIDES)
    if draw.below(4) == 0:
        stride = window
    return PoolCase(
        kind,
        size=_image(draw, window, stride),
        channels=draw.one((*_CHANNELS, *_MANY)),
        filter=window,
        stride=stride,
        same=draw.one((True, False)),
        activation=draw.one(_ACTIVATIONS),
        batch=draw.one((1, 1, 1, 2, 3)),
        zero_point=draw.one(_ZEROS),
        content=draw.one(_CONTENTS),
        seed=seed,
    )


def _elementwise(kind: str, draw: _Draw, seed: int) -> ElementwiseCase:
    shape = tuple(draw.one((1, 2, 3, 5, 8, 17, 33)) for _ in range(draw.one((1, 2, 3, 4))))
    other = tuple(draw.one((extent, 1)) for extent in shape)
    return ElementwiseCase(
        kind,
        shape,
        zero_points=(draw.one(_ZEROS), draw.one(_ZEROS), draw.one(_ZEROS)),
        scales=(draw.one(_SCALES), draw.one(_SCALES), draw.one(_SCALES)),
        activation=draw.one(_ACTIVATIONS),
        other=draw.one((None, None, None, other)),
        constant=draw.one((False, False, False, True)),
        content=draw.one(_CONTENTS),
        seed=seed,
    )


def _softmax(kind: str, draw: _Draw, seed: int) -> SoftmaxCase:
    rows, depth = draw.one((1, 1, 2, 3, 9)), draw.one((1, 2, 3, 10, 17, 100))
    return SoftmaxCase(rows, depth, draw.one(_SCALES), seed, beta=draw.one((1.0, 1.0, 0.5)))


def _concatenation(kind: str, draw: _Draw, seed: int) -> ConcatenationCase:
    shape = tuple(draw.one((1, 2, 3, 5)) for _ in range(draw.one((1, 2, 3, 4))))
    lengths = tuple(draw.one((1, 2, 3, 4, 8, 17)) for _ in range(draw.one((2, 2, 3, 5))))
    return ConcatenationCase(lengths, shape, draw.below(len(shape)), seed)


_MAKERS: dict[str, Any] = {
    "CONV_2D": _convolution,
    "DEPTHWISE_CONV_2D": _convolution,
    "FULLY_CONNECTED": _fully_connected,
    "AVERAGE_POOL_2D": _pool,
    "MAX_POOL_2D": _pool,
    **dict.fromkeys(("ADD", "SUB", "MUL"), _elementwise),
    "SOFTMAX": _softmax,
    "CONCATENATION": _concatenation,
}

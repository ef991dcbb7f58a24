"""Layers that every search runs: each dimension long once, all shifts, the largest sums, ties."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from covp.testing import Case, ConcatenationCase, ConvCase, ElementwiseCase, PoolCase, SoftmaxCase

_LONG = (256, 300, 1031, 4095)
_FEW = 8192
"""Results that a driver may compute one by one, each in a job of its own."""


def corners(kind: str, limits: Sequence[int]) -> Iterator[Case]:
    """Yield the corner cases of a kind of operator, cheap ones first.

    Args:
        kind: of the operators.
        limits: that the accelerator states, see `covp.testing.verify.stages`.
    """
    long = [n for n in sorted({*_LONG, *(n for n in limits if n > 16)}) if n <= 65535]
    if kind in _WITH_WEIGHTS:
        yield from _WITH_WEIGHTS[kind](long)
        if kind != "FULLY_CONNECTED":
            yield from _strips(kind, [n for n in limits if n >= 512])
            yield from _windows(kind, [n for n in limits if 2 < n <= 255])
    elif kind in ("ADD", "SUB", "MUL"):
        yield from _elementwise(kind, long)
    elif kind in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
        yield from _pools(kind, long)
    elif kind == "SOFTMAX":
        shapes = ((300, 2), (2, 300), (1, 1031), *((1, n) for n in long), *((n, 2) for n in long))
        yield from (SoftmaxCase(rows, depth) for rows, depth in shapes if rows * depth < 200_000)
    elif kind == "CONCATENATION":
        others: tuple[tuple[int, ...], ...] = ((2, 3, 5), (1, 2, 3, 2), (1, 2))
        yield from (
            ConcatenationCase((n, 3, 300), shape, axis)
            for n in long
            for shape in others
            for axis in range(len(shape))
        )


def _windows(kind: str, limits: Sequence[int]) -> Iterator[ConvCase]:
    """Yield the largest kernels, strides, dilations and paddings, each side with its own."""
    for n in limits:
        yield ConvCase(kind, size=(2, n), kernel=(1, n), same=True)
        yield ConvCase(kind, size=(n, 2), kernel=(n, 1), bias=True)
        yield ConvCase(kind, size=(2, 2 * n + 1), kernel=(2, 2), stride=(1, n), same=True)
        yield ConvCase(kind, size=(2 * n + 1, 2), kernel=(2, 2), stride=(n, 1), same=True)
        if n < 100:
            yield ConvCase(kind, size=(n, n + 1), kernel=(2, 3), dilation=(1, n), same=True)
            yield ConvCase(kind, size=(n + 1, n), kernel=(3, 2), dilation=(n, 1), same=True)
    for side in range(4):
        pads = (0,) * side + (2,) + (0,) * (3 - side)
        assert len(pads) == 4
        yield ConvCase(kind, size=(6, 5), channels=(4, 4), kernel=(3, 3), padding=pads, bias=True)


def _strips(kind: str, limits: Sequence[int]) -> Iterator[ConvCase]:
    """Yield tall kernels over rows of which a memory holds just the kernel's, or one more.

    So several strips of rows have padding.
    """
    for n in limits:
        for rows in (5, 6):
            width = max(1, n // (10 * rows))
            channels = (10, 10 if kind == "DEPTHWISE_CONV_2D" else 3)
            yield ConvCase(
                kind, size=(7, width), channels=channels, kernel=(5, 2), same=True, bias=True
            )


def _arithmetic(kind: str, **shape: Any) -> Iterator[ConvCase]:
    """Yield all shifts with exact ties, shifts by little, the largest sums with each sign."""
    for seed, zeros in enumerate([(-128, 5), (127, -128), (0, 127)]):
        yield ConvCase(
            kind, bias=True, spread_multipliers=True, seed=seed, zero_points=zeros, **shape
        )
    for scale in (0.25, 1.0, 4.0):
        yield ConvCase(kind, weight_limit=2, zeros=0.6, output_scale=scale, seed=9, **shape)
    for zero in (127, -128):
        yield ConvCase(kind, largest=True, zero_points=(zero, 0), **shape)
    yield ConvCase(kind, extreme=True, zero_points=(3, -4), bias=True, **shape)


def _wide_registers(kind: str, outputs: int) -> Iterator[ConvCase]:
    """Yield images of more than 65,536 elements, few of which are used, and wide paddings."""
    for size, channels in (((130, 129), 4), ((62, 68), 16)):
        both = channels, outputs or channels
        yield ConvCase(kind, size=size, channels=both, stride=(3, 3), zero_points=(3, 4))
    for padding in ((9, 0, 9, 0), (0, 9, 0, 9)):
        yield ConvCase(
            kind, size=(9, 9), channels=(4, outputs or 4), kernel=(10, 11), padding=padding
        )


def _convolutions(long: list[int]) -> Iterator[ConvCase]:
    yield from _arithmetic("CONV_2D", size=(3, 4), channels=(8, 64))
    yield from _arithmetic("CONV_2D", size=(5, 4), channels=(8, 20), kernel=(3, 3), same=True)
    for n in long:
        deep = ConvCase(size=(2, 2), channels=(n, 3), largest=True, zero_points=(127, 0))
        yield deep
        if n <= _FEW:
            yield ConvCase(size=(1, 1), channels=(3, n), bias=True, spread_multipliers=True)
        yield ConvCase(size=(2, n), channels=(2, 3), kernel=(2, 3), bias=True, batch=2)
        yield ConvCase(size=(n, 2), channels=(2, 3), kernel=(3, 2), same=True, batch=2)
        yield ConvCase(size=(3, n), channels=(1, 2), kernel=(1, 5), stride=(1, 2), same=True)
    yield from _wide_registers("CONV_2D", 2)
    yield ConvCase(size=(20, 20), channels=(3, 4), kernel=(15, 15), same=True, bias=True)
    yield ConvCase(
        size=(9, 9), channels=(300, 16), kernel=(3, 3), largest=True, zero_points=(-128, 1)
    )
    for side in (15, 16, 17, 32, 33):
        yield ConvCase(
            size=(side, side), channels=(side, side), kernel=(3, 3), same=True, bias=True, batch=2
        )
    yield ConvCase(
        size=(96, 96), channels=(3, 8), kernel=(3, 3), stride=(2, 2), same=True, bias=True
    )


def _depthwise(long: list[int]) -> Iterator[ConvCase]:
    kind = "DEPTHWISE_CONV_2D"
    yield from _arithmetic(kind, size=(3, 4), channels=(64, 64))
    yield from _arithmetic(kind, size=(5, 4), channels=(20, 20), kernel=(3, 3), same=True)
    for n in long:
        yield ConvCase(kind, size=(1, 2), channels=(n // 2, n), bias=True, spread_multipliers=True)
        yield ConvCase(kind, size=(2, 2), channels=(n, n), bias=True, spread_multipliers=True)
        yield ConvCase(
            kind, size=(2, 2), channels=(n & ~3, n & ~3), bias=True, spread_multipliers=True
        )
        yield ConvCase(kind, size=(2, n), channels=(4, 4), kernel=(2, 3), bias=True, batch=2)
        yield ConvCase(kind, size=(n, 2), channels=(4, 4), kernel=(3, 2), same=True, batch=2)
    yield from _wide_registers(kind, 0)
    for channels in ((1, 8), (1, 3), (2, 14), (3, 24), (8, 64), (16, 32)):
        yield ConvCase(kind, size=(3, 3), channels=channels, kernel=(2, 2), same=True, bias=True)
    yield ConvCase(kind, size=(20, 20), channels=(8, 8), kernel=(15, 15), same=True, largest=True)
    yield ConvCase(kind, size=(48, 48), channels=(8, 8), kernel=(3, 3), stride=(2, 2), same=True)


def _fully_connected(long: list[int]) -> Iterator[ConvCase]:
    kind = "FULLY_CONNECTED"
    yield from _arithmetic(kind, channels=(16, 64), batch=3)
    for seed in range(3, 30):  # one scale each
        yield ConvCase(kind, channels=(4, 32), bias=True, spread_multipliers=True, seed=seed)
    for n in long:
        yield ConvCase(kind, channels=(n, 3), largest=True, zero_points=(127, 0))
        yield ConvCase(kind, channels=(n & ~15, 4), bias=True)
        if n <= _FEW:
            yield ConvCase(kind, channels=(4, n), bias=True)
        if n <= 512:
            yield ConvCase(kind, channels=(3, 5), batch=n)
    yield ConvCase(kind, channels=(304, 300), bias=True)


def _elementwise(kind: str, long: list[int]) -> Iterator[ElementwiseCase]:
    def case(shape: tuple[int, ...], scales: tuple[float, float, float]) -> ElementwiseCase:
        return ElementwiseCase(kind, shape, (3, -5, 7), scales, seed=len(shape))

    for scales in (
        (0.5, 0.5, 1.0),
        (0.25, 0.5, 2.0),
        (1.0, 2**-10, 1.0),
        (2**-10, 0.7, 0.4),
        (0.1, 0.1, 2**-6),
    ):
        yield case((2, 40, 9), scales)
        yield ElementwiseCase(kind, (1, 300), (-128, 127, 0), scales)
        yield ElementwiseCase(kind, (1, 40), (-128, 127, 3), scales, content="extreme")
        yield ElementwiseCase(kind, (1, 40), (127, -128, -128), scales)
        yield ElementwiseCase(kind, (1, 40), (-1, 1, 127), scales)
    for n in (*long, 65_537, 70_001, 140_000):
        yield case((1, n), (0.05, 0.03, 0.1))
    yield case((1, 300, 1, 5), (0.05, 0.05, 0.1))
    yield case((1, 3, 1031), (0.05, 0.05, 0.1))


def _pools(kind: str, long: list[int]) -> Iterator[PoolCase]:
    for zero in (-128, 127):
        yield PoolCase(kind, (12, 13), 5, (3, 3), (2, 2), True, zero_point=zero)
    yield PoolCase(kind, (64, 48), 4, (2, 2), (2, 2), batch=2)
    for content in ("lowest", "highest", "extreme"):
        yield PoolCase(kind, (17, 16), 4, (17, 16), (1, 1), content=content)
        yield PoolCase(kind, (5, 4), 4, (3, 2), (1, 1), True, content=content)
    for size in ((300, 3), (3, 300), (1031, 2), (2, 1031)):
        yield PoolCase(kind, size, 2, (2, 2), (1, 1))
    for channels in (16, 32, 64, 128, 1031):
        yield PoolCase(kind, (2, 2), channels, (2, 2), (1, 1))
    for n in long:
        yield PoolCase(kind, (2, 2), n, (2, 1), (1, 1), batch=2)
        yield PoolCase(kind, (2, n), 1, (2, 1), (1, 1), batch=2)
        yield PoolCase(kind, (n, 1), 2, (1, 1), (2, 1), batch=2)
        if n <= 5000:
            yield PoolCase(kind, (1, n), 2, (1, n), (1, 1), zero_point=127, content="lowest")
            yield PoolCase(kind, (n, 1), 2, (n, 1), (1, 1), zero_point=-128, content="highest")
    yield PoolCase(kind, (20, 20), 4, (20, 20), (1, 1))
    yield PoolCase(kind, (25, 6), 3, (17, 2), (3, 1), True)


_WITH_WEIGHTS = {
    "CONV_2D": _convolutions,
    "DEPTHWISE_CONV_2D": _depthwise,
    "FULLY_CONNECTED": _fully_connected,
}

"""Layers that every search runs: each dimension long once, all shifts, the largest sums, ties."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from covp.accelerator.backend import AcceleratorBackend
from covp.testing import Case, ConcatenationCase, ConvCase, ElementwiseCase, PoolCase, SoftmaxCase

_LONG = (300, 1031, 4095)


def corners(kind: str, backend: AcceleratorBackend) -> Iterator[Case]:
    """The corner cases of a kind of operator: cheap ones first; none for a kind without any.

    Args:
        kind: of the operators.
        backend: whose declared limits bound the extents, where it has any.
    """
    long = [n for n in (*_LONG, *_limits(backend)) if n <= 65535]
    makers = {
        "CONV_2D": _convolutions,
        "DEPTHWISE_CONV_2D": _depthwise,
        "FULLY_CONNECTED": _fully_connected,
    }
    if kind in makers:
        yield from makers[kind](long)
    elif kind in ("ADD", "SUB", "MUL"):
        yield from _elementwise(kind, long)
    elif kind in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
        yield from _pools(kind)
    elif kind == "SOFTMAX":
        yield from (SoftmaxCase(rows, depth) for rows, depth in ((300, 2), (2, 300), (1, 1031)))
    elif kind == "CONCATENATION":
        yield from (
            ConcatenationCase((n, 3, 300), (2, 3, 5), axis) for n in long for axis in (0, 1, 2)
        )


def _limits(backend: AcceleratorBackend) -> list[int]:
    """The largest values of the declared job's sizes."""
    numbers = getattr(getattr(backend, "job", None), "numbers", ())
    found = {int(n.maximum) for n in numbers if not n.real and 300 < n.maximum <= 65535}
    return sorted(found - set(_LONG))


def _arithmetic(kind: str, **shape: Any) -> Iterator[ConvCase]:
    """All shifts with exact ties, shifts by little, the largest sums with each sign."""
    for seed in range(3):
        yield ConvCase(kind, bias=True, wide=True, seed=seed, zero_points=(-128, 5), **shape)
    for scale in (0.25, 1.0, 4.0):
        yield ConvCase(kind, weight_limit=2, zeros=0.6, output_scale=scale, seed=9, **shape)
    for zero in (127, -128):
        yield ConvCase(kind, largest=True, zero_points=(zero, 0), **shape)
    yield ConvCase(kind, extreme=True, zero_points=(3, -4), bias=True, **shape)


def _convolutions(long: list[int]) -> Iterator[ConvCase]:
    yield from _arithmetic("CONV_2D", size=(3, 4), channels=(8, 64))
    yield from _arithmetic("CONV_2D", size=(5, 4), channels=(8, 20), kernel=(3, 3), same=True)
    for n in long:
        deep = ConvCase(size=(2, 2), channels=(n, 3), largest=True, zero_points=(127, 0))
        yield deep
        yield ConvCase(size=(1, 1), channels=(3, n), bias=True, wide=True)
        yield ConvCase(size=(2, n), channels=(2, 3), kernel=(2, 3), bias=True)
        yield ConvCase(size=(n, 2), channels=(2, 3), kernel=(3, 2), same=True)
        yield ConvCase(size=(3, n), channels=(1, 2), kernel=(1, 5), stride=(1, 2), same=True)
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
        n &= ~3
        yield ConvCase(kind, size=(2, 2), channels=(n, n), bias=True, wide=True)
        yield ConvCase(kind, size=(2, n), channels=(4, 4), kernel=(2, 3), bias=True)
        yield ConvCase(kind, size=(n, 2), channels=(4, 4), kernel=(3, 2), same=True)
    yield ConvCase(kind, size=(20, 20), channels=(8, 8), kernel=(15, 15), same=True, largest=True)
    yield ConvCase(kind, size=(48, 48), channels=(8, 8), kernel=(3, 3), stride=(2, 2), same=True)


def _fully_connected(long: list[int]) -> Iterator[ConvCase]:
    kind = "FULLY_CONNECTED"
    yield from _arithmetic(kind, channels=(16, 64), batch=3)
    for seed in range(3, 30):  # one scale each
        yield ConvCase(kind, channels=(4, 32), bias=True, wide=True, seed=seed)
    for n in long:
        yield ConvCase(kind, channels=(n, 3), largest=True, zero_points=(127, 0))
        yield ConvCase(kind, channels=(n & ~15, 4), bias=True)
        yield ConvCase(kind, channels=(4, n), bias=True)
    yield ConvCase(kind, channels=(64, 16), batch=300)
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
    for n in (*long, 65_537, 70_001, 140_000):
        yield case((1, n), (0.05, 0.03, 0.1))
    yield case((1, 300, 1, 5), (0.05, 0.05, 0.1))
    yield case((1, 3, 1031), (0.05, 0.05, 0.1))


def _pools(kind: str) -> Iterator[PoolCase]:
    for zero in (-128, 127):
        yield PoolCase(kind, (12, 13), 5, (3, 3), (2, 2), True, zero_point=zero)
    for size in ((300, 3), (3, 300), (1031, 2), (2, 1031)):
        yield PoolCase(kind, size, 2, (2, 2), (1, 1))
    yield PoolCase(kind, (2, 2), 1031, (2, 2), (1, 1))
    yield PoolCase(kind, (20, 20), 4, (20, 20), (1, 1))
    yield PoolCase(kind, (25, 6), 3, (17, 2), (3, 1), True)
    yield PoolCase(kind, (64, 64), 3, (2, 2), (2, 2))

"""`sweep`: layers in which each extent takes every small value once, whatever a driver tiles by."""

from __future__ import annotations

from collections.abc import Iterator

from covp.testing import Case, ConcatenationCase, ConvCase, ElementwiseCase, PoolCase, SoftmaxCase

_MOST = 101
"""A prime: multiples of a number modulo it visit every value. Tiles of up to 64 and a rest fit."""


def sweep(kind: str) -> Iterator[Case]:
    """Yield the layers of a kind of operator, large and small ones mixed."""
    for i in range(1, _MOST):
        a, b, c = (i * step % _MOST for step in (37, 61, 83))
        yield from _layers(kind, a, b, c)


def _layers(kind: str, a: int, b: int, c: int) -> Iterator[Case]:
    gap, batch = a % 8, 1 + c % 2
    if kind == "CONV_2D":
        yield ConvCase(size=(1, 2), channels=(b, a), bias=True, seed=a, gap=gap, batch=batch)
        yield ConvCase(
            size=(a, 1 + b % 5), channels=(1 + c % 6, 3), kernel=(2, 2), same=True, seed=a, gap=gap
        )
        yield ConvCase(
            size=(1 + b % 5, a),
            channels=(3, 1 + c % 6),
            kernel=(2, 3),
            same=True,
            bias=True,
            gap=gap,
        )
    elif kind == "DEPTHWISE_CONV_2D":
        yield ConvCase(
            kind,
            size=(2, 3),
            channels=(a, a),
            kernel=(2, 2),
            same=True,
            bias=True,
            seed=a,
            gap=gap,
            batch=batch,
        )
        yield ConvCase(
            kind, size=(a, 1 + b % 5), channels=(4, 4), kernel=(3, 2), same=True, gap=gap
        )
        yield ConvCase(
            kind, size=(1 + b % 5, a), channels=(4, 4), kernel=(2, 3), bias=True, gap=gap
        )
    elif kind == "FULLY_CONNECTED":
        yield ConvCase(kind, channels=(b, a), bias=True, seed=a, gap=gap, batch=1 + c % 3)
        yield ConvCase(kind, channels=(4 * b, 2), bias=True, batch=1 + a % 9, seed=a, gap=gap)
    elif kind in ("ADD", "SUB", "MUL"):
        for n in (a, a + 100, 16 * a):
            yield ElementwiseCase(kind, (1, n), (3, -5, 7), seed=a, gap=gap)
    elif kind in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
        yield PoolCase(kind, (3, 4), a, (2, 2), (1, 1), same=True, seed=a, gap=gap, batch=batch)
        yield PoolCase(kind, (a, 1 + b % 5), 3, (2, 1), (2, 1), same=True, gap=gap)
        yield PoolCase(kind, (1 + b % 5, a), 4, (1, 2), (1, 2), gap=gap)
        if a <= 26:
            yield PoolCase(kind, (a, a), 1, (a, a), (1, 1), seed=a, gap=gap, zero_point=127)
    elif kind == "SOFTMAX":
        yield SoftmaxCase(1 + b % 3, a, seed=a, gap=gap)
        yield SoftmaxCase(a, 1 + b % 20, seed=a, gap=gap)
    elif kind == "CONCATENATION":
        yield ConcatenationCase((a, b, 1 + c % 7), (2, 2, 2), c % 3, seed=a, gap=gap)
        yield ConcatenationCase((a, b), (1, 3, 2, 2), c % 4, seed=a, gap=gap)

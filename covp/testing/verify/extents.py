"""Layers of every small extent: `sweep` takes each value once, `single_elements` has ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from covp.testing import (
    Case,
    ConcatenationCase,
    ConvCase,
    ElementwiseCase,
    Layer,
    PoolCase,
    SoftmaxCase,
)
from covp.testing.verify.chain import ChainCase, refit

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


_EXTENTS = ("batch", "rows", "depth", "columns")
_SHAPES = ("size", "channels", "kernel", "filter", "stride", "dilation")
_SHAPES_OF_ANY_RANK = ("shape", "other", "reshaped", "lengths")
_SEEDS = 4
"""Layers of one element: a wrong result may be right by chance."""
_SEVERAL = 5
"""Elements along the only axis of more than one."""


def single_elements(case: Case) -> Iterator[Case]:
    """Yield the layers of one element of the same form as a layer, then those of one axis.

    Args:
        case: a layer that the accelerator accepts; none of another class than those of covp.
    """
    single = _single(case)
    if single is None:
        return
    for seed in range(_SEEDS):
        yield _with_seed(single, seed)
    if isinstance(single, ChainCase):
        first, *others = single.parts
        longer = [refit(single, [part, *others]) for part in _along_one_axis(first)]
        yield from (chain for chain in longer if chain is not None and _exists(chain))
    else:
        yield from filter(_exists, _along_one_axis(single))


def _single(case: Any) -> Any:
    """Return a layer with all extents 1; None where it has none, or no such layer can be."""
    if isinstance(case, ChainCase):
        parts = [_single(part) for part in case.parts]
        found: Any = None if None in parts else refit(case, parts)
    elif isinstance(case, Layer) and is_dataclass(case):
        found = replace(case, **{name: _ones(value) for name, value in _extents(case)})
        if hasattr(case, "padding"):
            found = replace(found, padding=None)
    else:
        return None
    return found if found is not None and _exists(found) else None


def _extents(case: Any) -> Iterator[tuple[str, Any]]:
    names = {field.name for field in fields(case)}
    for name in (*_EXTENTS, *_SHAPES, *_SHAPES_OF_ANY_RANK):
        if name in names and getattr(case, name):
            yield name, getattr(case, name)


def _ones(value: Any) -> Any:
    return (1,) * len(value) if isinstance(value, tuple) else 1


def _along_one_axis(single: Any) -> Iterator[Any]:
    """Yield a layer with each of its extents but those of its windows longer in turn."""
    for name, value in _extents(single):
        if name in _SHAPES[2:]:
            continue
        if not isinstance(value, tuple):
            yield replace(single, **{name: _SEVERAL})
            continue
        for axis in range(len(value)):
            yield replace(single, **{name: (*value[:axis], _SEVERAL, *value[axis + 1 :])})


def _with_seed(case: Any, seed: int) -> Any:
    if isinstance(case, ChainCase):
        parts = tuple(_with_seed(part, seed) for part in case.parts)
        return replace(case, parts=parts, seed=seed)
    return replace(case, seed=seed)


def _exists(case: Any) -> bool:
    """Return whether there is such a layer: attributes may not go with a shape of ones."""
    try:
        case.graph()
    except Exception:
        return False
    return True

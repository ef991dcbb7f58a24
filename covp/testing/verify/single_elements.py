"""`single_elements`: layers of one element, and of one row, column, channel or image."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from covp.testing import Case, Layer
from covp.testing.verify.chain import ChainCase, refit

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

"""`usual_forms`: a layer that an accelerator rejects, made more usual step by step.

First in its geometry, then in its weights: units with tables of weights, without multipliers or for
sparse weights accept few values only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from covp.testing import Case, ConvCase, ElementwiseCase, PoolCase
from covp.testing.verify.chain import ChainCase, refit

Form = Callable[[Any], Any]


def _without_dilation(case: Any) -> Any:
    if isinstance(case, ConvCase):
        return replace(case, dilation=(1, 1))
    return case


def _one_image(case: Any) -> Any:
    return replace(case, batch=1) if isinstance(case, (ConvCase, PoolCase)) else case


def _round_up_to(n: int) -> Form:
    """Return a form that rounds channels, or the last axis, up to multiples of n."""

    def round_up(case: Any) -> Any:
        if isinstance(case, ConvCase):
            wide, deep = (-(-extent // n) * n for extent in case.channels)
            return replace(
                case, channels=(wide, wide if case.channels[0] == case.channels[1] else deep)
            )
        if isinstance(case, PoolCase):
            return replace(case, channels=-(-case.channels // n) * n)
        if isinstance(case, ElementwiseCase) and case.other is None:
            return replace(case, shape=(*case.shape[:-1], -(-case.shape[-1] // n) * n))
        return case

    return round_up


def _equal_channels(case: Any) -> Any:
    if isinstance(case, ConvCase) and case.kind == "DEPTHWISE_CONV_2D":
        return replace(case, channels=(max(case.channels),) * 2)
    return case


def _same(case: Any) -> Any:
    if isinstance(case, (ConvCase, PoolCase)):
        return replace(case, same=True, padding=None)
    return case


def _valid(case: Any) -> Any:
    if isinstance(case, (ConvCase, PoolCase)):
        return replace(case, same=False, padding=None)
    return case


def _step_of_one(case: Any) -> Any:
    return replace(case, stride=(1, 1)) if isinstance(case, (ConvCase, PoolCase)) else case


def _three_by_three(case: Any) -> Any:
    if isinstance(case, ConvCase) and case.kind != "FULLY_CONNECTED":
        return replace(case, kernel=(3, 3))
    return case


def _one_by_one(case: Any) -> Any:
    if isinstance(case, ConvCase) and case.kind != "FULLY_CONNECTED":
        return replace(case, kernel=(1, 1))
    return case


def _two_by_two(case: Any) -> Any:
    if isinstance(case, PoolCase):
        return replace(case, filter=(2, 2), stride=(2, 2), same=False, padding=None)
    return case


def _integers(case: Any) -> Any:
    return replace(case, dtype="int8") if getattr(case, "dtype", "") == "float32" else case


def _all_of(*forms: Form) -> Form:
    def apply_all(case: Any) -> Any:
        for form in forms:
            case = form(case)
        return case

    return apply_all


def _with_levels(*counts: int) -> Form:
    """Return a form whose weights have few distinct values, often the ends of int8."""

    def form(case: Any) -> Any:
        if not isinstance(case, ConvCase) or case.dtype != "int8":
            return case
        rng = np.random.default_rng(case.seed)
        count = counts[case.seed % len(counts)]
        ends = [-128, 127][: count - 1] if case.seed % 2 else []
        inner = rng.choice(np.arange(-127, 127), count - len(ends), replace=False)
        levels = (*ends, *(int(value) for value in inner))
        return replace(case, levels=levels, zeros=0.0, largest=False, extreme=False)

    return form


def _restrict_weights_to(*levels: int) -> Form:
    """Return a form whose weights have these values only."""

    def form(case: Any) -> Any:
        if isinstance(case, ConvCase) and case.dtype == "int8":
            return replace(case, levels=levels, zeros=0.0, largest=False, extreme=False)
        return case

    return form


def _sparse(kept: int, group: int) -> Form:
    def form(case: Any) -> Any:
        return replace(case, nonzero=(kept, group)) if isinstance(case, ConvCase) else case

    return form


def _narrow_weights(case: Any) -> Any:
    """Limit weights to four bits."""
    return replace(case, weight_limit=7) if isinstance(case, ConvCase) else case


_PLAIN = _all_of(_without_dilation, _one_image, _equal_channels, _integers)
_GEOMETRIES: tuple[Form, ...] = (
    _without_dilation,
    _PLAIN,
    *(_all_of(_PLAIN, _round_up_to(n)) for n in (4, 8, 16)),
    _all_of(_PLAIN, _step_of_one, _same),
    _all_of(_PLAIN, _two_by_two),
    _all_of(_PLAIN, _round_up_to(8), _two_by_two),
    _all_of(_PLAIN, _round_up_to(16), _step_of_one, _same),
    _all_of(_PLAIN, _round_up_to(16), _step_of_one, _valid),
    _all_of(_PLAIN, _round_up_to(16), _three_by_three, _same),
    _all_of(_PLAIN, _round_up_to(16), _three_by_three, _step_of_one, _same),
    _all_of(_PLAIN, _round_up_to(16), _one_by_one, _step_of_one),
)
_POWERS = tuple(sign * 2**n for n in range(7) for sign in (1, -1))
_WEIGHTS: tuple[Form, ...] = (
    _with_levels(16, 16, 15, 16, 9, 2, 16, 1),
    _with_levels(4, 4, 3, 2, 4, 1),
    _restrict_weights_to(-1, 0, 1),
    _restrict_weights_to(-1, 1),
    _sparse(2, 4),
    _sparse(1, 4),
    _restrict_weights_to(*range(128)),
    _restrict_weights_to(0, *_POWERS),
    _narrow_weights,
)
FORMS: tuple[Form, ...] = (
    *_GEOMETRIES,
    *_WEIGHTS,
    *(_all_of(form, weights) for form in _GEOMETRIES[1:6] for weights in _WEIGHTS),
)
"""The less a form changes, the earlier it comes."""


def usual_form(case: Case, number: int) -> Case | None:
    """Return a case in one of the `FORMS`; None if it is so already."""
    changed: Case | None
    if isinstance(case, ChainCase):
        changed = refit(case, [FORMS[number](part) for part in case.parts])
    else:
        changed = FORMS[number](case)
    return None if changed == case else changed

"""`smaller`: simpler forms of a case, for one that no strategy has drawn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from covp.testing import Case
from covp.testing.verify.chain import ChainCase, refit

_PLAIN = {
    "bias": False,
    "same": False,
    "activation": "none",
    "output_scale": 1.0,
    "content": "random",
    "levels": (),
    "nonzero": None,
    "padding": None,
    "ties": False,
    "other": None,
}
_FROM_ZERO = ("gap", "seed", "zero_point", "zero_points")
"""Fields of which 0 is simpler than 1; of others, as extents, it is not allowed."""


def smaller(case: Case) -> Iterator[Case]:
    """Cases that differ from one in one field, which is simpler; the most daring ones first."""
    if isinstance(case, ChainCase):
        for i, part in enumerate(case.parts):
            for simpler in smaller(part):
                parts = [*case.parts[:i], simpler, *case.parts[i + 1 :]]
                fitting = refit(case, parts)  # type: ignore[arg-type]
                if fitting is not None and fitting != case:
                    yield fitting
    if not is_dataclass(case) or isinstance(case, type):
        return
    for field in fields(case):
        if field.name in ("parts", "wires"):
            continue
        value = getattr(case, field.name)
        if field.name in _PLAIN:
            values: Iterator[Any] = iter([_PLAIN[field.name]])
        else:
            values = _simpler(value, 0 if field.name in _FROM_ZERO else 1)
        for simpler in values:
            if simpler != value:
                yield replace(case, **{field.name: simpler})


def _simpler(value: Any, low: int) -> Iterator[Any]:
    if isinstance(value, bool):
        yield False
    elif isinstance(value, int):
        for part in (low, value // 2, value - value // 4, value - 1):
            if low <= part < value or value < part <= 0:
                yield part
    elif isinstance(value, tuple):
        for i, each in enumerate(value):
            for simpler in _simpler(each, low):
                yield (*value[:i], simpler, *value[i + 1 :])

"""int8 ADD and SUB of two tensors as one linear step.

TFLM brings both inputs to a common scale, adds, and scales the sum: three fixed-point
multiplications with roundings, about 80 instructions per element. The whole is a function of two
bytes, so that a shorter one can be checked on all 65536 pairs when the code is generated::

    output = clamp((a * x + b * y + c) >> s)

``a``, ``b`` follow from the scales; for every pair the wanted output bounds ``c`` from both sides,
and an integer within all bounds is bit-exact. Without one the caller uses tables.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from covp.chip.cores import Core
from covp.codegen.kernels.clamp import clamp, clamp_includes
from covp.graph.graph import Op
from covp.graph.ops import definition

Array = NDArray[np.int64]
_NEIGHBOURS = [(0, 0), (0, 1), (1, 0), (1, 1), (0, -1), (-1, 0), (-1, -1), (1, -1), (-1, 1)]


@dataclass(frozen=True)
class LinearSum:
    """The constants of ``clamp((a * x + b * y + c) >> s)``."""

    a: int
    b: int
    c: int
    s: int
    low: int
    high: int


def linear_sum(op: Op) -> LinearSum | None:
    """Return constants that give TFLM's output for every pair of bytes; None if none are found."""
    wanted = _every_pair(op)
    low, high = int(wanted.min()), int(wanted.max())
    x = np.arange(-128, 128, dtype=np.int64)
    sign = -1 if op.kind == "SUB" else 1
    ratios = op.input(0).scale / op.output.scale, sign * op.input(1).scale / op.output.scale
    for s in range(30, 9, -1):
        exact = [ratio * 2.0**s for ratio in ratios]
        # the whole sum has to fit 32 bits; partial sums may wrap
        if 128 * sum(map(abs, exact)) >= 1 << 32 or not _fits(exact, x, wanted, s):
            continue
        for da, db in _NEIGHBOURS:
            a, b = round(exact[0]) + da, round(exact[1]) + db
            value = a * x[:, None] + b * x[None, :]
            c = _offset(value, wanted, s, low, high)
            if c is not None and int(np.abs(value + c).max()) < 1 << 31:
                return LinearSum(a, b, c, s, low, high)
    return None


def _fits(exact: list[float], x: Array, wanted: Array, s: int) -> bool:
    """Return whether the sum, offset to be near the wanted outputs, stays within 32 bits."""
    value = exact[0] * x[:, None] + exact[1] * x[None, :]
    inside = (wanted > wanted.min()) & (wanted < wanted.max())
    c = np.median(wanted[inside] * 2.0**s - value[inside]) if inside.any() else 0.0
    return bool(np.abs(value + c).max() < (1 << 31) - (1 << s))


def _every_pair(op: Op) -> Array:
    """Return the reference's output for all pairs, [x + 128, y + 128]."""
    x = np.repeat(np.arange(-128, 128, dtype=np.int8)[:, None], 256, axis=1)
    return definition(op.kind).reference(op, [x, x.T])[0].astype(np.int64)


def _offset(value: Array, wanted: Array, s: int, low: int, high: int) -> int | None:
    at_least = np.where(wanted > low, (wanted << s) - value, -(1 << 40)).max()
    at_most = np.where(wanted < high, ((wanted + 1) << s) - 1 - value, 1 << 40).min()
    if at_least > at_most:
        return None
    return int((at_least + at_most) // 2)


def linear_function(core: Core, constants: LinearSum) -> str:
    """Return C text of ``static inline int8_t combine(int32_t x, int32_t y)``."""
    k = constants
    a, b, c = (value % (1 << 32) for value in (k.a, k.b, k.c))
    return (
        "static inline int8_t combine(int32_t x, int32_t y)\n{\n"
        f"    uint32_t sum = (uint32_t)x * {a}u + (uint32_t)y * {b}u + {c}u;\n"
        f"    int32_t result = (int32_t)sum >> {k.s};\n"
        f"    {clamp(core, 'result', k.low, k.high)}\n"
        "    return (int8_t)result;\n}\n"
    )


def linear_includes(core: Core, constants: LinearSum) -> str:
    """Return the header that `linear_function` needs, or nothing."""
    return clamp_includes(core, constants.low, constants.high)

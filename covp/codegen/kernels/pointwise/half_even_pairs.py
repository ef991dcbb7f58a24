"""ADD, SUB and MUL of int8 in onnxruntime's arithmetic, as one linear step.

The whole is a function of two bytes, so that a short one can be checked on all 65536 pairs when
the code is generated::

    t = a * x + b * y + c          or, for MUL, t = a * (x - zero) * (y - zero) + c
    output = clamp(t >> s)         or, for exact ties that go to even,
    output = clamp((t + ((t >> s) & 1) + half) >> s)

float32 rounds some results that lie next to half-way the other way: few pairs, a handful of 65536.
They are kept in a table, which is searched only where ``t`` is as near to a step as they are. Where
they are too many, as sums of unfused operators with scales in simple ratios can have, the result is
computed in float32 there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from covp.chip.cores import Core
from covp.codegen.c_text import c_array, c_float, indent
from covp.codegen.kernels.clamp import clamp, clamp_includes
from covp.codegen.kernels.pointwise.elementwise import emit_elements, plain_schedules
from covp.codegen.layer import KernelRequest, LayerCode, kernel
from covp.errors import ModelError
from covp.graph.float_scaling import dequantize
from covp.graph.graph import Op
from covp.graph.ops import definition

Array = NDArray[np.int64]
_MOST_WRONG = 1024
"""Pairs in a table of six bytes each."""
_CORRECTED = (
    "static __attribute__((noinline)) int32_t corrected(int32_t x, int32_t y, int32_t result)\n"
)
_BYTES = np.arange(-128, 128, dtype=np.int64)
_SHIFTS = range(22, 1, -1)


@dataclass(frozen=True)
class PairStep:
    """The constants of a linear step that replaces ADD, SUB or MUL.

    Attributes:
        factors: a and b; one for MUL.
        zeros: of the inputs, for MUL.
        c, s: as above; for ``even`` half a level less one is added besides.
        even: the form for exact ties.
        wrong: pairs (x, y) with another output, and that output, in order of x * 256 + y.
        low, high: clamp.
        op: the operator.
    """

    factors: tuple[int, ...]
    zeros: tuple[int, int]
    c: int
    s: int
    even: bool
    wrong: NDArray[np.int16]
    low: int
    high: int
    op: Op


@kernel("ADD", "int8", schedules=plain_schedules, rule="half even")
@kernel("SUB", "int8", schedules=plain_schedules, rule="half even")
@kernel("MUL", "int8", schedules=plain_schedules, rule="half even")
def emit_pairs(request: KernelRequest) -> LayerCode:
    """Emit one linear step with its exceptions."""
    step, core = _pair_step(request.op), request.core
    schedule = request.choose(plain_schedules)
    includes = [clamp_includes(core, step.low, step.high)]
    return emit_elements(request, [_pair_function(core, step)], includes, schedule)


def _pair_step(op: Op) -> PairStep:
    """Return the constants with the fewest exceptions.

    Raises:
        ModelError: the scales are so far apart that no form fits 32 bits.
    """
    wanted = _every_pair(op)
    low, high = int(wanted.min()), int(wanted.max())
    best: PairStep | None = None
    for factors, zeros, c, s in _candidates(op):
        t = _inner(factors, zeros) + c
        if int(np.abs(t).max()) + (1 << s) >= 1 << 31:
            continue
        half = 1 << (s - 1)
        offset = _offset(t, wanted, s, low, high)
        plain = PairStep(factors, zeros, c + offset, s, False, _NONE, low, high, op)
        even = PairStep(factors, zeros, c, s, True, _NONE, low, high, op)
        for found, values in ((plain, t + offset), (even, t + ((t >> s) & 1) + half - 1)):
            result = np.clip(values >> s, low, high)
            differ = np.argwhere(result != wanted)
            if best is None or len(differ) < len(best.wrong):
                pairs = np.column_stack([differ - 128, wanted[result != wanted]])
                best = replace(found, wrong=pairs.astype(np.int16))
        if best is not None and not len(best.wrong):
            break
    if best is None:
        raise ModelError(f"{op.name}: the scales of its tensors are too far apart; quantize again")
    return best


_NONE = np.zeros((0, 3), np.int16)


def _candidates(op: Op) -> Iterator[tuple[tuple[int, ...], tuple[int, int], int, int]]:
    """Yield factors, zero points, the unrounded constant and the shift, from fine to coarse."""
    first, second = op.input(0), op.input(1)
    result = op.output.scale
    for s in _SHIFTS:
        zero = op.output.zero_point << s
        if op.kind == "MUL":
            exact = first.scale * second.scale / result * 2.0**s
            yield (round(exact),), (first.zero_point, second.zero_point), zero, s
            continue
        sign = -1 if op.kind == "SUB" else 1
        a = round(first.scale / result * 2.0**s)
        b = sign * round(second.scale / result * 2.0**s)
        yield (a, b), (0, 0), zero - a * first.zero_point - b * second.zero_point, s


def _inner(factors: tuple[int, ...], zeros: tuple[int, int]) -> Array:
    """Return the variable part for every pair, [x + 128, y + 128]."""
    if len(factors) == 1:
        return factors[0] * np.outer(_BYTES - zeros[0], _BYTES - zeros[1])
    return factors[0] * _BYTES[:, None] + factors[1] * _BYTES[None, :]


def _every_pair(op: Op) -> Array:
    x = np.repeat(np.arange(-128, 128, dtype=np.int8)[:, None], 256, axis=1)
    return definition(op.kind).reference(op, [x, x.T])[0].astype(np.int64)


def _offset(t: Array, wanted: Array, s: int, low: int, high: int) -> int:
    """Return an offset that is exact for all pairs, or half a level where none exists."""
    at_least = int(np.where(wanted > low, (wanted << s) - t, -(1 << 40)).max())
    at_most = int(np.where(wanted < high, ((wanted + 1) << s) - 1 - t, 1 << 40).min())
    half = 1 << (s - 1)
    return half if at_least > at_most else min(max(half, at_least), at_most)


def _pair_function(core: Core, k: PairStep) -> str:
    """Return C text of ``static inline int8_t combine(int32_t x, int32_t y)`` and what it needs."""
    if len(k.factors) == 1:
        product = f"(x - ({k.zeros[0]})) * (y - ({k.zeros[1]}))"
        total = f"int32_t t = {product} * {k.factors[0]} + ({k.c});"
    else:
        a, b, c = (value % (1 << 32) for value in (*k.factors, k.c))
        total = f"int32_t t = (int32_t)((uint32_t)x * {a}u + (uint32_t)y * {b}u + {c}u);"
    lines = [total]
    if k.even:
        lines.append(f"t += ((t >> {k.s}) & 1) + {(1 << (k.s - 1)) - 1};")
    lines.append(f"int32_t result = t >> {k.s};")
    lines.append(clamp(core, "result", k.low, k.high))
    tables = ""
    if len(k.wrong):
        window = _window(k)
        lines += [
            f"if (__builtin_expect(((uint32_t)t + {window}u) << {32 - k.s} < "
            f"{(2 * window) << (32 - k.s)}u, 0))",
            "    result = corrected(x, y, result);",
        ]
        in_float = k.op.rounding.unfused and len(k.wrong) > _MOST_WRONG
        tables = _in_float(k) if in_float else _correction(k)
    return (
        f"{tables}static inline int8_t combine(int32_t x, int32_t y)\n{{\n"
        f"{indent(lines)}\n    return (int8_t)result;\n}}\n"
    )


def _window(k: PairStep) -> int:
    """Return half the width of the window around a step that holds all exceptions."""
    t = _inner(k.factors, k.zeros) + k.c
    if k.even:
        t = t + ((t >> k.s) & 1) + (1 << (k.s - 1)) - 1
    there = t[k.wrong[:, 0] + 128, k.wrong[:, 1] + 128] & ((1 << k.s) - 1)
    distance = int(np.minimum(there, (1 << k.s) - there).max())
    return min(distance + 1, (1 << (k.s - 1)) - 1)


def _correction(k: PairStep) -> str:
    return (
        c_array("wrong", k.wrong.ravel(), "pairs and their outputs") + f"{_CORRECTED}{{\n"
        f"    int32_t low = 0, high = {len(k.wrong)}, key = x * 256 + y;\n"
        "    while (low < high) {\n"
        "        int32_t middle = (low + high) >> 1;\n"
        "        const int16_t *pair = wrong + 3 * middle;\n"
        "        int32_t found = pair[0] * 256 + pair[1];\n"
        "        if (found == key)\n"
        "            return pair[2];\n"
        "        if (found < key)\n"
        "            low = middle + 1;\n"
        "        else\n"
        "            high = middle;\n"
        "    }\n"
        "    return result;\n}\n"
    )


def _in_float(k: PairStep) -> str:
    """Emit dequantization, operator and quantization in float, with levels clamped first.

    Dequantized bytes come from tables: a product that is added could be fused with the sum.
    """
    every, out = np.arange(256, dtype=np.uint8).view(np.int8), k.op.output
    tables = [
        c_array(name, dequantize(every, source.scale, source.zero_point), "the value of each byte")
        for name, source in (("first", k.op.input(0)), ("second", k.op.input(1)))
    ]
    sign = {"ADD": "+", "SUB": "-", "MUL": "*"}[k.op.kind]
    return "".join(tables) + (
        f"{_CORRECTED}{{\n"
        "    (void)result;\n"
        f"    float level = first[(uint8_t)x] {sign} second[(uint8_t)y];\n"
        f"    level /= {c_float(out.scale)};\n"
        "    level = level < -512.0f ? -512.0f : level > 512.0f ? 512.0f : level;\n"
        "    union { float value; int32_t bits; } sum = {level + 12582912.0f};\n"
        f"    result = sum.bits - 0x4b400000 + ({out.zero_point});\n"
        f"    return result < {k.low} ? {k.low} : result > {k.high} ? {k.high} : result;\n}}\n"
    )

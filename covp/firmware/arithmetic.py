"""Options that decide the results of floating-point arithmetic, in an exported model's C.

Sums and products are rounded one by one, as the model was checked. A compiler may be allowed to
fuse them (C17 6.5, paragraph 8; GCC does by default), to reorder them, to leave out infinities or
signs of zeros, and a core may flush subnormal numbers to zero. Sources forbid what a source can; a
probe finds the rest when it runs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from string import Template

_FLOAT = re.compile(r"\bfloat\b")

_GUARD = """\
/* Sums and products are rounded one by one. No version of GCC knows the standard's pragma. */
#ifdef __FAST_MATH__
#error "the results of this model need IEEE 754 arithmetic: compile without -ffast-math"
#endif
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("fp-contract=off")
#else
#pragma STDC FP_CONTRACT OFF
#endif

"""

_PROBE = Template("""\

/* Volatile, so that the core computes and not the compiler. */
static const volatile uint32_t numbers[] = {
    0x3f800800u, /* 1 + 2**-12 */
    0xbf801000u, /* minus its square, rounded */
    0x4b800000u, /* 2**24 */
    0x3f800000u, /* 1 */
    0x33800000u, /* 2**-24 */
    0x00800000u, /* the smallest normal number */
    0x3f000000u, /* 0.5 */
    0x7f800000u, /* infinity */
    0x00000000u, /* 0 */
};

static float number(unsigned index)
{
    const uint32_t value = numbers[index];
    float found;
    memcpy(&found, &value, sizeof found);
    return found;
}

static uint32_t bits(float value)
{
    uint32_t found;
    memcpy(&found, &value, sizeof found);
    return found;
}

const char *${name}_arithmetic(void)
{
    const float a = number(0), square = number(1), large = number(2), one = number(3);
    const float step = number(4), infinity = number(7), nothing = number(8);
    if (bits(one + step) != bits(one) || bits(-one - step) != bits(-one))
        return "results are not rounded to the nearest: set the core's mode to IEEE 754";
    if (bits(a * a + square) != 0u)
        return "products and sums are fused: compile with -ffp-contract=off";
    if (bits((large + one) - large) != 0u)
        return "sums are reordered: compile without -ffast-math";
    if (bits(infinity - infinity) == 0u || bits(0.0f - nothing) != 0u)
        return "infinities or signs of zeros are left out: compile without -ffast-math";
    if (bits(number(5) * number(6)) == 0u)
        return "subnormal numbers are flushed to zero: set the core's mode to IEEE 754";
    return NULL;
}
""")

_NO_FLOATS = Template("""\

const char *${name}_arithmetic(void)
{
    return NULL; /* there are integers only */
}
""")


def probe(name: str, sources: Mapping[str, str]) -> str:
    """Return the definition of ``NAME_arithmetic``.

    Args:
        name: of the model.
        sources: its C files.
    """
    has_floats = any(map(_FLOAT.search, sources.values()))
    return (_PROBE if has_floats else _NO_FLOATS).substitute(name=name)


def add_guard(file: str, text: str) -> str:
    """Return a file with the options that decide its results, where it computes with floats."""
    return _GUARD + text if file.endswith(".c") and _FLOAT.search(text) else text

"""The C of elementwise functions: of ``x``, ``y`` and ``z``, in each type.

Signed numbers wrap through unsigned arithmetic of at least 32 bits, as signed overflow is
undefined in C.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from covp.codegen.c_text import c_float, c_integer, c_type
from covp.graph.graph import Op
from covp.graph.quantization import float_activation_range

DType = np.dtype[Any]

_SOFTPLUS = "((x > 0.0f ? x : 0.0f) + log1pf(expf(-fabsf(x))))"

FLOAT = {
    "ABS": "fabsf(x)",
    "ACOS": "acosf(x)",
    "ACOSH": "acoshf(x)",
    "ASIN": "asinf(x)",
    "ASINH": "asinhf(x)",
    "ATAN": "atanf(x)",
    "ATAN2": "atan2f(x, y)",
    "ATANH": "atanhf(x)",
    "CEIL": "ceilf(x)",
    "CELU": "x < 0.0f ? {alpha} * expm1f(x / {alpha}) : x",
    "COS": "cosf(x)",
    "COSH": "coshf(x)",
    "DIV": "x / y",
    "ELU": "x < 0.0f ? {alpha} * expm1f(x) : x",
    "EQUAL": "x == y",
    "ERF": "erff(x)",
    "EXP": "expf(x)",
    "FLOOR": "floorf(x)",
    "FLOOR_DIV": "floorf(x / y)",
    "GREATER": "x > y",
    "GREATER_EQUAL": "x >= y",
    "HARD_SWISH": "x * (fminf(fmaxf(x + 3.0f, 0.0f), 6.0f) * (1.0f / 6.0f))",
    "IS_NAN": "x != x",
    "LESS": "x < y",
    "LESS_EQUAL": "x <= y",
    "LOG": "logf(x)",
    "MAXIMUM": "x > y || x != x ? x : y",
    "MINIMUM": "x < y || x != x ? x : y",
    "MISH": f"x * tanhf({_SOFTPLUS})",
    "NEG": "-x",
    "NOT_EQUAL": "x != y",
    "PRELU": "x < 0.0f ? x * y : x",
    "RECIPROCAL": "1.0f / x",
    "RELU_0_TO_1": "x < 0.0f ? 0.0f : x > 1.0f ? 1.0f : x",
    "RELU_N1_TO_1": "x < -1.0f ? -1.0f : x > 1.0f ? 1.0f : x",
    "ROUND": "rintf(x)",
    "RSQRT": "1.0f / sqrtf(x)",
    "SELU": "{beta} * (x > 0.0f ? x : {alpha} * expm1f(x))",
    "SHRINK": "x < -{beta} ? x + {alpha} : x > {beta} ? x - {alpha} : 0.0f",
    "SIGN": "x != x ? x : (float)((x > 0.0f) - (x < 0.0f))",
    "SIN": "sinf(x)",
    "SINH": "sinhf(x)",
    "SOFTPLUS": _SOFTPLUS,
    "SOFTSIGN": "x / (1.0f + fabsf(x))",
    "SQRT": "sqrtf(x)",
    "SQUARE": "x * x",
    "SQUARED_DIFFERENCE": "(x - y) * (x - y)",
    "SWISH": "x / (1.0f + expf(-{alpha} * x))",
    "TAN": "tanf(x)",
    "THRESHOLDED_RELU": "x > {alpha} ? x : 0.0f",
}
"""Kind to the expression in float."""

INTEGER = {
    "BITWISE_AND": "x & y",
    "BITWISE_NOT": "({T})~x",
    "BITWISE_OR": "x | y",
    "BITWISE_XOR": "x ^ y",
    "EQUAL": "x == y",
    "GREATER": "x > y",
    "GREATER_EQUAL": "x >= y",
    "LESS": "x < y",
    "LESS_EQUAL": "x <= y",
    "LOGICAL_AND": "x & y",
    "LOGICAL_NOT": "!x",
    "LOGICAL_OR": "x | y",
    "LOGICAL_XOR": "x ^ y",
    "MAXIMUM": "x > y ? x : y",
    "MINIMUM": "x < y ? x : y",
    "NEG": "({T})(0u - ({U})x)",
    "NOT_EQUAL": "x != y",
    "SQUARE": "({T})(({U})x * ({U})x)",
    "SQUARED_DIFFERENCE": "({T})((({U})x - ({U})y) * (({U})x - ({U})y))",
}
"""Kind to the expression in any integer type {T}; {U} is unsigned and as wide, or 32 bits."""

SIGNED = {
    "ABS": "x < 0 ? ({T})(0u - ({U})x) : x",
    "DIV": "y == 0 ? 0 : y == -1 ? ({T})(0u - ({U})x) : ({T})(x / y)",
    "FLOOR_DIV": (
        "y == 0 ? 0 : y == -1 ? ({T})(0u - ({U})x) : ({T})(x / y - (x % y && (x < 0) != (y < 0)))"
    ),
    "PRELU": "x < 0 ? ({T})(({U})x * ({U})y) : x",
    "RIGHT_SHIFT": "({T})(x >> (y < 0 ? 0 : y > {bits} - 1 ? {bits} - 1 : y))",
    "SIGN": "({T})((x > 0) - (x < 0))",
}
UNSIGNED = {
    "ABS": "x",
    "DIV": "y == 0 ? 0 : x / y",
    "FLOOR_DIV": "y == 0 ? 0 : x / y",
    "PRELU": "x",
    "RIGHT_SHIFT": "x >> (y > {bits} - 1 ? {bits} - 1 : y)",
    "SIGN": "x > 0",
}


@dataclass(frozen=True)
class Formula:
    """A C function of up to three elements.

    Attributes:
        statements: of its body.
        cheap: it calls nothing, so loops may be unrolled.
        definitions: C text that it needs.
    """

    statements: tuple[str, ...]
    cheap: bool = True
    definitions: str = ""

    @staticmethod
    def of(expression: str) -> Formula:
        """Return the function that returns an expression."""
        return Formula((f"return {expression};",), cheap="f(" not in expression)


def formula(op: Op) -> Formula:
    """Return the C of an operator for plain numbers of the types of its tensors."""
    if op.kind in _OWN:
        return _OWN[op.kind](op)
    dtype = op.input(0).dtype
    a = op.attributes
    if dtype.kind == "f":
        alpha, beta = (c_float(getattr(a, name, 1.0)) for name in ("alpha", "beta"))
        return Formula.of(FLOAT[op.kind].format(alpha=alpha, beta=beta))
    table = INTEGER | (SIGNED if dtype.kind == "i" else UNSIGNED)
    return Formula.of(
        table[op.kind].format(T=c_type(dtype), U=unsigned_type(dtype), bits=dtype.itemsize * 8)
    )


def unsigned_type(dtype: DType) -> str:
    """Return the C type in which integers of a type wrap."""
    return "uint64_t" if dtype.itemsize == 8 else "uint32_t"


def _divide(op: Op) -> Formula:
    """Return the formula of DIV, clamped for a fused activation of floats."""
    a = op.attributes
    low, high = float_activation_range("none" if a is None else a.activation)
    if op.input(0).dtype.kind != "f" or (low, high) == (-np.inf, np.inf):
        table = SIGNED if op.input(0).dtype.kind == "i" else UNSIGNED
        table = FLOAT if op.input(0).dtype.kind == "f" else table
        dtype = op.input(0).dtype
        return Formula.of(table["DIV"].format(T=c_type(dtype), U=unsigned_type(dtype)))
    return Formula(
        (
            "float q = x / y;",
            f"q = q < {c_float(low)} ? {c_float(low)} : q;",
            f"return q > {c_float(high)} ? {c_float(high)} : q;",
        )
    )


def _clip(op: Op) -> Formula:
    """Return the clamp between y and z, either of which may be missing."""
    single = op.input(0).dtype.kind == "f"
    number = " || x != x" if single else ""
    bounds = {"y": ">", "z": "<"}
    given = [name for name, t in zip(bounds, [*op.inputs[1:], None, None], strict=False) if t]
    lines = [f"x = x {bounds[name]} {name}{number} ? x : {name};" for name in given]
    return Formula((*lines, "return x;"))


def _mod(op: Op) -> Formula:
    dtype = op.input(0).dtype
    truncated = op.attributes is not None and getattr(op.attributes, "fmod", False)
    if dtype.kind == "f":
        if truncated:
            return Formula.of("fmodf(x, y)")
        sign = "return r != 0.0f ? ((r < 0.0f) != (y < 0.0f) ? r + y : r) : copysignf(0.0f, y);"
        return Formula(("float r = fmodf(x, y);", sign), cheap=False)
    if dtype.kind == "u":
        return Formula.of("y == 0 ? 0 : x % y")
    t = c_type(dtype)
    first = f"{t} r = y == 0 || y == -1 ? 0 : ({t})(x % y);"
    if truncated:
        return Formula((first, "return r;"))
    return Formula((first, f"return r && (r < 0) != (y < 0) ? ({t})(r + y) : r;"))


def _power(op: Op) -> Formula:
    base, exponent = op.input(0), op.input(1)
    if base.dtype.kind == "f":
        fixed = None if exponent.data is None or exponent.size != 1 else float(exponent.data.item())
        if fixed in (2.0, 3.0):
            return Formula.of(" * ".join("x" * int(fixed)))
        return Formula.of("powf(x, (float)y)")
    t, u, v = c_type(base.dtype), unsigned_type(base.dtype), unsigned_type(exponent.dtype)
    if exponent.dtype.kind == "f":
        result = Formula.of("saturate(powf((float)x, y))")
        return Formula(result.statements, False, saturation(base.dtype))
    negative = []
    if exponent.dtype.kind == "i":
        below = "x == -1 ? (y & 1 ? -1 : 1) : 0" if base.dtype.kind == "i" else "0"
        negative = ["if (y < 0)", f"    return x == 1 ? 1 : {below};"]
    return Formula(
        (
            *negative,
            f"{u} result = 1, base = ({u})x;",
            f"for ({v} rest = ({v})y; rest; rest >>= 1) {{",
            "    if (rest & 1)",
            "        result *= base;",
            "    base *= base;",
            "}",
            f"return ({t})result;",
        ),
        cheap=False,
    )


def _shift(op: Op) -> Formula:
    dtype = op.input(0).dtype
    t, u, bits = c_type(dtype), unsigned_type(dtype), dtype.itemsize * 8
    outside = f"({u})y >= {bits}"
    if op.attributes.left:
        return Formula.of(f"{outside} ? 0 : ({t})(({u})x << y)")
    rest = "(x < 0 ? -1 : 0)" if dtype.kind == "i" else "0"
    return Formula.of(f"{outside} ? {rest} : ({t})(x >> y)")


def _infinite(op: Op) -> Formula:
    a = op.attributes
    wanted = [
        f"x == {c_float(value)}"
        for value, taken in ((-np.inf, a.negative), (np.inf, a.positive))
        if taken
    ]
    return Formula.of(" || ".join(wanted) or "0")


def _gelu(op: Op) -> Formula:
    if op.attributes is not None and op.attributes.approximate:
        inner = "0.797884561f * (x + 0.044715f * x * x * x)"
        return Formula.of(f"0.5f * x * (1.0f + tanhf({inner}))")
    return Formula.of("0.5f * x * erfcf(-0.707106781f * x)")


def _hard_sigmoid(op: Op) -> Formula:
    line = f"x = x * {c_float(op.attributes.alpha)} + {c_float(op.attributes.beta)};"
    return Formula((line, "return x < 0.0f ? 0.0f : x > 1.0f ? 1.0f : x;"))


def _cast(op: Op) -> Formula:
    source, to = op.input(0).dtype, op.output.dtype
    if to == np.bool_:
        return Formula.of("x != 0")
    if source.kind == "f" and to.kind in "iu":
        return Formula(("return saturate(x);",), definitions=saturation(to))
    return Formula.of(f"({c_type(to)})x")


def saturation(dtype: DType) -> str:
    """Return C text of ``saturate``, from float to an integer type; a NaN gives 0."""
    info, t = np.iinfo(dtype), c_type(dtype)
    high, low = c_float(float(info.max) + 1), c_float(float(info.min))
    ends = c_integer(int(info.max)), c_integer(int(info.min))
    return (
        f"static inline {t} saturate(float x)\n{{\n"
        f"    return x >= {high} ? {ends[0]} : x > {low} ? ({t})x : x != x ? 0 : {ends[1]};\n}}\n"
    )


_OWN: dict[str, Callable[[Op], Formula]] = {
    "BIT_SHIFT": _shift,
    "CAST": _cast,
    "CLIP": _clip,
    "DIV": _divide,
    "FLOOR_MOD": _mod,
    "GELU": _gelu,
    "HARD_SIGMOID": _hard_sigmoid,
    "IS_INF": _infinite,
    "MOD": _mod,
    "POW": _power,
    "SELECT_V2": lambda op: Formula.of("x ? y : z"),
}
"""Kinds whose C depends on more than the first type and two numbers."""

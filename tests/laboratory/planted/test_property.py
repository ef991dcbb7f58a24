"""Wrong results: Hypothesis finds an input for which a kernel differs from numpy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from covp.testing import Kernel
from tests.laboratory.planted.bench import on_platforms
from tests.laboratory.planted.sections import sections

EXAMPLES = 100
FILE = "wrong_result.c"


class Property(NamedTuple):
    """Inputs, how the kernel takes them, and what numpy says."""

    inputs: st.SearchStrategy[tuple[Any, ...]]
    run: Callable[..., Any]
    expected: Callable[..., Any]


def values(dtype: str) -> st.SearchStrategy[int]:
    """Integers of a type, its extremes and those around zero more often."""
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    return st.sampled_from([low, low + 1, 0, 1, high]) | st.integers(int(low), int(high))


def vectors(dtype: str, low: int = 1, high: int = 9) -> st.SearchStrategy[Any]:
    """Arrays of one axis."""
    return st.integers(low, high).flatmap(lambda n: arrays(dtype, n, elements=values(dtype)))


def pairs(dtype: str) -> st.SearchStrategy[tuple[Any, Any]]:
    """Two arrays of one length."""
    one = st.integers(1, 9).flatmap(
        lambda n: st.tuples(*[arrays(dtype, n, elements=values(dtype))] * 2)
    )
    return one


def into(dtype: str, n: int, kernel: Kernel, *arguments: Any, after: tuple[Any, ...] = ()) -> Any:
    """The output array that a kernel fills: arguments, output, what comes after it."""
    out = np.zeros(n, dtype)
    kernel(*arguments, out, *after)
    return out


def rounded(numerator: int, denominator: int) -> int:
    """The nearest integer, ties away from zero."""
    sign = -1 if numerator < 0 else 1
    return sign * ((abs(numerator) * 2 + denominator) // (2 * denominator))


def once_and_again(kernel: Kernel, x: Any) -> Any:
    """The result of the second of two calls."""
    kernel(x, len(x))
    return kernel(x, len(x))


def changed(kernel: Kernel, x: Any) -> Any:
    """What a kernel makes of its only array."""
    copy = x.copy()
    kernel(copy, len(copy))
    return copy


def sext(word: int, bits: int) -> int:
    """The value of the low bits as a number with a sign."""
    return (word & (1 << bits) - 1) - (word >> (bits - 1) & 1) * (1 << bits)


def smoothed(x: Any) -> Any:
    """The mean of each sample and the one before it, towards zero."""
    wide = x.astype(int)
    sums = wide[1:] + wide[:-1]
    return np.concatenate([x[:1], np.sign(sums) * (np.abs(sums) // 2)]).astype(x.dtype)


int32 = values("int32")
small = st.integers(-1000, 1000)
PROPERTIES: dict[str, Property] = {
    "add_q7": Property(
        pairs("int8"),
        lambda k, x, y: into("int8", len(x), k, x, y, after=(len(x),)),
        lambda x, y: np.clip(x.astype(int) + y, -128, 127),
    ),
    "sub_q15": Property(
        pairs("int16"),
        lambda k, x, y: into("int16", len(x), k, x, y, after=(len(x),)),
        lambda x, y: np.clip(x.astype(int) - y, -32768, 32767),
    ),
    "round_shift": Property(
        st.tuples(small, st.integers(0, 8)),
        lambda k, x, shift: k(x, shift),
        lambda x, shift: rounded(x, 1 << shift),
    ),
    "requantize": Property(
        st.tuples(int32, st.integers(1 << 30, (1 << 31) - 1)),
        lambda k, acc, multiplier: k(acc, multiplier),
        lambda acc, multiplier: (acc * multiplier + (1 << 30)) >> 31,
    ),
    "relu6_s8": Property(
        st.tuples(vectors("int8"), st.integers(-128, 0), st.integers(1, 127)),
        lambda k, x, low, high: into("int8", len(x), k, x, after=(len(x), low, high)),
        lambda x, low, high: np.clip(x, low, high),
    ),
    "pad_zero_point": Property(
        st.tuples(vectors("int8"), st.integers(0, 3), values("int8")),
        lambda k, x, p, zero: into("int8", len(x) + 2 * p, k, x, after=(len(x), p, zero)),
        lambda x, p, zero: np.pad(x, p, constant_values=zero),
    ),
    "fully_connected": Property(
        st.tuples(pairs("int8"), values("int8")),
        lambda k, xw, zero: k(*xw, len(xw[0]), zero),
        lambda xw, zero: int((xw[0].astype(int) - zero) @ xw[1].astype(int)),
    ),
    "read_big_endian": Property(
        st.tuples(st.binary(min_size=2, max_size=12).map(lambda b: b[: len(b) & ~1])),
        lambda k, b: into(
            "uint16", len(b) // 2, k, np.frombuffer(b, np.uint8), after=(len(b) // 2,)
        ),
        lambda b: np.frombuffer(b, ">u2"),
    ),
    "sum_s8": Property(
        st.tuples(vectors("int8", 1, 20)),
        lambda k, x: k(x, len(x)),
        lambda x: int(x.astype(int).sum()) * 127,
    ),
    "sample_12bit": Property(
        st.tuples(st.integers(0, 0xFFFF)), lambda k, word: k(word), lambda word: sext(word, 12)
    ),
    "join_bytes": Property(
        st.tuples(arrays("int8", 2)), lambda k, x: k(x), lambda x: int(x.view("<i2")[0])
    ),
    "sum_char": Property(
        st.tuples(vectors("int8")), lambda k, x: k(x, len(x)), lambda x: int(x.astype(int).sum())
    ),
    "invert_high": Property(
        st.tuples(values("uint8")), lambda k, x: k(x), lambda x: (255 - x) >> 4
    ),
    "halve": Property(
        st.tuples(vectors("int32")),
        lambda k, x: into("int32", len(x), k, x, after=(len(x),)),
        lambda x: np.trunc(x / 2),
    ),
    "average_pool": Property(
        st.tuples(vectors("int8")),
        lambda k, x: k(x, len(x)),
        lambda x: rounded(int(x.astype(int).sum()), len(x)),
    ),
    "pool_same": Property(
        st.tuples(vectors("uint8", 2)),
        lambda k, x: into("uint8", len(x), k, x, after=(len(x),)),
        lambda x: [int(x[max(0, i - 1) : i + 2].astype(int).mean()) for i in range(len(x))],
    ),
    "argmax": Property(
        st.tuples(vectors("int8")), lambda k, x: k(x, len(x)), lambda x: int(np.argmax(x))
    ),
    "smooth_in_place": Property(st.tuples(vectors("int16")), changed, smoothed),
    "reverse": Property(st.tuples(vectors("int32")), changed, lambda x: x[::-1]),
    "integrate": Property(
        st.tuples(vectors("int16")), once_and_again, lambda x: int(x.astype(int).sum())
    ),
    "compare_counts": Property(
        st.tuples(small, st.integers(0, 1000)),
        lambda k, available, needed: k(available, needed),
        lambda available, needed: int(available >= needed),
    ),
    "max_float": Property(
        st.tuples(
            st.lists(st.sampled_from([math.nan, -math.inf, 0.0]) | st.floats(width=32), min_size=1)
        ),
        lambda k, x: k(np.array(x, np.float32), len(x)),
        lambda x: np.fmax.reduce(np.array([*x, -math.inf], np.float32)),
    ),
    "dot_offset": Property(
        st.tuples(pairs("int8"), values("int8")),
        lambda k, xw, offset: k(*xw, len(xw[0]), offset),
        lambda xw, offset: int(xw[0].astype(int) @ (xw[1].astype(int) + offset)),
    ),
    "strided_copy": Property(
        st.tuples(vectors("int16", 4, 12), st.integers(1, 4)),
        lambda k, x, s: into("int16", -(-len(x) // s), k, x, after=(-(-len(x) // s), s)),
        lambda x, s: x[::s],
    ),
    "partial_output": Property(
        st.tuples(vectors("int8")),
        lambda k, x: into("int8", len(x), k, x, after=(len(x),)),
        lambda x: x ^ 0x55,
    ),
    "double_word": Property(
        st.tuples(small), lambda k, x: k(np.zeros(1, np.int32), x), lambda x: 2 * x
    ),
    "keep_sum": Property(
        st.tuples(small, small, small, small),
        lambda k, *x: k(*x),
        lambda a, b, c, d: sext((a ^ b) ^ (c ^ d) * 3 ^ (a ^ d) * 5, 32),
    ),
}


def holds(kernel: Kernel, prop: Property) -> None:
    """Hypothesis' verdict in a bounded number of examples, the same in each run."""

    @settings(
        max_examples=EXAMPLES,
        database=None,
        derandomize=True,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(prop.inputs)
    def agrees(inputs: tuple[Any, ...]) -> None:
        np.testing.assert_array_equal(prop.run(kernel, *inputs), prop.expected(*inputs))

    agrees()


@pytest.mark.parametrize(("name", "platform", "toolchain"), on_platforms(PROPERTIES))
def test_property(bench, name, platform, toolchain):
    session = bench.session(platform, toolchain=toolchain)
    with pytest.raises(AssertionError):
        holds(bench.kernel(name, FILE, True, session), PROPERTIES[name])
    holds(bench.kernel(name, FILE, False, session), PROPERTIES[name])


def test_every_section_has_a_property():
    assert set(PROPERTIES) == set(sections(FILE))

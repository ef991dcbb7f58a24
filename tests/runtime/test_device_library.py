"""memcpy and its family, and the mathematical functions, on every core."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from covp.runtime.session import Session

MEMORY = """
#include <string.h>
#include <stdint.h>
void copy(uint8_t *p, uint32_t to, uint32_t from, uint32_t n) { memcpy(p + to, p + from, n); }
void move(uint8_t *p, uint32_t to, uint32_t from, uint32_t n) { memmove(p + to, p + from, n); }
void set(uint8_t *p, uint32_t to, int32_t value, uint32_t n) { memset(p + to, value, n); }
int32_t compare(uint8_t *p, uint32_t a, uint32_t b, uint32_t n) { return memcmp(p + a, p + b, n); }
void clear(uint8_t *p, uint32_t to, uint32_t n) { memset(p + to, 0, n); }
"""
PLACES = st.integers(0, 160)


def test_memory_functions_at_every_alignment(session: Session) -> None:
    module = session.load_c(MEMORY)
    size = 420
    tensor = session.tensor(np.zeros(size, np.uint8))
    start = np.random.default_rng(3).integers(0, 3, size).astype(np.uint8)

    @settings(max_examples=100, deadline=None)
    @given(PLACES, PLACES, st.integers(0, 200), st.integers(-1, 256))
    def check(to: int, source: int, n: int, value: int) -> None:
        tensor.write(start)
        expected = start.copy()
        module["move"](tensor, to, source, n)
        expected[to : to + n] = expected[source : source + n].copy()
        assert np.array_equal(tensor.numpy(), expected)
        module["set"](tensor, to, value, n)
        expected[to : to + n] = value & 255
        assert np.array_equal(tensor.numpy(), expected)
        a, b = bytes(expected[to : to + n]), bytes(expected[source : source + n])
        order = module["compare"](tensor, to, source, n).result()
        assert isinstance(order, int)
        assert (order > 0) - (order < 0) == (a > b) - (a < b)
        n = min(n, 200 - source % 4)
        module["copy"](tensor, 200 + to % 4, source % 4, n)
        expected[200 + to % 4 : 200 + to % 4 + n] = expected[source % 4 : source % 4 + n].copy()
        module["clear"](tensor, to, n)
        expected[to : to + n] = 0
        assert np.array_equal(tensor.numpy(), expected)

    check()


NAMES = ("expf", "logf", "tanhf", "sqrtf", "floorf", "ceilf", "truncf", "roundf", "rintf", "fabsf")
MATH = "#include <math.h>\n#include <stdint.h>\n" + "".join(
    f"void each_{name}(float *x, float *y, int32_t n)\n"
    f"{{ for (int32_t i = 0; i < n; i++) y[i] = {name}(x[i]); }}\n"
    for name in NAMES
)


def on_device(session: Session, values: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
    module = session.load_c(MATH, flags=("-Werror",))
    x, y = session.tensor(values), session.tensor(np.zeros_like(values))
    results = {}
    for name in NAMES:
        module[f"each_{name}"](x, y, len(values))
        results[name] = y.numpy()
    return results


def spread() -> NDArray[np.float32]:
    """All magnitudes, the range of expf and tanhf densely, and the values with a meaning."""
    random = np.random.default_rng(11)
    bits = random.integers(0, 2**32, 1500, np.uint64).astype(np.uint32).view(np.float32)
    special = [
        0.0,
        -0.0,
        0.5,
        -0.5,
        1.5,
        2.5,
        -2.5,
        0.49999997,
        8388607.5,
        8388609,
        np.inf,
        -np.inf,
    ]
    special += [
        np.nan,
        1e-40,
        3e-45,
        88.7,
        88.73,
        -87.5,
        -100.0,
        -103.9,
        -104,
        0.625,
        9.0,
        9.2,
        1.0,
    ]
    dense = [random.uniform(-100, 90, 700), random.uniform(-4, 4, 700), random.uniform(0, 2, 300)]
    rest = np.concatenate([np.array(special), *dense]).astype(np.float32)
    return np.concatenate([bits, rest])


def ulps(found: NDArray[Any], exact: NDArray[Any]) -> NDArray[Any]:
    """Distance in units in the last place of the exact result; 0 where both are nan or equal."""
    rounded = exact.astype(np.float32)
    with np.errstate(all="ignore"):
        distance = np.abs(found.astype(np.float64) - exact) / np.spacing(np.abs(rounded))
    same = (found == rounded) | (np.isnan(found) & np.isnan(rounded))
    return np.where(same, 0.0, np.where(np.isnan(distance), np.inf, distance))


def test_mathematical_functions_against_double_precision(session: Session) -> None:
    x = spread()
    with np.errstate(all="ignore"):
        exact = x.astype(np.float64)
        halves = np.abs(exact - np.trunc(exact)) >= 0.5
        rounding = np.copysign(np.trunc(exact) + np.sign(exact) * halves, exact)
        oracle = {
            "expf": np.exp(exact),
            "logf": np.log(exact),
            "tanhf": np.tanh(exact),
            "sqrtf": np.sqrt(x),
            "floorf": np.floor(exact),
            "ceilf": np.ceil(exact),
            "truncf": np.trunc(exact),
            "roundf": np.where(np.isfinite(exact), rounding, exact),
            "rintf": np.rint(exact),
            "fabsf": np.abs(exact),
        }
    found = on_device(session, x)
    limits = {"expf": 2.0, "logf": 2.0, "tanhf": 2.0}
    for name in NAMES:
        with np.errstate(all="ignore"):
            wrong = ulps(found[name], np.asarray(oracle[name], np.float64))
        worst = int(np.argmax(wrong))
        assert wrong[worst] <= limits.get(name, 0.0), (
            f"{name}({x[worst]!r}) = {found[name][worst]!r}, not {oracle[name][worst]!r}"
        )
    for name in ("floorf", "ceilf", "truncf", "roundf", "rintf", "tanhf"):
        finite = ~np.isnan(x)
        assert np.array_equal(np.signbit(found[name])[finite], np.signbit(oracle[name])[finite]), (
            name
        )


@pytest.mark.costly
def test_arithmetic_that_the_core_has_no_instruction_for(session: Session) -> None:
    module = session.load_c("""
#include <stdint.h>
int64_t divide(int64_t a, int64_t b) { return a / b; }
uint64_t remain(uint64_t a, uint64_t b) { return a % b; }
int64_t multiply(int64_t a, int64_t b) { return a * b; }
int64_t shift(int64_t a, int32_t n) { return a >> n; }
int32_t divide_words(int32_t a, int32_t b) { return a / b; }
float fused(float a, float b, float c) { return a * b + c; }
float quotient(float a, float b) { return a / b; }
float through_double(float a, int32_t n) { double x = a; while (n--) x *= 1.1; return (float)x; }
""")
    whole = st.integers(-(2**31), 2**31 - 1)
    real = st.floats(-(2.0**60), 2.0**60, width=32, allow_subnormal=False)

    @settings(max_examples=60, deadline=None)
    @given(whole, whole, real, real, st.integers(0, 63))
    def check(a: int, b: int, x: float, y: float, n: int) -> None:
        big, small = a * 1234567 + 89, b or 1
        quotient = abs(big) // abs(small) * (1 if (big < 0) == (small < 0) else -1)
        assert module["divide"](big, small).result() == quotient
        assert module["remain"](abs(big), abs(small)).result() == abs(big) % abs(small)
        assert module["multiply"](a, b).result() == a * b
        assert module["shift"](big, n).result() == big >> n
        if (a, small) != (-(2**31), -1):
            expected = abs(a) // abs(small) * (1 if (a < 0) == (small < 0) else -1)
            assert module["divide_words"](a, small).result() == expected
        f, g = np.float32(x), np.float32(y)
        with np.errstate(all="ignore"):
            assert module["fused"](x, y, x).result() == f * g + f, "contracted or wrong"
            # zig's software division flushes results below the normal range to zero or near it
            if y and abs(f / g) >= np.finfo(np.float32).tiny:
                assert module["quotient"](x, y).result() == f / g
        power = float(f)
        for _ in range(n % 8):
            power *= 1.1
        assert module["through_double"](x, n % 8).result() == np.float32(power)

    check()

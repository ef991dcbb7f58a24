"""Powers, angles, hyperbolic and error functions on every core against double precision."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.runtime.session import Session

from .test_device_library import spread, ulps

erf, erfc = (np.vectorize(f, otypes=[np.float64]) for f in (math.erf, math.erfc))
UNARY = {
    # oracle, limit in units in the last place
    "expm1f": (np.expm1, 6),
    "log1pf": (np.log1p, 4),
    "sinf": (np.sin, 2),
    "cosf": (np.cos, 2),
    "tanf": (np.tan, 4),
    "asinf": (np.arcsin, 4),
    "acosf": (np.arccos, 4),
    "atanf": (np.arctan, 4),
    "sinhf": (np.sinh, 8),
    "coshf": (np.cosh, 6),
    "asinhf": (np.arcsinh, 6),
    "acoshf": (np.arccosh, 6),
    "atanhf": (np.arctanh, 6),
    "erff": (erf, 4),
    "erfcf": (erfc, 16),
}
BINARY = {
    "powf": (np.power, 1),
    "fmodf": (np.fmod, 0),
    "atan2f": (np.arctan2, 4),
}
SOURCE = "#include <math.h>\n#include <stdint.h>\n" + "".join(
    f"void each_{name}(float *x, {second}float *out, int32_t n)\n"
    f"{{ for (int32_t i = 0; i < n; i++) out[i] = {name}(x[i]{argument}); }}\n"
    for names, second, argument in ((UNARY, "", ""), (BINARY, "float *y, ", ", y[i]"))
    for name in names
)


def pairs() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Usual ones, all magnitudes, small integers, and every pair of values with a meaning."""
    rng = np.random.default_rng(5)
    special = [
        0.0,
        -0.0,
        1,
        -1,
        0.5,
        2,
        -3,
        1e-40,
        -1e-42,
        1e-45,
        1e-30,
        3e38,
        np.inf,
        -np.inf,
        np.nan,
    ]
    grid = np.array([(a, b) for a in special for b in special])
    whole = rng.integers(-12, 12, (300, 2))
    usual = np.stack([rng.uniform(0, 20, 500), rng.uniform(-20, 20, 500)], 1)
    bits = rng.integers(0, 2**32, (500, 2), np.uint64).astype(np.uint32).view(np.float32)
    both = np.concatenate([part.astype(np.float32) for part in (grid, whole, usual, bits)])
    return both[:, 0].copy(), both[:, 1].copy()


def test_against_double_precision(session: Session) -> None:
    module = session.load_c(SOURCE, flags=("-Werror",))
    x = spread()
    sets: list[tuple[str, tuple[NDArray[np.float32], ...], Any, int]]
    sets = [(name, (x,), *rest) for name, rest in UNARY.items()]
    sets += [(name, pairs(), *rest) for name, rest in BINARY.items()]
    failures = []
    for name, values, oracle, limit in sets:
        tensors = [session.tensor(v) for v in (*values, np.zeros_like(values[0]))]
        module[f"each_{name}"](*tensors, len(values[0]))
        found = tensors[-1].numpy()
        with np.errstate(all="ignore"):
            exact = np.asarray(oracle(*(v.astype(np.float64) for v in values)))
            wrong = ulps(found, exact)
        tiny = np.abs(exact) < 1e-37  # cores that flush
        wrong = np.where(tiny & (np.abs(found) < 1.1e-37), 0, wrong)
        worst = int(np.argmax(wrong))
        arguments = ", ".join(repr(v[worst]) for v in values)
        if wrong[worst] > limit:
            failures.append(
                f"{name}({arguments}) = {found[worst]!r}, not {exact[worst]!r}: "
                f"{wrong[worst]:.1f} units in the last place"
            )
        for tensor in tensors:
            tensor.free()
    assert not failures, "\n".join(failures)

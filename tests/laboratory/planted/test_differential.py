"""Results that depend on the compiler, its level or the core: variants that do not agree."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from covp.testing import Difference, Variants
from tests.laboratory.planted.bench import ROUNDS, Draw
from tests.laboratory.planted.sections import FOLDER, sections

FILE = "differential.c"
LEVELS: tuple[tuple[str, ...], ...] = (("-O0",), ("-O2",))


class Case(NamedTuple):
    """What differs, and arguments."""

    arguments: Callable[[Draw], tuple[Any, ...]]
    how: dict[str, Any]


CORES = {"platforms": ["cortex-m4", "riscv32f"]}
LEVEL = {"platforms": ["riscv32"], "flags": LEVELS}
CASES: dict[str, Case] = {
    "float_bits": Case(lambda d: (np.array([1.5], np.float32),), LEVEL),
    "scale_into": Case(lambda d: (d.array("int32", 1, 0, 99),), LEVEL),
    "shift_wide": Case(lambda d: (d.integer(1, 1 << 30), d.integer(20, 40)), CORES),
    "divide": Case(lambda d: (d.integer(1, 99), d.integer(0, 3)), CORES),
    "float_to_int": Case(lambda d: ([np.nan, 3.7][d.integer(0, 1)],), CORES),
    "sum_of_char": Case(
        lambda d: (d.array("uint8", 5), 5), {"platforms": ["cortex-m0plus", "host:host"]}
    ),
    "parse_record": Case(
        lambda d: (d.array("uint8", 8, 0, 1),),
        {"platforms": ["cortex-m4"], "toolchains": ["zig", "gcc"]},
    ),
    "uninitialised_sum": Case(lambda d: (d.integer(-3, 3),), LEVEL),
    "overflow_check": Case(
        lambda d: (d.integer(1 << 30, (1 << 31) - 1), d.integer(0, 1 << 30)), LEVEL
    ),
}


def agree(name: str, bug: bool) -> None:
    """Raises Difference where the variants do not agree on some arguments."""
    case, draw = CASES[name], Draw()
    flags = [(*("-Wno-restrict",), *own) for own in case.how.get("flags", ((),))]
    if bug:
        flags = [("-DBUG", *own) for own in flags]
    with Variants(FOLDER / FILE, name, **{**case.how, "flags": flags}) as variants:
        for _ in range(ROUNDS):
            variants(*case.arguments(draw))


@pytest.mark.parametrize("name", CASES)
def test_variants(name):
    if name == "parse_record" and shutil.which("arm-none-eabi-gcc") is None:
        pytest.skip("arm-none-eabi-gcc is not installed: nothing to compare zig with")
    with pytest.raises(Difference):
        agree(name, bug=True)
    agree(name, bug=False)


def test_every_section_is_compared():
    assert set(CASES) == set(sections(FILE))

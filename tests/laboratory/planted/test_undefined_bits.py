"""Undefined bits are carried without alarm, and found where they decide, with the line."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from covp.errors import DeviceFault
from covp.testing import Buffer, Kernel
from tests.laboratory.planted.sections import FOLDER

FILE = FOLDER / "undefined_bits.c"
MARKS = [
    (found[1], f"{FILE.name}:{number}")
    for number, line in enumerate(FILE.read_text().splitlines(), 1)
    if (found := re.search(r"//! (\w+)$", line))
]
PLATFORMS = ("stm32l4r5", "cortex-m0plus", "riscv32")
LEVELS = ("-O0", "-O1", "-O2", "-Os")
ON_ALL = list(itertools.product(PLATFORMS, LEVELS))


@pytest.fixture
def kernels(bench, platform, level):
    return lambda name: Kernel(
        bench.session(platform, sanitize=True).load_c(FILE, flags=(level, "-Wno-uninitialized"))[
            name
        ]
    )


def words() -> Buffer:
    return Buffer(np.zeros(3, np.uint32), scratch=True)


@pytest.mark.parametrize(("platform", "level"), ON_ALL)
def test_correct_code(kernels, platform):
    assert kernels("count_bytes")(5) == 5
    assert kernels("count_halves")(9) == 1
    assert kernels("all_fields")(6) == 6 + 9 + 1 + 6 - 6
    assert kernels("some_fields")(6) == 6
    assert kernels("narrow_fields")(5) == 5
    assert kernels("masked_by")(0xFF00, words()) == 0x1200 | 1
    assert kernels("lower_halves")(words()) == 3 + 4 * 5 - 5
    assert kernels("either")(words(), 7) == 7 and kernels("either")(words(), 6) == 5
    if platform == "stm32l4r5":
        assert kernels("packed")(words()) == 0x10 * 0x20 + 7


CALLS = {
    "branch": lambda k: k(3),
    "index_of": lambda k: k(np.arange(4, dtype=np.int32)),
    "element": lambda k: k(np.zeros(5, np.int32), 5),
    "returned": lambda k: k(3),
    "partly_set": lambda k: k(7),
    "one_bit": lambda k: k(3),
    "carried": lambda k: k(words(), 0x7FFFFFFF),
    "by_shift": lambda k: k(1),
    "copied": lambda k: k(
        np.arange(4, dtype=np.int32),
        Buffer(np.zeros(4, np.int32), scratch=True),
        Buffer(np.zeros(4, np.int32), written=False),
        4,
    ),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(("platform", "level"), ON_ALL)
def test_planted(kernels, name):
    with pytest.raises(DeviceFault) as caught:
        CALLS[name](kernels(name))
    assert caught.value.kind == "uninitialised read"
    assert (name, caught.value.source) in MARKS, str(caught.value)


def test_every_mark_is_called():
    assert {name for name, _ in MARKS} == set(CALLS)

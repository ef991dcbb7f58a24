"""What the emulated core refuses by itself: misaligned accesses, stores to flash, stacks."""

from __future__ import annotations

import numpy as np
import pytest

from covp.testing import Buffer
from tests.laboratory.planted.bench import Call, check, on_platforms
from tests.laboratory.planted.sections import sections


def packet(draw, n: int = 16, alignment: int = 4) -> Buffer:
    """Bytes at any place but a multiple of ``alignment``."""
    offset = draw.integer(1, alignment - 1)
    return Buffer(draw.array("uint8", n), alignment=alignment, offset=offset)


MISALIGNED: dict[str, Call] = {
    "load_word": lambda k, d: k("load_word")(packet(d)),
    "load_half": lambda k, d: k("load_half")(packet(d, alignment=2)),
    "store_word": lambda k, d: k("store_word")(packet(d), d.integer(0, 999)),
    "dot_words": lambda k, d: k("dot_words")(packet(d), 16),
}


@pytest.mark.parametrize("name", MISALIGNED)
def test_a_small_core_with_the_sanitizer(bench, name):
    """Elsewhere it finds what is clear when a block begins; the sanitizer sees every access."""
    session = bench.session("cortex-m0plus", sanitize=True)
    check(bench, sections("misaligned.c")[name], MISALIGNED[name], session)


MULTIPLE: dict[str, Call] = {
    "load_pair": lambda k, d: k("load_pair")(packet(d)),
    "load_many": lambda k, d: k("load_many")(packet(d)),
    "load_float": lambda k, d: k("load_float")(packet(d)),
    "store_pair": lambda k, d: k("store_pair")(packet(d), d.integer(0, 999), d.integer(0, 999)),
}


@pytest.mark.parametrize(("name", "platform", "toolchain"), on_platforms(MISALIGNED, ["riscv32"]))
def test_cores_without_unaligned_accesses(bench, name, platform, toolchain):
    session = bench.session(platform, toolchain=toolchain)
    check(bench, sections("misaligned.c")[name], MISALIGNED[name], session)


@pytest.mark.parametrize(("name", "platform", "toolchain"), on_platforms(MULTIPLE, ["cortex-m4"]))
def test_instructions_without_unaligned_accesses(bench, name, platform, toolchain):
    session = bench.session(platform, toolchain=toolchain)
    check(bench, sections("misaligned.c")[name], MULTIPLE[name], session)


STACK: dict[str, Call] = {
    "depth_of": lambda k, d: k("depth_of")(d.integer(0, 20)),
    "flood_fill": lambda k, d: k("flood_fill")(np.zeros(d.integer(2000, 3000), np.uint8), 2000),
    "big_frame": lambda k, d: k("big_frame")(d.array("uint8", 64), 64),
    "local_of_length": lambda k, d: k("local_of_length")(d.integer(9000, 12_000)),
}


@pytest.mark.parametrize(("name", "platform", "toolchain"), on_platforms(STACK))
def test_stacks(bench, name, platform, toolchain):
    session = bench.session(platform, toolchain=toolchain)
    check(bench, sections("stack.c")[name], STACK[name], session)


@pytest.mark.parametrize("platform", ["cortex-m0plus", "cortex-m4", "riscv32"])
def test_a_store_to_a_constant(bench, platform):
    section = sections("lifetime.c")["set_gain"]
    check(bench, section, lambda k, d: k("set_gain")(3), bench.session(platform))

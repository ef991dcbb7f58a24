"""Undefined behaviour: the compiler's checks on the core name what it was and the line."""

from __future__ import annotations

import numpy as np
import pytest

from covp.testing import Buffer
from tests.laboratory.planted.bench import Call, check, on_platforms
from tests.laboratory.planted.sections import sections

FILE = "undefined.c"
LEAST, GREATEST = -(1 << 31), (1 << 31) - 1
CALLS: dict[str, Call] = {
    "sum_squares": lambda k, d: k("sum_squares")(d.array("int16", 9, -32768, -32000), 9),
    "rescale": lambda k, d: k("rescale")(d.integer(-99999, 99999), d.integer(1 << 30, GREATEST)),
    "difference": lambda k, d: k("difference")(d.integer(LEAST, -9), d.integer(1 << 30, GREATEST)),
    "magnitude": lambda k, d: k("magnitude")([LEAST, LEAST + 1, 0][d.integer(0, 2)]),
    "pixel_area": lambda k, d: k("pixel_area")(d.integer(60000, 65535), d.integer(60000, 65535)),
    "next_index": lambda k, d: k("next_index")(GREATEST - d.integer(0, 2)),
    "mask_of": lambda k, d: k("mask_of")(d.integer(29, 32)),
    "scale_by": lambda k, d: k("scale_by")(d.integer(-9, 9), d.integer(-3, 3)),
    "to_fixed": lambda k, d: k("to_fixed")(d.integer(-3, 3)),
    "top_bit": lambda k, d: k("top_bit")(d.integer(28, 31)),
    "quotient": lambda k, d: k("quotient")(LEAST, d.integer(-1, 1)),
    "mean": lambda k, d: k("mean")(d.integer(0, 9), d.integer(0, 2)),
    "wrap": lambda k, d: k("wrap")(d.integer(0, 9), d.integer(0, 2)),
    "sigmoid_table": lambda k, d: k("sigmoid_table")(d.integer(-2, 9)),
    "row_of": lambda k, d: k("row_of")(d.integer(0, 2), d.integer(0, 3)),
    "ring_slot": lambda k, d: k("ring_slot")(d.integer(-9, 9), 1),
    "quantize": lambda k, d: k("quantize")(float(d.integer(-300, 300)), 1.0),
    "to_unsigned": lambda k, d: k("to_unsigned")(float(d.integer(-300, 300))),
    "read_field": lambda k, d: k("read_field")(
        Buffer(d.array("uint8", 8), alignment=4, offset=d.integer(1, 3))
    ),
    "gain_of": lambda k, d: k("gain_of")(d.integer(0, 1)),
    "enabled": lambda k, d: k("enabled")(np.array([d.integer(0, 3)], np.uint8)),
    "leading_zeros": lambda k, d: k("leading_zeros")(d.integer(0, 1)),
    "bits_of": lambda k, d: k("bits_of")(d.integer(0, 2)),
    "local_of": lambda k, d: k("local_of")(d.integer(-2, 3)),
    "end_of": lambda k, d: k("end_of")(d.array("int32", 4), d.integer(0x3800_0000, 0x3FFF_FFFF)),
    "mac_q15": lambda k, d: k("mac_q15")(
        d.array("int16", 2, -32768, -32768), d.array("int16", 2, -32768, -32768)
    ),
    "countdown": lambda k, d: k("countdown")(LEAST + d.integer(0, 9), d.integer(1, 9)),
}


@pytest.mark.parametrize(("name", "platform", "toolchain"), on_platforms(CALLS))
def test_undefined_behaviour(bench, name, platform, toolchain):
    if name == "end_of" and toolchain == "gcc":
        pytest.skip("GCC takes offsets of 2**31 bytes and more for negative ones")
    session = bench.session(platform, toolchain=toolchain, ubsan=True)
    check(bench, sections(FILE)[name], CALLS[name], session)


def test_every_section_is_called():
    assert set(CALLS) == set(sections(FILE))

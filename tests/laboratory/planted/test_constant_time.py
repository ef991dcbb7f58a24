"""Times that depend on values: two inputs with different counts, and the line where they part."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from covp.testing import TimeDifference, constant_time
from tests.laboratory.planted.bench import on_platforms
from tests.laboratory.planted.sections import sections

FILE = "constant_time.c"
EXAMPLES = 100
key = st.integers(0, 0xFFFF)
INPUTS: dict[str, tuple[Any, ...]] = {
    "same_tag": (arrays("uint8", 8), arrays("uint8", 8), 8),
    "power_mod": (key, key),
    "weight_of": (st.integers(0, 0xFFFF_FFFF),),
    "saturate_all": (arrays("int32", 4, elements=st.integers(-300, 300)), 4),
    "skip_zeros": (
        arrays("int8", 6),
        arrays("int8", 6, elements=st.integers(-3, 3)),
        6,
    ),
    "remainder_of": (key, key),
    "select_row": (arrays("int32", 5), 5, st.integers(0, 4)),
}


@pytest.mark.parametrize(("name", "platform", "toolchain"), on_platforms(INPUTS))
def test_constant_time(bench, name, platform, toolchain):
    session, section = bench.session(platform, toolchain=toolchain), sections(FILE)[name]
    with pytest.raises(TimeDifference) as caught:
        constant_time(bench.kernel(name, FILE, True, session), INPUTS[name], examples=EXAMPLES)
    assert any(line in caught.value.where for line in section.lines), str(caught.value)
    twin = bench.kernel(name, FILE, False, session)
    assert constant_time(twin, INPUTS[name], examples=EXAMPLES) > 0


def test_every_section_has_inputs():
    assert set(INPUTS) == set(sections(FILE))

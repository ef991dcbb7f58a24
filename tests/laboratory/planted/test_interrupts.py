"""State shared with an interrupt handler: an interrupt at each instruction boundary of a call."""

from __future__ import annotations

import pytest

from covp.errors import KernelError
from covp.testing import check_interrupts
from tests.laboratory.planted.bench import on_platforms
from tests.laboratory.planted.sections import sections

FILE = "interrupts.c"
ARGUMENTS: dict[str, tuple[int, ...]] = {
    "count_events": (2,),
    "read_clock": (),
    "pop_sample": (),
    "move_limits": (3,),
    "set_flags": (5,),
    "shared_scratch": (10,),
    "wait_for_flag": (4,),
    "leave_masked": (-1,),
    "publish": (7,),
    "scale_level": (2,),
    "to_text": (12,),
    "update_both": (),
}


@pytest.mark.parametrize(("name", "platform", "toolchain"), on_platforms(ARGUMENTS))
def test_interrupts(bench, name, platform, toolchain):
    session = bench.session(platform, toolchain=toolchain)
    handler, section = f"{name}_handler", sections(FILE)[name]
    with pytest.raises(KernelError) as caught:
        check_interrupts(bench.kernel(name, FILE, True, session), ARGUMENTS[name], handler=handler)
    text = str(caught.value)
    assert section.kind in text, text
    assert "masked" in text or any(line in text for line in section.lines), text
    twin = bench.kernel(name, FILE, False, session)
    assert check_interrupts(twin, ARGUMENTS[name], handler=handler) > 3


def test_every_section_is_interrupted():
    assert set(ARGUMENTS) == set(sections(FILE))

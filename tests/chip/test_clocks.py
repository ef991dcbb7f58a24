"""Wait states that follow the clock: `clocks` of a memory region."""

from __future__ import annotations

from pathlib import Path

import pytest

from covp.chip.platform_file import load_platform
from covp.errors import CovpError
from covp.evaluation.varied import vary_design

FILE = """name: board
core: cortex-m4f
clock_hz: {hertz}
memory:
  - {{name: flash, kind: flash, start: 0x08000000, size: 256K, {flash}}}
  - {{name: ram, kind: ram, start: 0x20000000, size: 64K}}
"""
CLOCKS = "clocks: [20_000_000, 40_000_000, 60_000_000]"
# waits at the file's clock, by ST's manuals: RM0432, RM0351, RM0440, RM0368, RM0090, RM0385, RM0456
BOARDS = {
    "nucleo-l4r5zi": {120: 5, 80: 3, 26: 1, 20: 0},
    "nucleo-l476rg": {80: 4, 48: 2, 16: 0},
    "nucleo-g474re": {170: 4, 150: 4, 34: 0},
    "nucleo-f401re": {84: 2, 60: 1},
    "stm32f407-discovery": {168: 5, 120: 3, 25: 0},
    "nucleo-f746zg": {216: 7, 200: 6, 180: 5},
    "nucleo-u575zi": {160: 4, 64: 1, 32: 0},
}


def board(folder: Path, flash: str, hertz: int = 48_000_000) -> str:
    path = folder / "board.yaml"
    path.write_text(FILE.format(hertz=hertz, flash=flash))
    return str(path)


@pytest.mark.parametrize("name", BOARDS)
def test_boards(name):
    for megahertz, waits in BOARDS[name].items():
        platform, _ = vary_design(name, [], {"platform.clock_hz": megahertz * 1_000_000})
        assert platform.memory[0].waits.fetch == platform.memory[0].waits.data == waits
    assert load_platform(name).memory[0].waits.fetch == next(iter(BOARDS[name].values()))
    assert not load_platform(name).is_lower_bound


def test_the_clock_of_a_file_decides_and_stated_wait_states_stay(tmp_path):
    path = board(tmp_path, CLOCKS)
    assert load_platform(path).flash.waits.fetch == 2
    stated = {"platform.flash.wait_states.fetch": 7, "platform.clock_hz": 20_000_000}
    for values in (stated, dict(reversed(stated.items()))):
        flash = vary_design(path, [], values)[0].flash
        assert (flash.waits.fetch, flash.clocks) == (7, ())
    assert vary_design(path, [], {"platform.clock_hz": 40_000_000})[0].flash.waits.data == 1


@pytest.mark.parametrize(
    ("flash", "hertz", "says"),
    [
        (f"{CLOCKS}, wait_states: 2", 48_000_000, r"memory\[0\].clocks: .* leave one"),
        ("clocks: [20, 10]", 5, "do not rise"),
        ("clocks: [0, 10]", 5, r"memory\[0\].clocks"),
        (CLOCKS, 61_000_000, "flash works up to 60000000 Hz, and clock_hz is 61000000: lower"),
    ],
)
def test_what_cannot_be(tmp_path, flash, hertz, says):
    with pytest.raises(CovpError, match=says):
        load_platform(board(tmp_path, flash, hertz))
    with pytest.raises(CovpError, match="works up to"):
        vary_design("nucleo-l4r5zi", [], {"platform.clock_hz": 200_000_000})

"""Programs that change the flash: what the reference manuals let happen, and their error flags.

RM0432 3.3.5 to 3.3.8 and 3.7 (L4R5), RM0385 3.3.5 to 3.3.8 and 3.7 (F746).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from covp.chip.platform_file import load_platform
from covp.device.virtual import VirtualDevice
from covp.errors import DeviceFault
from covp.runtime.session import Session
from tests.conftest import load

L4, F7 = "stm32l4r5", "stm32f746"
FLASH = 0x08000000
FREE = {L4: 0x081FF000, F7: 0x080C0000}  # the last page, and the last sector
CR, SR, KEYR = (
    {L4: 0x40022014, F7: 0x40023C10}, {L4: 0x40022010, F7: 0x40023C0C},
    {L4: 0x40022008, F7: 0x40023C04},
)  # fmt: skip
PG, STRT, EOPIE, ERRIE, LOCK = 1, 1 << 16, 1 << 24, 1 << 25, 1 << 31
WRPERR, PGAERR, SIZERR_PGPERR, PGSERR_ERSERR, PROGERR = 1 << 4, 1 << 5, 1 << 6, 1 << 7, 1 << 3
OPERR, EOP = 1 << 1, 1 << 0
C = """
#include <stdint.h>
void put32(uint32_t a, uint32_t x) { *(volatile uint32_t *)a = x; }
void put16(uint32_t a, uint32_t x) { *(volatile uint16_t *)a = x; }
void put8(uint32_t a, uint32_t x) { *(volatile uint8_t *)a = x; }
uint32_t get32(uint32_t a) { return *(volatile uint32_t *)a; }
uint32_t twice(uint32_t a, uint32_t x, uint32_t y) { /* reads its own flash between two stores */
    put32(a, x);
    uint32_t read = get32(a);
    put32(a + 4, y);
    return read;
}
uint32_t call(uint32_t a) { return ((uint32_t (*)(void))(a | 1))(); }
"""


class Chip:
    """C on the core: one call, one access."""

    def __init__(self, platform: str) -> None:
        self.name = platform
        self.session = Session(load_platform(platform))
        assert isinstance(self.session.device, VirtualDevice)
        self.device = self.session.device
        self.module = self.session.load_c(C)
        self.cr, self.sr, self.keyr = CR[platform], SR[platform], KEYR[platform]
        self.free = FREE[platform]

    def do(self, function: str, *arguments: int) -> Any:
        return self.module[function](*arguments).result()

    def __getitem__(self, address: int) -> int:
        return int(self.do("get32", address))

    def __setitem__(self, address: int, value: int) -> None:
        self.do("put32", address, value)

    def unlock(self, cr: int = 0) -> None:
        self[self.keyr] = 0x45670123
        self[self.keyr] = 0xCDEF89AB
        self[self.cr] = cr

    def unlock_options(self) -> None:
        self[self.keyr + 4] = 0x08192A3B
        self[self.keyr + 4] = 0x4C5D6E7F

    def flags(self) -> int:
        """SR's, which are then cleared."""
        value = self[self.sr]
        self[self.sr] = value
        return value

    def memory(self, offset: int, size: int) -> bytes:
        return self.device.read(FLASH + offset, size)


@pytest.fixture
def l4() -> Iterator[Chip]:
    chip = Chip(L4)
    yield chip
    chip.session.close()


@pytest.fixture
def f7() -> Iterator[Chip]:
    chip = Chip(F7)
    yield chip
    chip.session.close()


@pytest.fixture(params=[L4, F7])
def chip(request: pytest.FixtureRequest) -> Iterator[Chip]:
    chip = Chip(request.param)
    yield chip
    chip.session.close()


# -- stores that are not allowed --------------------------------------------------------------


@pytest.mark.parametrize(
    "store",
    ["str r1, [r0]", "strh r1, [r0, #2]", "strb r1, [r0, #3]", "strd r1, r2, [r0]", "push {r1, r2}",
     "stmia r0!, {r1, r2}", "str r1, [r0], #4", "vstr s0, [r0]"],
)  # fmt: skip
def test_a_stray_store_is_the_same_fault_with_and_without_controller(store: str) -> None:
    """Kind, pc, address, size and text; registers; instructions and cycles before it."""
    found = []
    for has_controller in (True, False):
        program = load(F7, f"""
        start: ldr r0, =0x08040000
            mov sp, r0
            movs r1, #5
            {store}
            adds r4, r1, #1
        end: b end
            .ltorg
        """, 0x20002000)  # fmt: skip
        device = program.device
        sr = device.board.peripherals["flash_controller"][1]
        if not has_controller:
            device.board.detach("flash_controller")
        with pytest.raises(DeviceFault, match="write to read-only memory") as caught:
            program.run()
        fault = caught.value
        found.append((str(fault), fault.registers, device.instructions, device.cycles))
        assert sr.values["SR"] == (PGSERR_ERSERR if has_controller else 0)
        device.close()
    assert found[0] == found[1]


def test_the_lock(chip: Chip) -> None:
    assert chip[chip.cr] & LOCK
    chip[chip.cr] = PG | 2 << 8
    assert chip[chip.cr] & ~(1 << 30) == LOCK  # as if it was not written
    with pytest.raises(DeviceFault, match="write to read-only memory"):
        chip[chip.free] = 1
    assert chip.flags() == PGSERR_ERSERR
    chip.unlock()
    assert not chip[chip.cr] & LOCK
    with pytest.raises(DeviceFault, match="write to read-only memory"):
        chip[chip.free] = 1
    assert chip.flags() == PGSERR_ERSERR
    chip[chip.cr] = LOCK
    chip[chip.cr] = PG
    assert chip[chip.cr] & ~(1 << 30) == LOCK
    chip.unlock(PG | 2 << 8 if chip.name == F7 else PG)
    chip.do("twice", chip.free, 1, 2)
    assert chip.flags() == 0 and (chip[chip.free], chip[chip.free + 4]) == (1, 2)


@pytest.mark.parametrize("keys", [(0xCDEF89AB,), (0x45670123, 0x45670123), (0,)])
def test_a_wrong_key_locks_until_a_reset(chip: Chip, keys: tuple[int, ...]) -> None:
    with pytest.raises(DeviceFault, match=r"register access.*KEYR"):
        for key in keys:
            chip[chip.keyr] = key
    with pytest.raises(DeviceFault, match="KEYR"):
        chip.unlock()
    assert chip[chip.cr] & LOCK
    chip.device.reset()
    chip.unlock()
    assert not chip[chip.cr] & LOCK


# -- erasing ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("page", "offset"), [
    (0x0F, 0xF000), (0xFF, 0xFF000), (1 << 8 | 0x00, 0x100000), (1 << 8 | 0xFE, 0x1FE000),
])  # fmt: skip
def test_l4_erases_a_page_of_4_kb_in_a_bank(l4: Chip, page: int, offset: int) -> None:
    l4.device.write(FLASH + offset - 4, bytes(0x1008 if offset < 0x1FF000 else 0x1004))
    l4.unlock()
    l4[l4.cr] = 2 | page << 3 | STRT
    assert l4.flags() == 0
    assert l4.memory(offset - 4, 4) == bytes(4) == l4.memory(offset + 0x1000, 4)
    assert l4.memory(offset, 0x1000) == b"\xff" * 0x1000


def test_l4_erases_a_bank(l4: Chip) -> None:
    l4.device.write(FLASH + 0x100000 - 4, bytes(8))
    l4.device.write(FLASH + 0x200000 - 4, bytes(4))
    l4.unlock()
    l4[l4.cr] = 1 << 15 | STRT  # MER2
    assert l4.memory(0x100000 - 4, 4) == bytes(4)
    assert l4.memory(0x100000, 0x100000) == b"\xff" * 0x100000


def test_l4_has_pages_of_8_kb_in_one_bank(l4: Chip) -> None:
    """OPTR.DBANK = 0, which a reset keeps; what was not stored with OPTSTRT it does not."""
    for stored in (False, True):
        l4.unlock()
        l4.unlock_options()
        l4[0x40022020] = l4[0x40022020] & ~(1 << 22)
        if stored:
            l4[l4.cr] = 1 << 17
        l4.device.reset()
        assert l4[0x40022020] >> 22 & 1 == (not stored)
    l4.device.write(FLASH + 0x1FBFFC, bytes(0x2008))
    l4.unlock()
    l4[l4.cr] = 2 | 0xFE << 3 | STRT
    assert l4.memory(0x1FC000 - 4, 4) == bytes(4) == l4.memory(0x1FE000, 4)
    assert l4.memory(0x1FC000, 0x2000) == b"\xff" * 0x2000


@pytest.mark.parametrize(("sector", "offset", "kilobytes"), [
    (3, 0x18000, 32), (4, 0x20000, 128), (5, 0x40000, 256), (7, 0xC0000, 256),
])  # fmt: skip
def test_f7_erases_a_sector(f7: Chip, sector: int, offset: int, kilobytes: int) -> None:
    size = 1024 * kilobytes
    f7.device.write(FLASH + offset - 4, bytes(min(size + 8, 0x100004 - offset)))
    f7.unlock()
    f7[f7.cr] = 2 | sector << 3 | STRT
    assert f7.flags() == 0
    assert f7.memory(offset - 4, 4) == bytes(4)
    assert f7.memory(offset, size) == b"\xff" * size
    if offset + size < 0x100000:
        assert f7.memory(offset + size, 4) == bytes(4)


def test_protected_flash_stays(chip: Chip) -> None:
    chip.unlock()
    chip.unlock_options()
    if chip.name == L4:
        chip[0x40022050] = 0xFF << 16 | 0xFF  # WRP2BR: the last page of bank 2
        erase, program = 2 | 1 << 11 | 0xFF << 3, PG
    else:
        chip[0x40023C14] = 0x7F << 16 | 0xAAFC  # OPTCR: nWRP of sector 7
        erase, program = 2 | 7 << 3, PG | 2 << 8
    before = chip.device.read(chip.free, 8)
    chip[chip.cr] = erase | STRT
    assert chip.flags() == WRPERR
    chip[chip.cr] = program
    chip.do("twice", chip.free, 1, 2)
    assert chip.flags() & WRPERR and chip.device.read(chip.free, 8) == before


# -- programming ------------------------------------------------------------------------------


def test_l4_programs_double_words_once(l4: Chip) -> None:
    l4.unlock(PG)
    assert l4.do("twice", l4.free, 0x11111111, 0x22222222) == 0xFFFFFFFF  # not yet there
    assert (l4[l4.free], l4[l4.free + 4], l4.flags()) == (0x11111111, 0x22222222, 0)
    l4.do("twice", l4.free, 0x11111110, 0x22222222)
    assert l4.flags() == PROGERR and l4[l4.free] == 0x11111111
    l4.do("twice", l4.free, 0, 0)  # all zero is allowed
    assert (l4[l4.free], l4[l4.free + 4], l4.flags()) == (0, 0, 0)
    l4.do("put16", l4.free + 8, 1)
    l4.do("twice", l4.free + 8, 1, 2)  # rejected while an error flag is set
    assert l4.flags() == SIZERR_PGPERR | PGSERR_ERSERR
    l4[l4.free + 12] = 1  # the upper word first
    assert l4.flags() == PGAERR
    l4[l4.free + 8] = 1
    l4[l4.free + 20] = 1  # of the next double word
    assert l4.flags() == PGAERR
    assert l4.device.read(l4.free + 8, 16) == b"\xff" * 16


def test_f7_wants_the_width_of_psize(f7: Chip) -> None:
    for psize, function in enumerate(("put8", "put16", "put32")):
        f7.unlock(PG | psize << 8)
        for other in ("put8", "put16", "put32"):
            f7.do(other, f7.free + 16 * psize, 0x12345678)
            assert f7.flags() == (0 if other == function else SIZERR_PGPERR)
        f7[f7.cr] = LOCK
        written = f7.device.read(f7.free + 16 * psize, 16)
        size = 1 << psize
        assert written == (0x12345678).to_bytes(4, "little")[:size] + b"\xff" * (16 - size)


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.tuples(st.integers(0, 15), st.integers(0, 0xFFFF)), max_size=12))
def test_f7_programming_clears_bits(f7: Chip, stores: list[tuple[int, int]]) -> None:
    f7.device.reset()
    f7.unlock()
    f7[f7.cr] = 2 | 7 << 3 | STRT
    f7[f7.cr] = PG | 1 << 8
    expected = np.full(16, 0xFFFF, np.uint16)
    for place, value in stores:
        f7.do("put16", f7.free + 2 * place, value)
        expected[place] &= value
    assert f7.device.read(f7.free, 32) == expected.tobytes() and f7.flags() == 0


def test_programmed_code_runs(chip: Chip) -> None:
    """Also where other code ran before: what was translated is forgotten."""
    psize = 0 if chip.name == L4 else 2 << 8
    page = 0xFF << 3 | 1 << 11 if chip.name == L4 else 7 << 3
    for value in (7, 9):
        chip.unlock()
        chip[chip.cr] = 2 | page | STRT
        chip[chip.cr] = PG | psize
        code = 0x4770_2000 | value  # movs r0, #value; bx lr
        chip.do("twice", chip.free, code, 0xFFFFFFFF)
        chip[chip.cr] = LOCK
        assert chip.do("call", chip.free) == value


def test_the_interrupt_says_when_it_is_over(chip: Chip) -> None:
    """SR.EOP and OPERR only with EOPIE and ERRIE."""
    line = chip.device.board.peripherals["flash_controller"][1].interrupt
    program = PG | (2 << 8 if chip.name == F7 else 0)
    chip.unlock(program | EOPIE | ERRIE)
    chip.do("twice", chip.free, 1, 2)
    assert line.level and chip.flags() == EOP and not line.level
    chip.do("put8", chip.free + 8, 1)
    assert line.level and chip.flags() == OPERR | SIZERR_PGPERR and not line.level

"""Start-up code on the models of ST's chips: clocks as the reference manuals say, and no fault."""

from __future__ import annotations

from typing import Any

import pytest

from covp.device.board import Board
from covp.errors import DeviceFault
from covp.peripherals._stm32 import Stm32Peripheral
from covp.platform_file import load_platform
from tests.conftest import load

L4 = ("stm32l4r5", "nucleo-l4r5zi")
F7 = ("stm32f746", "nucleo-f746zg", "disco-f746ng")
RCC_L4, RCC_F7, PWR = 0x40021000, 0x40023800, 0x40007000


class Words:
    """A board's registers as a debugger reaches them."""

    def __init__(self, platform: str) -> None:
        self.board = Board(load_platform(platform))

    def __getitem__(self, address: int) -> int:
        return int.from_bytes(self.board.read_bus(address, 4), "little")

    def __setitem__(self, address: int, value: int) -> None:
        self.board.write_bus(address, value.to_bytes(4, "little"))

    @property
    def rcc(self) -> Any:
        return self.board.peripherals["rcc"][1]


@pytest.mark.parametrize("platform", L4)
def test_l4_reaches_120_mhz(platform: str) -> None:
    """RM0432 5.1.8 (boost), 6.2.5 (PLL): MSI 4 MHz / 1 * 60 / 2."""
    words = Words(platform)
    assert words.rcc.core_hz == 4_000_000 and words[RCC_L4] == 0x63
    words[PWR + 0x80] = 0  # R1MODE: boost
    assert words[PWR + 0x14] >> 10 & 1 == 0  # VOSF
    words[0x40022000] = 0x705  # FLASH_ACR
    assert words[0x40022000] == 0x705
    words[RCC_L4 + 0x0C] = 1 << 24 | 60 << 8 | 1
    words[RCC_L4] |= 1 << 24
    assert words[RCC_L4] >> 25 & 1
    words[RCC_L4 + 8] = 3
    assert words[RCC_L4 + 8] == 0xF
    assert words.rcc.core_hz == words.board.platform.clock_hz == 120_000_000
    words[RCC_L4 + 8] = 3 | 0b1000 << 4 | 0b100 << 8 | 0b101 << 11
    assert (words.rcc.core_hz, words.rcc.bus_hz(1), words.rcc.bus_hz(2)) == (
        60_000_000, 30_000_000, 15_000_000,
    )  # fmt: skip


@pytest.mark.parametrize("platform", F7)
def test_f7_reaches_216_mhz(platform: str) -> None:
    """RM0385 4.1.4 (over-drive), 5.3.2 (PLL): HSE / M * 432 / 2 with 1 MHz before N."""
    words = Words(platform)
    assert words.rcc.core_hz == 16_000_000
    words[RCC_F7] |= 1 << 16
    assert words[RCC_F7] >> 17 & 1
    mhz = 8 if platform == "nucleo-f746zg" else 25
    words[RCC_F7 + 4] = 9 << 24 | 1 << 22 | 432 << 6 | mhz
    words[RCC_F7] |= 1 << 24
    assert words[RCC_F7] >> 25 & 1
    words[PWR] |= 1 << 16
    assert words[PWR + 4] >> 16 & 3 == 1  # ODRDY
    words[PWR] |= 1 << 17
    assert words[PWR + 4] >> 16 & 3 == 3  # ODSWRDY
    words[0x40023C00] = 0x307
    words[RCC_F7 + 8] = 0b101 << 10 | 0b100 << 13 | 2
    assert words[RCC_F7 + 8] >> 2 & 3 == 2
    assert (words.rcc.core_hz, words.rcc.bus_hz(1), words.rcc.bus_hz(2)) == (
        216_000_000, 54_000_000, 108_000_000,
    )  # fmt: skip
    assert words.rcc.core_hz == words.board.platform.clock_hz


def test_what_is_not_ready_is_not_used() -> None:
    words = Words("stm32l4r5")
    words[RCC_L4] |= 1 << 24  # PLL, and PLLSRC is "none"
    words[RCC_L4] |= 1 << 16  # HSE, which the board does not have
    assert words[RCC_L4] >> 25 & 1 == 0 and words[RCC_L4] >> 17 & 1 == 0
    words[RCC_L4 + 8] = 3
    assert words[RCC_L4 + 8] == 3 and words.rcc.core_hz == 4_000_000
    words[RCC_L4 + 0x0C] = 1 << 24 | 8 << 8 | 2  # HSI, which is off
    words[0x40022000] = 3
    assert words[RCC_L4 + 8] == 3
    words[RCC_L4] |= 1 << 8
    assert words[RCC_L4 + 8] == 0xF and words.rcc.core_hz == 64_000_000
    words[RCC_L4] = 0  # the clocks in use stay
    assert words[RCC_L4] == 1 << 25 | 1 << 24 | 1 << 10 | 1 << 8
    assert words.rcc.core_hz == 64_000_000


@pytest.mark.parametrize(("name", "change", "why"), [
    ("stm32l4r5", {0x40022000: 4}, r"LATENCY = 4 it may be 100 MHz"),
    ("stm32l4r5", {PWR + 0x80: 1 << 8}, r"R1MODE = 1 it may be 80 MHz"),
    ("stm32l4r5", {PWR: 2 << 9}, r"VOS = 2 it may be 26 MHz"),
    ("stm32f746", {0x40023C00: 6}, r"LATENCY = 6 it may be 210 MHz"),
    ("stm32f746", {PWR: 3 << 14}, r"VOS = 3, ODSWRDY = 0 it may be 180 MHz"),
])  # fmt: skip
def test_a_clock_too_fast_for_the_flash_or_the_voltage(
    name: str, change: dict[int, int], why: str
) -> None:
    words = Words(name)
    rcc = RCC_L4 if name == "stm32l4r5" else RCC_F7
    words[PWR + 0x80] = 0
    words[PWR] = 1 << 9 if name == "stm32l4r5" else 3 << 14 | 3 << 16
    words[0x40022000 if name == "stm32l4r5" else 0x40023C00] = 7
    for address, value in change.items():
        words[address] = value
    if name == "stm32l4r5":
        words[rcc + 0x0C] = 1 << 24 | 60 << 8 | 1  # 120 MHz
    else:
        words[rcc + 4] = 2 << 24 | 216 << 6 | 8  # 216 MHz
    words[rcc] |= 1 << 24
    with pytest.raises(DeviceFault, match=why):
        words[rcc + 8] = 3 if name == "stm32l4r5" else 2


def test_a_poll_without_end_is_found() -> None:
    """Start-up code that switches the PLL on before it selects its source."""
    program = load("stm32l4r5", """
        start: ldr r0, =0x40021000
        ldr r1, [r0]
        orr r1, r1, #0x01000000
        str r1, [r0]
    wait: ldr r1, [r0]
        tst r1, #0x02000000
        beq wait
    end: b end
    .ltorg
    """)  # fmt: skip
    with pytest.raises(DeviceFault, match=r"rcc\.CR was read .* times") as caught:
        program.run()
    assert caught.value.kind == "endless poll"
    program.device.close()


@pytest.mark.parametrize("platform", [*L4, *F7])
def test_no_access_faults(platform: str) -> None:
    """Whatever a vendor's code touches: any width, all bits, reserved or not; no wrong key."""
    board = Board(load_platform(platform))
    models = [m for _, m in board.peripherals.values() if isinstance(m, Stm32Peripheral)]
    assert len(models) >= 6
    for model in models:
        keys = {r.offset for r in model.registers if r.name in ("KEYR", "OPTKEYR")}
        for offset in range(model.size):
            for size in (1, 2, 4):
                if offset % size == 0 and offset & ~3 not in keys:
                    assert 0 <= model.read_register(offset, size) < 1 << 8 * size
                    for value in ((1 << 8 * size) - 1, 0):
                        try:
                            model.write_register(offset, size, value)
                        except DeviceFault as fault:  # all ones is a fast clock, too
                            assert "HCLK is" in str(fault)


def test_parts_of_a_register() -> None:
    words = Words("stm32f746")
    words[RCC_F7 + 0x30] = 0x11223344
    words.board.write_bus(RCC_F7 + 0x32, b"\x55")
    words.board.write_bus(RCC_F7 + 0x30, b"\x66\x77")
    assert words[RCC_F7 + 0x30] == 0x11557766
    assert words.board.read_bus(RCC_F7 + 0x32, 2) == b"\x55\x11"


@pytest.mark.parametrize(("platform", "size", "uid"), [
    ("stm32l4r5", 0x1FFF75E0, 0x1FFF7590), ("stm32f746", 0x1FF0F442, 0x1FF0F420),
])  # fmt: skip
def test_the_chip_says_what_it_is(platform: str, size: int, uid: int) -> None:
    words = Words(platform)
    kilobytes = int.from_bytes(words.board.read_bus(size, 2), "little")
    assert kilobytes == words.board.platform.flash.bytes // 1024
    assert words.board.read_bus(uid, 4) != b"\xff" * 4
    assert words[0xE0042000] & 0xFFF == {"stm32l4r5": 0x470, "stm32f746": 0x449}[platform]
    words[0xE0042004] = 7
    words.board.reset()
    assert words[0xE0042004] == 7  # a debugger's setting outlives a reset

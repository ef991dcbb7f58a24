"""Start-up code on the models of ST's chips: clocks as the reference manuals say, and no fault."""

from __future__ import annotations

from typing import Any

import pytest

from covp.chip.platform_file import load_platform
from covp.device.board import Board
from covp.errors import DeviceFault
from covp.hardware.serial_port import SerialPort
from covp.peripherals._stm32 import Stm32Peripheral
from tests.conftest import load

L4 = ("stm32l4r5", "nucleo-l4r5zi")
F7 = ("stm32f746", "nucleo-f746zg", "disco-f746ng")
RCC_L4, RCC_F7, PWR = 0x40021000, 0x40023800, 0x40007000
RCC_H7, PWR_H7, PWRCR, FLASH_H7 = 0x58024400, 0x58024800, 0x5800042C, 0x52002000
D1CFGR, D2CFGR, PLLCKSELR, PLLCFGR, PLL1DIVR = (RCC_H7 + n for n in (0x18, 0x1C, 0x28, 0x2C, 0x30))
APB4ENR, D3CR = RCC_H7 + 0xF4, PWR_H7 + 0x18


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


def set_up_480_mhz(words: Words) -> None:
    """All but the switch to the PLL."""
    words[RCC_H7] |= 1 << 16 | 1 << 18
    assert words[RCC_H7] >> 17 & 1
    words[D3CR] = 3 << 14
    assert words[D3CR] >> 13 & 1
    words[APB4ENR] |= 2
    words[PWRCR] = 1
    words[PLLCKSELR] = 4 << 4 | 2
    words[PLLCFGR] = 0x01FF0004
    words[PLL1DIVR] = 1 << 24 | 3 << 16 | 1 << 9 | 479
    words[RCC_H7] |= 1 << 24
    assert words[RCC_H7] >> 25 & 1
    words[D1CFGR], words[D2CFGR] = 0x48, 0x440
    words[FLASH_H7] = 0x24


def test_h7_reaches_480_mhz() -> None:
    """ST's example for this board, STM32CubeH7 PWR_VOS0_480MHZ: M 4, N 480, P 2, Q 4, R 2; 4 waits.

    Reset values: ST's SVD file of the STM32H743 and RM0433, "RCC register map".
    """
    words = Words("stm32h743")
    assert words.rcc.core_hz == words.rcc.bus_hz(1) == 64_000_000 and words[FLASH_H7] == 0x37
    reset = {PLLCKSELR: 0x02020200, PLLCFGR: 0x01FF0000, PLL1DIVR: 0x01010280, D3CR: 0x6000}
    assert {address: words[address] for address in reset} == reset
    assert words[PWR_H7 + 0x0C] == 6 and words[RCC_H7] == 0x25
    set_up_480_mhz(words)
    words[RCC_H7 + 0x10] = 3
    assert words[RCC_H7 + 0x10] == 3 | 3 << 3
    assert (words.rcc.core_hz, words.rcc.hclk_hz, words.rcc.bus_hz(1), words.rcc.bus_hz(2)) == (
        480_000_000, 240_000_000, 120_000_000, 120_000_000,
    )  # fmt: skip
    assert words.rcc.core_hz == words.board.platform.clock_hz
    words[PLL1DIVR] = 0x01010280  # a PLL that runs keeps its dividers
    assert words.rcc.core_hz == 480_000_000


@pytest.mark.parametrize(("change", "why"), [
    ({FLASH_H7: 3}, "HCLK is 240 MHz; with FLASH_ACR.LATENCY = 3 it may be 225 MHz"),
    ({PWRCR: 0}, "the core is 480 MHz; with .*ODEN = 0 it may be 400 MHz"),
    ({PWRCR: 0, D3CR: 2 << 14}, "the core is 480 MHz; .*VOS = 2.* it may be 300 MHz"),
    ({D1CFGR: 0}, "HCLK is 480 MHz; .* it may be 240 MHz"),
    ({D2CFGR: 0}, "PCLK1 is 240 MHz; .* it may be 120 MHz"),
])  # fmt: skip
def test_a_clock_too_fast_for_the_h7(change: dict[int, int], why: str) -> None:
    words = Words("stm32h743")
    set_up_480_mhz(words)
    for address, value in change.items():
        words[address] = value
    with pytest.raises(DeviceFault, match=why):
        words[RCC_H7 + 0x10] = 3


def test_the_order_in_which_an_h7_raises_its_voltage() -> None:
    """RM0433 "Dynamic voltage scaling", STM32CubeH7 hal_pwr.h: VOS0 from VOS1, SYSCFG clocked."""
    words = Words("stm32h743")
    words[D3CR] = 3 << 14
    words[PWRCR] = 1  # SYSCFG has no clock
    words[APB4ENR] = 2
    assert words[PWRCR] == 0
    words[D3CR] = 2 << 14
    words[PWRCR] = 1  # not from scale 2
    assert words[PWRCR] == 0
    words[D3CR] = 3 << 14
    words[PWRCR] = 1
    words[D3CR] = 1 << 14  # over-drive has to be left first
    assert words[PWRCR] == 1 and words[D3CR] >> 14 == words[PWR_H7 + 4] >> 14 == 3
    words[PWR_H7 + 0x0C] = 6
    assert words[PWR_H7 + 0x0C] == 2
    words[PWR_H7 + 0x0C] = 1  # the supply is chosen once
    assert words[PWR_H7 + 0x0C] == 2


@pytest.mark.parametrize(("address", "value"), [
    (PLLCKSELR, 1 << 4 | 2),  # 8 MHz, beyond the range of PLL1RGE
    (PLL1DIVR, 1 << 9 | 89),  # a VCO of 180 MHz
    (PLL1DIVR, 2 << 9 | 479),  # P is odd
    (PLLCFGR, 0x01FF0006),  # the narrow VCO reaches 420 MHz
])  # fmt: skip
def test_a_pll_out_of_range_does_not_lock(address: int, value: int) -> None:
    words = Words("stm32h743")
    set_up_480_mhz(words)
    words[RCC_H7] &= ~(1 << 24)
    words[address] = value
    words[RCC_H7] |= 1 << 24
    assert words[RCC_H7] >> 25 & 1 == 0
    words[RCC_H7 + 0x10] = 3
    assert words[RCC_H7 + 0x10] == 3 and words.rcc.core_hz == 64_000_000


@pytest.mark.parametrize(("platform", "port", "pins"), [
    ("nucleo-l4r5zi", (0x4002105C, 0), (0x4002104C, 6)),
    ("disco-f746ng", (0x40023844, 4), (0x40023830, 6)),
    ("nucleo-f746zg", (0x40023840, 18), (0x40023830, 6)),
    ("stm32h743", (0x580244E8, 18), (0x580244E0, 6)),
])  # fmt: skip
def test_nothing_works_without_its_clock(
    platform: str, port: tuple[int, int], pins: tuple[int, int]
) -> None:
    """Enable bits: RM0432 6.4, RM0385 5.3, RM0433 "RCC register map"."""
    words = Words(platform)
    uart, base = next(
        (one, config.base) for config in words.board.platform.peripherals
        if isinstance(one := words.board.peripherals[config.name][1], SerialPort)
    )  # fmt: skip
    gpio = words.board.peripherals["gpio"][1]

    def use() -> tuple[str, int]:
        words[base + 0x0C], words[base] = 0x400, 0xD
        words[base + 0x28] = ord("x")
        words[words.board.peripherals["gpio"][0] + 6 * 0x400] = 0x5555
        return uart.text, gpio.values["G_MODER"]

    before = gpio.values["G_MODER"]
    assert use() == ("", before) and words[base + 0x1C] == 0
    for address, bit in (port, pins):
        words[address] |= 1 << bit
    assert use() == ("x", 0x5555)


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


@pytest.mark.costly
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


@pytest.mark.parametrize("platform", [*L4, *F7, "stm32h743"])
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
                            assert " it may be " in str(fault)


def test_parts_of_a_register() -> None:
    words = Words("stm32f746")
    words[RCC_F7 + 0x30] = 0x11223344
    words.board.write_bus(RCC_F7 + 0x32, b"\x55")
    words.board.write_bus(RCC_F7 + 0x30, b"\x66\x77")
    assert words[RCC_F7 + 0x30] == 0x11557766
    assert words.board.read_bus(RCC_F7 + 0x32, 2) == b"\x55\x11"


@pytest.mark.parametrize(("platform", "size", "uid"), [
    ("stm32l4r5", 0x1FFF75E0, 0x1FFF7590), ("stm32f746", 0x1FF0F442, 0x1FF0F420),
    ("stm32h743", 0x1FF1E880, 0x1FF1E800),
])  # fmt: skip
def test_the_chip_says_what_it_is(platform: str, size: int, uid: int) -> None:
    words = Words(platform)
    kilobytes = int.from_bytes(words.board.read_bus(size, 2), "little")
    assert kilobytes == words.board.platform.flash.bytes // 1024
    assert words.board.read_bus(uid, 4) != b"\xff" * 4
    dbgmcu = words.board.peripherals["dbgmcu"][0]
    chips = {"stm32l4r5": 0x470, "stm32f746": 0x449, "stm32h743": 0x450}
    assert words[dbgmcu] & 0xFFF == chips[platform]
    words[dbgmcu + 4] = 7
    words.board.reset()
    assert words[dbgmcu + 4] == 7  # a debugger's setting outlives a reset

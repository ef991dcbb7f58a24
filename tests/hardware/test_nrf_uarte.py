"""UARTE0 of the nRF52840, and which serial port a platform's chip has."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from covp.chip.platform_file import load_platform, platform_aliases, platform_names
from covp.device.virtual import VirtualDevice
from covp.errors import DeviceFault
from covp.hardware.peripheral_models import load_peripheral
from covp.hardware.serial_port import SerialPort
from covp.peripherals.nrf_uarte import NrfUarte
from covp.peripherals.uart import Uart

RAM = 0x20000100
# nRF52840 PS v1.7, "UARTE", registers
STARTRX, STOPRX, STARTTX, STOPTX = 0x000, 0x004, 0x008, 0x00C
ENDRX, TXDRDY, ENDTX, RXTO, TXSTOPPED = 0x110, 0x11C, 0x120, 0x144, 0x158
INTENSET, INTENCLR, ENABLE, BAUDRATE = 0x304, 0x308, 0x500, 0x524
RXD, TXD = 0x534, 0x544  # PTR, MAXCNT, AMOUNT

# Base addresses: RM0432, RM0385 and RM0433 "Memory organization", nRF52840 PS "Instantiation",
# FE310-G002 Manual chapter 4, Arm DAI0386, DAI0500 and DAI0547 "Memory map", QEMU's hw/riscv/virt.c
PORTS = {
    "nucleo-l4r5zi": ("stm32_usart", 0x40008000),
    "disco-f746ng": ("stm32_usart", 0x40011000),
    "nucleo-f746zg": ("stm32_usart", 0x40004800), "stm32h743": ("stm32_usart", 0x40004800),
    "nrf52840": ("nrf_uarte", 0x40002000), "hifive1": ("sifive_uart", 0x10013000),
    "mps2-an386": ("cmsdk_uart", 0x40004000), "mps2-an500": ("cmsdk_uart", 0x40004000),
    "mps3-an547": ("cmsdk_uart", 0x59303000), "qemu-riscv32": ("ns16550", 0x10000000),
    "nucleo-l4r5zi-single-bank": ("stm32_usart", 0x40008000),
    "arduino-nano-33-ble": ("nrf_uarte", 0x40002000), "xiao-nrf52840": ("nrf_uarte", 0x40002000),
}  # fmt: skip
"""The serial port of each platform that names a board, chip or machine."""


@pytest.fixture
def port() -> Iterator[NrfUarte]:
    """Of a board, switched on."""
    with VirtualDevice(load_platform("nrf52840")) as device:
        _, model = device.peripherals["uarte0"]
        assert isinstance(model, NrfUarte)
        put(model, ENABLE, 8)
        yield model


def put(port: NrfUarte, offset: int, value: int) -> None:
    port.write_register(offset, 4, value)


def get(port: NrfUarte, offset: int) -> int:
    return port.read_register(offset, 4)


def send(port: NrfUarte, text: bytes) -> None:
    port.bus.write(RAM, text)
    put(port, TXD, RAM)
    put(port, TXD + 4, len(text))
    put(port, ENDTX, 0)
    put(port, STARTTX, 1)


def test_a_buffer_is_sent(port: NrfUarte) -> None:
    send(port, b"hello")
    assert port.text == "hello" and get(port, TXD + 8) == 5
    assert get(port, ENDTX) == get(port, TXDRDY) == 1
    put(port, ENABLE, 0)
    send(port, b"not")
    assert port.text == "hello" and get(port, ENDTX) == 0
    put(port, STOPTX, 1)
    assert get(port, TXSTOPPED) == 1


def test_a_constant_in_flash_cannot_be_sent(port: NrfUarte) -> None:
    """EasyDMA reaches RAM alone: on the chip nothing, or other bytes, would be sent."""
    put(port, TXD, 0x1000)
    put(port, TXD + 4, 3)
    with pytest.raises(DeviceFault, match=r"uarte0: TXD\.PTR 0x00001000 is not in RAM"):
        put(port, STARTTX, 1)


def test_bytes_fill_the_buffer(port: NrfUarte) -> None:
    port.feed(b"abcde")
    assert get(port, ENDRX) == 0
    put(port, RXD, RAM)
    put(port, RXD + 4, 3)
    put(port, STARTRX, 1)
    assert port.bus.read(RAM, 3) == b"abc" and get(port, RXD + 8) == 3 and get(port, ENDRX) == 1
    put(port, ENDRX, 0)
    put(port, STARTRX, 1)
    assert port.bus.read(RAM, 3) == b"dec" and get(port, RXD + 8) == 2 and get(port, ENDRX) == 0
    put(port, STOPRX, 1)
    assert get(port, ENDRX) == get(port, RXTO) == 1


def test_the_interrupt_line_follows_enabled_events(port: NrfUarte) -> None:
    send(port, b"x")
    assert not port.interrupt.level
    put(port, INTENSET, 1 << 8)
    assert port.interrupt.level
    put(port, ENDTX, 0)
    assert not port.interrupt.level
    send(port, b"y")
    assert port.interrupt.level
    put(port, INTENCLR, 1 << 8)
    assert not port.interrupt.level


def test_the_rate(port: NrfUarte) -> None:
    put(port, BAUDRATE, 0x01D60000)  # Baud115200
    assert port.baud == pytest.approx(115200, rel=0.005)


@pytest.mark.parametrize("name", sorted({*platform_names()} - {"host", *platform_aliases()}))
def test_no_chip_has_a_port_that_it_lacks(name: str) -> None:
    """covp's own uart is for generic platforms; a board has its chip's, or is silent."""
    platform = load_platform(name)
    models = {p.name: load_peripheral(p.model, p.parameters) for p in platform.peripherals}
    ports = [p for p in platform.peripherals if isinstance(models[p.name], SerialPort)]
    if not ports:
        assert name not in PORTS and platform.board == "silent"
        return
    (port,) = ports
    named = name in PORTS
    assert named == (not isinstance(models[port.name], Uart))
    assert named or not (platform.openocd or platform.qemu)
    if named:
        assert (port.model, port.base) == PORTS[name]
        assert platform.board not in ("generic",)

"""Serial ports: registers as the manuals say, bytes in and out, interrupts, rates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from covp.chip.platform_file import load_platform, platform_names
from covp.device.virtual import VirtualDevice
from covp.errors import DeviceFault
from covp.hardware.peripheral_models import load_peripheral
from covp.hardware.serial_port import SerialPort
from covp.peripherals.cmsdk_uart import CmsdkUart
from covp.peripherals.nrf_uarte import NrfUarte
from covp.peripherals.ns16550 import Ns16550
from covp.peripherals.sifive_uart import SifiveUart
from covp.peripherals.stm32_usart import Stm32Usart
from covp.peripherals.uart import Uart

BASE = 0x60000000
# RM0432 50.8: offsets of registers, bits of CR1 and ISR
CR1, CR3, BRR, RQR, ISR, ICR, RDR, TDR, PRESC = 0, 8, 12, 0x18, 0x1C, 0x20, 0x24, 0x28, 0x2C
UE, RE, TE, RXNEIE, TCIE, TXEIE, OVER8, FIFOEN = 1, 4, 8, 1 << 5, 1 << 6, 1 << 7, 1 << 15, 1 << 29
ORE, RXNE, TC, TXE, TEACK, REACK, RXFF = 8, 0x20, 0x40, 0x80, 1 << 21, 1 << 22, 1 << 24
CR3_OVRDIS, CR3_EIE = 1 << 12, 1


@dataclass
class Wire:
    """A port on a board of 100 MHz."""

    device: VirtualDevice
    port: SerialPort

    def put(self, offset: int, value: int, size: int = 4) -> None:
        self.port.write_register(offset, size, value)

    def get(self, offset: int, size: int = 4) -> int:
        return self.port.read_register(offset, size)

    def wait(self, seconds: float) -> None:
        self.device.clock.wait_until(self.device.clock.now + round(seconds * 100e6))
        self.device.clock.run_due()


@pytest.fixture
def wire() -> Iterator[object]:
    """wire(port) -> Wire."""
    with VirtualDevice(load_platform("riscv32")) as device:

        def attached(port: SerialPort) -> Wire:
            device.attach(port, BASE, "port")
            return Wire(device, port)

        yield attached


def started(wire, port: Stm32Usart, cr1: int = 0, brr: int = 868) -> Wire:
    """115200 baud from 100 MHz."""
    one: Wire = wire(port)
    one.put(BRR, brr)
    one.put(CR1, UE | RE | TE | cr1)
    return one


def test_usart_sends_when_it_is_set_up(wire) -> None:
    one = wire(Stm32Usart())
    assert one.get(ISR) == TC | TXE  # RM0432 50.8.10: reset value with FIFO disabled
    one.put(TDR, ord("a"))
    one.put(CR1, UE | TE)
    one.put(TDR, ord("b"))  # no baud rate
    one.put(CR1, 0)
    one.put(BRR, 868)
    one.put(CR1, UE | TE)
    one.put(TDR, ord("c"), 2)
    assert one.port.text == "c" and one.get(ISR) == TC | TXE | TEACK
    one.put(ICR, TC)
    assert one.get(ISR) == TXE | TEACK
    one.put(TDR, ord("d"), 1)
    assert one.port.text == "cd" and one.get(ISR) & TC


def test_usart_receives(wire) -> None:
    one = started(wire, Stm32Usart(), RXNEIE)
    assert one.get(ISR) == TC | TXE | TEACK | REACK and not one.port.interrupt.level
    one.port.feed(b"xyz")
    assert one.port.interrupt.level
    received = []
    while one.get(ISR) & RXNE:
        received.append(one.get(RDR))
    assert bytes(received) == b"xyz" and not one.port.interrupt.level
    one.port.feed(b"pq")
    one.put(RQR, 1 << 3)
    assert one.get(RDR) == ord("q")  # the byte in the receiver was dropped
    one.port.feed(b"r")
    one.put(CR1, 0)
    assert one.get(ISR) == TC | TXE


@pytest.mark.parametrize("enable", [TCIE, TXEIE])
def test_usart_interrupts_of_the_transmitter(wire, enable: int) -> None:
    one = started(wire, Stm32Usart())
    assert not one.port.interrupt.level
    one.put(CR1, UE | TE | enable)
    assert one.port.interrupt.level
    one.put(ICR, TC)
    assert one.port.interrupt.level == (enable == TXEIE)


@pytest.mark.parametrize("depth", [1, 8])
def test_usart_loses_what_comes_too_fast(wire, depth: int) -> None:
    one = started(wire, Stm32Usart(paced=True), FIFOEN if depth == 8 else 0)
    frame = 10 * 868 / 100e6
    one.port.feed(bytes(range(65, 65 + depth + 2)))
    one.wait(0.99 * frame)
    assert not one.get(ISR) & RXNE
    one.wait(0.02 * frame)
    assert one.get(ISR) & RXNE
    one.wait((depth - 1) * frame)
    assert not one.get(ISR) & ORE and bool(one.get(ISR) & RXFF) == (depth == 8)
    one.wait(2 * frame)
    assert one.get(ISR) & ORE and not one.port.interrupt.level
    one.put(CR3, CR3_EIE)
    assert one.port.interrupt.level
    one.put(ICR, ORE)
    assert not one.get(ISR) & ORE and not one.port.interrupt.level
    assert [one.get(RDR) for _ in range(depth)] == list(range(65, 65 + depth))
    assert not one.get(ISR) & RXNE


def test_usart_without_overrun_keeps_the_newest(wire) -> None:
    one = started(wire, Stm32Usart(paced=True))
    one.put(CR3, CR3_OVRDIS)
    one.port.feed(b"ab")
    one.wait(0.001)
    assert not one.get(ISR) & ORE and one.get(RDR) == ord("b")


@pytest.mark.parametrize(
    ("port", "brr", "cr1", "presc", "baud"),
    [
        (Stm32Usart(hertz=8_000_000), 833, 0, 0, 9600),  # RM0432 50.5.7, examples 1 and 2
        (Stm32Usart(hertz=8_000_000), 0x681, OVER8, 0, 9600),
        (Stm32Usart(hertz=48_000_000), 417, 0, 0, 115200),
        (Stm32Usart(hertz=48_000_000), 0x1A1 * 2 & 0xFFF0 | (0x342 & 0xF) >> 1, OVER8, 0, 115200),
        (Stm32Usart(hertz=48_000_000), 417, 0, 5, 11520),
        (Stm32Usart(hertz=48_000_000, fifo=False), 417, 0, 5, 115200),
        (Stm32Usart(True, hertz=32_768), 0x369, 0, 0, 9600),  # table 336, LPUART
        (Stm32Usart(True, hertz=120_000_000), 266_667, 0, 0, 115200),
        (Stm32Usart(True, hertz=32_768), 0x2FF, 0, 0, None),
        (Stm32Usart(hertz=48_000_000), 15, 0, 0, None),
    ],
)
def test_usart_baud_rate(wire, port, brr, cr1, presc, baud) -> None:
    one = wire(port)
    one.put(PRESC, presc)
    one.put(BRR, brr)
    one.put(CR1, cr1 | UE)
    one.put(BRR, 1234)  # not while it is on
    assert one.port.baud == (None if baud is None else pytest.approx(baud, rel=0.002))
    assert one.get(BRR) == brr


def test_reserved_bits_are_dropped_and_other_offsets_fault(wire) -> None:
    one = wire(Stm32Usart(fifo=False))
    one.put(CR1, 0xFFFFFFFF)
    assert one.get(CR1) == 0x1FFFFFFF
    one.put(BRR, 0xFFFFFFFF)
    with pytest.raises(DeviceFault, match="no register"):
        one.get(0x30)
    with pytest.raises(DeviceFault, match="read-only"):
        one.put(ISR, 0)


def test_sifive_waits_for_the_transmitter(wire) -> None:
    """FE310-G002 18.4 to 18.8: FIFOs of eight bytes, watermarks."""
    txdata, rxdata, txctrl, rxctrl, ie, ip = range(0, 24, 4)
    one = wire(SifiveUart())
    one.put(txctrl, 3 << 16)
    one.put(ie, 1)
    assert one.get(ip) & 1 and one.port.interrupt.level
    for byte in b"12345678":
        assert not one.get(txdata) >> 31
        one.put(txdata, byte)
        assert bool(one.get(ip) & 1) == one.port.interrupt.level == (byte < ord("3"))
    assert one.get(txdata) >> 31
    one.put(txdata, ord("9"))  # lost
    one.put(txctrl, 1)
    assert one.port.text == "12345678"
    one.put(ie, 2)
    one.put(rxctrl, 1 | 2 << 16)
    one.port.feed(b"ab")
    assert not one.port.interrupt.level
    one.port.feed(b"cdefghijkl")  # more than the FIFO holds: the sender waits
    assert one.port.interrupt.level
    data = [one.get(rxdata) for _ in range(12)]
    assert bytes(data) == b"abcdefghijkl" and one.get(rxdata) >> 31
    assert not one.port.interrupt.level


def test_cmsdk_holds_a_byte(wire) -> None:
    """DDI0479 4.3.3: one byte each way, overruns, interrupts."""
    data, state, ctrl, intstatus, bauddiv = range(0, 20, 4)
    one = wire(CmsdkUart())
    one.put(data, 1)
    one.put(data, 2)
    assert one.get(state) == 0b101  # TX full, TX overrun
    one.put(state, 4)
    one.put(ctrl, 0b1111)
    assert one.port.sent == b"" and one.get(state) == 1
    one.put(bauddiv, 217)
    assert one.port.sent == b"\1" and one.get(state) == 0 and one.get(intstatus) == 1
    one.put(intstatus, 1)
    assert not one.port.interrupt.level
    one.port.feed(b"ab")
    assert one.port.interrupt.level and one.get(state) == 2 and one.get(intstatus) == 2
    assert [one.get(data), one.get(data)] == [97, 98] and one.get(state) == 0


def test_ns16550_interrupts(wire) -> None:
    """PC16550D table 4: data before the empty transmitter, the trigger level of the FIFO."""
    one = wire(Ns16550())
    one.put(1, 3, 1)  # IER: received data, transmitter empty
    assert one.get(2, 1) == 2 and one.get(2, 1) == 1  # reading it ends the latter
    one.put(2, 0x41, 1)  # FIFO, four bytes
    assert one.get(2, 1) == 0xC2
    one.port.feed(b"a")
    assert one.get(2, 1) == 0xCC  # time-out
    one.port.feed(b"bcd")
    assert one.get(2, 1) == 0xC4 and one.get(5, 1) == 0x61
    assert [one.get(0, 1) for _ in range(4)] == list(b"abcd")
    assert one.get(2, 1) == 0xC1 and one.get(5, 1) == 0x60 and not one.port.interrupt.level
    with pytest.raises(DeviceFault, match="registers are bytes"):
        one.get(0)


@pytest.mark.parametrize("make", [Uart, Stm32Usart, CmsdkUart, SifiveUart, Ns16550, NrfUarte])
def test_reset_and_snapshots(wire, make: type[SerialPort]) -> None:
    one = wire(make())
    one.port.feed(b"abc")
    before = one.device.board.save_state()
    one.port.transmit(65)
    one.port.feed(b"d")
    one.device.board.load_state(before)
    assert one.port.text == ""
    one.device.reset()
    assert not one.port.received and not one.port.interrupt.level


def test_every_platform_has_one_serial_port_or_is_silent() -> None:
    """What a caller finds who looks for the console."""
    for name in set(platform_names()) - {"host"}:
        platform = load_platform(name)
        models = [load_peripheral(p.model, p.parameters) for p in platform.peripherals]
        ports = sum(isinstance(model, SerialPort) for model in models)
        assert ports == (platform.board != "silent"), name

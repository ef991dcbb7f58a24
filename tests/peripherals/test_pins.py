"""The port of pins: outputs are seen at their cycle, inputs interrupt where they are enabled."""

from __future__ import annotations

from covp.device.virtual import VirtualDevice
from covp.peripherals.pins import Pins
from covp.platform_file import load_platform

OUT, IN, EDGES, ENABLE = 0, 4, 8, 12


def port() -> tuple[Pins, list[tuple[int, bool]]]:
    seen: list[tuple[int, bool]] = []
    pins = Pins(lambda pin, level: seen.append((pin, level)))
    VirtualDevice(load_platform("riscv32")).attach(pins, 0x60000000, "pins", 3)
    return pins, seen


def test_each_output_that_changes_is_seen_once() -> None:
    pins, seen = port()
    for value in (0b101, 0b101, 0b110, 1 << 31):
        pins.write_register(OUT, 4, value)
    changes = [(0, True), (2, True), (0, False), (1, True), (1, False), (2, False), (31, True)]
    assert seen == changes
    assert pins.read_register(OUT, 4) == 1 << 31
    pins.reset()
    pins.write_register(OUT, 4, 1)
    assert seen[7:] == [(0, True)]


def test_an_input_interrupts_by_its_edges_while_it_is_enabled() -> None:
    pins, _ = port()
    pins.drive(4, True)
    assert pins.read_register(IN, 4) == 16 == pins.read_register(EDGES, 4)
    assert not pins.interrupt.level
    pins.write_register(ENABLE, 4, 16)
    assert pins.interrupt.level
    pins.write_register(EDGES, 4, 16)
    assert not pins.interrupt.level
    pins.drive(4, True)
    assert not pins.interrupt.level, "no edge"
    pins.drive(5, True)
    assert not pins.interrupt.level, "not enabled"
    pins.drive(4, False)
    assert pins.interrupt.level and pins.read_register(IN, 4) == 32

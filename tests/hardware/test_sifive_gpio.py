"""Pins of the FE310: FE310-G002 Manual, chapter 17."""

from __future__ import annotations

from covp.peripherals.sifive_gpio import SifiveGpio

INPUT_VAL, INPUT_EN, OUTPUT_EN, OUTPUT_VAL, IOF_EN, OUT_XOR = 0, 4, 8, 0xC, 0x38, 0x40


def test_outputs_and_inputs() -> None:
    seen: list[tuple[int, bool]] = []
    gpio = SifiveGpio(on_output=lambda *change: seen.append(change))
    gpio.reset()
    gpio.write_register(OUTPUT_VAL, 4, 0b0110)
    assert seen == []
    gpio.write_register(OUTPUT_EN, 4, 0b0011)
    gpio.write_register(OUT_XOR, 4, 0b0001)
    assert seen == [(1, True), (0, True)] and gpio.outputs == 0b0011
    gpio.drive(3, True)
    assert gpio.read_register(INPUT_VAL, 4) == 0
    gpio.write_register(INPUT_EN, 4, 0xF)
    assert gpio.read_register(INPUT_VAL, 4) == 0b1011
    gpio.write_register(IOF_EN, 4, 0b0001)  # the pin is another unit's
    gpio.write_register(OUTPUT_VAL, 4, 0)
    assert gpio.outputs == 0 and seen[2:] == [(0, False), (1, False)]

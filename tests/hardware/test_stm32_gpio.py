"""Pins of STM32: RM0432 8.4."""

from __future__ import annotations

import pytest

from covp.peripherals.stm32_gpio import Stm32Gpio

MODER, IDR, ODR, BSRR, AFRL, AFRH, BRR = 0, 0x10, 0x14, 0x18, 0x20, 0x24, 0x28


@pytest.mark.parametrize(
    ("analog", "modes"),
    [
        (True, {"A": 0xABFFFFFF, "B": 0xFFFFFEBF, "C": 0xFFFFFFFF, "G": 0xFFFFFFFF}),
        (False, {"A": 0xA8000000, "B": 0x00000280, "C": 0, "G": 0}),  # RM0385 6.4.1
    ],
)
def test_reset_values(analog: bool, modes: dict[str, int]) -> None:
    gpio = Stm32Gpio(analog)
    gpio.reset()
    for letter, value in modes.items():
        assert gpio.read_register(0x400 * (ord(letter) - ord("A")) + MODER, 4) == value


def test_outputs_and_inputs() -> None:
    seen: list[tuple[str, int, bool]] = []
    gpio = Stm32Gpio(on_output=lambda *change: seen.append(change))
    gpio.reset()
    port = 0x800  # C
    gpio.write_register(port + MODER, 4, 0b01_01_00_01)  # 0, 2 and 3 are outputs
    gpio.write_register(port + ODR, 4, 0b1011)
    assert seen == [("C", 0, True), ("C", 3, True)]
    gpio.drive("C", 1, True)
    assert gpio.read_register(port + IDR, 4) == 0b1011
    # both halves of BSRR: setting wins
    gpio.write_register(port + BSRR, 4, 0b0101 | 0b1001 << 16)
    assert gpio.read_register(port + ODR, 4) == 0b0111 and gpio.outputs("C") == 0b0101
    assert seen[2:] == [("C", 2, True), ("C", 3, False)]
    gpio.write_register(port + BRR, 2, 0b0001)
    assert gpio.read_register(port + ODR, 4) == 0b0110
    gpio.write_register(port + BSRR + 2, 2, 0b0010)  # the upper half alone
    assert gpio.read_register(port + ODR, 4) == 0b0100
    assert gpio.read_register(port + BSRR, 4) == 0


def test_alternate_functions() -> None:
    gpio = Stm32Gpio(True)
    gpio.reset()
    port = 0x1800  # G
    gpio.write_register(port + AFRL, 4, 8 << 28)
    gpio.write_register(port + AFRH, 4, 0x73)
    assert gpio.alternate("G", 7) is None
    gpio.write_register(port + MODER, 4, 0xAAAAAAAA)
    assert [gpio.alternate("G", pin) for pin in (7, 8, 9, 10)] == [8, 3, 7, 0]

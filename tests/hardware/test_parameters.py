"""Parameters of peripherals in a platform file: whatever they are, at most one line is said."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from covp.chip.platform_file import load_platform
from covp.device.virtual import VirtualDevice
from covp.errors import CovpError, PlatformError
from covp.hardware.peripheral_models import load_peripheral, peripheral_names

VALUES = ("text", "", -1, 0, 1.5, True, None, 10**20, float("nan"), [1], {"a": 1})
NEEDED: dict[str, dict[str, Any]] = {
    "stm32_syscfg": {"idcode": 0x470},
    "stm32_system_memory": {"uid": 0x590, "flash_size": 0x5E0, "package": 0x500},
}


def parameters() -> Iterator[tuple[str, str]]:
    for model in peripheral_names():
        try:
            kind = type(load_peripheral(model, NEEDED.get(model, {})))
        except CovpError:  # several models in one file
            continue
        for name in list(inspect.signature(kind).parameters):
            yield model, name


@pytest.mark.parametrize("model, name", list(parameters()))
def test_any_value_is_taken_or_refused_in_one_line(model: str, name: str) -> None:
    platform = load_platform("stm32l4r5")
    for value in VALUES:
        with VirtualDevice(platform) as device:
            try:
                given = {**NEEDED.get(model, {}), name: value}
                device.attach(load_peripheral(model, given), 0x60000000, "tried")
                device.reset()
            except CovpError as error:
                assert "\n" not in str(error)


@pytest.mark.parametrize(
    "value, reason",
    [
        ("text", "parameter flash_size: Expected a whole number, got a text"),
        (1.5, "parameter flash_size: Expected a whole number, got a number"),
        (True, "parameter flash_size: Expected a whole number, got true or false"),
    ],
)
def test_a_wrong_type_is_named(value: object, reason: str) -> None:
    with pytest.raises(PlatformError, match=f"stm32_system_memory: {reason}"):
        load_peripheral(
            "stm32_system_memory", {**NEEDED["stm32_system_memory"], "flash_size": value}
        )

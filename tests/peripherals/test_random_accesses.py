"""Random accesses to the models: nothing but faults is raised, a snapshot goes back exactly."""

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
from covp.hardware.peripheral import Peripheral
from covp.hardware.peripheral_models import load_peripheral
from covp.peripherals._sensor_bus import SensorBus

from .bench import BASE, LINE

FRAMES = np.random.default_rng(5).integers(-(2**15), 2**15, (50, 2)).astype(np.int16)
MODELS: dict[str, dict[str, Any]] = {
    "timer": {},
    "gpio": {"source": FRAMES > 0, "rate": 100_000.0},
    "spi_sensor": {"source": FRAMES, "rate": 100_000.0, "depth": 4},
    "i2c_sensor": {"source": FRAMES, "rate": 100_000.0, "depth": 4, "address": 1},
}
STEP = st.tuples(
    st.integers(0, 9),  # the register
    st.booleans(),
    st.one_of(st.integers(0, 16), st.integers(0, 2**32 - 1)),
    st.integers(0, 3000),  # cycles until the next access
)


@pytest.fixture(scope="module", params=sorted(MODELS))
def device(request: pytest.FixtureRequest) -> Iterator[VirtualDevice]:
    with VirtualDevice(load_platform("riscv32")) as opened:
        model = load_peripheral(request.param, MODELS[request.param])
        opened.attach(model, BASE, "model", LINE)
        yield opened


Step = tuple[int, bool, int, int]


def start(device: VirtualDevice) -> None:
    """A reset; a sensor measures, without the transfers that random accesses would not make."""
    device.reset()
    device.clock.run_due()
    _, model = device.peripherals["model"]
    if isinstance(model, SensorBus):
        model.write_register(0, 4, 7)
        model.point_to(1)
        model.write_next(1)


def play(device: VirtualDevice, steps: list[Step]) -> list[object]:
    """What the accesses gave, and the line and registers after each."""
    _, model = device.peripherals["model"]
    registers = list(model.registers)
    seen: list[object] = []
    for number, is_store, value, cycles in steps:
        offset = registers[number % len(registers)].offset
        answer: object
        try:
            answer = access(model, offset, value if is_store else None)
        except DeviceFault as fault:
            assert fault.kind == "register access"
            answer = str(fault)
        device.clock.wait_until(device.clock.now + cycles)
        seen += [answer, model.interrupt.level, tuple(model.values.values())]
        assert all(0 <= word < 2**32 for word in model.values.values())
    return seen


def access(model: Peripheral, offset: int, value: int | None) -> int | None:
    if value is None:
        return model.read_register(offset, 4)
    model.write_register(offset, 4, value)
    return None


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(before=st.lists(STEP, max_size=15), after=st.lists(STEP, max_size=25))
def test_a_snapshot_and_a_reset_go_back(
    device: VirtualDevice, before: list[Step], after: list[Step]
) -> None:
    start(device)
    first = play(device, before)
    state = device.board.save_state()
    seen = play(device, after)
    device.board.load_state(state)
    assert play(device, after) == seen
    start(device)
    assert play(device, before) == first

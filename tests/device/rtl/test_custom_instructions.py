"""Custom instructions on a real pipeline: VexRiscv's CFU port, answered by the units' models."""

from __future__ import annotations

import numpy as np
import pytest

import covp
from covp.chip.platform_file import load_platform
from covp.device.rtl.device import RtlDevice
from covp.device.stop import Stop
from covp.errors import DeviceError, DeviceFault
from covp.hardware.custom_instruction import CustomInstruction
from tests.accelerator.test_offload import network
from tests.device.rtl.conftest import need_rtl

UNIT = 0xF0000000
REPEATED = 20


def unit(cycles: int) -> list[CustomInstruction]:
    return [
        CustomInstruction("sum", 1, 2, lambda a, b: a + b, "a + b", cycles=cycles),
        CustomInstruction("count", 0, 0, lambda a, b: 0, "return ++state->word[0];", cycles=cycles),
    ]


def run(device: RtlDevice, words: list[int]) -> Stop:
    """li a0, 5; li a1, 7; the words; sw a2, 0(ram); j ."""
    start = device.platform.flash.start
    before = [0x00500513, 0x00700593]
    store = [0x40000537, 0x00C52023, 0x0000006F]
    code = [*before, *words, *store]
    device.write(start, b"".join(word.to_bytes(4, "little") for word in code))
    return device.execute(start, start + 4 * (len(code) - 1), timeout=20)


@pytest.mark.slow
def test_an_instruction_of_n_cycles_takes_n():
    need_rtl("vexriscv-cfu")
    cycles = {}
    for length in (1, 2, 10, 1000):
        with RtlDevice(load_platform("vexriscv-cfu")) as device:
            instructions = unit(length)
            device.add_instructions("unit", instructions)
            stop = run(device, [instructions[0].encode(12, 10, 11)] * REPEATED)
            assert int.from_bytes(device.read(device.platform.ram.start, 4), "little") == 12
            assert device.instruction_uses("unit") == {"sum": REPEATED, "count": 0}
            cycles[length] = stop.cycles or 0
    # short ones hide less of the refills of the instruction cache: four lines of code
    for length in cycles:
        hidden = cycles[length] - (cycles[1000] - REPEATED * (1000 - length))
        assert 0 <= hidden <= 4 * 10


@pytest.mark.slow
def test_state_and_what_is_not_there():
    need_rtl("vexriscv-cfu")
    with RtlDevice(load_platform("vexriscv-cfu")) as device:
        _, count = unit(1)
        device.add_instructions("unit", [count])
        saved = device.save_state()
        run(device, [count.encode(12, 10, 11)] * 3)
        assert int.from_bytes(device.read(device.platform.ram.start, 4), "little") == 3
        device.load_state(saved)
        run(device, [count.encode(12, 10, 11)] * 2)
        assert int.from_bytes(device.read(device.platform.ram.start, 4), "little") == 2
        device.remove_instructions("unit")
        with pytest.raises(DeviceFault, match="illegal instruction"):
            run(device, [count.encode(12, 10, 11)])


@pytest.mark.slow
def test_a_model_on_the_cfu():
    need_rtl("vexriscv-cfu")
    program = covp.compile(network(), "vexriscv-cfu", ["cfu"], allow_slower=True)
    assert any(layer.target == "cfu" for layer in program.layers)
    x = np.random.default_rng(0).integers(-128, 128, (1, 8, 6, 3)).astype(np.int8)
    counts = {}
    for device in ("rtl", "virtual"):
        with covp.Session("vexriscv-cfu", device=device) as session:
            y = session.load(program).run(x)
            np.testing.assert_array_equal(y, program.reference([x])[0])
            profile = session.profile()
            counts[device] = profile.instructions, profile.jobs
    assert counts["rtl"] == counts["virtual"]


def test_a_core_without_the_port(cv32e40p):
    with (
        RtlDevice(load_platform(cv32e40p)) as device,
        pytest.raises(DeviceError, match="no port for custom instructions"),
    ):
        device.add_instructions("unit", unit(1))

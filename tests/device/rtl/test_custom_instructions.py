"""Custom instructions on a real pipeline: VexRiscv's CFU port, answered by the units' models."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import covp
from covp.chip.platform_file import load_platform
from covp.device.rtl.device import RtlDevice
from covp.device.stop import Stop
from covp.device.virtual import VirtualDevice
from covp.errors import DeviceError, DeviceFault
from covp.hardware.custom_instruction import CustomInstruction
from tests.accelerator.test_offload import network
from tests.device.rtl.conftest import need_rtl

UNIT = 0xF0000000
REPEATED = 20


def unit_of(cycles: int) -> list[CustomInstruction]:
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
            instructions = unit_of(length)
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
        _, count = unit_of(1)
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


# register-register, then immediates; x5 counts, x10 is in RAM, x11 to x17 are 11 to 17
CUSTOM, USE, NOP = 0x04D5960B, 0x00D60733, 0x00000013
LOAD, STORE, MULTIPLY, SHIFT = 0x00052603, 0x00C52023, 0x02B58633, 0x00359613
OTHER, DEPENDENT, READS_12 = 0x04D5970B, 0x04D6170B, 0x00C58733
BODIES = {
    "alone": [CUSTOM],
    "two": [CUSTOM, OTHER],
    "a chain": [CUSTOM, DEPENDENT],
    "used at once": [CUSTOM, USE],
    "used later": [CUSTOM, NOP, USE],
    "after a load": [LOAD, OTHER, NOP],
    "of a load": [LOAD, DEPENDENT, NOP],
    "of an older load": [LOAD, NOP, DEPENDENT, NOP],
    "after a store": [STORE, OTHER, NOP],
    "soon after a store": [STORE, NOP, OTHER],
    "of a product": [MULTIPLY, DEPENDENT, NOP],
    "after a product": [MULTIPLY, OTHER, NOP],
    "of a shift": [SHIFT, DEPENDENT],
    "before a product": [CUSTOM, MULTIPLY, NOP],
    "before a load": [CUSTOM, LOAD, NOP],
    "stored": [CUSTOM, STORE, NOP],
    "after a branch": [0x00001463, OTHER, NOP],
    "last": [NOP, NOP, CUSTOM],
    "summed": [LOAD, CUSTOM, READS_12, NOP],
}


@pytest.mark.slow
@pytest.mark.parametrize("cycles", [1, 2, 10])
def test_the_timing_model_takes_the_cycles_of_the_rtl(cycles: int):
    """In loops, by their number of turns: caches are warm."""
    need_rtl("vexriscv-cfu")
    platform = load_platform("vexriscv-cfu")
    found: dict[str, list[float]] = {}
    for kind in (RtlDevice, VirtualDevice):
        with kind(platform) as device:
            hardware = device if isinstance(device, RtlDevice) else device.board
            hardware.add_instructions("unit", unit_of(cycles))
            for name, body in BODIES.items():
                found.setdefault(name, []).append(per_turn(device, body))
    assert {name: rtl for name, (rtl, _) in found.items()} == {
        name: virtual for name, (_, virtual) in found.items()
    }


def per_turn(device: RtlDevice | VirtualDevice, body: list[int]) -> float:
    """Return the cycles of a turn of a loop: the body, addi x5, x5, -1, and bne."""
    start, took = device.platform.flash.start, []
    back = -4 * (len(body) + 1)
    branch = 0x00029063 | (back >> 12 & 1) << 31 | (back >> 5 & 63) << 25 | (back >> 1 & 15) << 8
    branch |= (back >> 11 & 1) << 7
    registers = [0x00000013 | number << 20 | number << 7 for number in range(11, 18)]
    for turns in (50, 100, 200):
        first = [0x40000537, 0x00000293 | turns << 20, *registers]
        code = [*first, *body, 0xFFF28293, branch, NOP, 0x0000006F]
        device.write(start, b"".join(word.to_bytes(4, "little") for word in code))
        took.append(device.execute(start, start + 4 * (len(code) - 1), timeout=20).cycles or 0)
    return (took[2] - took[1]) / 100


@pytest.mark.slow
def test_a_unit_in_verilog_beside_the_core_in_verilog():
    """The same answers in the same cycles as functions give; it has the port alone."""
    need_rtl("vexriscv-cfu")
    counts = {}
    x = np.random.default_rng(0).integers(-128, 128, (1, 8, 6, 3)).astype(np.int8)
    for unit in ("cfu", "cfu:rtl=yes"):
        program = covp.compile(network(), "vexriscv-cfu", [unit], allow_slower=True)
        with covp.Session("vexriscv-cfu", device="rtl") as session:
            y = session.load(program).run(x)
            np.testing.assert_array_equal(y, program.reference([x])[0])
            profile = session.profile()
            counts[unit] = profile.instructions, profile.cycles, profile.jobs
            if unit == "cfu:rtl=yes":
                assert isinstance(session.device, RtlDevice)
                with pytest.raises(DeviceError, match="one port for custom instructions"):
                    session.device.add_instructions("another", [replace(unit_of(1)[0], funct7=99)])
    assert counts["cfu"] == counts["cfu:rtl=yes"]


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
        device.add_instructions("unit", unit_of(1))

"""All that can be seen of a random program that runs in one of several ways to its fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from unicorn.arm_const import UC_ARM_REG_S0

import covp.device.machine.counter as counter
from covp.chip.platform_file import load_platform
from covp.device.virtual import VirtualDevice
from covp.errors import DeviceFault
from covp.peripherals.uart import Uart
from tests.device.random_accesses import ENTRY, Program, windows

_STEPS = 2000


@dataclass(frozen=True)
class Outcome:
    """What a run did: its ``fault`` (kind, pc, address, size), or (), and all that changed."""

    fault: tuple[object, ...]
    registers: dict[str, int]
    memory: tuple[bytes, ...]
    sent: bytes
    instructions: int
    cycles: int

    @property
    def untimed(self) -> tuple[object, ...]:
        """All but the cycles, which depend on where a run stops on its way."""
        return self.fault, self.registers, self.memory, self.sent, self.instructions


@contextmanager
def both(name: str) -> Iterator[tuple[VirtualDevice, VirtualDevice]]:
    """A platform with inlined calls, and without."""
    with pytest.MonkeyPatch.context() as patch:
        inlined = VirtualDevice(load_platform(name))
        patch.setattr(counter, "INLINING", False)
        plain = VirtualDevice(load_platform(name))
    with inlined, plain:
        yield inlined, plain


def run(device: VirtualDevice, program: Program) -> Outcome:
    """The whole program at once."""
    start, end = _load(device, program)
    return _outcome(device, lambda: device.execute(start, end, timeout=5))


def run_to(device: VirtualDevice, program: Program, stop: int) -> Outcome:
    """Until ``stop``, again and again."""
    start, end = _load(device, program)

    def work() -> None:
        pc = start
        while pc != end:
            pc = device.execute(pc, stop).pc
            device.core.write_register("pc", pc | device.core.thumb)
            if pc != end:
                device.step()
                pc = device.core.read_register("pc") & ~1

    return _outcome(device, work)


def run_to_breakpoint(device: VirtualDevice, program: Program, at: int) -> Outcome:
    """With breakpoints ``at`` an address and after the program."""
    start, end = _load(device, program)
    device.core.write_register("pc", start | device.core.thumb)
    device.set_breakpoints([at, end])

    def work() -> None:
        while device.core.read_register("pc") & ~1 != end:
            device.run()

    try:
        return _outcome(device, work)
    finally:
        device.set_breakpoints([])


def step(device: VirtualDevice, program: Program) -> Outcome:
    """Instruction by instruction."""
    start, end = _load(device, program)
    device.core.write_register("pc", start | device.core.thumb)

    def work() -> None:
        for _ in range(_STEPS):
            if device.core.read_register("pc") & ~1 == end:
                return
            device.step()

    return _outcome(device, work)


def size_at(device: VirtualDevice, pc: int) -> int:
    """Bytes of the instruction at an address."""
    bits = device.core.counter.opcode(pc)
    is_short = bits <= 0xFFFF if device.core.thumb else bits & 3 != 3
    return 2 if is_short else 4


def _load(device: VirtualDevice, program: Program) -> tuple[int, int]:
    """Put a program into the device; where it starts and ends."""
    device.reset()
    start = device.platform.flash.start + ENTRY
    nops = b"\x00\xbf" * 4 if device.core.thumb else b"\x01\x00" * 4
    device.write(start, program.code + nops)
    for region in device.platform.memory:
        if region.kind == "ram":  # an access by two registers may lead anywhere in it
            device.write(region.start, bytes(region.end - region.start))
    for address, size in windows(device.platform):
        device.write(address, bytes((address + n) * 7 & 0xFF for n in range(size)))
    for name, value in program.registers.items():
        device.core.write_register(name, value)
    for number in _floats(device):
        device.core.engine.reg_write(number, number)
    return start, start + len(program.code)


def _outcome(device: VirtualDevice, work: Callable[[], object]) -> Outcome:
    before = device.core.totals
    fault: tuple[object, ...] = ()
    try:
        work()
    except DeviceFault as error:
        fault = (error.kind, error.pc, error.address, error.size)
    after = device.core.totals
    _, uart = device.peripherals.get("uart0", (0, None))
    return Outcome(
        fault,
        _registers(device),
        tuple(device.read(*window) for window in windows(device.platform)),
        bytes(uart.sent) if isinstance(uart, Uart) else b"",
        after.instructions - before.instructions,
        after.cycles - before.cycles,
    )


def _registers(device: VirtualDevice) -> dict[str, int]:
    """All but the pc, which a debugger alone sets."""
    found = {name: value for name, value in device.core.registers().items() if name != "pc"}
    return found | {
        f"s{n}": device.core.engine.reg_read(id) for n, id in enumerate(_floats(device))
    }


def _floats(device: VirtualDevice) -> Sequence[int]:
    """The emulator's numbers of s0 to s15, where the core has them."""
    has_fpu = device.core.thumb and device.core.core.has("fpu")
    return range(UC_ARM_REG_S0, UC_ARM_REG_S0 + 16) if has_fpu else ()

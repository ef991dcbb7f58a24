"""`check_core`: a core's RTL beside the virtual device, from its first instruction on.

What a model's run shows of a wrong wrapper, or of RTL that Verilator simulates wrongly, is a wrong
output, or a fault somewhere. Here the first instruction that does something else is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import msgspec

from covp.base.document import Count, Instructions
from covp.chip.platform_file import Platform
from covp.device.abilities import CountsByPhase
from covp.device.rtl.device import RtlDevice
from covp.device.virtual import VirtualDevice
from covp.errors import DeviceFault, UsageError
from covp.evaluation.calibration.measure import assemble
from covp.hardware.peripheral import Peripheral
from covp.hardware.registers import Register, RegisterMap
from covp.testing.core_programs import (
    ALARM,
    DATA_BYTES,
    DUMP_BYTES,
    DUMPED,
    STACK_BYTES,
    UNKNOWN,
    CoreProgram,
    assembly,
    interrupted_programs,
    programs_of,
)

_LINE = 5
_TIMEOUT = 10.0
"""Seconds that a program may take: none takes 5,000 instructions."""
_WAITS = ((1, 0), (0, 1), (3, 2))
"""Wait states of flash and RAM that random programs run with, too."""
_LINKED = 100
"""Programs in one image at most: many random ones take more flash than there is."""
_WITH_WAITS = 25
"""Random programs that do."""
_NEVER_STARTS = "; in the wrapper, look at boot_i, rst_ni, the ports of the fetch, retire_o"


class CoreCheck(msgspec.Struct, frozen=True):
    """Programs of one kind on a core's RTL and on the virtual device.

    Attributes:
        name: what they check
        programs: that ran
        instructions: that they executed on the virtual device
        difference: the first one, with the instruction that makes it; null: there is none
        notes: what the core does in its own way, which no program should depend on
        skipped: why nothing ran; empty: it did
    """

    name: str
    programs: Count = 0
    instructions: Instructions = 0
    difference: str | None = None
    notes: tuple[str, ...] = ()
    skipped: str = ""


class CoreChecked(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="covp.core-check/1"
):
    """The output of ``covp core check --json``.

    Attributes:
        core: its name
        equal: there is no difference
        checks: one row per kind of programs, up to the first difference
    """

    core: str
    equal: bool
    checks: list[CoreCheck]


class Alarm(Peripheral):
    """A timer: a store to AFTER lets it interrupt so many cycles later, one to OFF ends that."""

    registers = RegisterMap(
        Register("AFTER", 0x00, on_write="start"), Register("OFF", 0x04, on_write="stop")
    )

    def start(self, value: int) -> None:
        """Set the alarm.

        Args:
            value: cycles until the interrupt.
        """
        self.clock.at(self.clock.now + value, lambda: self.interrupt.set(True))

    def stop(self, value: int) -> None:
        """End the interrupt; the value does not matter."""
        self.interrupt.set(False)


@dataclass(frozen=True)
class _Image:
    """Programs, linked.

    Attributes:
        base: address of the code.
        code: bytes.
        labels: to addresses.
    """

    base: int
    code: bytes
    labels: dict[str, int]

    def element(self, number: int, place: int) -> tuple[int, str]:
        """Return address and code of an element of a program."""
        first = self.labels[f"at_{number}_{place}"]
        after = self.labels.get(f"at_{number}_{place + 1}", self.labels[f"dump_{number}"])
        code = self.code[first - self.base : after - self.base]
        halves = (code[n : n + 2][::-1].hex() for n in range(0, len(code), 2))
        return first, " ".join(halves)


@dataclass(frozen=True)
class _Outcome:
    """How a program ended.

    Attributes:
        fault: kind, pc and address; None: it came to its end.
        data: what it left in memory, its registers after that.
        instructions: that it executed, by phase; empty after a fault.
    """

    fault: tuple[str, int | None, int | None] | None
    data: bytes
    instructions: tuple[int, ...]


def check_core(
    platform: Platform,
    instructions: int = 10_000,
    seed: int = 0,
    report: Callable[[str], None] = lambda text: None,
) -> Iterator[CoreCheck]:
    """Run programs on a core's RTL and on the virtual device; yield a row for each kind of them.

    Registers, memory, counts of instructions by phase, and kind and place of faults have to be
    equal. The rows come as they are ready; after the first difference nothing else runs.

    Args:
        platform: its core has RTL.
        instructions: random ones, at least.
        seed: of these.
        report: is called with the name of what runs.

    Raises:
        UsageError: the core is no RISC-V.
        PlatformError: there is no RTL of it.
        ToolchainError: it cannot be built.
    """
    if platform.core.architecture != "riscv":
        raise UsageError(f"{platform.core.name}: only RISC-V cores have RTL that can be checked")
    with _Bench(platform) as bench:
        kept: list[CoreProgram] = []
        for name, programs in programs_of(platform.core, instructions, seed):
            report(name)
            kept = programs
            row = bench.check(name, programs)
            if row.difference and "timeout" in row.difference and programs[0].elements == ("nop",):
                row = msgspec.structs.replace(row, difference=row.difference + _NEVER_STARTS)
            yield row
            if row.difference:
                return
        for name, make in (("interrupts", bench.check_interrupts), ("phases", bench.check_phases)):
            report(name)
            row = make()
            yield row
            if row.difference:
                return
    for flash, ram in _WAITS:
        name = f"wait states {flash}, {ram}"
        report(name)
        with _Bench(platform.with_waits(flash, ram)) as bench:
            row = bench.check(name, kept[:_WITH_WAITS])
        yield row
        if row.difference:
            return


class _Bench:
    """A core's RTL and the virtual device of a platform, each with an `Alarm`."""

    def __init__(self, platform: Platform) -> None:
        self.platform = msgspec.structs.replace(platform, peripherals=())
        self.data = platform.ram.start + platform.stack_bytes
        self._open = ExitStack()

    def __enter__(self) -> _Bench:
        self.rtl = self._open.enter_context(RtlDevice(self.platform, _TIMEOUT))
        self.virtual = self._open.enter_context(VirtualDevice(self.platform))
        self.has_interrupts = self.rtl.rtl.interrupts
        for device in (self.rtl, self.virtual):
            device.attach(Alarm(), ALARM, "alarm", _LINE if self.has_interrupts else None)
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def check(self, name: str, programs: Sequence[CoreProgram]) -> CoreCheck:
        """Run programs on both; instructions have to be equal, too."""
        return self._check(name, programs, counts=True)

    def check_interrupts(self) -> CoreCheck:
        """Run programs that are interrupted; how many instructions they take depends on time."""
        name = "interrupts"
        if not self.has_interrupts:
            return CoreCheck(name, skipped="rtl.yaml says that the core has none")
        return self._check(name, interrupted_programs(), counts=False)

    def check_phases(self) -> CoreCheck:
        """Compare how instructions are divided at markers: at a function, and behind its calls."""
        calls = 4
        image = self._link([CoreProgram(("jal ra, leaf@", "nop\n nop") * calls)])
        markers = [(image.labels[f"at_0_{2 * n + 1}"], 1 + n) for n in range(calls)]
        markers.append((image.labels["leaf_0"], 1 + calls))
        for device in (self.rtl, self.virtual):
            _phases(device).set_phases(markers)
        one, other = (
            self._run(device, image, 0, by_phase=True) for device in (self.virtual, self.rtl)
        )
        for device in (self.rtl, self.virtual):
            _phases(device).set_phases([])
        found = CoreCheck("phases", 1, sum(one.instructions))
        return msgspec.structs.replace(found, difference=_difference(one, other, counts=True))

    def _check(self, name: str, programs: Sequence[CoreProgram], counts: bool) -> CoreCheck:
        executed, notes = 0, []
        for number, program in enumerate(programs):
            if number % _LINKED == 0:
                image = self._link(programs[number : number + _LINKED])
            one, other = self._both(image, number % _LINKED)
            executed += sum(one.instructions)
            difference = _difference(one, other, counts)
            is_unknown = program.elements[-1] in UNKNOWN and _may_be_unknown(other)
            if difference and (is_unknown or _is_late(one, other)):
                notes.append(f"{_line(program.elements[-1])}: {difference}")
            elif difference:
                difference = self._first(program, counts) or difference
                return CoreCheck(name, number + 1, executed, difference, tuple(notes))
        return CoreCheck(name, len(programs), executed, notes=tuple(notes))

    def _first(self, program: CoreProgram, counts: bool) -> str | None:
        """Return the difference after the first element that makes one, with its address."""
        cut = [program.cut(count) for count in range(1, len(program.elements) + 1)]
        image = self._link(cut)
        for number, short in enumerate(cut):
            difference = _difference(*self._both(image, number), counts)
            if difference:
                address, code = image.element(number, number)
                text = _line(short.elements[-1])
                return f"after {text} at 0x{address:08x} ({code}): {difference}"
        return None

    def _both(self, image: _Image, number: int) -> tuple[_Outcome, _Outcome]:
        return self._run(self.virtual, image, number), self._run(self.rtl, image, number)

    def _link(self, programs: Sequence[CoreProgram]) -> _Image:
        parts = (assembly(one, self.data, number) for number, one in enumerate(programs))
        image = _Image(self.platform.flash.start, *assemble(self.platform, "\n".join(parts)))
        for device in (self.rtl, self.virtual):
            device.write(image.base, image.code)
        return image

    def _run(
        self, device: RtlDevice | VirtualDevice, image: _Image, number: int, by_phase: bool = False
    ) -> _Outcome:
        size = DATA_BYTES + DUMP_BYTES + STACK_BYTES
        device.write(self.data, bytes((0x11 * n + 0x80) % 256 for n in range(size)))
        device.reset()
        fault: tuple[str, int | None, int | None] | None = None
        instructions: tuple[int, ...] = ()
        try:
            stop = device.execute(
                image.labels[f"start_{number}"], image.labels[f"end_{number}"], _TIMEOUT
            )
            phases = tuple(one.instructions for one in stop.phases) if by_phase else ()
            instructions = phases or (stop.instructions or 0,)
        except DeviceFault as error:
            # of a trap the RTL says cause and pc alone; what it reads may be a whole line
            address = error.address if "write" in error.kind else None
            fault = error.kind, error.pc, address
        return _Outcome(fault, device.read(self.data, size), instructions)


def _phases(device: RtlDevice | VirtualDevice) -> CountsByPhase:
    phases = device.abilities.phases
    assert phases is not None  # both can
    return phases


def _line(element: str) -> str:
    """Return an element as one line."""
    return "; ".join(line.strip() for line in element.splitlines())


def _may_be_unknown(rtl: _Outcome) -> bool:
    """Return whether a core may end so with an instruction that it does not know or reject."""
    return rtl.fault is None or rtl.fault[0] in ("illegal instruction", "breakpoint")


def _is_late(virtual: _Outcome, rtl: _Outcome) -> bool:
    """Return whether the faults of two stores differ in the pc alone: cores buffer stores."""
    if virtual.fault is None or rtl.fault is None or "write" not in rtl.fault[0]:
        return False
    return (virtual.fault[0], virtual.fault[2]) == (rtl.fault[0], rtl.fault[2])


def _difference(virtual: _Outcome, rtl: _Outcome, counts: bool) -> str | None:
    """Return how two outcomes differ; None: they are equal."""

    def says(outcome: _Outcome) -> str:
        if outcome.fault is None:
            return "comes to its end"
        kind, pc, address = outcome.fault
        at = "" if pc is None else f" at 0x{pc:08x}"
        return f"{kind}{at}" + ("" if address is None else f", address 0x{address:08x}")

    if virtual.fault != rtl.fault:
        return f"RTL: {says(rtl)}; virtual device: {says(virtual)}"
    if virtual.fault is not None:
        return None
    for place in range(0, len(virtual.data), 4):
        one, other = (o.data[place : place + 4][::-1].hex() for o in (virtual, rtl))
        if one != other:
            number = (place - DATA_BYTES) // 4
            is_register = 0 <= number < len(DUMPED)
            name = DUMPED[number] if is_register else f"the word at offset {place} of the data"
            return f"{name} is 0x{other} on the RTL, 0x{one} on the virtual device"
    if counts and virtual.instructions != rtl.instructions:
        one, other = (" + ".join(map(str, o.instructions)) for o in (virtual, rtl))
        return f"the RTL retires {other} instructions, the virtual device executes {one}"
    return None

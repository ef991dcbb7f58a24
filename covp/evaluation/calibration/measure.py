"""Measure programs: cycles on a device that counts them, and traces that any model can time."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import yaml
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from covp.base.cache import write_atomically
from covp.base.temporary import temporary_folder
from covp.chip.platform_file import Platform
from covp.compilers.toolchain import SourceText, get_toolchain
from covp.device.base import LowLevelDevice
from covp.device.stop import Source, Stop
from covp.device.timing.model import TimingFile, load_file
from covp.device.timing.trace import Trace
from covp.device.virtual import VirtualDevice
from covp.errors import CapacityError, DeviceError, DeviceFault, UsageError
from covp.evaluation.calibration.programs import DATA_BYTES, LoopProgram, assembly

GENERIC = {"riscv": "rv32", "arm": "m4"}
"""The model that a search begins with where the core has none."""
Targets = tuple[int, bool]
"""Of a branch target buffer: `TimingFile.targets`, `TimingFile.targets_later`."""
NO_TARGETS: Targets = (0, False)
TARGETS: tuple[Targets, ...] = (
    NO_TARGETS,
    *((entries, later) for entries in (1, 2, 4, 8) for later in (False, True)),
)
"""Those that a core may have."""
_WIDTH = 100
_HEADS = {"arm": ".syntax unified\n.thumb", "riscv": ".option norelax"}
_SCRIPT = """ENTRY(start)
SECTIONS {{ . = 0x{:x}; .text : {{ KEEP(*(.text*)) }} /DISCARD/ : {{ *(.ARM.*) }} }}
"""


@dataclass(frozen=True)
class Entries:
    """Addresses of a program: where few rounds start, where many do, and its end."""

    short: int
    long: int
    end: int


@dataclass(frozen=True)
class Image:
    """Programs, linked.

    Attributes:
        base: address of the code.
        code: bytes.
        entries: of each program.
    """

    base: int
    code: bytes
    entries: tuple[Entries, ...]

    def load(self, device: LowLevelDevice) -> None:
        """Write the code into a device's memory. Raises DeviceError."""
        device.write(self.base, self.code)


def assemble(platform: Platform, text: str) -> tuple[bytes, dict[str, int]]:
    """Return the code of assembly at the start of a platform's flash, and its labels.

    Args:
        platform: core and memory map.
        text: with the label ``start``.

    Raises:
        ToolchainError: an instruction is rejected.
        CapacityError: the flash is too small.
    """
    head = f"{_HEADS[platform.core.architecture]}\n.text\n.balign 16\n.global start\nstart:\n"
    toolchain = get_toolchain("zig", platform.core)
    objects = toolchain.compile([SourceText("programs.S", f"{head}{text}\n")])
    linked = toolchain.link(objects, _SCRIPT.format(platform.flash.start))
    elf = ELFFile(io.BytesIO(linked.read_bytes()))
    code, table = elf.get_section_by_name(".text"), elf.get_section_by_name(".symtab")
    assert code is not None and isinstance(table, SymbolTableSection)
    _check_size(platform, len(code.data()))
    labels = {symbol.name: int(symbol["st_value"]) & ~1 for symbol in table.iter_symbols()}
    return bytes(code.data()), labels


def link(platform: Platform, programs: Sequence[LoopProgram]) -> Image:
    """Return programs as code for the flash of a platform; their data follow the stack in its RAM.

    Args:
        platform: core and memory map.
        programs: in this order.

    Raises:
        ToolchainError: an instruction is rejected.
        CapacityError: the flash is too small.
    """
    data = platform.ram.start + platform.stack_bytes
    parts = [assembly(platform.core, one, data, f"_{n}") for n, one in enumerate(programs)]
    code, labels = assemble(platform, "\n".join(parts))
    entries = (
        Entries(labels[f"start_{n}"], labels[f"long_{n}"], labels[f"end_{n}"])
        for n in range(len(programs))
    )
    return Image(platform.flash.start, code, tuple(entries))


def _check_size(platform: Platform, size: int) -> None:
    room = platform.flash.bytes
    if size > room:
        raise CapacityError(
            f"{platform.name}: the programs take {size:,} bytes of flash, {platform.flash.name} "
            f"has {room:,}; use fewer with --programs",
            size,
            room,
            "flash",
        )
    assert platform.stack_bytes + DATA_BYTES + 64 <= platform.ram.bytes


Report = Callable[[str], None]


def targets_of(model: TimingFile) -> Targets:
    """Return the branch target buffer of a model."""
    return model.targets, model.targets_later


def with_targets(model: TimingFile, targets: Targets) -> TimingFile:
    """Return a model with another branch target buffer, and no other prediction."""
    entries, later = targets
    return msgspec.structs.replace(model, predicts="", targets=entries, targets_later=later)


def write_model(model: TimingFile, path: Path) -> None:
    """Write a model as a YAML file, whole or not at all. Raises OSError."""
    content = msgspec.to_builtins(model)
    text = yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=_WIDTH)
    write_atomically(path, text.encode())


class Traces:
    """Traces of a program with one branch target buffer or another, recorded when first needed.

    They are those of devices of their own, so that they hold nothing else.

    Args:
        platform: of the devices.
        image: with the program.
        entries: of the program.
    """

    def __init__(self, platform: Platform, image: Image, entries: Entries) -> None:
        self._platform, self._image, self._entries = platform, image, entries
        self._known: dict[Targets, tuple[Trace, Trace]] = {}

    def __getitem__(self, targets: Targets) -> tuple[Trace, Trace]:
        """Return the traces of an entry with few rounds, and of one with many."""
        if targets not in self._known:
            self._known[targets] = self._record(targets)
        return self._known[targets]

    def _record(self, targets: Targets) -> tuple[Trace, Trace]:
        own, generic = self._platform.core.timing, GENERIC[self._platform.core.architecture]
        name = generic if not own or ".py:" in own else own  # a model in Python has no file
        with temporary_folder("calibrate") as folder:
            path = Path(folder) / "model.yaml"
            write_model(with_targets(load_file(name), targets), path)
            platform = msgspec.structs.replace(self._platform, timing=str(path))
            with VirtualDevice(platform) as device:
                device.core.counter.trace_edges()  # operands are recorded then
                self._image.load(device)
                device.execute(self._entries.short, self._entries.end)
                few = device.counts.trace()
                device.execute(self._entries.long, self._entries.end)
                return few, device.counts.trace().since(few)


@dataclass(frozen=True)
class Measured:
    """A program, what ran of it, and the cycles that it took.

    Attributes:
        program: a loop.
        traces: with each branch target buffer: what it expects depends on the order of branches.
        cycles: of many rounds without those of few.
    """

    program: LoopProgram
    traces: Traces
    cycles: int


@dataclass(frozen=True)
class MeasuredPrograms:
    """Measured programs of a device.

    Attributes:
        programs: those that ran.
        rejected: names of those with an instruction that the device's core does not have.
        source: of the cycles.
    """

    programs: tuple[Measured, ...]
    rejected: tuple[str, ...]
    source: Source


def measure(
    platform: Platform,
    device: LowLevelDevice,
    programs: Sequence[LoopProgram],
    report: Report = lambda text: None,
) -> MeasuredPrograms:
    """Run programs on a device and, for their traces, on the virtual one.

    Args:
        platform: of both.
        device: measures cycles.
        programs: any.
        report: is called with a line for each program.

    Raises:
        UsageError: the device does not measure cycles.
        DeviceError: the way to it failed, or a program did.
    """
    image = link(platform, programs)
    image.load(device)
    first = image.entries[0]
    source = _source(platform, device.execute(first.short, first.end))
    found, rejected = [], []
    for program, entries in zip(programs, image.entries, strict=True):
        report(program.name)
        try:
            cycles = _cycles(platform, device, entries, program.name)
        except DeviceFault as fault:
            if fault.kind != "illegal instruction" or program.is_random:
                raise
            rejected.append(program.name)
            continue
        found.append(Measured(program, Traces(platform, image, entries), cycles))
    return MeasuredPrograms(tuple(found), tuple(dict.fromkeys(rejected)), source)


def _source(platform: Platform, stop: Stop) -> Source:
    """Return the source of the cycles. Raises an error where the device does not count them."""
    source = stop.sources.cycles
    if source is None or stop.cycles is None or source.kind == "estimated":
        raise no_counter(platform, "estimates cycles" if source else "has no cycle counter")
    return source


def no_counter(platform: Platform, why: str) -> UsageError:
    """Return the error of a device that measures nothing; `why` continues "this device"."""
    return UsageError(
        f"{platform.name}: this device {why}, so there is nothing to fit a timing model to; use "
        "--device rtl, or a board whose core counts cycles: Cortex-M3 and later, RISC-V with mcycle"
    )


def _cycles(platform: Platform, device: LowLevelDevice, entries: Entries, name: str) -> int:
    """Return the cycles of many rounds minus few, after a run that warms caches up."""
    device.execute(entries.short, entries.end)
    spent = [device.execute(entry, entries.end).cycles for entry in (entries.short, entries.long)]
    few, many = spent
    if few is None or many is None:
        raise no_counter(platform, "has no cycle counter")
    if many <= few:
        raise DeviceError(
            f"program {name}: {few:,} cycles of few rounds, {many:,} of many: the cycle counter "
            "does not count"
        )
    return many - few


def simulate(platform: Platform, programs: Sequence[LoopProgram], count: int) -> list[int]:
    """Return the cycles of the last programs on the virtual device, as `Measured.cycles`.

    Args:
        platform: with the timing model.
        programs: as they were measured: what some compute depends on their addresses.
        count: of the last ones.
    """
    image = link(platform, programs)
    with VirtualDevice(platform) as device:
        image.load(device)
        return [
            _cycles(platform, device, entries, program.name)
            for program, entries in zip(programs[-count:], image.entries[-count:], strict=True)
        ]

"""`System`: a platform with several cores, a firmware image for each, run together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from covp.base.arguments import demand_count, demand_name, demand_seconds
from covp.base.closing import Closing
from covp.chip.platform_file import FIRST, Platform, load_platform
from covp.codegen.program import AcceleratorInstance, Program
from covp.device.board import Board
from covp.device.counted_phases import CountedPhases
from covp.device.machine.emulated_core import EmulatedCore
from covp.device.phase_count import CORE, MovedBytes, PhaseCount, Traffic, add_counts
from covp.device.stop import Stop
from covp.device.turns import run_in_turns
from covp.errors import DeviceFault, UsageError, near_misses
from covp.firmware.multicore.firmware import Firmware, build_firmware, read_firmware
from covp.firmware.multicore.report import CoreRun, CoresRun, LayerRun
from covp.hardware.peripheral import Peripheral
from covp.hardware.traffic import TrafficLedger

_STATUS = "covp_exit_status"


class System(Closing):
    """Runs one firmware image on each core of a platform, on common memory and in common time.

    A run is deterministic: the same images and inputs give the same instructions and cycles::

        with System("dual-riscv32") as system:
            system.load_c("sensor", ["sample.c"])
            system.load_c("main", ["classify.c"], model=covp.compile("kws", "dual-riscv32"))
            system.peripherals["sampler"].feed(recording)
            print(system.run())

    Args:
        platform: a platform with further cores, its name or the path of its YAML file.
        toolchain: "zig" or "gcc".

    Attributes:
        platform: whose cores they are.
        board: memories, peripherals and cores.
        firmware: what is loaded, by name of the core.

    Raises:
        PlatformError: it cannot be read, or the emulator cannot hold its memory map.
    """

    def __init__(self, platform: Platform | str | Path, toolchain: str = "zig") -> None:
        self.platform = load_platform(platform)
        self.board = Board(self.platform)
        self.firmware: dict[str, Firmware] = {}
        self._toolchain = toolchain

    def close(self) -> None:
        """Free the emulators. A second call does nothing; other calls after it are errors."""
        self.board.close()

    @property
    def peripherals(self) -> Mapping[str, Peripheral]:
        """The models on the bus, by name."""
        return {name: model for name, (_, model) in self.board.shared.peripherals.items()}

    # -- images -------------------------------------------------------------------------------

    def load_c(
        self,
        core: str,
        sources: Sequence[str | Path] | Mapping[str, str],
        model: Program | None = None,
        flags: Sequence[str] = (),
    ) -> Firmware:
        """Build the firmware of a core and load it; its accelerators are put on the bus.

        Args:
            core, sources, model, flags: as of `covp.firmware.multicore.firmware.build_firmware`.

        Raises:
            ToolchainError, UsageError, PlatformError: as `build_firmware`; or the core has
                firmware already.
        """
        made = build_firmware(self.platform, core, sources, model, flags, self._toolchain)
        return self._load(made)

    def load_elf(self, core: str, path: str | Path) -> Firmware:
        """Load the firmware of a core from an ELF file, which any tool may have made.

        Args:
            core: name of the core.
            path: of the file.

        Raises:
            UsageError: see `covp.firmware.multicore.firmware.read_firmware`; or the core has
                firmware already.
        """
        return self._load(read_firmware(self.platform, core, Path(path)))

    def _load(self, firmware: Firmware) -> Firmware:
        self.board.check_open()
        if firmware.core in self.firmware:
            raise UsageError(f"core {firmware.core} has firmware already; make another System")
        if firmware.model is not None:
            for accelerator in firmware.model.accelerators:
                self._attach(accelerator, firmware.core)
        for _, address, data in firmware.program.pieces:
            self.board.write(address, data)
        self.board.names.symbols.add(str(firmware.path))
        self.firmware[firmware.core] = firmware
        return firmware

    def _attach(self, accelerator: AcceleratorInstance, core: str) -> None:
        model = accelerator.make()
        if not isinstance(model, Peripheral):
            raise UsageError(
                f"core {core}: {accelerator.name} is a set of custom instructions, which a "
                "platform with several cores cannot have; take one on the bus"
            )
        number = self.platform.core_names.index(core)
        self.board.attach(model, accelerator.base, accelerator.name, accelerator.irq, number)

    def variable(self, core: str, name: str, dtype: DTypeLike = np.uint8) -> NDArray[Any]:
        """Return a copy of a global or static variable of a core's firmware, as it is now.

        Args:
            core: name of the core.
            name: of the variable.
            dtype: of its elements.

        Returns:
            One-dimensional.

        Raises:
            UsageError: there is no such variable, or its size is no multiple of the type's.
        """
        symbols = self.firmware[core].symbols if core in self.firmware else {}
        if name not in symbols:
            raise UsageError(
                f"core {core} has no variable {name!r}:", hint=near_misses(name, list(symbols))
            )
        data = self.board.read(symbols[name].address, symbols[name].size)
        if len(data) % np.dtype(dtype).itemsize:
            raise UsageError(f"variable {name} of core {core} has {len(data)} bytes, no {dtype}s")
        values: NDArray[Any] = np.frombuffer(data, dtype).copy()
        return values

    # -- runs ---------------------------------------------------------------------------------

    def run(
        self,
        until: Sequence[str] | None = None,
        timeout: float = 300.0,
        turn: int = 1000,
        traffic: bool = True,
    ) -> CoresRun:
        """Reset the board and run all cores until each has returned from its main.

        Args:
            until: names of the cores whose end is the end of the run; by default all.
            timeout: seconds of host time.
            turn: cycles of the platform's clock that a core runs before another one's turn comes,
                see `covp.device.turns.run_in_turns`.
            traffic: count the bytes of the bus; runs without it are faster.

        Raises:
            DeviceFault: of the core that faulted, with its name; "timeout".
            UsageError: a core has no firmware, or one of ``until`` has no end.
        """
        demand_seconds("timeout", timeout)
        demand_count("turn", turn, 1)
        firmware, numbers = self._ready(until)
        board = self.board
        board.reset()
        board.activate(board.cores)
        start = board.clock.now
        for core, one in zip(board.cores, firmware, strict=True):
            self._begin_count(core, one, traffic)
        if traffic:
            board.count_traffic().restarted()
        entries = [(one.program.entry, one.stop) for one in firmware]
        try:
            stops = run_in_turns(board, entries, timeout, turn, numbers)
        except DeviceFault as fault:
            where = f"core {self.platform.core_names[board.cores.index(board.current)]}"
            fault.detail = f"{fault.detail}; {where}" if fault.detail else where
            raise
        end = max(core.time for core in board.cores)
        counts = [self._count(core, traffic) for core in board.cores]
        return CoresRun(
            self.platform.name,
            (end - start) / self.platform.clock_hz,
            tuple(map(self._core_run, firmware, board.cores, stops, counts, [end] * len(stops))),
            self._traffic(counts) if traffic else None,
        )

    def _ready(self, until: Sequence[str] | None) -> tuple[list[Firmware], list[int]]:
        """Return the firmware of all cores, and the numbers of those that end the run."""
        names = self.platform.core_names
        for name in names:
            if name not in self.firmware:
                raise UsageError(f"core {name} has no firmware: load_c or load_elf gives it some")
        wanted = names if until is None else tuple(until)
        for name in wanted:
            demand_name("core", name, names)
            if not self.firmware[name].ends:
                raise UsageError(
                    f"core {name} never ends: its firmware has no symbol covp_exit; name the cores "
                    "that do with until"
                )
        if not wanted:
            raise UsageError("until must name at least one core")
        return [self.firmware[name] for name in names], [names.index(name) for name in wanted]

    def _begin_count(self, core: EmulatedCore, firmware: Firmware, traffic: bool) -> None:
        functions = self.board.names.symbols.functions()
        marks = {end: 0 for _, end, _ in functions}
        marks |= {start: number for number, (start, _, _) in enumerate(functions, 1)}
        if traffic:
            core.counter.look_at_accesses()
            core.engine.ctl_flush_tb()
        core.counter.set_functions(tuple(marks.items()), 1 + len(functions))
        layers = 0 if firmware.model is None else len(firmware.model.layers)
        core.counter.set_markers(firmware.phases(), 2 + layers)

    def _count(self, core: EmulatedCore, traffic: bool) -> tuple[PhaseCount, ...]:
        names = ("", *(name for _, _, name in self.board.names.symbols.functions()))
        memories = [memory.region.name for memory in core.memories]
        no_others = TrafficLedger(lambda: 0) if traffic else None
        return CountedPhases.of(core.counter, names, memories, no_others).counts()

    def _core_run(
        self,
        firmware: Firmware,
        core: EmulatedCore,
        stop: Stop,
        phases: Sequence[PhaseCount],
        end: int,
    ) -> CoreRun:
        count = add_counts(phases)
        causes = count.causes or {}
        finished, status = stop.pc == firmware.stop, None
        if finished and _STATUS in firmware.symbols:
            status = int(self.variable(firmware.core, _STATUS, np.int32)[0])
        layers = firmware.model.layers if firmware.model is not None else ()
        clock_hz = self.platform.for_core(firmware.core).clock_hz
        return CoreRun(
            name=firmware.core,
            core=core.core.name,
            clock_hz=clock_hz,
            instructions=count.instructions,
            cycles=count.cycles,
            asleep=causes.get("waited", 0),
            halted=(end - core.time) * clock_hz // self.platform.clock_hz,
            finished=finished,
            status=status,
            causes=causes,
            functions=tuple(sorted(count.functions, key=lambda one: -one.cycles)),
            layers=tuple(
                LayerRun(layer, phase.instructions, phase.cycles)
                for layer, phase in zip(layers, phases[2:], strict=True)
            ),
            sources=stop.sources,
        )

    def _traffic(self, counts: Sequence[Sequence[PhaseCount]]) -> Traffic:
        """Return all bytes by master and place; exceptions' are the cores'."""
        total: dict[str, dict[str, MovedBytes]] = {}
        for name, phases in zip(self.platform.core_names, counts, strict=True):
            total[name] = dict((add_counts(phases).traffic or {}).get(CORE, {}))
        for (_, master, place, is_write), size in self.board.count_traffic().bytes_moved.items():
            own = total.setdefault(FIRST if master == CORE else master, {})
            moved = MovedBytes(written=size) if is_write else MovedBytes(read=size)
            own[place] = own.get(place, MovedBytes()) + moved
        return total

"""`RtlPeripheral`: hardware on a board's bus that is Verilog, with registers of its own kind."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import ClassVar

from covp.accelerator.rtl.library import UnitClock, UnitModel, UnitWave, build_unit
from covp.accelerator.rtl.sources import UnitRtl
from covp.compilers.verilator import WAVES
from covp.errors import AcceleratorError, UsageError
from covp.hardware.bus import Bus
from covp.hardware.clock import Clock
from covp.hardware.peripheral import Peripheral

_WORD = 4
_FIRST, _MOST = 64, 4096
"""Cycles that an interrupt is looked for ahead after an access, and at most."""


def _folder_of(kind: type) -> Path:
    """Return the folder of the file that a class is in; of a notebook's the present one."""
    try:
        return Path(inspect.getfile(kind)).parent
    except (OSError, TypeError):
        return Path.cwd()


class RtlPeripheral(Peripheral):
    """Verilog whose registers mean whatever its author says; firmware or a driver of C knows them.

    A subclass names the Verilog, by paths from its own file's folder::

        class Redmule(RtlPeripheral):
            rtl = UnitRtl(filelist="redmule.f", top="redmule_top_wrap", busy="busy_o")

    Each access of the core goes through the module's port and takes its cycles. Between accesses
    the RTL lags behind: it is simulated up to the core's cycle when a register is accessed, before
    an event of the board and when its interrupt changes. So it may not see memory before a store
    that the core makes while it works, and what it stores is seen then. Its memory ports are its
    own: it does not wait for the core.

    Args:
        parameters: of the Verilog module, beside those of ``rtl``.

    Attributes:
        rtl: the Verilog and its ports; neither an interrupt nor a memory port is needed.
        clock_ratio: cycles of the core for each of the module, above 0.
        wave: a file for its signals, .fst or .vcd: 100,000 cycles; None: there is none.

    Raises:
        UsageError: there is no such Verilog, or no module in it.
        AcceleratorError: its ports are not understood.
        ToolchainError: Verilator is missing or rejects it.
    """

    rtl: ClassVar[UnitRtl]
    clock_ratio: float = 1.0
    wave: Path | None = None
    not_saved = Peripheral.not_saved | {"_model", "_unit_clock"}

    def __init__(self, **parameters: int | float | str) -> None:
        kind = type(self)
        if self.clock_ratio <= 0:
            raise UsageError(f"{kind.__name__}: clock_ratio={self.clock_ratio}: above 0")
        suffix = self.wave.suffix if self.wave else ""
        if suffix and suffix not in WAVES:
            raise UsageError(f"{kind.__name__}: wave={self.wave}: a file {' or '.join(WAVES)}")
        given = {**self.rtl.parameters, **parameters}
        library = build_unit(
            kind.__name__, self.rtl, _folder_of(kind), given, suffix, has_jobs=False
        )
        wave = UnitWave(self.wave) if self.wave else None
        self._model = UnitModel(library, self.rtl.latency, wave)
        self._unit_clock = UnitClock(self._model, self.clock_ratio)
        self._ahead = _FIRST
        super().__init__()

    @property
    def cycles(self) -> int:
        """Cycles of the module's clock since it was made; it may be halted, see `UnitRtl`."""
        return self._model.now

    def attach(self, name: str, bus: Bus, clock: Clock) -> None:
        """Connect the module to the device as ``name``, with its ``bus`` and the ``clock``."""
        super().attach(name, bus, clock)
        clock.leave(self)
        clock.join(self)

    def reset(self) -> None:
        """Reset the RTL."""
        super().reset()
        self._model.reset()
        if hasattr(self, "clock"):
            self._unit_clock.align(self.clock.now)
            self._model.begin(self.bus.memories)

    def save_state(self) -> object:
        """Return the RTL's state.

        Raises:
            AcceleratorError: a transfer is under way, which is not part of the state.
        """
        if not self._model.is_idle:
            raise AcceleratorError(
                f"the RTL of {self.name}: its state cannot be saved while a transfer is under way"
            )
        return super().save_state(), self._model.save()

    def load_state(self, state: object) -> None:
        """Go back to what `save_state` returned."""
        assert isinstance(state, tuple)
        super().load_state(state[0])
        self._model.load(state[1])
        self._unit_clock.align(self.clock.now)
        self._model.begin(self.bus.memories)

    def read_register(self, offset: int, size: int) -> int:
        """Return the word that the RTL answers.

        Args:
            offset: bytes from the base address, a multiple of 4.
            size: of the access in bytes: 4.

        Raises:
            DeviceFault: another size, no answer, or the bus's error.
            AcceleratorError: the RTL has broken a rule of its memory's bus, or met no memory.
        """
        self._begin("read", offset, size)
        value = self._model.read(offset)
        self._end()
        if value is None:
            raise self.fault("a read has no answer, or an error", offset, size)
        return value

    def write_register(self, offset: int, size: int, value: int) -> None:
        """Hand a store to the RTL.

        Args:
            offset, size: as of `read_register`, as are the errors.
            value: 0 to 2**32 - 1.
        """
        self._begin("write", offset, size)
        is_answered = self._model.write(offset, value)
        self._end()
        if not is_answered:
            raise self.fault("a write has no answer, or an error", offset, size)

    def advance(self, until: int) -> int | None:
        """Simulate up to a cycle of the core; see `covp.hardware.clock.Participant`."""
        self._unit_clock.advance(until)
        self._take_stores()
        self.interrupt.set(self._model.interrupts())
        if self.interrupt.number is None:
            return None
        cycles = self._model.foresee(self._ahead)
        self._ahead = min(2 * self._ahead, _MOST)
        if not cycles:
            return None
        return max(self._unit_clock.core_cycle(self._model.now + cycles), until + 1)

    # -- accesses ----------------------------------------------------------------------------

    def _begin(self, what: str, offset: int, size: int) -> None:
        """Bring the RTL to the core's cycle, with memory as the core has left it."""
        if size != _WORD or offset % _WORD:
            raise self.fault(f"{what} of {size} bytes: only whole words", offset, size)
        self._ahead = _FIRST
        self._unit_clock.advance(self.clock.now)
        self._take_stores()

    def _end(self) -> None:
        """Let the core wait for the access, of whose cycles one is its own."""
        self._take_stores()
        self.clock.wait_until(self._unit_clock.core_cycle(self._model.now) - 1)
        self.clock.advance(self)

    def _take_stores(self) -> None:
        """Let memory have what was stored, and observers what was moved."""
        model = self._model
        if model.error:
            raise AcceleratorError(f"the RTL of {self.name}: {model.error}")
        outside = model.outside()
        if outside is not None:
            is_store, address, size = outside
            raise AcceleratorError(
                f"the RTL of {self.name} {'stores' if is_store else 'loads'} {size} bytes at "
                f"0x{address:08x}, where there is no {'RAM' if is_store else 'memory'}"
            )
        for memory, read, written in model.traffic():
            self.bus.count(memory.region.start, read)
            self.bus.count(memory.region.start, written, is_write=True)
        with self.bus.uncounted():
            for address, data in model.stores():
                self.bus.write(address, data)
        model.begin(self.bus.memories)

"""`RtlModel`: the library of a core's RTL as Python calls it."""

from __future__ import annotations

import ctypes
import enum
import os
from collections.abc import Sequence
from pathlib import Path

from covp.device.machine.native_caches import NativeCaches
from covp.device.phase_count import PhaseCount
from covp.device.timing.native import RegionWaits
from covp.errors import DeviceError
from covp.hardware.bus import Memory

_PARKED = 0x100
"""Bytes of boot code at most."""
_NEVER = (1 << 64) - 1
_WHOLE_RUN = (1 << 32) - 1
"""A phase that is none; see harness/wave.h."""


class RtlEvent(enum.IntEnum):
    """Why a run came back; see harness/state.h."""

    LIMIT = 0
    STOP = 1
    LOAD = 2
    STORE = 3
    TRAP = 4
    SLEEP = 5


class SharedState(ctypes.Structure):
    """The state that the library and Python share; see harness/state.h."""

    _fields_ = (
        *((name, ctypes.c_uint64) for name in (
            "cycle", "limit", "instructions", "phase_start", "phase_first",
        )),
        *((name, ctypes.c_uint32) for name in (
            "phase", "entry", "stop", "boot", "address", "size", "value", "stall", "pc", "cause",
            "sp", "ra", "irq",
        )),
    )  # fmt: skip
    cycle: int
    limit: int
    instructions: int
    phase_start: int
    phase: int
    entry: int
    stop: int
    boot: int
    address: int
    size: int
    value: int
    stall: int
    pc: int
    cause: int
    sp: int
    ra: int
    irq: int


class _Region(ctypes.Structure):
    _fields_ = (
        ("start", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("bytes", ctypes.c_void_p),
        ("writable", ctypes.c_uint32),
        ("fetch_wait", ctypes.c_uint32),
        ("data_wait", ctypes.c_uint32),
    )


class _Count(ctypes.Structure):
    _fields_ = (("instructions", ctypes.c_uint64), ("cycles", ctypes.c_uint64))


class RtlModel:
    """A core in simulation.

    Args:
        library: made by `covp.device.rtl.build`.
        memories: the very bytes that the core loads, stores and executes.
        waits: the wait states of each.
        caches: between the core's ports and the memories.

    Attributes:
        state: shared with the simulation.
        is_recording: a wave is open.
    """

    def __init__(
        self,
        library: Path,
        memories: Sequence[Memory],
        waits: Sequence[RegionWaits],
        caches: NativeCaches,
    ) -> None:
        self._memories, self._waits, self._caches = tuple(memories), tuple(waits), caches
        self._kinds = 1
        self._instructions: dict[int, tuple[int, int, int]] = {}
        self._used: dict[int, int] = {}
        self._unit = 0, 0, 0
        self.is_recording = False
        self._make(library)

    def _make(self, library: Path) -> None:
        self._path, self._library = library, _open_library(library)
        self._handle: int | None = self._library.covp_rtl_new()
        self.state: SharedState = self._library.covp_rtl_state(self._handle).contents
        for memory, waits in zip(self._memories, self._waits, strict=True):
            region = memory.region
            self._library.covp_rtl_add_region(
                self._handle,
                _Region(
                    region.start,
                    region.bytes,
                    memory.pointer,
                    region.kind != "flash",
                    waits.fetch,
                    waits.data,
                ),
            )
        for cache in self._caches.native[: len(self._caches)]:
            self._library.covp_rtl_add_cache(self._handle, ctypes.byref(cache))

    def switch(self, library: Path) -> None:
        """Go on with another library of the same core, between two executions.

        Phases have to be set again.
        """
        if library == self._path:
            return
        state = bytes(self.state)
        used = {number: self.uses(number) for number in self._instructions}
        self.close()
        self._make(library)
        ctypes.memmove(ctypes.addressof(self.state), state, len(state))
        for number, instruction in self._instructions.items():
            self._library.covp_rtl_set_instruction(self._handle, number, *instruction)
        self._used = used
        self.set_unit(*self._unit)
        self.set_phases([])

    def open_wave(self, path: Path, first: int, end: int | None, phase: int | None) -> None:
        """Write the signals of a window of cycles from now on; the library has to be able to.

        Args:
            path: of the file.
            first: cycle of the phase or run that the window begins with.
            end: the one after its last; None: there is none.
            phase: whose cycles are counted; None: all but those of phase 0, where there are phases.

        Raises:
            DeviceError: the file cannot be made.
        """
        last = _NEVER if end is None else min(end, _NEVER)
        wanted = _WHOLE_RUN if phase is None else phase
        place = os.fsencode(path)
        if not self._library.covp_rtl_open_wave(
            self._handle, place, min(first, _NEVER), last, wanted
        ):
            raise DeviceError("cannot be written", where=path)
        self.is_recording = True

    def close_wave(self) -> tuple[bool, int, int]:
        """End the file: whether all was written, cycles of the phase or run, and those in it."""
        self.is_recording = False
        seen, written = ctypes.c_uint64(), ctypes.c_uint64()
        wrote = self._library.covp_rtl_close_wave(
            self._handle, ctypes.byref(seen), ctypes.byref(written)
        )
        return bool(wrote), seen.value, written.value

    def close(self) -> None:
        """Free it. A second call does nothing; other calls after it are errors."""
        if self._handle is not None:
            self._library.covp_rtl_delete(self._handle)
            self._handle = None

    @property
    def is_open(self) -> bool:
        """True if the model is not closed yet."""
        return self._handle is not None

    def set_boot(self, address: int, words: Sequence[int]) -> None:
        """Set the code that the core executes from reset on; only fetches see it."""
        self.state.boot = address & -_PARKED
        self._library.covp_rtl_set_boot(
            self._handle, address, (ctypes.c_uint32 * len(words))(*words), len(words)
        )

    def set_phases(self, markers: Sequence[tuple[int, int]]) -> None:
        """Set the markers that phases begin at: address and phase."""
        self._kinds = 1 + max((phase for _, phase in markers), default=0)
        table = ctypes.c_uint32 * len(markers)
        self._library.covp_rtl_set_phases(
            self._handle,
            table(*(address for address, _ in markers)),
            table(*(phase for _, phase in markers)),
            len(markers),
            self._kinds,
        )

    def phases(self) -> tuple[PhaseCount, ...]:
        """Return the counts of every phase up to the latest event that was no access."""
        counts = self._library.covp_rtl_phases(self._handle)
        return tuple(
            PhaseCount(counts[i].instructions, counts[i].cycles) for i in range(self._kinds)
        )

    def spent(self) -> int:
        """Return the cycles in the current phase before `SharedState.phase_start`."""
        return int(self._library.covp_rtl_phases(self._handle)[self.state.phase].cycles)

    def set_instruction(self, number: int, function: int, state: int, cycles: int) -> None:
        """Let the port for custom instructions know one.

        Args:
            number: funct7 and funct3, 10 bits.
            function: host address of ``uint32_t f(uint32_t, uint32_t, state *)``; 0: take it away.
            state: host address of what the unit keeps.
            cycles: until it answers.
        """
        self._used.pop(number, None)
        self._instructions.pop(number, None)
        if function:
            self._instructions[number] = function, state, cycles
        self._library.covp_rtl_set_instruction(self._handle, number, function, state, cycles)

    def set_unit(self, unit: int, settle: int, edge: int) -> None:
        """Connect the port for custom instructions with a unit in simulation.

        Args:
            unit: host address of the unit; 0: none any more, but functions.
            settle, edge: host addresses of its functions, see harness/cfu.h.
        """
        self._unit = unit, settle, edge
        self._library.covp_rtl_set_unit(self._handle, unit, settle, edge)

    def uses(self, number: int) -> int:
        """Return how often an instruction was executed since it was set."""
        return self._used.get(number, 0) + int(self._library.covp_rtl_uses(self._handle, number))

    def begin(self, entry: int, stop: int) -> None:
        """Put the core into reset; the next `run` starts it."""
        self.state.entry, self.state.stop = entry, stop
        self._library.covp_rtl_begin(self._handle)

    def run(self, budget: int) -> RtlEvent:
        """Simulate up to an event, at most ``budget`` cycles."""
        return RtlEvent(self._library.covp_rtl_run(self._handle, budget))

    def look(self) -> None:
        """Update the registers in `state`."""
        self._library.covp_rtl_look(self._handle)


def _open_library(path: Path) -> ctypes.CDLL:
    library = ctypes.CDLL(str(path))
    handle, word, long = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64
    words = ctypes.POINTER(word)
    for name, result, arguments in (
        ("new", handle, ()),
        ("delete", None, (handle,)),
        ("state", ctypes.POINTER(SharedState), (handle,)),
        ("add_region", None, (handle, ctypes.POINTER(_Region))),
        ("add_cache", None, (handle, handle)),
        ("set_boot", None, (handle, word, words, word)),
        ("set_phases", None, (handle, words, words, word, word)),
        ("phases", ctypes.POINTER(_Count), (handle,)),
        ("begin", None, (handle,)),
        ("run", word, (handle, long)),
        ("look", None, (handle,)),
        ("open_wave", word, (handle, ctypes.c_char_p, long, long, word)),
        ("close_wave", word, (handle, ctypes.POINTER(long), ctypes.POINTER(long))),
        ("set_instruction", None, (handle, word, handle, handle, word)),
        ("set_unit", None, (handle, handle, handle, handle)),
        ("uses", long, (handle, word)),
    ):
        function = library[f"covp_rtl_{name}"]
        setattr(library, f"covp_rtl_{name}", function)
        function.restype, function.argtypes = result, arguments
    return library

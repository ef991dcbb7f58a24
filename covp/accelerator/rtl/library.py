"""`UnitModel`: a unit's Verilog as Python calls it; `build_unit` makes its library.

`build_instructions` makes that of a unit of custom instructions.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from covp.accelerator.rtl.ports import Port, find_instruction_port, find_ports, read_ports
from covp.accelerator.rtl.sources import INITIAL, UnitRtl, top_of
from covp.base import cache
from covp.base.cache import content_key
from covp.base.temporary import temporary_folder
from covp.compilers.host_compiler import host_key
from covp.compilers.verilator import LIBRARY, NO_EXTRA, QUIET, WAVES, Extra, find_verilator
from covp.errors import DeviceError
from covp.hardware.bus import Memory
from covp.hardware.custom_instruction import STATE_HEADER

_HARNESS = Path(__file__).parent / "harness"
_INCLUDE = _HARNESS, STATE_HEADER.parent
_CLASS = "Vcovp_unit"
_SAVED = Extra(
    ("--savable",),
    ("verilated_save.cpp",),
    (
        # the harness has these; and stdout is for documents
        *("-DVL_USER_FINISH", "-DVL_USER_STOP", "-DVL_USER_FATAL"),
        "-DVL_PRINTF(...)=fprintf(stderr,__VA_ARGS__)",
    ),
)


Parameters = Mapping[str, int | float | str]


def build_unit(
    name: str,
    rtl: UnitRtl,
    folder: Path,
    parameters: Parameters,
    wave: str = "",
    has_jobs: bool = True,
) -> Path:
    """Return the library of a unit's model, made on first use in about ten seconds.

    Args:
        name: of the unit, for the file and errors.
        rtl: its Verilog.
        folder: that ``rtl.root`` is relative to.
        parameters: of the module, and their values.
        wave: of a model that can write waveforms: the suffix of their files, ".fst" or ".vcd".
        has_jobs: a module without an interrupt or a memory port is an error.

    Raises:
        UsageError: there is no such file or module.
        AcceleratorError: a bus is not found, or an input that nothing drives.
        ToolchainError: Verilator is missing or rejects the sources.
    """

    def ports_of(where: str, ports: Sequence[Port]) -> dict[str, str]:
        return find_ports(where, ports, rtl, has_jobs)

    return _build(name, rtl, folder, parameters, "unit.cpp", ports_of, wave)


def build_instructions(name: str, rtl: UnitRtl, folder: Path, parameters: Parameters) -> Path:
    """Return the library of a unit of custom instructions, as `build_unit`."""

    def ports_of(where: str, ports: Sequence[Port]) -> dict[str, str]:
        return find_instruction_port(where, ports, rtl.ties)

    return _build(name, rtl, folder, parameters, "instructions.cpp", ports_of)


def _build(
    name: str,
    rtl: UnitRtl,
    folder: Path,
    parameters: Parameters,
    harness: str,
    ports_of: Callable[[str, Sequence[Port]], dict[str, str]],
    wave: str = "",
) -> Path:
    """Make a library of a unit and a file of the harness, whose ports a function names."""
    verilator, sources = find_verilator(), rtl.files(folder)
    top = top_of(rtl, sources)
    extra = _SAVED + (WAVES[wave] if wave else NO_EXTRA)
    # what the names of ports do not say
    stated = repr((rtl.registers, rtl.memory, rtl.ties, rtl.interrupt, rtl.busy))
    flags = (f"-DCOVP_INITIAL={INITIAL[rtl.initial]}",)
    given = [
        *("--top-module", top, "--prefix", _CLASS, *extra.options, "-DSYNTHESIS"),
        *("--x-initial", "unique"),
        *(f"-D{define}" for define in sources.defines),
        *(f"-G{key}={verilog_value(value)}" for key, value in parameters.items()),
    ]
    key = content_key(
        *(harness, STATE_HEADER.read_bytes()),
        *(part for p in sorted(_HARNESS.iterdir()) for part in (p.name, p.read_bytes())),
        *sources.contents(),
        *(*given, stated, *flags, *QUIET, *LIBRARY.compile),
        *(verilator.version, *host_key()),
    )
    file = f"unit-{top}-{key}{LIBRARY.suffix}"
    found = cache.find("rtl", file)
    if found is not None:
        return found
    with temporary_folder("rtl") as temporary:
        made = Path(temporary) / "made"
        sources = sources.patched(Path(temporary))
        places = [f"-I{path}" for path in sources.include]
        files = [str(path) for path in sources.files]
        verilator.translate(name, [*QUIET, *given, *places, "--Mdir", str(made), *files])
        ports = read_ports((made / f"{_CLASS}.h").read_text("utf-8"))
        where = f"{sources.files[-1].name}: module {top}"
        for header, text in ports_of(where, ports).items():
            (made / header).write_text(text, "utf-8")
        what = f"the RTL of {name}"
        data = verilator.build(what, made, _HARNESS / harness, _INCLUDE, flags, extra)
    return cache.store("rtl", file, data, mode=0o700)


def verilog_value(value: int | float | str) -> str:
    """Return a parameter's value as Verilog writes it."""
    if isinstance(value, str):
        return f'"{value}"'
    return str(int(value) if value == int(value) else value)


class _Region(ctypes.Structure):
    _fields_ = (
        ("start", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("bytes", ctypes.c_void_p),
        ("writable", ctypes.c_uint32),
        ("read", ctypes.c_uint64),
        ("written", ctypes.c_uint64),
    )
    read: int
    written: int


@dataclass(frozen=True)
class UnitWave:
    """A file of a unit's signals.

    Attributes:
        file: ends in .fst or .vcd. Cycle N of the unit's clock is at N ns.
        cycles: that it has at most, from the unit's first job on.
    """

    file: Path
    cycles: int = 100_000


_recorded: set[Path] = set()
"""Files of this process: a run makes several models of a unit, of which the first is measured."""


class UnitModel:
    """A unit in simulation. It keeps what it stores apart until `stores` is asked.

    Args:
        library: made by `build_unit`.
        latency: of its memory port, in cycles.
        wave: the file of its signals from its first job on, if the library can write one.
    """

    def __init__(self, library: Path, latency: int, wave: UnitWave | None = None) -> None:
        self._library = _open_library(library)
        self._handle: int | None = self._library.covp_unit_new(latency)
        self._wave = wave
        self._close_wave: weakref.finalize[..., UnitModel] | None = None
        self._memories: list[Memory] = []
        self._contents: list[NDArray[np.uint8]] = []

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            if self._close_wave is not None:
                self._close_wave()
            self._library.covp_unit_delete(self._handle)
            self._handle = None

    def reset(self) -> None:
        """Reset the unit; it forgets all."""
        self._library.covp_unit_reset(self._handle)

    def begin(self, memories: Sequence[Memory], stalls: int = 0) -> None:
        """Begin a job on memory as bus masters see it now.

        Args:
            memories: all that there is.
            stalls: 0: the memory is never busy; else it keeps the unit waiting by chance, and this
                is the seed.
        """
        self._memories = list(memories)
        self._contents = [
            m.content if m.cache is None else m.load(m.region.start, m.region.bytes)
            for m in memories
        ]
        regions = (_Region * len(memories))(
            *(
                _Region(
                    memory.region.start,
                    memory.region.bytes,
                    content.ctypes.data,
                    memory.region.kind != "flash",
                )
                for memory, content in zip(memories, self._contents, strict=True)
            )
        )
        if self._wave is not None:
            self._open(self._wave)
            self._wave = None
        self._library.covp_unit_set_regions(self._handle, regions, len(regions))
        self._library.covp_unit_begin(self._handle, stalls)

    def _open(self, wave: UnitWave) -> None:
        """Let signals go to a file, which is the first one of that name in this process."""
        target = wave.file.resolve()
        if target in _recorded:
            return
        _recorded.add(target)
        if not self._library.covp_unit_open_wave(self._handle, os.fsencode(target), wave.cycles):
            raise DeviceError("the waveform cannot be written", where=wave.file)
        # its end is written when the process ends, at the latest
        self._close_wave = weakref.finalize(self, self._library.covp_unit_close_wave, self._handle)

    def write(self, offset: int, value: int) -> bool:
        """Write a register; False: the unit does not answer, or with an error."""
        word = ctypes.c_uint32(value)
        return bool(self._library.covp_unit_access(self._handle, 1, offset, ctypes.byref(word)))

    def read(self, offset: int) -> int | None:
        """Return a register's value; None: the unit does not answer, or with an error."""
        word = ctypes.c_uint32()
        done = self._library.covp_unit_access(self._handle, 0, offset, ctypes.byref(word))
        return word.value if done else None

    def peek(self, offset: int) -> int | None:
        """Return a register's value without an access to it; None as of `read`."""
        word = ctypes.c_uint32()
        done = self._library.covp_unit_peek(self._handle, offset, ctypes.byref(word))
        return word.value if done else None

    def run(self, budget: int) -> int:
        """Run until the interrupt is up; return the cycles since a register was written.

        Args:
            budget: cycles after which it comes back in any case.
        """
        return int(self._library.covp_unit_run(self._handle, budget))

    @property
    def now(self) -> int:
        """Cycles of the unit's clock so far."""
        return int(self._library.covp_unit_now(self._handle))

    @property
    def taken(self) -> int:
        """The cycle in which the latest access to a register was taken."""
        return int(self._library.covp_unit_taken(self._handle))

    def advance(self, cycle: int) -> bool:
        """Run up to a cycle, if it is not in the past; return whether `stores` or `error` say more.

        Args:
            cycle: of the unit's clock.
        """
        return bool(self._library.covp_unit_advance(self._handle, max(cycle, 0)))

    def foresee(self, budget: int) -> int:
        """Return the cycles until the interrupt changes; 0: not before the next access.

        Args:
            budget: cycles at most.
        """
        return int(self._library.covp_unit_foresee(self._handle, budget))

    @property
    def is_idle(self) -> bool:
        """True if no transfer of a memory port is under way."""
        return bool(self._library.covp_unit_is_idle(self._handle))

    @property
    def has_errors(self) -> bool:
        """True if all memory ports tell the module that an access has met no memory."""
        return bool(self._library.covp_unit_has_errors(self._handle))

    def predict(self, interrupt: int, start: int, budget: int) -> int:
        """Return the cycles that a job would take if it were started now, as `run`.

        Args:
            interrupt, start: offsets of the registers that let the interrupt come, and whose lowest
                bit starts the job.
            budget: cycles at most.
        """
        return int(self._library.covp_unit_predict(self._handle, interrupt, start, 1, budget))

    def interrupts(self) -> bool:
        """Return whether the interrupt is up."""
        return bool(self._library.covp_unit_interrupts(self._handle))

    def drain(self) -> bool:
        """Let transfers end that still run; False: there are stores among them, or no end."""
        return bool(self._library.covp_unit_drain(self._handle))

    @property
    def error(self) -> str:
        """What the unit did against the rules of its memory bus, in one line; "": nothing."""
        return bytes(self._library.covp_unit_error(self._handle)).decode()

    def outside(self) -> tuple[bool, int, int] | None:
        """Return the first access that met no memory: is it a store, address, bytes."""
        address, size = ctypes.c_uint32(), ctypes.c_uint32()
        kind = self._library.covp_unit_outside(
            self._handle, ctypes.byref(address), ctypes.byref(size)
        )
        return (kind == 2, address.value, size.value) if kind else None

    def stores(self) -> list[tuple[int, NDArray[np.uint8]]]:
        """Return the bytes stored since the latest call, by address, in spans as long as can be."""
        count, values = ctypes.c_uint64(), ctypes.POINTER(ctypes.c_uint8)()
        spans = self._library.covp_unit_stores(
            self._handle, ctypes.byref(count), ctypes.byref(values)
        )
        found, place = [], 0
        for address, size in _pairs(spans, count.value):
            data = np.ctypeslib.as_array(values, (place + size,))[place:].copy()
            found.append((address, data))
            place += size
        return found

    def loads(self) -> list[tuple[int, int]]:
        """Return the spans that the job has loaded, (address, bytes), each once."""
        count = ctypes.c_uint64()
        spans = self._library.covp_unit_loads(self._handle, ctypes.byref(count))
        merged: list[tuple[int, int]] = []
        for address, size in sorted(set(_pairs(spans, count.value))):
            if merged and address <= sum(merged[-1]):
                start = merged[-1][0]
                merged[-1] = start, max(sum(merged[-1]), address + size) - start
            else:
                merged.append((address, size))
        return merged

    def traffic(self) -> list[tuple[Memory, int, int]]:
        """Return the bytes that the job has loaded from, and stored to, each memory."""
        regions = self._library.covp_unit_regions(self._handle)
        return [(m, regions[i].read, regions[i].written) for i, m in enumerate(self._memories)]

    def save(self) -> bytes:
        """Return the unit's state between two jobs."""
        size = ctypes.c_uint64()
        data = self._library.covp_unit_save(self._handle, ctypes.byref(size))
        return ctypes.string_at(data, size.value)

    def load(self, state: bytes) -> None:
        """Go back to what `save` returned."""
        self._library.covp_unit_load(self._handle, state, len(state))


class UnitClock:
    """The clock of a unit in simulation, beside the clock of a core.

    Args:
        model: the unit.
        ratio: cycles of the core for each of the unit.
    """

    def __init__(self, model: UnitModel, ratio: float) -> None:
        self._model, self._ratio, self._base = model, ratio, 0.0

    def align(self, cycle: int) -> None:
        """Let the unit's present cycle be a ``cycle`` of the core."""
        self._base = cycle - self._model.now * self._ratio

    def advance(self, cycle: int) -> bool:
        """Run the unit up to a ``cycle`` of the core; return what `UnitModel.advance` does."""
        return self._model.advance(int((cycle - self._base) / self._ratio))

    def core_cycle(self, cycle: int) -> int:
        """Return the cycle of the core in which a ``cycle`` of the unit has come."""
        return ceil(self._base + cycle * self._ratio)


def _pairs(spans: ctypes._Pointer[ctypes.c_uint32], count: int) -> list[tuple[int, int]]:
    if not count:
        return []
    table = np.ctypeslib.as_array(spans, (2 * count,)).reshape(count, 2)
    return [(int(start), int(size)) for start, size in table.tolist()]


def _open_library(path: Path) -> ctypes.CDLL:
    library = ctypes.CDLL(str(path))
    handle, word, long = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64
    words, longs = ctypes.POINTER(word), ctypes.POINTER(long)
    for name, result, arguments in (
        ("new", handle, (word,)),
        ("delete", None, (handle,)),
        ("open_wave", word, (handle, ctypes.c_char_p, long)),
        ("close_wave", None, (handle,)),
        ("reset", word, (handle,)),
        ("set_regions", None, (handle, ctypes.POINTER(_Region), word)),
        ("regions", ctypes.POINTER(_Region), (handle,)),
        ("begin", None, (handle, word)),
        ("access", word, (handle, word, word, words)),
        ("peek", word, (handle, word, words)),
        ("run", long, (handle, long)),
        ("now", long, (handle,)),
        ("taken", long, (handle,)),
        ("advance", word, (handle, long)),
        ("foresee", long, (handle, long)),
        ("is_idle", word, (handle,)),
        ("has_errors", word, (handle,)),
        ("predict", long, (handle, word, word, word, long)),
        ("drain", word, (handle,)),
        ("interrupts", word, (handle,)),
        ("error", ctypes.c_char_p, (handle,)),
        ("outside", word, (handle, words, words)),
        ("stores", words, (handle, longs, ctypes.POINTER(ctypes.POINTER(ctypes.c_uint8)))),
        ("loads", words, (handle, longs)),
        ("save", handle, (handle, longs)),
        ("load", None, (handle, ctypes.c_char_p, long)),
    ):
        function = library[f"covp_unit_{name}"]
        setattr(library, f"covp_unit_{name}", function)
        function.restype, function.argtypes = result, arguments
    return library

"""`SystemControl`: the system control space of a Cortex-M: SysTick, NVIC, SCB.

Registers as in Arm DDI0403E (ARMv7-M) chapters B3.2 to B3.5.

`CacheRegisters`: B4.8 and B3.2.2. `Dwt`: the data watchpoint and trace unit (C1.8), as far as its
cycle counter.
"""

from __future__ import annotations

from collections.abc import Sequence

from covp.chip.platform_file import parse_size
from covp.chip.platform_file.caches import Cache
from covp.device.machine.data_cache import DataCache, Maintenance
from covp.device.machine.nvic import FIRST_LINE, LINES, PENDSV, SYSTICK, Nvic
from covp.hardware.clock import Event
from covp.hardware.peripheral import Peripheral
from covp.hardware.registers import Field, Register, RegisterMap

_CLEAN, _INVALIDATE = Maintenance.CLEAN, Maintenance.INVALIDATE
_BOTH = _CLEAN | _INVALIDATE
_BY_ADDRESS = {"DCIMVAC": (0xF5C, _INVALIDATE), "DCCMVAU": (0xF64, _CLEAN),
               "DCCMVAC": (0xF68, _CLEAN), "DCCIMVAC": (0xF70, _BOTH)}  # fmt: skip
_BY_WAY = {"DCISW": (0xF60, _INVALIDATE), "DCCSW": (0xF6C, _CLEAN), "DCCISW": (0xF74, _BOTH)}
_NO_DATA = {"ICIALLU": 0xF50, "ICIMVAU": 0xF58, "BPIALL": 0xF78}

CACHE_REGISTERS = (
    *(Register(name, offset, access="ro") for name, offset in (("CLIDR", 0xD78), ("CTR", 0xD7C))),
    Register("CCSIDR", 0xD80, access="ro", on_read="update_ccsidr"),
    Register("CSSELR", 0xD84),
    *(Register(name, offset, access="wo") for name, (offset, _) in (_BY_ADDRESS | _BY_WAY).items()),
    *(Register(name, offset, access="wo") for name, offset in _NO_DATA.items()),
)
OPERATIONS = dict((_BY_ADDRESS | _BY_WAY).values())
"""What is done to a line of data, by the offset of the register."""
_WAYS = frozenset(offset for offset, _ in _BY_WAY.values())


class CacheRegisters:
    """The registers of the caches: their values, and the effect of stores.

    Caches are on from reset, as a board's start-up code leaves them: the platform file describes
    them, CCR.DC and CCR.IC only say so. Operations on instruction caches do nothing, as no code
    is old: what the emulator translated is forgotten when memory changes.

    Args:
        caches: of the platform.
        lines: what the data caches among them hold.
    """

    def __init__(self, caches: Sequence[Cache], lines: DataCache) -> None:
        self._lines = lines
        self._shapes = (
            next((cache for cache in caches if cache.has_data), None),
            next((cache for cache in caches if cache.fetches), None),
        )

    @property
    def ccr(self) -> int:
        """CCR's bits DC and IC."""
        data, fetch = self._shapes
        return (data is not None) << 16 | (fetch is not None) << 17

    @property
    def clidr(self) -> int:
        """CLIDR: one level of separate caches, which is that of coherency and of unification."""
        data, fetch = self._shapes
        kinds = (data is not None) << 1 | (fetch is not None)
        return 1 << 27 | 1 << 24 | kinds if kinds else 0

    @property
    def ctr(self) -> int:
        """CTR: format 4, and the words of the smallest lines as powers of two."""
        data, fetch = ((s.line.bit_length() - 3 if s else 0) for s in self._shapes)
        return 4 << 29 | data << 16 | fetch if data or fetch else 0

    def ccsidr(self, csselr: int) -> int:
        """Shape of the cache that CSSELR selects: bit 0 is set for the instruction cache."""
        shape = self._shapes[csselr & 1] if csselr < 2 else None
        if shape is None:
            return 0
        sets = parse_size(shape.size) // (shape.line * shape.ways)
        policy = 0b0111 if shape.write == "back" and shape.has_data else 0b1010
        words = shape.line.bit_length() - 5
        return policy << 28 | (sets - 1) << 13 | (shape.ways - 1) << 3 | max(0, words)

    def operate(self, offset: int, value: int) -> None:
        """Handle a ``value`` stored to the register of `OPERATIONS` at an ``offset``."""
        if offset in _WAYS:
            self._lines.maintain_way(value, OPERATIONS[offset])
        else:
            self._lines.maintain_line(value, OPERATIONS[offset])


DWT_BASE = 0xE0001000


class Dwt(Peripheral):
    """The DWT unit: CYCCNT counts the core's cycles; other registers keep their value."""

    registers = RegisterMap(
        Register(
            "CTRL",
            0x000,
            fields=[
                Field("CYCCNTENA", 0),
                Field("CONFIG", 1, 27, doc="Kept, without effect."),
                Field("NUMCOMP", 28, 4, access="ro"),
            ],
            on_write="switch",
        ),
        Register("CYCCNT", 0x004, on_write="put", on_read="update"),
        *(
            Register(name, offset)
            for name, offset in (
                ("CPICNT", 0x8), ("EXCCNT", 0xC), ("SLEEPCNT", 0x10), ("LSUCNT", 0x14),
                ("FOLDCNT", 0x18), ("LAR", 0xFB0),
            )
        ),
    )  # fmt: skip

    def reset(self) -> None:
        """Switch the counter off, at 0."""
        super().reset()
        self._value = 0
        self._start: int | None = None

    def switch(self, value: int) -> None:
        """Handle a write to CTRL."""
        running, enable = self._start is not None, value & 1
        if enable and not running:
            self._start = self.clock.now
        elif not enable and running:
            self.update()
            self._value, self._start = self.values["CYCCNT"], None

    def put(self, value: int) -> None:
        """Handle a write to CYCCNT."""
        self._value = value
        if self._start is not None:
            self._start = self.clock.now

    def update(self) -> None:
        """Update CYCCNT when it is read."""
        elapsed = self.clock.now - self._start if self._start is not None else 0
        self.values["CYCCNT"] = (self._value + elapsed) & 0xFFFFFFFF


SCS_BASE = 0xE000E000

_ISER, _ICER, _ISPR, _ICPR, _IABR, _IPR, _NVIC_END = (
    0x100, 0x180, 0x200, 0x280, 0x300, 0x400, 0x4F0
)  # fmt: skip
_SHPR, _SHPR_END = 0xD18, 0xD24
# B3.5: set up by start-up code, and protects nothing; MPU_TYPE says that there are no regions.
_MPU = {
    "MPU_CTRL": 0xD94, "MPU_RNR": 0xD98, "MPU_RBAR": 0xD9C, "MPU_RASR": 0xDA0,
    "MPU_RBAR_A1": 0xDA4, "MPU_RASR_A1": 0xDA8, "MPU_RBAR_A2": 0xDAC, "MPU_RASR_A2": 0xDB0,
    "MPU_RBAR_A3": 0xDB4, "MPU_RASR_A3": 0xDB8,
}  # fmt: skip
_PENDSVSET, _PENDSVCLR, _PENDSTSET, _PENDSTCLR = 1 << 28, 1 << 27, 1 << 26, 1 << 25
_AIRCR_KEY = 0x05FA0000
_PLAIN = {
    "ICTR": 0x004, "ACTLR": 0x008, "SCR": 0xD10, "CCR": 0xD14, "SHCSR": 0xD24, "CFSR": 0xD28,
    "HFSR": 0xD2C, "MMFAR": 0xD34, "BFAR": 0xD38, "CPACR": 0xD88, "FPCCR": 0xF34, "FPCAR": 0xF38,
    "FPDSCR": 0xF3C,
}  # fmt: skip
_VTOR = 0xD08
_QUIET = frozenset((_VTOR, *_MPU.values(), *_PLAIN.values(), *(r.offset for r in CACHE_REGISTERS)))
"""Registers that know no time, and whose stores let no interrupt come."""


class SystemControl(Peripheral):
    """The system control space: SysTick, the NVIC and data caches work, the rest keeps its value.

    Args:
        nvic, caches: of the core.
    """

    not_saved = Peripheral.not_saved | {"_nvic", "_caches"}
    registers = RegisterMap(
        Register(
            "SYST_CSR",
            0x010,
            fields=[
                Field("ENABLE", 0),
                Field("TICKINT", 1),
                Field("CLKSOURCE", 2, reset=1),
                Field("COUNTFLAG", 16, access="ro", doc="Reached 0 since the last read."),
            ],
            on_write="switch",
            on_read="update_flag",
        ),
        Register("SYST_RVR", 0x014, fields=[Field("RELOAD", 0, 24)]),
        Register("SYST_CVR", 0x018, on_write="clear", on_read="update_value"),
        Register("SYST_CALIB", 0x01C, access="ro"),
        Register("CPUID", 0xD00, access="ro"),
        Register("ICSR", 0xD04, on_write="pend", on_read="update_icsr"),
        Register("VTOR", _VTOR, on_write="move_vectors"),
        Register("AIRCR", 0xD0C, on_write="set_group", on_read="update_aircr"),
        Register("DEMCR", 0xDFC),
        Register("MPU_TYPE", 0xD90, access="ro"),
        *(Register(name, offset) for name, offset in _MPU.items()),
        *(Register(name, offset) for name, offset in _PLAIN.items()),
        *CACHE_REGISTERS,
    )

    def __init__(self, nvic: Nvic, caches: CacheRegisters) -> None:
        self._nvic, self._caches = nvic, caches
        self._first_table = nvic.vector_table
        self._tick: Event | None = None
        super().__init__()

    def reset(self) -> None:
        """Reset the registers: SysTick off, caches on."""
        super().reset()
        caches = self._caches
        self.values |= {"CCR": caches.ccr, "CLIDR": caches.clidr, "CTR": caches.ctr}
        self._nvic.vector_table = self.values["VTOR"] = self._first_table
        self._nvic.priority_group = 0
        self._cancel_tick()
        self._start: int | None = None
        self._value = 0
        self._flag_seen = 0

    def switch(self, value: int) -> None:
        """Start or stop SysTick after a write to SYST_CSR."""
        running, enable = self._start is not None, value & 1
        if enable and not running:
            self._resume(self._value)
        elif not enable and running:
            self._value = self._now()[0]
            self._start = None
        self._schedule_tick()

    def clear(self, value: int) -> None:
        """Clear the counter after a write to SYST_CVR; it reloads at the next clock."""
        self._value = 0
        self._flag_seen = 0
        if self._start is not None:
            self._resume(0)
        self._schedule_tick()

    def _schedule_tick(self) -> None:
        """Schedule the exception of TICKINT for the cycle in which the counter reaches 0."""
        self._cancel_tick()
        if self._start is None or not self.get("SYST_CSR", "TICKINT"):
            return
        left = self._now()[0] or self.values["SYST_RVR"] + 1
        self._tick = self.clock.at(self.clock.now + left, self._reach_zero)

    def _reach_zero(self) -> None:
        self._nvic.pending.add(SYSTICK)
        self._schedule_tick()

    def _cancel_tick(self) -> None:
        if self._tick is not None:
            self._tick.cancel()
            self._tick = None

    def read_register(self, offset: int, size: int) -> int:
        """Read a register; arrays of the NVIC and priorities may be read in any size."""
        if _ISER <= offset < _NVIC_END:
            return self._read_nvic(offset, size)
        if _SHPR <= offset < _SHPR_END:
            return self._priorities(offset - _SHPR + 4, size)
        return super().read_register(offset, size)

    def write_register(self, offset: int, size: int, value: int) -> None:
        """Write a register; arrays of the NVIC and priorities may be written in any size."""
        if offset in OPERATIONS:
            self._caches.operate(offset, value)
        elif _ISER <= offset < _NVIC_END:
            self._write_nvic(offset, size, value)
        elif _SHPR <= offset < _SHPR_END:
            self._set_priorities(offset - _SHPR + 4, size, value)
        else:
            super().write_register(offset, size, value)
        if offset not in _QUIET:
            self.interrupt.set(False)  # the core looks at pending interrupts

    def needs_exact_time(self, offset: int, is_store: bool) -> bool:
        """Return whether an access needs the exact time; it does not where it changes nothing."""
        return offset not in _QUIET and super().needs_exact_time(offset, is_store)

    def _priorities(self, first: int, size: int) -> int:
        bytes_ = (self._nvic.priorities.get(first + i, 0) for i in range(size))
        return int.from_bytes(bytes(bytes_), "little")

    def _set_priorities(self, first: int, size: int, value: int) -> None:
        for i in range(size):
            self._nvic.set_priority(first + i, value >> 8 * i & 0xFF)

    def _read_nvic(self, offset: int, size: int) -> int:
        if offset >= _IPR:
            return self._priorities(offset - _IPR + FIRST_LINE, size)
        group = offset & ~0x7F
        shown = {
            _ISER: self._nvic.enabled, _ICER: self._nvic.enabled, _ISPR: self._nvic.pending,
            _ICPR: self._nvic.pending, _IABR: set(self._nvic.active),
        }.get(group, set())  # fmt: skip
        first = (offset - group) * 8 + FIRST_LINE
        return sum(1 << bit for bit in range(8 * size) if first + bit in shown)

    def _write_nvic(self, offset: int, size: int, value: int) -> None:
        nvic = self._nvic
        if offset >= _IPR:
            self._set_priorities(offset - _IPR + FIRST_LINE, size, value)
            return
        group = offset & ~0x7F
        first = (offset - group) * 8 + FIRST_LINE
        lines = {first + bit for bit in range(8 * size) if value >> bit & 1}
        lines &= set(range(FIRST_LINE, FIRST_LINE + LINES))
        if group == _ISER:
            nvic.enabled |= lines
        elif group == _ICER:
            nvic.enabled -= lines
        elif group == _ISPR:
            nvic.pending |= lines
        elif group == _ICPR:
            nvic.pending -= lines - nvic.levels  # a line that is up stays pending

    def pend(self, value: int) -> None:
        """Handle a write to ICSR: PendSV and SysTick become pending, or no longer are."""
        for bit, exception in ((_PENDSVSET, PENDSV), (_PENDSTSET, SYSTICK)):
            if value & bit:
                self._nvic.pending.add(exception)
        for bit, exception in ((_PENDSVCLR, PENDSV), (_PENDSTCLR, SYSTICK)):
            if value & bit:
                self._nvic.pending.discard(exception)

    def update_icsr(self) -> None:
        """Update ICSR when it is read: the active and the pending exceptions."""
        nvic = self._nvic
        value = nvic.active[-1] if nvic.active else 0
        value |= min(nvic.pending, default=0) << 12
        value |= _PENDSVSET if PENDSV in nvic.pending else 0
        value |= _PENDSTSET if SYSTICK in nvic.pending else 0
        self.values["ICSR"] = value

    def move_vectors(self, value: int) -> None:
        """Handle a write to VTOR."""
        self._nvic.vector_table = value & ~0x7F

    def set_group(self, value: int) -> None:
        """Handle a write to AIRCR, ignored without its key. Resets are left to the debugger."""
        if value & 0xFFFF0000 == _AIRCR_KEY:
            self._nvic.priority_group = value >> 8 & 7

    def update_ccsidr(self) -> None:
        """Update CCSIDR when it is read."""
        self.values["CCSIDR"] = self._caches.ccsidr(self.values["CSSELR"])

    def update_aircr(self) -> None:
        """Update AIRCR when it is read."""
        self.values["AIRCR"] = 0xFA050000 | self._nvic.priority_group << 8

    def update_value(self) -> None:
        """Update SYST_CVR before it is read."""
        self.values["SYST_CVR"] = self._now()[0]

    def update_flag(self) -> None:
        """Update COUNTFLAG before SYST_CSR is read, which clears it."""
        zeros = self._now()[1]
        self.set("SYST_CSR", "COUNTFLAG", int(zeros > self._flag_seen))
        self._flag_seen = zeros

    def _resume(self, value: int) -> None:
        self._start, self._value, self._flag_seen = self.clock.now, value, 0

    def _now(self) -> tuple[int, int]:
        """Return (value, how often 0 was reached) since it was started at ``_value``."""
        if self._start is None:
            return self._value, self._flag_seen
        period = self.values["SYST_RVR"] + 1
        elapsed = self.clock.now - self._start
        if elapsed < self._value:
            return self._value - elapsed, 0
        beyond = elapsed - self._value
        zeros = beyond // period + (1 if self._value else 0)
        return (-beyond) % period, zeros

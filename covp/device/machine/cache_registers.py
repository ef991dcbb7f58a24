"""The cache registers of a Cortex-M: Arm DDI0403E (ARMv7-M) B4.8 and B3.2.2."""

from __future__ import annotations

from collections.abc import Sequence

from covp.chip.platform_file import parse_size
from covp.chip.platform_file.caches import Cache
from covp.device.machine.data_cache import DataCache, Maintenance
from covp.hardware.registers import Register

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
        """One level, of separate caches; it is that of coherence and of unification."""
        data, fetch = self._shapes
        kinds = (data is not None) << 1 | (fetch is not None)
        return 1 << 27 | 1 << 24 | kinds if kinds else 0

    @property
    def ctr(self) -> int:
        """Format 4, and the words of the smallest lines as powers of two."""
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

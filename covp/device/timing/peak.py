"""`core_peak`: the most that a core can multiply and load in a cycle, by its timing model.

`least_cycles` is the bound for a layer that follows.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from covp.chip.cores import Core
from covp.chip.platform_file import Platform, parse_size
from covp.chip.platform_file.memory import Region
from covp.device.timing.model import core_timing
from covp.device.timing.native import CodeItem, Pipeline

_REPEATS, _WORD = 20, 4


@dataclass(frozen=True)
class CorePeak:
    """The roofs that no code on the core can exceed, without wait states.

    Attributes:
        macs_per_cycle: int8 multiply-accumulates; None where the core cannot multiply or has no
            timing model.
        bytes_per_cycle: loaded by loads of words, or of several at once, one after the other.
        code: the instructions that multiply and accumulate.
    """

    macs_per_cycle: float | None
    bytes_per_cycle: float | None
    code: str


@functools.cache
def core_peak(core: Core) -> CorePeak:
    """Return the roofs of a core: its fastest multiply-accumulate and load, repeated.

    SMLAD multiplies two pairs of 16 bits and MLA one pair of 32 (Arm DDI0403E, A7.7), in which two
    products of int8 fit: a byte times two of them 16 bits apart. A core without either multiplies
    and adds in two instructions.

    Raises:
        PlatformError: the core's timing model does not fit it.
    """
    if core.timing is None:
        return CorePeak(None, None, "")
    name, macs, block, loads = _arm(core) if core.architecture == "arm" else _riscv(core)
    roof = macs * _REPEATS / _cycles(core, block) if macs else None
    moved = max(nbytes * _REPEATS / _cycles(core, code) for nbytes, code in loads)
    return CorePeak(roof, moved, name)


_Code = Sequence[tuple[int, int]]
"""Instructions and their bytes; results go to three registers, so that none waits for another."""
_Loads = Sequence[tuple[int, _Code]]
"""Ways to load, with the bytes of each."""


def _arm(core: Core) -> tuple[str, int, _Code, _Loads]:
    """Return Arm's fastest multiply-accumulate and loads; r0 to r2: results, r4 to r6: operands."""
    words = [(0x6800 | 4 << 3 | r, 2) for r in range(3)]  # ldr Rr, [r4]
    loads = ((12, words), (16, [(0xCC0F, 2)]))  # ldm r4!, {r0-r3}
    if core.isa.has("dsp"):
        return "SMLAD", 6, [(0xFB240005 | r << 12 | r << 8, 4) for r in range(3)], loads
    if not core.isa.is_armv6m:
        return (
            "MLA of two products",
            6,
            [(0xFB040005 | r << 12 | r << 8, 4) for r in range(3)],
            loads,
        )
    multiply = [(0x4340 | 4 << 3 | r, 2) for r in range(3)]
    add = [(0x1800 | r << 6 | (r + 4) << 3 | (r + 4), 2) for r in range(3)]
    return "MULS of two products + ADDS", 6, [*multiply, *add], loads


def _riscv(core: Core) -> tuple[str, int, _Code, _Loads]:
    """Return RISC-V's; x10 to x12: products, x13 to x15: sums, x5 and x6: operands."""
    loads = ((12, [(0x00002003 | 5 << 15 | r << 7, 4) for r in range(10, 13)]),)  # lw
    if not core.isa.has("m"):
        return "", 0, [], loads
    multiply = [(0x02000033 | 6 << 20 | 5 << 15 | r << 7, 4) for r in range(10, 13)]
    add = [(0x00000033 | r << 20 | (r + 3) << 15 | (r + 3) << 7, 4) for r in range(10, 13)]
    return "MUL of two products + ADD", 6, [*multiply, *add], loads


def _cycles(core: Core, code: _Code) -> int:
    """Return the cycles of `_REPEATS` repetitions of straight-line code, without start-up."""
    pipeline = Pipeline(core_timing(core))

    def spent(repeats: int) -> int:
        items = (CodeItem * (repeats * len(code)))(
            *(CodeItem(bits, size) for bits, size in repeats * list(code))
        )
        return sum(pipeline.time(items, 0x1000).entry[0].own.by)

    return spent(2 * _REPEATS) - spent(_REPEATS)


@dataclass(frozen=True)
class LeastCycles:
    """A lower bound of a layer's cycles on a core, in integers.

    Attributes:
        multiply: to issue its multiply-accumulates, zero weights too, `core_peak` of them a cycle.
        load: to load its inputs and parameters once each, by the widest loads.
        memory: in which the core waits for the memories of those.
        is_serial: multiplications and loads do not issue in the same cycle.
    """

    multiply: float
    load: float
    memory: float
    is_serial: bool

    @property
    def cycles(self) -> int:
        """All three; where they issue together, the longer one of the first two and the last."""
        issued = (self.multiply, self.load)
        return int((sum(issued) if self.is_serial else max(issued)) + self.memory)


def least_cycles(
    platform: Platform, macs: int, input_bytes: int, parameter_bytes: int
) -> LeastCycles | None:
    """Return the bound for a layer, or None: the core has no timing model or cannot multiply.

    Williams, Waterman, Patterson: Roofline, CACM 52(4), 2009, with loads that take an issue slot
    of their own on cores that issue one instruction in a cycle. A form that needs fewer
    multiplications than the layer has, as Winograd's or one that leaves out zero weights, can be
    below it.

    Args:
        platform: its core, flash and RAM count.
        macs: multiply-accumulates.
        input_bytes: of what is in RAM.
        parameter_bytes: of what is in flash: weights and biases.
    """
    peak = core_peak(platform.core)
    if peak.macs_per_cycle is None or peak.bytes_per_cycle is None:
        return None
    return LeastCycles(
        multiply=macs / peak.macs_per_cycle,
        load=(input_bytes + parameter_bytes) / peak.bytes_per_cycle,
        memory=_waits(platform, platform.ram, input_bytes)
        + _waits(platform, platform.flash, parameter_bytes),
        is_serial=not any(
            rule.second and rule.kind.access == "load" for rule in core_timing(platform.core).rules
        ),
    )


def _waits(platform: Platform, region: Region, nbytes: int) -> float:
    """Return the cycles that the core waits for bytes of a region, read once.

    Of a cache the bytes that it can hold may be there from before.
    """
    cache = next((c for c in platform.caches if c.name in region.caches and c.has_data), None)
    if cache is None:
        return nbytes / _WORD * region.waits.data
    missing = max(0, nbytes - parse_size(cache.size))
    waits = 0 if cache.prefetch else cache.transfer_cycles(region.waits.data)
    return missing / cache.line * waits

"""`core_peak`: the most that a core can multiply and load in a cycle, by its timing model."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from covp.chip.cores import Core
from covp.device.timing.model import core_timing
from covp.device.timing.native import CodeItem, Pipeline

_REPEATS = 20


@dataclass(frozen=True)
class CorePeak:
    """The roofs that no code on the core can exceed, without wait states.

    Attributes:
        macs_per_cycle: integer multiply-accumulates; None where the core cannot multiply or has no
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

    SMLAD multiplies two pairs of 16 bits and MLA one pair of 32 (Arm DDI0403E, A7.7); a core
    without them multiplies and adds in two instructions.

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
        return "MLA", 3, [(0xFB040005 | r << 12 | r << 8, 4) for r in range(3)], loads
    multiply = [(0x4340 | 4 << 3 | r, 2) for r in range(3)]
    add = [(0x1800 | r << 6 | (r + 4) << 3 | (r + 4), 2) for r in range(3)]
    return "MULS + ADDS", 3, [*multiply, *add], loads


def _riscv(core: Core) -> tuple[str, int, _Code, _Loads]:
    """Return RISC-V's; x10 to x12: products, x13 to x15: sums, x5 and x6: operands."""
    loads = ((12, [(0x00002003 | 5 << 15 | r << 7, 4) for r in range(10, 13)]),)  # lw
    if not core.isa.has("m"):
        return "", 0, [], loads
    multiply = [(0x02000033 | 6 << 20 | 5 << 15 | r << 7, 4) for r in range(10, 13)]
    add = [(0x00000033 | r << 20 | (r + 3) << 15 | (r + 3) << 7, 4) for r in range(10, 13)]
    return "MUL + ADD", 3, [*multiply, *add], loads


def _cycles(core: Core, code: _Code) -> int:
    """Return the cycles of `_REPEATS` repetitions of straight-line code, without start-up."""
    pipeline = Pipeline(core_timing(core))

    def spent(repeats: int) -> int:
        items = (CodeItem * (repeats * len(code)))(
            *(CodeItem(bits, size) for bits, size in repeats * list(code))
        )
        return sum(pipeline.time(items, 0x1000).entry[0].own.by)

    return spent(2 * _REPEATS) - spent(_REPEATS)

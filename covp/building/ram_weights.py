"""`plan_ram_weights`: the layers whose constants are kept in RAM, where that saves the most cycles.

Flash is slower than RAM, and a layer that reads each weight once gains nothing by a cache. What is
in RAM is copied there from flash at start, as initial values of variables are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from covp.building.core_costs import simulated_cycles
from covp.chip.platform_file import Platform, Region, WaitStates
from covp.codegen.program import Program, ProgramLayer

ALL = 1 << 31
"""As many bytes as fit."""
_ARRAY = re.compile(
    r"^static const (\w+) (\w+)\[(\d+)\] __attribute__\(\(aligned\(4\)\)\)", re.MULTILINE
)
"""The beginning of an array as `covp.codegen.c_text.c_array` writes it: type, name, extent."""
IN_QUESTION = 24
"""Schedules of a layer that are measured: other ones than with weights in flash may be best."""
_LEAST = 64
"""Bytes of a layer's constants from which they are considered."""
_ROOM = 1024
"""Bytes of RAM that stay free for variables and alignment."""


@dataclass(frozen=True)
class _Candidate:
    """A layer whose constants could be in RAM.

    Attributes:
        position: of the layer in the program.
        nbytes: of its constants.
        saved: cycles of an inference that it takes less then.
        name: of its last operator, where it has the schedule for RAM; empty: that for flash.
    """

    position: int
    nbytes: int
    saved: int
    name: str = ""


def fast_flash(platform: Platform) -> Platform:
    """Return a platform whose flash is read as fast as its RAM, by loads."""
    caches = {cache.name for cache in platform.caches if cache.has_data}
    data = platform.ram.waits.data

    def fast(region: Region) -> Region:
        if region.kind != "flash":
            return region
        waits = WaitStates(region.waits.fetch, data)
        kept = tuple(name for name in region.caches if name not in caches)
        return msgspec.structs.replace(region, wait_states=waits, clocks=(), caches=kept)

    return msgspec.structs.replace(platform, memory=tuple(map(fast, platform.memory)))


@dataclass(frozen=True)
class RamWeights:
    """A program with constants in RAM.

    Attributes:
        program: the program.
        made: the same before constants were moved.
        note: a line on what is in RAM, or why nothing is.
    """

    program: Program
    made: Program
    note: str


def plan_ram_weights(
    plain: Program, most: int, toolchain: str, make: Callable[[Collection[str] | None], Program]
) -> RamWeights:
    """Return the program with constants in RAM, where that is faster.

    The cycles of each layer with its constants in RAM are simulated, with its schedule and with the
    one that is best there; what saves the most for a byte is taken, as long as it fits.

    Args:
        plain: the program with all constants in flash.
        most: bytes of RAM that they may take.
        toolchain: as of `simulated_cycles`.
        make: makes the program where the operators of these names have the schedules that are best
            on `fast_flash`; None: all.
    """
    platform = plain.platform
    before = simulated_cycles(plain, toolchain) if platform.core.timing else None
    regions = [region for region in platform.own_memory if region.kind == "ram"]
    # all variables with initial values lie in one region
    largest = max(region.bytes for region in regions)
    room = min(most, plain.ram_left(regions) - _ROOM, largest - _ROOM)
    # the arena is in the first RAM while it fits there beside them
    near = min(room, plain.ram_left(regions[:1]) - _ROOM)
    if before is None or room < _LEAST:
        why = "the cycles are not known" if before is None else f"{room:,} B are no room"
        return RamWeights(plain, plain, f"RAM weights: none, {why} on {platform.name}")
    candidates = _measure(plain, plain, before, room, toolchain)
    candidates += _measure(make(None), plain, before, room, toolchain)
    note = f"RAM weights: none, nothing is faster with constants in {room:,} B of RAM"
    found, least = RamWeights(plain, plain, note), sum(before)
    for budget in dict.fromkeys((room, near)):
        chosen = _choose(candidates, budget)
        made = make({one.name for one in chosen if one.name})
        program = with_ram_weights(made, {one.position for one in chosen})
        cycles = simulated_cycles(program, toolchain) if chosen else None
        if cycles is not None and sum(cycles) < least:
            least, nbytes = sum(cycles), sum(one.nbytes for one in chosen)
            note = (
                f"RAM weights: {nbytes:,} B, for {least:,} instead of {sum(before):,} cycles of "
                "the core, simulated"
            )
            found = RamWeights(program, made, note)
    return found


def with_ram_weights(program: Program, positions: Collection[int]) -> Program:
    """Return a program that keeps the constants of some of its layers in RAM.

    Args:
        program: any.
        positions: of the layers.
    """
    sources = dict(program.sources)
    for position in positions:
        function = program.layers[position].function
        file = f"{function}.c"
        # a section of its own, as compilers put variables that are not written among the constants
        own = rf'static \1 \2[\3] __attribute__((aligned(4), section(".data.{function}.\2")))'
        sources[file] = _ARRAY.sub(own, sources[file])
    return replace(program, sources=sources)


def constant_bytes(program: Program, layer: ProgramLayer) -> int:
    """Return the bytes of a layer's constants in flash that could be in RAM."""
    if layer.target != "cpu" or layer.parts:
        return 0
    source = program.sources.get(f"{layer.function}.c", "")
    return sum(_bytes_of(kind) * int(extent) for kind, _, extent in _ARRAY.findall(source))


def _bytes_of(kind: str) -> int:
    name = {"float": "float32", "double": "float64"}.get(kind, kind.removesuffix("_t"))
    return np.dtype(name).itemsize


def _measure(
    program: Program, plain: Program, before: Sequence[int], room: int, toolchain: str
) -> list[_Candidate]:
    """Return the layers of a program that are faster with constants in RAM.

    Args:
        program: with schedules for flash or for RAM.
        plain, room, toolchain: as in `plan_ram_weights`.
        before: cycles of each layer of the plain program.
    """
    sizes = [constant_bytes(program, layer) for layer in program.layers]
    order = sorted(range(len(sizes)), key=lambda position: -sizes[position])
    waiting = [position for position in order if _LEAST <= sizes[position] <= room]
    found: list[_Candidate] = []
    while waiting:
        batch: list[int] = []
        for position in waiting:  # as many at once as fit
            if sum(sizes[other] for other in batch) + sizes[position] <= room:
                batch.append(position)
        waiting = [position for position in waiting if position not in batch]
        after = simulated_cycles(with_ram_weights(program, batch), toolchain)
        if after is None:
            continue
        for position in batch:
            own = program.layers[position]
            name = own.operators[-1] if own.schedule != plain.layers[position].schedule else ""
            saved = before[position] - after[position]
            if saved > 0 and (name or program is plain):
                found.append(_Candidate(position, sizes[position], saved, name))
    return found


def _choose(candidates: Sequence[_Candidate], budget: int) -> list[_Candidate]:
    """Return those that save the most for a byte, one for each layer, as long as they fit."""
    chosen: dict[int, _Candidate] = {}
    for one in sorted(candidates, key=lambda each: -each.saved / each.nbytes):
        other = chosen.get(one.position)
        is_better = other is None or one.saved > other.saved
        room = budget - sum(each.nbytes for each in chosen.values() if each is not other)
        if is_better and one.nbytes <= room:
            chosen[one.position] = one
    return list(chosen.values())

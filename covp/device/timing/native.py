"""The native side of timing models: ``model.h`` mirrored with ctypes, ``pipeline.h`` called."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from covp.compilers.host_compiler import compile_for_host
from covp.device.timing.instructions import InstructionField
from covp.device.timing.model import MAX_UNITS, OperandCycles, Rule, TimingModel

PIPELINE_HEADERS = tuple(sorted(Path(__file__).parent.glob("*.h")))
"""What applies a timing model to code; the counter of instructions includes it."""
_SOURCE = Path(__file__).with_name("pipeline.c")
CAUSES = ("issue", "operand", "branch", "multiply", "access", "custom", "fetch", "data", "cache")
"""Why cycles pass in a core, in the order of model.h: an instruction issued; an operand was not
there; a jump or a taken branch; further cycles of multiplications and divisions, of loads and
stores whatever the memory, and of custom instructions; waiting for instructions; waiting for data
memory; waiting for what a cache does not hold."""
_MAX_WAITS = 16
MAX_OPERANDS = 4
_LOAD, _STORE, _COUNTED, _ALONE, _DECODED, _JUMPS = 1, 2, 4, 8, 16, 32
_SECOND, _SOONER, _FORWARDS, _TAKES, _PASSES, _ON_FLOATS = 64, 128, 256, 512, 1024, 2048
_PIPELINED, _OVERWRITES, _BACKWARD, _LATER, _COMMITS = 1, 2, 4, 8, 16
_KEEPS, _SHORT_PAIRS, _PAIRS, _LINGERS, _LATE_REDIRECTS = 128, 256, 512, 1024, 2048
_STANDS_STILL, _STORES_PASS, _OLDER_RESULTS, _ALIGNED_PARTS = 4096, 8192, 16384, 32768
_APART, _COUNTS, _TARGETS_LATER = 65536, 131072, 262144
_DATA_WAIT = {"use": 0, "next": 32, "access": 64, "load": 32 | _STORES_PASS}
_FLOAT, _ROTATED, _LATE, _BASE = 1, 2, 4, 8
_NO_REGISTER = 64
ENTRIES = 8
"""Ways to enter a block: by a jump (0), or after code before it: one of seven pasts."""
DEPTH = 6
"""Blocks before a block that its time depends on, at most."""

u8, u16, u32, u64 = ctypes.c_uint8, ctypes.c_uint16, ctypes.c_uint32, ctypes.c_uint64
i32, i64, pointer = ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p


class _Operand(ctypes.Structure):
    _fields_ = (("mask", u32), ("flags", u32))


class NativeRule(ctypes.Structure):
    """A Rule of model.h."""

    _fields_ = (
        ("bytes", u32), ("mask", u32), ("match", u32), ("list", u32),
        ("reads", _Operand * 4), ("writes", _Operand * 2),
        ("also_reads", u32), ("also_writes", u32),
        ("cycles", u16), ("latency", u16), ("early", u16), ("late", u16),
        ("taken", u16), ("mispredicted", u16), ("unit", u16), ("cause", u16),
        ("flags", u16), ("operands", u16), ("shares", u16), ("busy", u16),
        ("settles", u16),
    )  # fmt: skip


class _OperandCycles(ctypes.Structure):
    _fields_ = (
        ("constant", i32), ("divisor_zeros", i32), ("dividend_bits", i32),
        ("quotient_bits", i32), ("quotient", i32), ("quotient_step", i32),
        ("zero_divisor", i32), ("amount", i32), ("is_shift", u32), ("is_used", u32),
        ("is_zero_special", u32),
    )  # fmt: skip


class _WaitStates(ctypes.Structure):
    _fields_ = (
        ("start", u32), ("end", u32), ("fetch", u32), ("data", u32), ("ahead", u32),
        ("crossing", u32),
    )  # fmt: skip


class NativeTiming(ctypes.Structure):
    """A Timing of model.h."""

    _fields_ = (
        ("rules", pointer), ("rule_count", u64), ("short_registers", u32), ("zero_register", u32),
        ("flags", u32), ("width", u32), ("slots", u32 * MAX_UNITS), ("fetch_bytes", u32),
        ("fetch_ahead", u32), ("data_waits", u32), ("period", u32 * MAX_UNITS), ("requests", u32),
        ("split", u32),
        ("misaligned", u32), ("transfers", u32), ("after_store", u32), ("reloads", u32),
        ("settles", u32), ("targets", u32),
        ("operands", _OperandCycles * MAX_OPERANDS), ("wait_count", u32),
        ("waits", _WaitStates * _MAX_WAITS),
    )  # fmt: skip


class CodeItem(ctypes.Structure):
    """An Instruction of model.h."""

    _fields_ = (
        ("bits", u32),
        ("bytes", u8, 4),
        ("alignment", u8, 2),
        ("stored", u8, 2),
        ("is_custom", u8, 1),
        ("memory", u8, 5),
        ("cycles", u16),
    )


class Spent(ctypes.Structure):
    """Cycles by cause, in the order of `CAUSES`."""

    _fields_ = (("by", u32 * len(CAUSES)),)


class EntryTime(ctypes.Structure):
    """The time of a block for one way to enter it: see model.h."""

    _fields_ = (("own", Spent), ("taken", Spent), ("untaken", Spent))


class BlockTime(ctypes.Structure):
    """The time of a block for each way to enter it."""

    _fields_ = (("entry", EntryTime * ENTRIES),)


class _Code(ctypes.Structure):
    _fields_ = (("code", pointer), ("count", u32), ("address", u32), ("more", pointer))


class _History(ctypes.Structure):
    _fields_ = (("code", _Code * DEPTH), ("count", u32))


class PlacedBlock(ctypes.Structure):
    """A Placed of pipeline.c: made by `place_block`."""

    _fields_ = (("block", _Code), ("before", _History * (ENTRIES - 1)), ("ends", u64))


class _PlacedPath(ctypes.Structure):
    _fields_ = (
        ("blocks", pointer), ("first", pointer), ("count", u64), ("entry", u64), ("ends", u64),
        ("jumps", u64),
    )  # fmt: skip


@dataclass(frozen=True)
class PathBlock:
    """A block of a path.

    Attributes:
        items: its instructions.
        address: of the first one.
        more: cycles that each takes beside those of its rule; None: none.
    """

    items: ctypes.Array[CodeItem]
    address: int
    more: ctypes.Array[ctypes.c_int32] | None = None

    @property
    def native(self) -> _Code:
        """The native structure; it holds addresses of the arrays."""
        more = None if self.more is None else ctypes.addressof(self.more)
        return _Code(ctypes.addressof(self.items), len(self.items), self.address, more)


Before = tuple[ctypes.Array[CodeItem], int]
"""Code and its address."""
Histories = Sequence[Sequence[Before]]
"""The preceding blocks, oldest first, of each way to enter a block but the first."""


def place_block(
    code: ctypes.Array[CodeItem], address: int, before: Histories, ends: int
) -> PlacedBlock:
    """Return a block for `Pipeline.times`.

    It holds addresses of the arrays, which have to live as long.

    Args:
        code: its instructions.
        address: of the first one.
        before: the code that it follows when nothing is taken.
        ends: how it ends, see model.h.
    """
    block = PlacedBlock(_Code(ctypes.addressof(code), len(code), address, None), ends=ends)
    for history, blocks in zip(block.before, before, strict=False):
        history.count = len(blocks)
        for slot, (items, start) in zip(history.code, blocks, strict=False):
            slot.code, slot.count, slot.address = ctypes.addressof(items), len(items), start
    return block


@dataclass(frozen=True)
class RegionWaits:
    """The wait states of a stretch of memory.

    Attributes:
        start, end: first address, and the one past the end.
        fetch, data: cycles that a fetch or a load or store takes longer than without wait states.
        ahead, crossing: of `covp.chip.platform_file.memory.FetchInterface`; 0: no limit.
        is_looked_at: accesses of the platform are looked at one by one, for a data cache.
    """

    start: int
    end: int
    fetch: int
    data: int
    ahead: int = 0
    crossing: int = 0
    is_looked_at: bool = False


@functools.lru_cache(maxsize=32)
def _pack_rules(model: TimingModel) -> ctypes.Array[NativeRule]:
    kinds = tuple(model.instructions.with_operands)
    packed = (_pack_rule(rule, kinds) for rule in model.rules)
    return (NativeRule * max(1, len(model.rules)))(*packed)


@functools.lru_cache(maxsize=4096)
def _pack_rule(rule: Rule, kinds: tuple[str, ...]) -> NativeRule:
    """Return a rule for the native side; `kinds`: the classes in the order of `Timing.operands`."""
    slot, pattern, kind = NativeRule(), rule.pattern, rule.kind
    slot.bytes, slot.mask, slot.match = pattern.bytes, pattern.mask, pattern.match
    slot.list = pattern.list if rule.by_places or not pattern.optional else 0
    for fields, places in ((pattern.reads, slot.reads), (pattern.writes, slot.writes)):
        for place, field in zip(places, fields, strict=False):
            place.mask, place.flags = field.mask, _operand_flags(field)
    slot.also_reads = sum(1 << number for number in kind.also_reads)
    slot.also_writes = sum(1 << number for number in kind.also_writes)
    slot.cycles, slot.latency, slot.early, slot.late = (
        rule.cycles, rule.latency, rule.early, rule.late,
    )  # fmt: skip
    slot.taken, slot.mispredicted, slot.unit = rule.taken, rule.mispredicted, rule.unit
    slot.shares, slot.busy, slot.settles = rule.shares, rule.busy, rule.settles
    slot.cause = CAUSES.index(kind.cause)
    if kind.operands:
        slot.operands = 1 + kinds.index(kind.name)
    slot.flags = (
        (kind.access == "load") * _LOAD
        | (kind.access == "store") * _STORE
        | pattern.counted * _COUNTED
        | rule.alone * _ALONE
        | rule.decoded * _DECODED
        | rule.second * _SECOND
        | rule.sooner * _SOONER
        | rule.forwards * _FORWARDS
        | rule.takes * _TAKES
        | rule.passes * _PASSES
        | kind.has_floats * _ON_FLOATS
        | kind.jumps * _JUMPS
    )
    return slot


def _pack_operands(slot: _OperandCycles, kind: str, cycles: OperandCycles | None) -> None:
    slot.is_shift = kind == "shift"
    slot.is_used = cycles is not None
    if cycles is not None:
        slot.constant = cycles.constant
        slot.divisor_zeros, slot.dividend_bits = cycles.divisor_zeros, cycles.dividend_bits
        slot.quotient_bits, slot.amount = cycles.quotient_bits, cycles.amount
        slot.quotient, slot.quotient_step = cycles.quotient, cycles.quotient_step
        slot.zero_divisor = cycles.zero_divisor or 0
        slot.is_zero_special = cycles.zero_divisor is not None


def _operand_flags(field: InstructionField) -> int:
    letter = field.letter
    return (
        field.is_float * _FLOAT
        | field.is_rotated * _ROTATED
        | (letter in "uvcfUA") * _LATE
        | (letter == "w") * _BASE
    )


class Pipeline:
    """A timing model and the memory that the core sees, for the native side.

    Args:
        model: of the core.
        waits: stretches of memory with wait states.
    """

    def __init__(self, model: TimingModel, waits: Sequence[RegionWaits] = ()) -> None:
        self.model, self.waits = model, tuple(waits)
        self._rules = _pack_rules(model)
        zero = model.instructions.zero_register
        fetch = model.fetch
        self.native = NativeTiming(
            rules=ctypes.addressof(self._rules),
            rule_count=len(model.rules),
            short_registers=model.instructions.short_registers,
            zero_register=_NO_REGISTER if zero is None else zero,
            flags=model.pipelined_accesses * _PIPELINED
            | self.tells_memories * _APART
            | model.overwrites_wait * _OVERWRITES
            | (model.predicts == "backward") * _BACKWARD
            | model.executes_later * _LATER
            | model.late_redirects * _LATE_REDIRECTS
            | model.stands_still * _STANDS_STILL
            | model.older_results * _OLDER_RESULTS
            | model.aligned_parts * _ALIGNED_PARTS
            | bool(fetch and fetch.commits) * _COMMITS
            | bool(fetch and fetch.keeps) * _KEEPS
            | model.short_pairs * _SHORT_PAIRS
            | model.targets_later * _TARGETS_LATER
            | bool(fetch and fetch.pairs) * _PAIRS
            | bool(fetch and fetch.lingers) * _LINGERS
            | bool(fetch and fetch.counts) * _COUNTS
            | _DATA_WAIT[model.data_wait],
            width=model.width,
            slots=(u32 * MAX_UNITS)(*(model.slots or [model.width])),
            fetch_bytes=fetch.bytes if fetch else 0,
            fetch_ahead=fetch.ahead if fetch else 0,
            data_waits=self.data_waits,
            period=(u32 * MAX_UNITS)(*model.period),
            requests=model.requests,
            split=model.split,
            misaligned=model.misaligned,
            transfers=model.transfers,
            after_store=model.after_store,
            reloads=model.reloads,
            settles=max(
                (rule.settles - rule.taken for rule in model.rules if rule.taken), default=0
            ),
            targets=model.targets,
            wait_count=len(self.waits),
        )
        kinds = {one.name: one.operands for one in model.instructions.classes}
        for place, name in zip(
            self.native.operands, model.instructions.with_operands, strict=False
        ):
            _pack_operands(place, kinds[name], model.operands.get(name))
        for slot, one in zip(self.native.waits, self.waits, strict=False):
            slot.start, slot.end, slot.fetch, slot.data = one.start, one.end, one.fetch, one.data
            slot.ahead, slot.crossing = one.ahead, one.crossing

    @property
    def address(self) -> int:
        """The address of the native structure; valid as long as this object lives."""
        return ctypes.addressof(self.native)

    def time(
        self,
        code: ctypes.Array[CodeItem],
        address: int,
        before: Histories = (),
        ends: int = 0,
    ) -> BlockTime:
        """Return the time of a block.

        Args:
            code: its instructions.
            address: of the first one.
            before: the code that it follows when nothing is taken.
            ends: how it ends, see model.h.
        """
        return self.times((PlacedBlock * 1)(place_block(code, address, before, ends)))[0]

    def times(self, blocks: ctypes.Array[PlacedBlock]) -> ctypes.Array[BlockTime]:
        """Return the times of many blocks."""
        out = (BlockTime * len(blocks))()
        _library().timing_blocks(pointer(self.address), blocks, u64(len(blocks)), out)
        return out

    def traits(self, address: int, count: int) -> bytes:
        """Find those of ``count`` instructions at a host address whose operands decide the time.

        Returns:
            of each 1 + the place of its class in `InstructionSet.with_operands`, or 0.
        """
        operands = (u8 * max(1, count))()
        place = pointer(self.address)
        _library().timing_traits(place, pointer(address), u64(count), operands)
        return bytes(operands)[:count]

    @property
    def data_waits(self) -> int:
        """Wait states that all data memory has."""
        return min((one.data for one in self.waits), default=0)

    @property
    def tells_memories(self) -> bool:
        """True if accesses pipeline within one memory alone.

        To know the memory of each costs most of the emulator's speed: only where accesses are
        looked at anyway.
        """
        return self.model.pipelined_accesses and any(one.is_looked_at for one in self.waits)

    def told_memories(self, count: int) -> int:
        """Return the number of memories that the time of accesses tells apart; 0: it tells none.

        Args:
            count: of memories.
        """
        if self.tells_memories and count > 1:
            return count
        return len({one.data for one in self.waits} - {self.data_waits})

    def path(
        self, blocks: Sequence[PathBlock], first: PlacedBlock, entry: int, ends: int, jumps: bool
    ) -> int:
        """Return the cycles of blocks that run one after the other.

        Args:
            blocks: of the path.
            first: the first one, made by `place_block`, as far as it says what runs before it.
            entry: how that is entered.
            ends: how the last one ends.
            jumps: ... by a jump.
        """
        codes = (_Code * len(blocks))(*(block.native for block in blocks))
        places = ctypes.addressof(codes), ctypes.addressof(first)
        way = _PlacedPath(*places, len(blocks), entry, ends, jumps)
        return int(_library().timing_path(pointer(self.address), ctypes.byref(way)))

    def operand_cycles(self, kind: str, first: int, second: int) -> int:
        """Return further cycles of an instruction by its operands, or fewer: negative.

        Args:
            kind: its class.
            first, second: bits of their magnitudes; of a shift 0 and its places.
        """
        if kind not in self.model.operands:
            return 0
        place = self.model.instructions.with_operands.index(kind)
        address = ctypes.addressof(self.native.operands[place])
        return int(_library().timing_operands(pointer(address), first, second))


@functools.lru_cache(maxsize=1)
def _library() -> ctypes.CDLL:
    """Return the native side, compiled on first use."""
    path = compile_for_host("timing", "the timing models", [_SOURCE], headers=PIPELINE_HEADERS)
    library = ctypes.CDLL(str(path))
    library.timing_bytes.restype = u64
    library.timing_blocks.restype = library.timing_traits.restype = None
    library.timing_operands.restype = library.timing_path.restype = i32
    mirrored = sum(
        map(ctypes.sizeof, (NativeTiming, NativeRule, BlockTime, PlacedBlock, _PlacedPath))
    )
    assert library.timing_bytes() == mirrored, "C and Python differ"
    return library

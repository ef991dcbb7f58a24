"""The native instruction counter: compiled on first use, called by Unicorn before every block."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from unicorn import unicorn_const as uc

from covp.device.machine.data_cache import DataCache
from covp.device.machine.engine import register_ids
from covp.device.machine.inlining import inline_calls
from covp.device.machine.native_caches import MAX_REGIONS, CacheContents, Ghosts, NativeCaches
from covp.device.machine.native_counter import (
    ALL_CAUSES,
    BlockCount,
    CountPair,
    EdgeCount,
    MachineState,
    MarkerItem,
    SnapshotHead,
    SpendingItem,
    VariedCount,
    counter_library,
    pack_specials,
)
from covp.device.machine.segments import SegmentLog
from covp.device.machine.shadow import Shadow
from covp.device.machine.special_instructions import Special
from covp.device.timing.native import ENTRIES, MAX_OPERANDS, CodeItem, Pipeline, pointer, u32, u64
from covp.device.timing.trace import (
    OTHER_CAUSES,
    BlockRuns,
    Edge,
    RunCycles,
    Runs,
    Trace,
)
from covp.device.timing.ways import FELL, JUMPED, MEMORY, OperandRuns
from covp.errors import DeviceError
from covp.hardware.bus import Memory

_HOOKS = (
    (uc.UC_HOOK_EDGE_GENERATED, "on_new_edge"),
    (uc.UC_HOOK_TLB_FILL, "on_tlb_fill"),
    (uc.UC_HOOK_INTR, "on_exception"),
    (uc.UC_HOOK_INSN_INVALID, "on_invalid_instruction"),
)

_INVALID = (
    uc.UC_HOOK_MEM_READ_UNMAPPED
    | uc.UC_HOOK_MEM_WRITE_UNMAPPED
    | uc.UC_HOOK_MEM_READ_PROT
    | uc.UC_HOOK_MEM_WRITE_PROT
)

_Item = TypeVar("_Item", bound=ctypes.Structure)
_WAITED, _EXCEPTIONS = (ALL_CAUSES.index(cause) for cause in OTHER_CAUSES)
INLINING = True
"""Translated code of cores that are made from now on has fewer calls, where that is possible."""
MAX_TABLES = 2
"""Memories that can have a table of pages of their own: see slow_path.h."""
NOWHERE = 1
"""An odd address: no instruction lies there."""
_NO_LIMIT = (1 << 64) - 1
_FREE_SOME = "raise the limit (ulimit -v), or close sessions that are not needed"
_NO_MEMORY = (
    "",
    f"not enough host memory for the emulator to go on: {_FREE_SOME}",
    f"counts of this device were lost, as host memory is short: {_FREE_SOME}, and open a new one",
)


class Totals(NamedTuple):
    """Retired instructions (exact) and core cycles (estimated)."""

    instructions: int
    cycles: int


@dataclass(frozen=True)
class CounterState:
    """The state that `Counter.save_state` keeps; opaque."""

    kept: tuple[SnapshotHead, ctypes.Array[CountPair], ctypes.Array[SpendingItem]]
    pointers: tuple[int, ...]
    counting: object
    caches: CacheContents


class Counter:
    """A counter of what one Unicorn engine executes.

    Args:
        engine: Unicorn's handle, as a ctypes pointer.
        uclib: Unicorn's shared library.
        memories: where code can be.
        thumb: Arm, else RISC-V.
        timing: cycles of code.
        caches: between the core and its memories.
        specials: instructions that the emulator must not execute.
        all_aligned: every misaligned access is a fault; else only those of Arm's instructions that
            need words.

    Attributes:
        state: what both sides read and write.
        inlines: translated code has fewer calls, see `covp.device.machine.inlining`.
        caches: as given.
        data_cache: what the data caches among them hold.
    """

    def __init__(
        self,
        engine: Any,
        uclib: Any,
        memories: Sequence[Memory],
        thumb: bool,
        timing: Pipeline,
        caches: NativeCaches,
        specials: tuple[Special, ...],
        all_aligned: bool = False,
    ) -> None:
        if len(memories) > MAX_REGIONS:
            raise DeviceError(f"{len(memories)} memory regions; at most {MAX_REGIONS} are possible")
        self._library = counter_library()
        self._engine, self._uclib = engine, uclib
        self._begin, self._run = self._library.machine_begin, self._library.machine_run
        self._load = self._library.machine_load
        self._machine = self._library.machine_new()
        if not self._machine or not self._library.machine_keep_reserve(uclib.uc_emu_start):
            raise DeviceError("not enough host memory for the instruction counter")
        self.state = MachineState.from_address(self._machine)
        self.state.is_thumb = thumb
        for slot, memory in zip(self.state.regions, memories, strict=False):
            slot.start, slot.end = memory.region.start, memory.region.end
            slot.host = memory.pointer
            slot.writable = memory.region.kind == "ram"
            slot.dirty = memory.dirty.ctypes.data
        self.state.region_count = len(memories)
        self.state.emu_stop = ctypes.cast(uclib.uc_emu_stop, pointer).value
        self.state.reg_read = ctypes.cast(uclib.uc_reg_read, pointer).value
        self.state.reg_write = ctypes.cast(uclib.uc_reg_write, pointer).value
        self._ids = register_ids("arm" if thumb else "riscv")
        self.state.xpsr = self._ids.get("xpsr", 0)
        self.state.first_register = next(iter(self._ids.values()))
        self.state.emu_start = ctypes.cast(uclib.uc_emu_start, pointer).value
        self.state.pc_register = self._ids["pc"]
        self.state.wait_bytes = 2 if thumb else 4
        self.state.hook_add = ctypes.cast(uclib.uc_hook_add, pointer).value
        self.state.all_aligned = all_aligned
        self._timing, self._specials = timing, pack_specials(specials)
        self.state.timing = timing.address
        self.state.specials = ctypes.addressof(self._specials)
        self.state.special_count = len(self._specials)
        self._waited = self._exceptions = 0
        self.explains = True
        self.inlines = INLINING and inline_calls(self._library, self._machine, uclib, engine, thumb)
        self._hook(uc.UC_HOOK_BLOCK, "on_inlining_block" if self.inlines else "on_block")
        for kind, function in _HOOKS:
            self._hook(kind, function)
        self.caches = caches
        self.data_cache = DataCache(self._library, self._machine)
        self.state.caches = ctypes.addressof(caches.native)
        self.state.cache_count = len(caches)
        told = timing.told_memories(len(memories))
        self.state.tells_memories = told > 0
        if caches.has_data or told > MAX_TABLES:
            self.look_at_accesses()
        if not self.inlines:
            self._look_at_accesses_by_hooks()

    @property
    def native(self) -> int:
        """The native library's Machine."""
        return int(self._machine)

    def decode_again(self) -> None:
        """Decode all code again after custom instructions have changed; keep the counts."""
        self._library.machine_decode_all(self._machine)

    def wait(self, cycles: int) -> None:
        """Time passes in which the core waits or sleeps."""
        self._library.machine_spend(self._machine, _WAITED, cycles)
        self._waited += cycles

    def enter_exception(self, cycles: int) -> None:
        """Time passes for the entry of an exception, or the return from it."""
        self._library.machine_spend(self._machine, _EXCEPTIONS, cycles)
        self._exceptions += cycles

    def led_to(self, pc: int) -> None:
        """End the latest block at ``pc``, where an exception is entered or the program is over."""
        self._library.machine_led_to(self._machine, pc)

    def _look_at_accesses_by_hooks(self) -> None:
        """Let Unicorn call before each access: where calls are not inlined."""
        for name in ("context_alloc", "context_save", "context_restore", "context_free"):
            setattr(
                self.state, name, ctypes.cast(getattr(self._uclib, f"uc_{name}"), pointer).value
            )
        self._hook(uc.UC_HOOK_MEM_READ | uc.UC_HOOK_MEM_WRITE, "on_access")
        self._hook(_INVALID, "on_invalid_access")

    def _hook(self, kind: int, function: str) -> ctypes.c_size_t:
        handle = ctypes.c_size_t()
        callback = ctypes.cast(getattr(self._library, function), pointer)
        status = self._uclib.uc_hook_add(
            self._engine, ctypes.byref(handle), kind, callback, pointer(self._machine),
            u64(1), u64(0),
        )  # fmt: skip
        if status:
            raise DeviceError(f"Unicorn rejected the hook {function}: error {status}")
        return handle

    def count_executions(self, address: int) -> ctypes.c_uint64:
        """Count executions of the instruction at an address from now on.

        A conditional instruction counts only when its condition holds.

        Code that is translated already is to be forgotten.
        """
        count, handle = u64(), ctypes.c_size_t()
        callback = ctypes.cast(self._library.on_executed, pointer)
        status = self._uclib.uc_hook_add(
            self._engine, ctypes.byref(handle), uc.UC_HOOK_CODE, callback,
            pointer(ctypes.addressof(count)), u64(address), u64(address),
        )  # fmt: skip
        if status:
            raise DeviceError(f"Unicorn rejected a hook at 0x{address:08x}: error {status}")
        return count

    def look_at_accesses(self) -> None:
        """Count bytes by memory from now on.

        Code that is translated already is to be forgotten.
        """
        self.state.counts_accesses = 1
        self.state.looks_at_accesses = True

    def add_shadow(self) -> Shadow:
        """Check every access to memory from now on; before any code has run."""
        shadow = Shadow(self._library, self._machine, self._ids["sp"])
        self._library.machine_decode_all(self._machine)
        self.state.looks_at_accesses = True
        return shadow

    def keep_segments(
        self, is_running: Callable[[], bool], pace: Callable[[int], int], ghosts: Ghosts
    ) -> SegmentLog:
        """Cut what is executed from now on into segments; before any code has run.

        Args:
            is_running, pace, ghosts: as for `SegmentLog`.
        """
        self.look_at_accesses()
        return SegmentLog(self._library, self._machine, is_running, pace, ghosts)

    def moved_bytes(self) -> NDArray[np.int64]:
        """Return the bytes loaded, stored and fetched as code, of each bucket and memory.

        Loads and stores only since `look_at_accesses`.
        """
        words = (u64 * (self._bucket_count * MAX_REGIONS * 3))()
        self._library.machine_moved(self._machine, words)
        table = np.frombuffer(memoryview(words), np.int64)
        return table.reshape(self._bucket_count, MAX_REGIONS, 3)[:, : self.state.region_count]

    def close(self) -> None:
        """Free the native side; the engine must be closed before."""
        if self._machine:
            self._library.machine_free(self._machine)
            self._machine = None

    def begin(self, ceiling: int, cycle_limit: int | None = None, allowed: int = NOWHERE) -> None:
        """Prepare for an emu_start.

        Args:
            ceiling: stop before the first block at this total of instructions.
            cycle_limit: the same for cycles; None: no limit.
            allowed: a special instruction that starts the run and is to be executed.
        """
        limit = _NO_LIMIT if cycle_limit is None else cycle_limit
        self._begin(self._machine, min(ceiling, _NO_LIMIT), limit, allowed)

    def run(self, pc: int, stop: int, exactly: bool = False) -> int:
        """Let the emulator run, after `begin`.

        Args:
            pc: with the Thumb bit.
            stop: the address before which the run ends.
            exactly: no block of code reaches over it; see `set_stop`.

        Returns:
            Unicorn's error number; 0 for none. `state` has the pc, and whether that is all.

        Raises:
            DeviceError: memory is short.
        """
        status = int(self._run(self._machine, self._engine, pc, stop, exactly))
        if self.state.lacks_memory:
            raise DeviceError(_NO_MEMORY[self.state.lacks_memory])
        return status

    def set_stop(self, stop: int) -> None:
        """Set the stop of the next runs, which makes them faster."""
        self._library.machine_set_stop(self._machine, stop)

    def request_stop(self) -> None:
        """Stop before the next block. For callbacks, where uc_emu_stop would harm."""
        self.state.fresh = 0
        self.state.limit = 0

    def give_up_access(self) -> None:
        """End the run with the access being made. For callbacks, beside uc_emu_stop."""
        self.state.given_up = True
        self.request_stop()

    def limit_cycles(self, cycle: int) -> None:
        """Stop the run before the first block at that total of cycles."""
        self.state.cycle_limit = cycle

    def left_at(self, pc: int) -> None:
        """Take back what the last block did not do, as the run ended at ``pc``."""
        self._library.machine_left_at(self._machine, pc)

    def settle(self, pc: int) -> None:
        """Execute the custom instructions before ``pc``, where the run ended."""
        self._library.machine_settle(self._machine, self._engine, pc)

    def set_custom(self, bits: int, cycles: int, function: int | None, state: int | None) -> int:
        """Let a function of the host execute an instruction; `decode_again` is to follow.

        Args:
            bits: the whole instruction, registers too.
            cycles: of one execution.
            function, state: host addresses; see custom.h. None: the instruction is illegal.

        Returns:
            the number of the instruction, for `custom_uses`.

        Raises:
            DeviceError: there are no more numbers.
        """
        number = int(self._library.machine_set_custom(self._machine, bits, cycles, function, state))
        if not number:
            raise DeviceError(
                "more than 4095 custom instructions that differ in their registers; "
                "write the code with fewer registers"
            )
        return number

    def patch(self, number: int, quiet: bool = False) -> int:
        """Return the bits that stand in memory for a custom instruction.

        ``quiet``: of one that writes no register and is followed by another one.
        """
        return int(self._library.machine_patch(number, quiet))

    def custom_uses(self, number: int) -> int:
        """Return the executions of a custom instruction since `set_custom`."""
        return int(self._library.machine_custom_uses(self._machine, number))

    def set_custom_uses(self, number: int, uses: int) -> None:
        """Go on counting a custom instruction from there."""
        self._library.machine_set_custom_uses(self._machine, number, uses)

    def now(self, pc: int) -> Totals:
        """Return the totals before the instruction at ``pc`` of the running block."""
        count = CountPair()
        self._library.machine_now(self._machine, pc, ctypes.byref(count))
        return Totals(count.instructions, count.cycles)

    def block(self) -> int:
        """Return the address of the running block."""
        return int(self._library.machine_block(self._machine))

    def look_at_load(self, pc: int, address: int, size: int) -> None:
        """Count a misaligned load that the emulator refused without a call before it."""
        self._library.machine_look_at_load(self._machine, pc, address, size)

    def ran_last(self, address: int) -> bool:
        """Return whether the instruction at ``address`` is the end of the block that ran last."""
        return bool(self._library.machine_ran_last(self._machine, address))

    def opcode(self, address: int) -> int:
        """Return the bits of the instruction at an address; 0 outside the memory."""
        return int(self._library.machine_opcode(self._machine, address))

    def may_have_code(self, address: int, size: int) -> bool:
        """Return whether code may have been translated from these bytes."""
        return bool(self._library.machine_may_have_code(self._machine, address, size))

    def count_one(self, address: int, size: int) -> None:
        """Count the instruction at ``address`` that the host executed."""
        self._library.machine_count_one(self._machine, address, size)

    def set_markers(self, markers: Sequence[tuple[int, int]], buckets: int) -> None:
        """Switch to a bucket when a block at an address is entered; clears the buckets."""
        packed = (MarkerItem * len(markers))(*(MarkerItem(*marker) for marker in sorted(markers)))
        if not self._library.machine_set_markers(self._machine, packed, len(markers), buckets):
            raise DeviceError("not enough host memory for the markers")
        self._bucket_count, self._counting = buckets, object()
        self._counts = (u64 * (2 * buckets))()

    def set_breakpoints(self, addresses: Iterable[int]) -> None:
        """Stop before these instructions; replaces the ones set before."""
        wanted = sorted(set(addresses))
        packed = (u32 * len(wanted))(*wanted)
        if not self._library.machine_set_breakpoints(self._machine, packed, len(wanted)):
            raise DeviceError("not enough host memory for the breakpoints")

    def clear_caches(self) -> None:
        """Empty the caches."""
        self._library.machine_clear_caches(self._machine)

    def start(self) -> None:
        """Start a program: bucket 0 is current, and no branch leads from what ran before."""
        self._library.machine_start(self._machine)

    @property
    def has_phases(self) -> bool:
        """True if markers were set."""
        return self._bucket_count > 0

    @property
    def explains(self) -> bool:
        """True if `read_costs` and `moved_bytes` are by bucket; set it before `set_markers`."""
        return bool(self.state.explains)

    @explains.setter
    def explains(self, on: bool) -> None:
        self.state.explains = on

    def buckets(self) -> list[Totals]:
        """Return the counts of each bucket."""
        counts = self._counts
        if not counts:
            return []
        self._library.machine_buckets(self._machine, counts)
        words = counts[:]
        return list(map(Totals, words[::2], words[1::2]))

    def set_functions(self, marks: Sequence[tuple[int, int]], functions: int) -> None:
        """Count by function in `read_costs`; clears it.

        Args:
            marks: (address, number of the function that begins there, from 1; 0: none does).
            functions: how many there are, and one.
        """
        packed = (MarkerItem * len(marks))(*(MarkerItem(*mark) for mark in sorted(marks)))
        if not self._library.machine_set_functions(self._machine, packed, len(marks), functions):
            raise DeviceError("not enough host memory for the counts of functions")
        self._function_count, self._counting = functions, object()

    def read_costs(self) -> NDArray[np.int64]:
        """Return the instructions, and cycles by `ALL_CAUSES`, of each bucket and function."""
        items = self._spending_items()
        self._library.machine_spending(self._machine, items)
        shape = self._bucket_count, self._function_count, 1 + len(ALL_CAUSES)
        return np.frombuffer(memoryview(items), np.int64).reshape(shape)

    def _spending_items(self) -> ctypes.Array[SpendingItem]:
        return (SpendingItem * (self._bucket_count * self._function_count))()

    def phase(self) -> tuple[int, int]:
        """Return the current bucket, and the total of cycles at which it had spent none."""
        origin = u64()
        bucket = self._library.machine_phase(self._machine, ctypes.byref(origin))
        return int(bucket), ctypes.c_int64(origin.value).value

    _bucket_count = 0
    _counts: ctypes.Array[ctypes.c_uint64] = (u64 * 0)()
    _function_count = 1
    _counting: object = None
    """Another one whenever markers or functions are set."""

    def save_state(self) -> CounterState:
        """Return totals, phases and their markers, without the counts of single blocks."""
        progress, buckets = SnapshotHead(), (CountPair * self._bucket_count)()
        spending, caches = self._spending_items(), self.caches.save_state()
        kept = (progress, buckets, spending)
        pointers = tuple(map(ctypes.addressof, kept))
        self._library.machine_save(self._machine, *pointers)
        return CounterState(kept, pointers, self._counting, caches)

    def load_state(self, state: CounterState) -> None:
        """Go back to a saved state; markers that were set since stay, and their buckets."""
        if state.counting is self._counting:
            self._load(self._machine, *state.pointers)
        else:
            self._load(self._machine, state.pointers[0], None, None)
        self.caches.load_state(state.caches)

    # -- traces -------------------------------------------------------------------------------

    def trace_edges(self, on: bool = True) -> None:
        """Count from now on where returns and jumps to registers lead, or no more."""
        self._library.machine_trace_edges(self._machine, on)

    def blocks(self) -> list[BlockRuns]:
        """Return every block that ran to its end so far."""
        return [block for block in self.trace().blocks if block.count]

    def trace(self) -> Trace:
        """Return all that was executed so far.

        `Trace.since` gives a part of it, in which no state may have been loaded. Edges that start
        at returns and jumps to registers are in it as far as `trace_edges` was on.
        """
        counts = self._export("machine_blocks", BlockCount)
        blocks = tuple(
            BlockRuns(
                count.address,
                count.size,
                self._code(position, count.instructions),
                tuple(map(Runs, count.runs, count.jumped, count.ended, count.away)),
                tuple(divmod(way - 1, ENTRIES) if way else None for way in count.before),
                count.ends,
                RunCycles.of(count.time),
                count.turned,
            )
            for position, count in enumerate(counts)
        )
        return Trace(
            blocks,
            self._edges(counts),
            self._operands(),
            tuple(self.state.extra),
            self._waited,
            self._exceptions,
            self.state.memory_cycles,
        )

    def _operands(self) -> tuple[OperandRuns, ...]:
        kinds = {
            **dict(enumerate((MEMORY, FELL, JUMPED), MAX_OPERANDS)),
            **dict(enumerate(self._timing.model.instructions.with_operands)),
        }
        return tuple(
            OperandRuns(
                kinds[one.kind],
                one.first,
                one.second,
                one.count,
                one.block,
                one.place,
                one.entry,
                one.before - 1 if one.before else None,
            )
            for one in self._export("machine_varied", VariedCount)
        )

    def _code(self, position: int, length: int) -> bytes:
        items = (CodeItem * max(1, length))()
        self._library.machine_code(self._machine, position, items)
        return bytes(items)[: length * ctypes.sizeof(CodeItem)]

    def _edges(self, blocks: Sequence[BlockCount]) -> tuple[Edge, ...]:
        """Return the edges that were counted, and those that blocks with a direct branch imply."""
        found = {
            (edge.source, edge.target): edge.count
            for edge in self._export("machine_edges", EdgeCount)
        }
        for position, block in enumerate(blocks):
            if block.target == NOWHERE:
                continue
            past = block.address + block.size
            jumped = sum(block.jumped) + block.turned
            found[position, past] = sum(block.runs) - jumped - sum(block.ended)
            taken = (position, block.target)
            found[taken] = found.get(taken, 0) + jumped
        return tuple(Edge(*place, count) for place, count in found.items() if count)

    def _export(self, function: str, kind: type[_Item]) -> tuple[_Item, ...]:
        export = getattr(self._library, function)
        room = export(self._machine, None, 0)
        items = (kind * max(1, room))()
        export(self._machine, items, room)
        return tuple(items)[:room]

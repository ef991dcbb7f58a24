"""The native instruction counter: compiled on first use, called by Unicorn before every block."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unicorn import unicorn_const as uc
from unicorn.arm_const import UC_ARM_REG_XPSR
from unicorn.riscv_const import UC_RISCV_REG_X0

from covp.errors import DeviceError
from covp.hardware.bus import Memory
from covp.host_compiler import compile_for_host
from covp.timing.tables import Rule

_SOURCE = Path(__file__).with_name("counter.c")
_HEADERS = tuple(_SOURCE.with_name(name) for name in ("alignment.h", "custom.h"))
_MAX_REGIONS = 16

_HOOKS = (
    (uc.UC_HOOK_BLOCK, "on_block"),
    (uc.UC_HOOK_EDGE_GENERATED, "on_new_edge"),
    (uc.UC_HOOK_TLB_FILL, "on_tlb_fill"),
    (uc.UC_HOOK_INTR, "on_exception"),
    (uc.UC_HOOK_INSN_INVALID, "on_invalid_instruction"),
)

NOWHERE = 1
"""An odd address: no instruction lies there."""
u16, u32, u64, pointer = ctypes.c_uint16, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p


class _Rule(ctypes.Structure):
    _fields_ = (
        ("bytes", u32), ("mask", u32), ("match", u32), ("list", u32),
        ("cycles", u16), ("taken", u16), ("flags", u16),
        ("unit", u16),
    )  # fmt: skip


class _Region(ctypes.Structure):
    _fields_ = (("start", u32), ("end", u32), ("host", pointer), ("writable", u32))


class _Count(ctypes.Structure):
    _fields_ = (("instructions", u64), ("cycles", u64))


class _Marker(ctypes.Structure):
    _fields_ = (("address", u32), ("bucket", u32))


class _BlockCount(ctypes.Structure):
    _fields_ = (
        ("count", u64), ("address", u32), ("size", u32), ("instructions", u32), ("cycles", u32),
    )  # fmt: skip


class _Progress(ctypes.Structure):
    _fields_ = (
        ("total", _Count), ("switched", _Count), ("branch_cycles", u64), ("fall_through", u32),
        ("bucket", u32),
    )  # fmt: skip


class MachineState(ctypes.Structure):
    """The part of counter.c's Machine that both sides use."""

    _fields_ = (
        ("instructions", u64), ("cycles", u64), ("limit", u64), ("ceiling", u64),
        ("cycle_limit", u64),
        ("fresh", u32), ("stopped", u32), ("special", u32), ("special_pc", u32),
        ("interrupt", u32), ("access_type", u32), ("access_address", u32), ("access_size", u32),
        ("is_thumb", u32), ("bucket", u32), ("region_count", u32),
        ("regions", _Region * _MAX_REGIONS),
        ("misaligned", u32), ("register_count", u32), ("register_ids", ctypes.c_int * 32),
        ("emu_stop", pointer), ("reg_read_batch", pointer),
        ("reg_read", pointer), ("reg_write", pointer), ("xpsr", u32), ("breakpoint", u32),
        ("allowed", u32), ("pending", u32),
        ("rules", pointer), ("rule_count", u64),
        ("registers", pointer), ("first_register", u64),
    )  # fmt: skip


@dataclass(frozen=True)
class Totals:
    """Retired instructions (exact) and core cycles (estimated)."""

    instructions: int
    cycles: int


@dataclass(frozen=True)
class BlockRuns:
    """A translated block that ran.

    Attributes:
        address, size: of its code, in bytes.
        instructions, cycles: of one run.
        count: how often it ran.
    """

    address: int
    size: int
    instructions: int
    cycles: int
    count: int


@dataclass(frozen=True)
class CounterState:
    """What `Counter.save_state` keeps."""

    progress: _Progress
    buckets: ctypes.Array[_Count]
    markers: tuple[tuple[int, int], ...]


class Counter:
    """Counts what one Unicorn engine executes.

    Args:
        engine: Unicorn's handle, as a ctypes pointer.
        uclib: Unicorn's shared library.
        memories: where code can be.
        thumb: Arm, else RISC-V.
        rules: cycles of instructions and the ones that need the host; the first match holds.
        checked_registers: Unicorn's numbers of registers 0, 1, ... where alignment is to be
            checked (the emulator itself does not), else empty.
    """

    def __init__(
        self,
        engine: Any,
        uclib: Any,
        memories: Sequence[Memory],
        thumb: bool,
        rules: Sequence[Rule],
        checked_registers: Sequence[int] = (),
    ) -> None:
        if len(memories) > _MAX_REGIONS:
            raise DeviceError(
                f"{len(memories)} memory regions; at most {_MAX_REGIONS} are possible"
            )
        self._library = _library()
        self._engine, self._uclib = engine, uclib
        self._machine = self._library.machine_new()
        if not self._machine:
            raise DeviceError("not enough host memory for the instruction counter")
        self.state = MachineState.from_address(self._machine)
        self.state.is_thumb = thumb
        for slot, memory in zip(self.state.regions, memories, strict=False):
            slot.start, slot.end = memory.region.start, memory.region.end
            slot.host = memory.pointer
            slot.writable = memory.region.kind == "ram"
        self.state.region_count = len(memories)
        self.state.emu_stop = ctypes.cast(uclib.uc_emu_stop, pointer).value
        self.state.reg_read_batch = ctypes.cast(uclib.uc_reg_read_batch, pointer).value
        self.state.reg_read = ctypes.cast(uclib.uc_reg_read, pointer).value
        self.state.reg_write = ctypes.cast(uclib.uc_reg_write, pointer).value
        self.state.xpsr = UC_ARM_REG_XPSR if thumb else 0
        self.state.register_count = len(checked_registers)
        for position, number in enumerate(checked_registers):
            self.state.register_ids[position] = number
        self.state.first_register = UC_RISCV_REG_X0
        self._set_rules(rules)

        for kind, function in _HOOKS:
            self._hook(kind, function)

    def _set_rules(self, rules: Sequence[Rule]) -> None:
        self._rules = _packed(tuple(rules))
        self.state.rules = ctypes.addressof(self._rules)
        self.state.rule_count = len(rules)

    def change_rules(self, rules: Sequence[Rule]) -> None:
        """Other cycles and special instructions from now on; what was counted stays."""
        self._set_rules(rules)
        self._library.machine_decode_all(self._machine)

    def _hook(self, kind: int, function: str) -> ctypes.c_size_t:
        handle = ctypes.c_size_t()
        callback = ctypes.cast(getattr(self._library, function), pointer)
        status = self._uclib.uc_hook_add(
            self._engine, ctypes.byref(handle), kind, callback, pointer(self._machine),
            u64(1), u64(0),
        )  # fmt: skip
        if status:
            raise DeviceError(f"Unicorn refused the hook {function}: error {status}")
        return handle

    @contextlib.contextmanager
    def watching_accesses(self) -> Iterator[None]:
        """Let the state's access_* tell of accesses that fail; code must be translated anew.

        Not always on: with such a hook Unicorn takes stores 15 times as slowly.
        """
        invalid = uc.UC_HOOK_MEM_UNMAPPED | uc.UC_HOOK_MEM_PROT
        handle = self._hook(invalid, "on_invalid_access")
        try:
            yield
        finally:
            self._uclib.uc_hook_del(self._engine, handle)

    def close(self) -> None:
        """Free the native side; the engine must be closed before."""
        if self._machine:
            self._library.machine_free(self._machine)
            self._machine = None

    def begin(self, ceiling: int, cycle_limit: int | None = None, allowed: int = NOWHERE) -> None:
        """Prepare for an emu_start.

        Args:
            ceiling: stop in front of the first block at this total of instructions.
            cycle_limit: the same for cycles; None: no limit.
            allowed: a special instruction that starts the run and is to be carried out.
        """
        state = self.state
        state.cycle_limit = (1 << 64) - 1 if cycle_limit is None else cycle_limit
        state.allowed = allowed
        state.ceiling = min(ceiling, (1 << 64) - 1)
        state.fresh, state.limit = 1, 0
        state.stopped = state.special = state.misaligned = state.breakpoint = 0
        state.interrupt = state.access_type = state.pending = 0

    def request_stop(self) -> None:
        """Stop in front of the next block. For callbacks, where uc_emu_stop would harm."""
        self.state.fresh = 0
        self.state.limit = 0

    def limit_cycles(self, cycle: int) -> None:
        """Stop the run in front of the first block at that total of cycles."""
        self.state.cycle_limit = cycle

    def left_at(self, pc: int) -> None:
        """The run ended at ``pc``: take back what the last block did not do."""
        self._library.machine_left_at(self._machine, pc)

    def settle(self, pc: int) -> None:
        """The run ended at ``pc``: carry out the custom instructions that lie in front of it."""
        self._library.machine_settle(self._machine, self._engine, pc)

    def set_custom(self, bits: int, function: int | None, state: int | None) -> int:
        """Let a function of the host carry out an instruction.

        Args:
            bits: the whole instruction, registers too.
            function, state: host addresses; see custom.h. None: the instruction is gone.

        Returns:
            the number of the instruction, for `custom_uses`.

        Raises:
            DeviceError: there are no more numbers.
        """
        number = int(self._library.machine_set_custom(self._machine, bits, function, state))
        if not number:
            raise DeviceError(
                "more than 4095 custom instructions that differ in their registers; "
                "write the code with fewer registers"
            )
        return number

    def patch(self, number: int, quiet: bool = False) -> int:
        """The bits that stand in memory for a custom instruction.

        ``quiet``: of one that writes no register and has another one behind it.
        """
        return int(self._library.machine_patch(number, quiet))

    def custom_uses(self, number: int) -> int:
        """How often a custom instruction was carried out since `set_custom`."""
        return int(self._library.machine_custom_uses(self._machine, number))

    def set_custom_uses(self, number: int, uses: int) -> None:
        """Go on counting a custom instruction from there."""
        self._library.machine_set_custom_uses(self._machine, number, uses)

    def now(self, pc: int) -> Totals:
        """Totals in front of the instruction at ``pc`` of the running block."""
        count = _Count()
        self._library.machine_now(self._machine, pc, ctypes.byref(count))
        return Totals(count.instructions, count.cycles)

    def block(self) -> int:
        """Where the block that is running starts."""
        return int(self._library.machine_block(self._machine))

    def ran_last(self, address: int) -> bool:
        """Whether the instruction at ``address`` is the end of the block that ran last."""
        return bool(self._library.machine_ran_last(self._machine, address))

    def opcode(self, address: int) -> int:
        """The bits of the instruction at an address; 0 outside the memory."""
        return int(self._library.machine_opcode(self._machine, address))

    def count_one(self, address: int, size: int) -> None:
        """Count the instruction at ``address`` that the host carried out."""
        self._library.machine_count_one(self._machine, address, size)

    def set_markers(self, markers: Sequence[tuple[int, int]], buckets: int) -> None:
        """Switch to a bucket when a block at an address is entered; clears the buckets."""
        packed = (_Marker * len(markers))(*(_Marker(*marker) for marker in sorted(markers)))
        if not self._library.machine_set_markers(self._machine, packed, len(markers), buckets):
            raise DeviceError("not enough host memory for the markers")
        self._bucket_count, self._markers = buckets, tuple(markers)

    def set_breakpoints(self, addresses: Iterable[int]) -> None:
        """Stop in front of these instructions; replaces the ones set before."""
        wanted = sorted(set(addresses))
        packed = (u32 * len(wanted))(*wanted)
        if not self._library.machine_set_breakpoints(self._machine, packed, len(wanted)):
            raise DeviceError("not enough host memory for the breakpoints")

    def start(self) -> None:
        """A program starts: bucket 0 is current, and no branch leads from what ran before."""
        self._library.machine_start(self._machine)

    def buckets(self) -> list[Totals]:
        """What was counted to each bucket."""
        counts = (_Count * max(1, self._bucket_count))()
        used = self._library.machine_buckets(self._machine, counts)
        return [Totals(count.instructions, count.cycles) for count in counts[:used]]

    def phase(self) -> tuple[int, int]:
        """The current bucket, and the total of cycles at which it had spent none."""
        origin = u64()
        bucket = self._library.machine_phase(self._machine, ctypes.byref(origin))
        return int(bucket), ctypes.c_int64(origin.value).value

    _bucket_count = 0
    _markers: tuple[tuple[int, int], ...] = ()

    def save_state(self) -> CounterState:
        """Totals, phases and their markers; not the counts of single blocks."""
        progress, buckets = _Progress(), (_Count * self._bucket_count)()
        self._library.machine_save(self._machine, ctypes.byref(progress), buckets)
        return CounterState(progress, buckets, self._markers)

    def load_state(self, state: CounterState) -> None:
        """Go back to a saved state."""
        if (self._markers, self._bucket_count) != (state.markers, len(state.buckets)):
            self.set_markers(state.markers, len(state.buckets))
        progress = ctypes.byref(state.progress)
        self._library.machine_load(self._machine, progress, state.buckets)

    def blocks(self) -> list[BlockRuns]:
        """Every block that ran so far."""
        room = self._library.machine_blocks(self._machine, None, 0)
        found = (_BlockCount * max(1, room))()
        self._library.machine_blocks(self._machine, found, room)
        return [
            BlockRuns(block.address, block.size, block.instructions, block.cycles, block.count)
            for block in found[:room]
        ]


@functools.lru_cache(maxsize=32)
def _packed(rules: tuple[Rule, ...]) -> Any:
    packed = (_Rule * max(1, len(rules)))()
    for slot, rule in zip(packed, rules, strict=False):
        slot.bytes, slot.mask, slot.match, slot.list = rule.bytes, rule.mask, rule.match, rule.list
        slot.cycles, slot.taken, slot.flags = rule.cycles, rule.taken, rule.flags
        slot.unit = rule.unit
    return packed


@functools.lru_cache(maxsize=1)
def _library() -> ctypes.CDLL:
    path = compile_for_host("counter", "the instruction counter", [_SOURCE], headers=_HEADERS)
    library = ctypes.CDLL(str(path))
    machine, address = pointer, u32
    for name, result, arguments in (
        ("machine_shared_bytes", u64, ()),
        ("machine_new", pointer, ()),
        ("machine_free", None, (machine,)),
        ("machine_left_at", None, (machine, address)),
        ("machine_now", None, (machine, address, pointer)),
        ("machine_block", u32, (machine,)),
        ("machine_ran_last", ctypes.c_int, (machine, address)),
        ("machine_opcode", u32, (machine, address)),
        ("machine_count_one", None, (machine, address, u32)),
        ("machine_set_breakpoints", ctypes.c_int, (machine, pointer, u64)),
        ("machine_set_markers", ctypes.c_int, (machine, pointer, u64, u64)),
        ("machine_start", None, (machine,)),
        ("machine_buckets", u64, (machine, pointer)),
        ("machine_phase", u32, (machine, pointer)),
        ("machine_blocks", u64, (machine, pointer, u64)),
        ("machine_settle", None, (machine, pointer, address)),
        ("machine_set_custom", u32, (machine, u32, pointer, pointer)),
        ("machine_custom_uses", u64, (machine, u32)),
        ("machine_set_custom_uses", None, (machine, u32, u64)),
        ("machine_save", None, (machine, pointer, pointer)),
        ("machine_load", None, (machine, pointer, pointer)),
        ("machine_patch", u32, (u32, ctypes.c_int)),
        ("machine_decode_all", None, (machine,)),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    assert library.machine_shared_bytes() == ctypes.sizeof(MachineState), "counter.c and .py differ"
    return library

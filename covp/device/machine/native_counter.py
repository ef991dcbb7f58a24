"""The native side of the counter: its library, and its structures mirrored with ctypes."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

from covp.compilers.host_compiler import PLAIN_LIBRARY, compile_for_host
from covp.device.machine.native_caches import MAX_REGIONS
from covp.device.machine.special_instructions import Special
from covp.device.timing.native import (
    CAUSES,
    ENTRIES,
    PIPELINE_HEADERS,
    BlockTime,
    i64,
    pointer,
    u32,
    u64,
)
from covp.device.timing.trace import OTHER_CAUSES
from covp.hardware.custom_instruction import STATE_HEADER

_FOLDER = Path(__file__).parent
_SOURCES: tuple[Path, ...] = (_FOLDER / "counter.c", _FOLDER / "tracks.c")
_HEADERS = (*sorted(_FOLDER.glob("*.h")), *PIPELINE_HEADERS, STATE_HEADER)
ALL_CAUSES = (*CAUSES, *OTHER_CAUSES)
"""Why cycles pass, with those in which no code runs."""


class _Special(ctypes.Structure):
    _fields_ = (("bytes", u32), ("mask", u32), ("match", u32), ("is_special", u32))


class _Region(ctypes.Structure):
    _fields_ = (
        ("start", u32), ("end", u32), ("host", pointer), ("writable", u32), ("dirty", pointer)
    )  # fmt: skip


class SavedPages(ctypes.Structure):
    """A memory, and what it goes back to; see dirty.h."""

    _fields_ = (
        ("host", pointer), ("saved", pointer), ("dirty", pointer), ("start", u32), ("pages", u32)
    )  # fmt: skip


class CountPair(ctypes.Structure):
    """Instructions and cycles."""

    _fields_ = (("instructions", u64), ("cycles", u64))


class SpendingItem(ctypes.Structure):
    """Instructions, and cycles by cause, of a bucket and function; see causes.h."""

    _fields_ = (("instructions", u64), ("by", u64 * len(ALL_CAUSES)))


class MarkerItem(ctypes.Structure):
    """An address that makes a bucket the current one."""

    _fields_ = (("address", u32), ("bucket", u32))


class BlockCount(ctypes.Structure):
    """The number of runs of a version of a block, and the cost of one run."""

    _fields_ = (
        ("runs", u64 * ENTRIES), ("jumped", u64 * ENTRIES), ("ended", u64 * ENTRIES),
        ("away", u64 * ENTRIES),
        ("before", u64 * (ENTRIES - 1)), ("time", BlockTime), ("address", u32), ("size", u32),
        ("instructions", u32), ("target", u32), ("ends", u64),
        ("turned", i64),
    )  # fmt: skip


class EdgeCount(ctypes.Structure):
    """The number of times the core went from a block, by its place among all, to an address."""

    _fields_ = (("source", u64), ("target", u64), ("count", u64))


class VariedCount(ctypes.Structure):
    """The number of times an instruction had operands of some sizes; see varied.h."""

    _fields_ = (
        ("block", u64), ("count", u64), ("place", u32), ("entry", u32), ("kind", u32),
        ("first", u32), ("second", ctypes.c_int32), ("before", u32),
    )  # fmt: skip


class SegmentRun(ctypes.Structure):
    """Runs of a block that was entered in one way; see segments.h."""

    _fields_ = (
        ("block", u64), ("entry", u64), ("runs", i64), ("taken", i64), ("ended", i64),
    )  # fmt: skip


class SegmentOperands(ctypes.Structure):
    """Runs of an instruction with operands of some sizes."""

    _fields_ = (("varied", u64), ("count", i64))


class SegmentCut(ctypes.Structure):
    """The end of a segment."""

    _fields_ = (
        ("kind", u64), ("phase", u64), ("instructions", u64), ("cycles", u64), ("waited", u64),
        ("exceptions", u64), ("memory_cycles", i64), ("runs", u64), ("operands", u64),
    )  # fmt: skip


class SegmentCounts(ctypes.Structure):
    """The numbers of cuts, runs and operands."""

    _fields_ = (("cuts", u64), ("runs", u64), ("operands", u64))


class SnapshotHead(ctypes.Structure):
    """All of a snapshot but the buckets."""

    _fields_ = (
        ("total", CountPair), ("switched", CountPair), ("branch_cycles", u64 * 2),
        ("fall_through", u32), ("bucket", u32),
    )  # fmt: skip


class MachineState(ctypes.Structure):
    """The part of counter_state.h's Machine that both sides use."""

    _fields_ = (
        ("instructions", u64), ("cycles", u64), ("limit", u64), ("ceiling", u64),
        ("cycle_limit", u64),
        ("fresh", u32), ("stopped", u32), ("special", u32), ("special_pc", u32),
        ("interrupt", u32), ("given_up", u32), ("access_address", u32), ("access_size", u32),
        ("is_thumb", u32), ("bucket", u32), ("region_count", u32),
        ("regions", _Region * MAX_REGIONS),
        ("misaligned", u32), ("all_aligned", u32), ("emu_stop", pointer),
        ("reg_read", pointer), ("reg_write", pointer), ("xpsr", u32), ("breakpoint", u32),
        ("allowed", u32), ("pending", u32),
        ("timing", pointer), ("specials", pointer), ("special_count", u64),
        ("registers", pointer), ("first_register", u64), ("tracing", u64),
        ("hook_add", pointer), ("retranslate", u32),
        ("retranslate_pc", u32), ("tells_memories", u32),
        ("extra", ctypes.c_int64 * len(CAUSES)),
        ("traffic", u64 * 2 * MAX_REGIONS), ("memory_cycles", ctypes.c_int64), ("caches", pointer),
        ("cache_count", u64), ("looks_at_accesses", u64),
        ("store_window", u64), ("flash_start", u32), ("flash_bytes", u32),
        ("emu_start", pointer), ("pc_register", u32), ("wait_bytes", u32), ("pc", u32),
        ("plain_end", u32), ("explains", u32), ("honours_stop", u32),
        ("counts_accesses", u32), ("shadow", pointer), ("context_alloc", pointer),
        ("context_save", pointer), ("context_restore", pointer), ("context_free", pointer),
        ("lacks_memory", u32),
    )  # fmt: skip


@functools.lru_cache(maxsize=32)
def pack_specials(specials: tuple[Special, ...]) -> ctypes.Array[_Special]:
    """Pack special instructions into an array for the native library."""
    items = [_Special(one.bytes, one.mask, one.match, one.is_special) for one in specials]
    return (_Special * len(items))(*items)


@functools.lru_cache(maxsize=1)
def counter_library() -> ctypes.CDLL:
    """Return the native side, compiled on first use."""
    path = compile_for_host(
        "counter", "the instruction counter", _SOURCES, PLAIN_LIBRARY, headers=_HEADERS
    )
    library = ctypes.CDLL(str(path))
    machine, address = pointer, u32
    for name, result, arguments in (
        ("machine_shared_bytes", u64, ()),
        ("machine_new", pointer, ()),
        ("machine_keep_reserve", ctypes.c_int, (pointer,)),
        ("machine_free", None, (machine,)),
        ("machine_begin", None, (machine, u64, u64, u32)),
        ("machine_run", ctypes.c_int, (machine, pointer, u64, u64, ctypes.c_int)),
        ("machine_left_at", None, (machine, address)),
        ("machine_led_to", None, (machine, address)),
        ("machine_now", None, (machine, address, pointer)),
        ("machine_block", u32, (machine,)),
        ("machine_look_at_load", None, (machine, address, address, u32)),
        ("machine_ran_last", ctypes.c_int, (machine, address)),
        ("machine_opcode", u32, (machine, address)),
        ("machine_count_one", None, (machine, address, u32)),
        ("machine_spend", None, (machine, u32, u64)),
        ("machine_set_functions", ctypes.c_int, (machine, pointer, u64, u64)),
        ("machine_spending", None, (machine, pointer)),
        ("machine_moved", None, (machine, pointer)),
        ("machine_set_breakpoints", ctypes.c_int, (machine, pointer, u64)),
        ("memory_restore", u32, (pointer, u32, pointer, u32, pointer)),
        ("machine_set_stop", None, (machine, u32)),
        ("machine_set_markers", ctypes.c_int, (machine, pointer, u64, u64)),
        ("machine_clear_caches", None, (machine,)),
        ("machine_maintain", None, (machine, u32, u32, u32)),
        ("machine_memory_bytes", None, (machine, address, u32, pointer)),
        ("machine_store_memory", None, (machine, address, u32, pointer)),
        ("machine_soil", None, (machine, address, u32)),
        ("machine_store_both", None, (machine, address, u32, pointer)),
        ("machine_start", None, (machine,)),
        ("machine_buckets", u64, (machine, pointer)),
        ("machine_phase", u32, (machine, pointer)),
        ("machine_blocks", u64, (machine, pointer, u64)),
        ("machine_code", None, (machine, u64, pointer)),
        ("machine_edges", u64, (machine, pointer, u64)),
        ("machine_varied", u64, (machine, pointer, u64)),
        ("machine_trace_edges", None, (machine, ctypes.c_int)),
        ("machine_keep_segments", ctypes.c_int, (machine,)),
        ("machine_cut", None, (machine, u64, ctypes.c_int)),
        ("machine_segment_counts", SegmentCounts, (machine,)),
        ("machine_segments", None, (machine, pointer, pointer, pointer)),
        ("machine_add_ghosts", ctypes.c_int, (machine, pointer, u64)),
        ("machine_ghost_misses", None, (machine, pointer)),
        ("machine_expected", None, (machine, u64, pointer)),
        ("machine_settle", None, (machine, pointer, address)),
        ("machine_set_custom", u32, (machine, u32, u32, pointer, pointer)),
        ("machine_log_timeline", ctypes.c_int, (machine, u64)),
        ("machine_timeline", None, (machine, pointer, pointer, pointer)),
        ("machine_custom_uses", u64, (machine, u32)),
        ("machine_set_custom_uses", None, (machine, u32, u64)),
        ("machine_save", None, (machine, pointer, pointer, pointer)),
        ("machine_load", None, (machine, pointer, pointer, pointer)),
        ("machine_patch", u32, (u32, ctypes.c_int)),
        ("machine_decode_all", None, (machine,)),
        ("machine_may_have_code", ctypes.c_int, (machine, address, u32)),
        ("shadow_shared_bytes", u64, ()),
        ("machine_add_shadow", pointer, (machine,)),
        ("machine_set_shadow", None, (machine, address, u32, u32)),
        ("machine_get_shadow", None, (machine, address, u32, pointer)),
        ("machine_get_undefined", None, (machine, address, u32, pointer)),
        ("machine_get_origin", None, (machine, address, ctypes.POINTER(u32))),
        ("machine_wrote", None, (machine, address, u32)),
        ("machine_stack_frame", None, (machine, address, u32, ctypes.c_int)),
        ("machine_begin_shadow", None, (machine,)),
        ("machine_count_hooks", None, (machine, pointer, pointer)),
        ("machine_inline_calls", ctypes.c_int, (machine, pointer, pointer)),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    assert library.machine_shared_bytes() == ctypes.sizeof(MachineState), "C and Python differ"
    return library

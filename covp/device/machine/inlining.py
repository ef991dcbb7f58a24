"""Fewer calls in translated code, see translation.h. Without it emulation is the same, slower."""

from __future__ import annotations

import ctypes
import functools
import threading
from typing import Any

import numpy as np
from unicorn import unicorn_const as uc

from covp.device.machine.engine import new_engine
from covp.device.timing.native import pointer

_VERSION = 0x020104
"""Unicorn 2.1.4, whose numbers of operations and sequence of calls translation.h knows."""
_COMMON = (
    "tcg_gen_callN",
    "check_exit_request",
    "helper_check_exit_request",
    "tcg_func_start",
    None,
    "helper_exit_atomic",
    "cpu_restore_state",
    "helper_ret_ldub_mmu",
    "helper_le_lduw_mmu",
    "helper_le_ldul_mmu",
    "helper_le_ldq_mmu",
    "helper_ret_stb_mmu",
    "helper_le_stw_mmu",
    "helper_le_stl_mmu",
    "helper_le_stq_mmu",
    "tcg_gen_qemu_ld_i32",
    "tcg_gen_qemu_st_i32",
    "tcg_gen_qemu_ld_i64",
    "tcg_gen_qemu_st_i64",
    "tcg_const_i32",
    "tcg_const_i64",
    "tcg_gen_extu_i32_i64",
    "tcg_temp_new_internal",
    "tcg_temp_free_internal",
    "tcg_emit_op",
    "tcg_gen_op1",
)
_ARM = (
    "helper_add_setq",
    "helper_sxtb16",
    "helper_uxtb16",
    "tcg_gen_op2",
    "tcg_gen_op3",
    "tcg_gen_andi_i32",
    "tcg_gen_shli_i32",
    "tcg_gen_shri_i32",
    "tcg_gen_ext8s_i32",
    "tcg_gen_deposit_i32",
)
_ENGINE_BYTES = 0x3A00
"""The least size of Unicorn's structure of an engine."""
_SMALL = 1 << 20
"""Bytes for the code of an engine that runs none."""
_lock = threading.Lock()


def inline_calls(library: ctypes.CDLL, machine: int, uclib: Any, engine: Any, thumb: bool) -> bool:
    """Let code of an engine be translated with fewer calls; False: this Unicorn is not known.

    Args:
        library: the native counter.
        machine: its state of the engine's counter, whose hooks are set.
        uclib: Unicorn's library.
        engine: Unicorn's handle.
        thumb: Arm, else RISC-V.
    """
    if uclib.uc_version(None, None) >> 8 != _VERSION:
        return False
    suffix = "_arm" if thumb else "_riscv32"
    names = [
        f"{name}{suffix}" if name else "helper_uc_tracecode"
        for name in (*_COMMON, *(_ARM if thumb else ()))
    ]
    try:
        addresses = [ctypes.cast(getattr(uclib, name), pointer).value for name in names]
    except AttributeError:
        return False
    with _lock:
        items = (pointer * len(addresses))(*addresses)
        if not library.machine_inline_calls(machine, engine, items):
            return False
        start = int(ctypes.cast(engine, pointer).value or 0)
        places = [_hook_count(kind) for kind in (uc.UC_HOOK_MEM_READ, uc.UC_HOOK_MEM_WRITE)]
        if None not in places:
            library.machine_count_hooks(machine, *(start + (place or 0) for place in places))
        return True


@functools.cache
def _hook_count(kind: int) -> int | None:
    """Find the offset of an engine's number of hooks of a kind; None: not found.

    It is what becomes 1 with the first one, and 0 again without it.
    """
    engine = new_engine(uc.UC_ARCH_ARM, uc.UC_MODE_THUMB, _SMALL)
    start = int(ctypes.cast(engine._uch, pointer).value or 0)
    seen = [ctypes.string_at(start, _ENGINE_BYTES)]
    handle = engine.hook_add(kind, lambda *access: None)
    seen.append(ctypes.string_at(start, _ENGINE_BYTES))
    engine.hook_del(handle)
    seen.append(ctypes.string_at(start, _ENGINE_BYTES))
    before, between, after = (np.frombuffer(one, np.uint32) for one in seen)
    found = np.flatnonzero((before == 0) & (between == 1) & (after == 0))
    return 4 * int(found[0]) if len(found) == 1 else None

"""Fewer calls in translated code, see translation.h. Without it emulation is the same, slower."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

from covp.timing.native import pointer

_VERSION = 0x020104
"""Of Unicorn: 2.1.4, whose numbers of operations and sequence of calls translation.h knows."""
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
)
_ARM = (
    "helper_add_setq",
    "helper_sxtb16",
    "helper_uxtb16",
    "tcg_emit_op",
    "tcg_gen_op2",
    "tcg_gen_op3",
    "tcg_gen_andi_i32",
    "tcg_gen_shli_i32",
    "tcg_gen_shri_i32",
    "tcg_gen_ext8s_i32",
    "tcg_gen_deposit_i32",
)
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
        return bool(library.machine_inline_calls(machine, engine, items))

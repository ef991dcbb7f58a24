"""The host address of x0..x31: native code reads and writes them there, not by a call.

Unicorn does not report it. Its handle points to a structure that points to the processor's, which
holds them in a row (`target_ulong gpr[32]` of QEMU's CPURISCVState); where, depends on how the
library was built. So the row is searched: a pattern is written to the registers and looked up at
the pointers of the first structure, with reads that cannot crash. That needs Linux; elsewhere, and
where nothing is found, Unicorn's functions are called, at 7 ns more for each custom instruction.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys

from unicorn.unicorn_py3.unicorn import Uc

from covp.chip.isa.riscv import RISCV
from covp.device.machine.engine import register_id

_COUNT = 32
_HANDLE_BYTES = 8 << 10
_PROCESSOR_BYTES = 128 << 10
_STEPS = (0x01010101, 0x03050709)
"""Two patterns: register n holds n times the one or the other."""


def find_registers(engine: Uc) -> int | None:
    """Find the host address of x0 of an RV32 engine, followed by x1, ...; None: unknown.

    The registers keep their values.
    """
    if not sys.platform.startswith("linux"):
        return None
    numbers = [register_id("riscv", name) for name in RISCV.registers[1:]]
    values = [engine.reg_read(number) for number in numbers]
    try:
        memory = os.open("/proc/self/mem", os.O_RDONLY)
    except OSError:
        return None
    try:
        return _search(engine, numbers, memory)
    finally:
        os.close(memory)
        for number, value in zip(numbers, values, strict=True):
            engine.reg_write(number, value)


def _search(engine: Uc, numbers: list[int], memory: int) -> int | None:
    pattern = _write_pattern(engine, numbers, _STEPS[0])
    handle = int(ctypes.cast(engine._uch, ctypes.c_void_p).value or 0)
    candidates: list[int] = []
    for (pointer,) in struct.iter_unpack("P", _read(memory, handle, _HANDLE_BYTES)):
        place = _read(memory, pointer, _PROCESSOR_BYTES).find(pattern)
        if place >= 0:
            candidates.append(int(pointer) + place)
    pattern = _write_pattern(engine, numbers, _STEPS[1])
    for address in candidates:
        if _read(memory, address, len(pattern)) == pattern and _is_alive(engine, address):
            return address
    return None


def _write_pattern(engine: Uc, numbers: list[int], step: int) -> bytes:
    """Write a value to each register; return x0..x31 as they lie in memory."""
    values = [step * register & 0xFFFFFFFF for register in range(_COUNT)]
    for number, value in zip(numbers, values[1:], strict=True):
        engine.reg_write(number, value)
    return struct.pack(f"{_COUNT}I", *values)


def _is_alive(engine: Uc, address: int) -> bool:
    """Return whether a value written to memory there is the register's."""
    last = _COUNT - 1
    ctypes.c_uint32.from_address(address + 4 * last).value = _STEPS[0]
    return bool(engine.reg_read(register_id("riscv", RISCV.registers[last])) == _STEPS[0])


def _read(memory: int, address: int, size: int) -> bytes:
    """Return the readable bytes from there: fewer at the end of a mapping, none outside."""
    try:
        return os.pread(memory, size, address) if 0 < address < 1 << 63 else b""
    except OSError:
        return b""

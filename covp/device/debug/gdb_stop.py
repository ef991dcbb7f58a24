"""Stop replies: why the core halted, in the words of GDB's remote protocol.

GDB manual, appendix E.3 "Stop Reply Packets"; signal numbers from include/gdb/signals.def.
"""

from __future__ import annotations

from covp.device.debug.gdb_breakpoints import GdbBreakpoints
from covp.device.debug.target import DebugTarget, HaltReason
from covp.errors import DeviceFault, ProgramExit

_SIGINT, _SIGILL, _SIGTRAP, _SIGBUS, _SIGSEGV, _SIGSYS = 2, 4, 5, 10, 11, 12
_FAULT_SIGNALS = {
    "unmapped read": _SIGSEGV,
    "unmapped write": _SIGSEGV,
    "unmapped fetch": _SIGSEGV,
    "write to read-only memory": _SIGSEGV,
    "stack overflow": _SIGSEGV,
    "illegal instruction": _SIGILL,
    "unhandled exception": _SIGSYS,  # SVC or ecall without a handler
}


INTERRUPTED = b"T02thread:1;"
"""The T packet for a stop that GDB requested, between two steps."""


def at_breakpoint(name: bytes) -> bytes:
    """The T packet for a core that is halted at a breakpoint, ``swbreak`` or ``hwbreak``."""
    return b"T%02x%s:;thread:1;" % (_SIGTRAP, name)


def stop_reply(target: DebugTarget, breakpoints: GdbBreakpoints) -> bytes:
    """The T packet for a halted core."""
    signal, why = _signal(target), b""
    if target.reason is HaltReason.BREAKPOINT:
        name = breakpoints.at(target.read_register("pc"))
        if name is not None:
            return at_breakpoint(name)
    elif target.reason is HaltReason.WATCHPOINT and target.watch_hit is not None:
        watched = breakpoints.watched(target.watch_hit)
        why = b"%s:%x;" % watched if watched else b""
    return b"T%02x%sthread:1;" % (signal, why)


def end_text(end: DeviceFault | ProgramExit) -> str:
    """The line for GDB's console."""
    return f"covp: {end}\n"


def _signal(target: DebugTarget) -> int:
    if target.reason is HaltReason.FAULT and target.fault is not None:
        return _FAULT_SIGNALS.get(target.fault.kind, _SIGBUS)
    return _SIGINT if target.reason is HaltReason.REQUEST else _SIGTRAP

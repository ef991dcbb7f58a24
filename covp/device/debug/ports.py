"""The virtual debug ports by name: protocols between a TCP port and a debug target."""

from __future__ import annotations

import socket
from collections.abc import Callable

from covp.device.debug.cortex_m import CortexMDebug
from covp.device.debug.dap import JtagDp
from covp.device.debug.jtag import BypassTap, Tap, TapChain
from covp.device.debug.remote_bitbang import RemoteBitbang
from covp.device.debug.riscv_debug import DebugModule, Dtm
from covp.device.debug.stlink import StLink
from covp.device.debug.target import DebugTarget
from covp.errors import UsageError, near_misses

Log = Callable[[str], None]

# The second port in the chain, its boundary scan, by board support: RM0385 section 40.6.1, RM0432
# section 57.6.1.
_BOUNDARY_SCANS = {"stm32f7": 0x06449041, "stm32l4": 0x06470041}
_SCAN_IR_LENGTH, _SCAN_IDCODE = 5, 1


def stlink(target: DebugTarget, log: Log) -> Callable[[socket.socket], None]:
    """ST's TCP protocol to a Cortex-M. Raises UsageError for other cores."""
    if target.architecture != "arm":
        raise UsageError("an ST-Link reaches Cortex-M only; take the protocol jtag")
    return StLink(CortexMDebug(target, log)).serve


def jtag(target: DebugTarget, log: Log) -> Callable[[socket.socket], None]:
    """remote_bitbang to a DAP (Cortex-M) or a debug module (RISC-V)."""
    if target.architecture != "arm":
        module = DebugModule(target)
        return RemoteBitbang(TapChain([Dtm(module)]), module.reset).serve
    core = CortexMDebug(target, log)
    ids = core.ids
    scan = _BOUNDARY_SCANS.get(target.device.platform.board)
    taps: list[Tap] = [JtagDp(core, ids.jtag_id, ids.ap_id, ids.increment_bits)]
    if scan is not None:
        taps.append(BypassTap(_SCAN_IR_LENGTH, scan, _SCAN_IDCODE))
    return RemoteBitbang(TapChain(taps), core.control.reset).serve


PROTOCOLS: dict[str, Callable[[DebugTarget, Log], Callable[[socket.socket], None]]] = {
    "stlink": stlink,
    "jtag": jtag,
}


def debug_port(
    name: str, target: DebugTarget, log: Log = lambda line: None
) -> Callable[[socket.socket], None]:
    """The handler of a `DebugServer`; ``log`` is called with lines that the debugger cannot show.

    Raises UsageError: no such protocol, or not for this core.
    """
    if name not in PROTOCOLS:
        raise UsageError(f"unknown protocol {name!r}: {near_misses(name, PROTOCOLS)}")
    return PROTOCOLS[name](target, log)

"""OpenOCD's remote_bitbang protocol: one character an edge (OpenOCD's doc/manual/jtag/drivers).

Nearly all characters belong to long shifts with TMS = 0: "0R4" or "1R5" for a bit that is read,
"04" or "15" for one that is not. Those are taken as a whole.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable

from covp.device.debug.cortex_m import CortexMDebug
from covp.device.debug.dap import JtagDp
from covp.device.debug.jtag import BypassTap, Tap, TapChain
from covp.device.debug.riscv_debug import DebugModule, Dtm
from covp.device.debug.stlink import StLink
from covp.device.debug.target import DebugTarget
from covp.errors import UsageError, near_misses

_FIRST, _LAST = b"0"[0], b"7"[0]
_READ, _QUIT = b"R"[0], b"Q"[0]
_RESETS = {ord("r"): (0, 0), ord("s"): (0, 1), ord("t"): (1, 0), ord("u"): (1, 1)}  # TRST, SRST
_IGNORED = frozenset(b"Bb\n\r")
_READ_SHIFT, _SHIFT = re.compile(rb"(?:[01]R[45])+"), re.compile(rb"(?:[01][45])+")
_TDI = bytes.maketrans(b"45", b"01")


class RemoteBitbang:
    """The pins of a JTAG adapter, connected to a chain.

    Args:
        chain: the ports.
        reset_system: called when SRST is released.
    """

    def __init__(self, chain: TapChain, reset_system: Callable[[], None]) -> None:
        self._chain = chain
        self._reset_system = reset_system

    def serve(self, client: socket.socket) -> None:
        """Handle one connection until the client goes.

        Raises:
            ConnectionError: a character that the protocol does not have.
        """
        self._tck, self._srst = 1, 0
        while data := client.recv(1 << 16):
            answers, ended = self._run(data)
            if answers:
                client.sendall(answers)
            if ended:
                return

    def _run(self, data: bytes) -> tuple[bytes, bool]:
        chain = self._chain
        answers = bytearray()
        position = 0
        while position < len(data):
            if chain.is_shifting:
                position = self._shift_run(data, position, answers)
                if position == len(data):
                    break
            byte = data[position]
            position += 1
            if _FIRST <= byte <= _LAST:
                if byte & 4 and not self._tck:
                    chain.clock(byte >> 1 & 1, byte & 1)
                self._tck = byte & 4
            elif byte == _READ:
                answers.append(48 + chain.tdo)
            elif byte in _RESETS:
                self._drive_resets(*_RESETS[byte])
            elif byte == _QUIT:
                return bytes(answers), True
            elif byte not in _IGNORED:
                raise ConnectionError(f"0x{byte:02x} is not a remote_bitbang command")
        return bytes(answers), False

    def _shift_run(self, data: bytes, position: int, answers: bytearray) -> int:
        """Take a run of whole bits at ``position``; where the next character is."""
        for pattern, width in ((_READ_SHIFT, 3), (_SHIFT, 2)):
            run = pattern.match(data, position)
            if run is None:
                continue
            bits = run[0][width - 1 :: width].translate(_TDI)
            out = self._chain.shift(int(bits[::-1], 2), len(bits))
            if width == 3:
                answers += f"{out:0{len(bits)}b}"[::-1].encode()
            self._tck = 4
            return run.end()
        return position

    def _drive_resets(self, trst: int, srst: int) -> None:
        if trst:
            self._chain.reset()
        if self._srst and not srst:
            self._reset_system()
        self._srst = srst


Log = Callable[[str], None]

# The second port in the chain, its boundary scan, by board support: RM0385 section 40.6.1, RM0432
# section 57.6.1.
_BOUNDARY_SCANS = {"stm32f7": 0x06449041, "stm32l4": 0x06470041}
_SCAN_IR_LENGTH, _SCAN_IDCODE = 5, 1


def stlink(target: DebugTarget, log: Log) -> Callable[[socket.socket], None]:
    """Return a server of ST's TCP protocol for a Cortex-M. Raises UsageError for other cores."""
    if target.architecture != "arm":
        raise UsageError("an ST-Link reaches Cortex-M only; take the protocol jtag")
    return StLink(CortexMDebug(target, log)).serve


def jtag(target: DebugTarget, log: Log) -> Callable[[socket.socket], None]:
    """Return a remote_bitbang server of a DAP (Cortex-M) or a debug module (RISC-V)."""
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
    """Return the handler of a `DebugServer`; ``log`` gets lines that the debugger cannot show.

    Raises UsageError: no such protocol, or not for this core.
    """
    if name not in PROTOCOLS:
        raise UsageError(f"unknown protocol {name!r}:", hint=near_misses(name, PROTOCOLS))
    return PROTOCOLS[name](target, log)

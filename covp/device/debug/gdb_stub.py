"""`GdbStub`: GDB at a virtual device, over its remote serial protocol.

GDB manual, appendix E. All-stop mode, one thread; while the core runs, the only thing that GDB
may send is the interrupt byte.
"""

from __future__ import annotations

import itertools
import re
import socket
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from covp.device.debug.gdb_packets import MALFORMED, OK, GdbBreakpoints, GdbPackets, number, numbers
from covp.device.debug.target import DebugTarget, HaltReason
from covp.device.rsp_link import Damaged, Decoder, Packet, Signal, encode
from covp.device.semihosting import Console
from covp.errors import DeviceError, DeviceFault, ProgramExit


class GdbConsole:
    """An output to GDB's console while GDB is connected, else to the server's terminal.

    Args:
        terminal: of the server; all input comes from there.
    """

    is_terminal = True

    def __init__(self, terminal: Console) -> None:
        self._terminal = terminal
        self._lock = threading.Lock()
        self._attached = False
        self._pending = bytearray()

    def attach(self) -> None:
        """Keep output for a GDB that calls `take` from now on."""
        self._attached = True

    def detach(self) -> None:
        """Send what GDB did not take to the terminal, as it has disconnected."""
        with self._lock:
            self._attached = False
        if rest := self.take():
            self._terminal.write(rest, is_error=False)

    def take(self) -> bytes:
        """Return the output since the last call. From GDB's thread, while the core's may write."""
        with self._lock:
            taken = bytes(self._pending)
            self._pending.clear()
        return taken

    def write(self, data: bytes, is_error: bool) -> None:
        """Send ``data`` to GDB where it is attached, else to the terminal."""
        with self._lock:
            if self._attached:
                self._pending += data
                return
        self._terminal.write(data, is_error)

    def read(self, size: int) -> bytes | None:
        """Read up to ``size`` bytes from the terminal."""
        return self._terminal.read(size)


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
    """Return the T packet for a core that is halted at a breakpoint, ``swbreak`` or ``hwbreak``."""
    return b"T%02x%s:;thread:1;" % (_SIGTRAP, name)


def stop_reply(target: DebugTarget, breakpoints: GdbBreakpoints) -> bytes:
    """Return the T packet for a halted core."""
    signal, why = _signal(target), b""
    if target.reason is HaltReason.BREAKPOINT:
        name = breakpoints.at(target.read_register("pc"))
        if name is not None:
            return at_breakpoint(name)
    elif target.reason is HaltReason.WATCHPOINT and target.watch_hit is not None:
        watched = breakpoints.find_watchpoint(target.watch_hit)
        why = b"%s:%x;" % watched if watched else b""
    return b"T%02x%sthread:1;" % (signal, why)


def end_text(end: DeviceFault | ProgramExit) -> str:
    """Return the line for GDB's console."""
    return f"covp: {end}\n"


def _signal(target: DebugTarget) -> int:
    if target.reason is HaltReason.FAULT and target.fault is not None:
        return _FAULT_SIGNALS.get(target.fault.kind, _SIGBUS)
    return _SIGINT if target.reason is HaltReason.REQUEST else _SIGTRAP


_RECEIVE = 1 << 16
_SEND_TIMEOUT = 10.0  # seconds for GDB to take what is sent


class Closed(Exception):
    """The error of a connection that GDB has closed."""


class GdbLink:
    """The server's end of one connection.

    Attributes:
        acknowledges: packets are answered with + or -; False after QStartNoAckMode.
    """

    def __init__(self, connection: socket.socket) -> None:
        self.acknowledges = True
        self._connection = connection
        self._decoder = Decoder()
        self._waiting: deque[bytes | None] = deque()
        self._sent = b""

    def receive(self) -> bytes | None:
        """Return the next packet; None for the interrupt byte. Raises Closed."""
        while not self._waiting:
            self._take(None)
        return self._waiting.popleft()

    def has_interrupt(self) -> bool:
        """Return whether an interrupt byte has come; packets after it stay. Raises Closed."""
        self._take(0.0)
        if self._waiting and self._waiting[0] is None:
            self._waiting.popleft()
            return True
        return False

    def send(self, payload: bytes) -> None:
        """Send a packet. Raises Closed."""
        self._sent = encode(payload)
        self._put(self._sent)

    def _take(self, seconds: float | None) -> None:
        """Receive the bytes that come within the time; None: wait."""
        try:
            self._connection.settimeout(seconds)
            data = self._connection.recv(_RECEIVE)
        except (TimeoutError, BlockingIOError):
            return
        except OSError:
            raise Closed from None
        if not data:
            raise Closed
        for item in self._decoder.feed(data):
            if isinstance(item, Packet):
                self._acknowledge(b"+")
                self._waiting.append(item.data)
            elif isinstance(item, Damaged):
                self._acknowledge(b"-")
            elif item == Signal("\x03"):
                self._waiting.append(None)
            elif item == Signal("-") and self.acknowledges:
                self._put(self._sent)

    def _acknowledge(self, sign: bytes) -> None:
        if self.acknowledges:
            self._put(sign)

    def _put(self, data: bytes) -> None:
        try:
            self._connection.settimeout(_SEND_TIMEOUT)
            self._connection.sendall(data)
        except OSError:
            raise Closed from None


_LOOK = 0.02  # seconds between two looks for an interrupt while the core runs
_STEPS_BETWEEN_LOOKS = 256
_CONSOLE_BYTES = 1024
"""The most that one O packet prints."""
_V_CONT = b"vCont;c;C;s;S;r"
_ACTION = re.compile(rb"(?:([cs])|([CS])[0-9a-fA-F]{2}|(r)([0-9a-fA-F]+,[0-9a-fA-F]+))(?::.*)?")


@dataclass(frozen=True)
class _Resume:
    """A request to go on: freely, or in steps while the pc is in start <= pc < end."""

    steps: bool
    start: int = 0
    end: int = 0


BUSY = b"+" + encode(b"E.another GDB is connected; detach or quit that one first")
"""The answer to a GDB that comes while another one is there."""


class GdbStub:
    """A server of GDB on a target, one client at a time.

    Args:
        target: is halted when GDB comes, and runs on when it detaches.
        on_event: called with lines for the person at the server.
        console: of the program's semihosting, whose output GDB is to print; None: none.
    """

    def __init__(
        self,
        target: DebugTarget,
        on_event: Callable[[str], None] = lambda line: None,
        console: GdbConsole | None = None,
    ) -> None:
        self._target = target
        self._on_event = on_event
        self._console = console

    def serve(self, connection: socket.socket) -> None:
        """Handle a client of a `DebugServer`; return when GDB disconnects."""
        self._on_event("GDB is here")
        console = self._console
        conversation = _Conversation(self._target, GdbLink(connection), console)
        try:
            if console is not None:
                console.attach()
            conversation.run()
        finally:
            conversation.packets.breakpoints.clear()
            if console is not None:
                console.detach()
            self._on_event("GDB has gone")


class _Conversation:
    """A conversation with one GDB, from its first packet to its last."""

    def __init__(self, target: DebugTarget, link: GdbLink, console: GdbConsole | None) -> None:
        self.packets = GdbPackets(target)
        self._target, self._link, self._console = target, link, console
        self._resumes: dict[bytes, Callable[[bytes], _Resume | None]] = {
            b"c": self._continue, b"s": self._step, b"v": _v_cont,
            b"C": lambda rest: self._continue(rest.partition(b";")[2]),
            b"S": lambda rest: self._step(rest.partition(b";")[2]),
        }  # fmt: skip

    def run(self) -> None:
        """Answer until GDB detaches, kills or goes."""
        self._target.halt()
        with suppress(Closed):
            while True:
                packet = self._link.receive()
                if packet is None:
                    continue  # it is halted already
                if packet[:1] == b"D":
                    self.packets.breakpoints.clear()
                    self._link.send(OK)
                    self._target.resume()
                    return
                if packet[:1] == b"k":
                    self._reset()
                    return
                self._link.send(self._answer(packet))
                if packet == b"QStartNoAckMode":
                    self._link.acknowledges = False

    def _reset(self) -> None:
        self.packets.breakpoints.clear()
        self._target.reset(halt=True)

    def _answer(self, packet: bytes) -> bytes:
        if packet in (b"QStartNoAckMode", b"!"):
            return OK
        if packet.startswith((b"vKill;", b"vRun;")):  # kill and run of GDB's extended mode
            self._reset()
            return OK if packet.startswith(b"vKill;") else self._stop_reply()
        if packet == b"?":
            return self._stop_reply()
        if packet == b"vCont?":
            return _V_CONT
        try:
            resume = self._resumes[packet[:1]](packet[1:]) if packet[:1] in self._resumes else None
            if resume is not None:
                return self._go(resume)
        except (ValueError, DeviceError):
            return MALFORMED
        return self.packets.answer(packet)

    def _continue(self, rest: bytes) -> _Resume:
        self._jump(rest)
        return _Resume(steps=False)

    def _step(self, rest: bytes) -> _Resume:
        self._jump(rest)
        return _Resume(steps=True)

    def _jump(self, address: bytes) -> None:
        if address:
            self._target.write_register("pc", number(address))

    # -- running ------------------------------------------------------------------------------

    def _go(self, resume: _Resume) -> bytes:
        """Run the core until it halts; returns the stop reply."""
        target = self._target
        here = self.packets.breakpoints.at(target.read_register("pc"))
        if resume.steps:
            interrupted = self._steps(resume)
            self._print_output()
            if interrupted:
                return INTERRUPTED
        elif here and target.is_halted:
            return at_breakpoint(here)  # GDB takes those away that it wants to pass
        else:
            if target.is_halted:  # not after "monitor reset run"
                target.resume(watch=True)
            while not target.wait(_LOOK):
                self._print_output()
                if self._link.has_interrupt():
                    target.halt()
            self._print_output()
        if (end := target.fault or target.exit) is not None:
            self._print(end_text(end).encode())
        return self._stop_reply()

    def _print_output(self) -> None:
        """Let GDB print what the program wrote; allowed while GDB waits for a stop only."""
        if self._console is not None:
            self._print(self._console.take())

    def _print(self, text: bytes) -> None:
        for start in range(0, len(text), _CONSOLE_BYTES):
            self._link.send(b"O" + text[start : start + _CONSOLE_BYTES].hex().encode())

    def _stop_reply(self) -> bytes:
        return stop_reply(self._target, self.packets.breakpoints)

    def _steps(self, resume: _Resume) -> bool:
        """Step through the range and return whether GDB interrupted."""
        target, before = self._target, None
        for count in itertools.count(1):
            target.step(watch=True)
            pc = target.read_register("pc") & ~1
            waits, before = pc == before, pc  # for input
            inside = resume.start <= pc < resume.end and not self.packets.breakpoints.at(pc)
            if not inside or target.reason is not HaltReason.STEP:
                break
            if (waits or count % _STEPS_BETWEEN_LOOKS == 0) and self._link.has_interrupt():
                return True
        return False


def _v_cont(rest: bytes) -> _Resume | None:
    """Return the first action of vCont: there is one thread. None for other v packets."""
    word, _, actions = rest.partition(b";")
    if word != b"Cont":
        return None
    match = _ACTION.fullmatch(actions.partition(b";")[0])
    if match is None:
        raise ValueError("no such action")
    if match[3]:
        return _Resume(True, *numbers(match[4]))
    return _Resume(steps=(match[1] or match[2]).lower() == b"s")

"""`TclPort`: commands to OpenOCD through its Tcl port, with time limits and errors that say why.

OpenOCD's manual, section "Tcl RPC server": a command and its reply each end with 0x1a. A command
that fails answers with nothing, so that every command is sent inside a ``catch``.
"""

from __future__ import annotations

import select
import socket
import time

from covp.device.rsp_link import connect
from covp.errors import DeviceError

_END = b"\x1a"
REPLY_SECONDS = 10.0
_LONGEST = 1 << 24


class CommandFailed(DeviceError):
    """A command that OpenOCD answered with an error; the connection is in order.

    Attributes:
        reason: OpenOCD's own words.
    """

    def __init__(self, transport: str, command: str, reason: str) -> None:
        super().__init__(f"{transport}: {command} failed: {reason or 'no reason given'}")
        self.reason = reason


class TclPort:
    """A connection to OpenOCD's Tcl port.

    Raises:
        DeviceError: nothing listens there.
    """

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port
        self.transport = f"openocd:{host}:{port}"
        self._socket: socket.socket | None = None
        self._rest = b""
        self.reconnect()

    @property
    def is_local(self) -> bool:
        """True where OpenOCD sees this machine's files."""
        return self.host in ("127.0.0.1", "localhost", "::1")

    def close(self) -> None:
        """End the connection; a second call does nothing."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def reconnect(self) -> None:
        """Connect again, after an error. Raises DeviceError."""
        self.close()
        self._rest = b""
        self._socket = connect(self.host, self.port, self.transport)
        self._socket.setblocking(False)

    def value(self, command: str, seconds: float = REPLY_SECONDS) -> str:
        """Return the result of a Tcl command. Raises DeviceError with OpenOCD's own words."""
        return self._run(command, f"list [catch {{{command}}} r] $r", seconds)

    def output(self, command: str, seconds: float = REPLY_SECONDS) -> str:
        """Return a command's output, with errors. Raises DeviceError with OpenOCD's own words."""
        return self._run(command, f"list [catch {{capture {{{command}}}}} r] $r", seconds)

    def _run(self, command: str, wrapped: str, seconds: float) -> str:
        short = command if len(command) <= 60 else command[:57] + "..."
        self._send(wrapped.encode() + _END, short)
        reply = self._receive(short, seconds).decode("utf-8", "replace")
        code, _, result = reply.partition(" ")
        if not code.lstrip("-").isdigit():
            raise DeviceError(
                f"{self.transport}: {short}: not an answer of OpenOCD: {reply[:60]!r}; "
                "is its Tcl port there (default 6666)?"
            )
        result = _strip_braces(result)
        if code != "0":
            lines = [line.strip() for line in result.splitlines() if line.strip()]
            reason = next((line for line in lines if "rror" in line), lines[0] if lines else "")
            raise CommandFailed(self.transport, short, reason)
        return result

    def _send(self, data: bytes, step: str) -> None:
        connected = self._open(step)
        deadline = time.monotonic() + REPLY_SECONDS
        view = memoryview(data)
        while view:
            try:
                view = view[connected.send(view) :]
            except BlockingIOError:
                left = deadline - time.monotonic()
                if left <= 0 or not select.select([], [connected], [], left)[1]:
                    raise self._dead(step, "OpenOCD takes no data") from None
            except OSError as error:
                raise self._dead(step, f"the connection broke: {error}") from None

    def _receive(self, step: str, seconds: float) -> bytes:
        connected = self._open(step)
        deadline = time.monotonic() + seconds
        while _END not in self._rest:
            left = deadline - time.monotonic()
            if left <= 0:
                raise self._dead(step, f"no answer within {seconds:g} s; is that its Tcl port?")
            # short looks, so that Ctrl-C is noticed
            if not select.select([connected], [], [], min(left, 0.2))[0]:
                continue
            try:
                data = connected.recv(1 << 18)
            except OSError as error:
                raise self._dead(step, f"the connection broke: {error}") from None
            if not data:
                raise self._dead(step, "OpenOCD closed the connection")
            self._rest += data
            if len(self._rest) > _LONGEST:
                raise self._dead(step, "an answer without end")
        reply, _, self._rest = self._rest.partition(_END)
        return reply

    def _open(self, step: str) -> socket.socket:
        if self._socket is None:
            raise DeviceError(f"{self.transport}: {step}: the connection is closed; open it again")
        return self._socket

    def _dead(self, step: str, why: str) -> DeviceError:
        """Close the connection, as a late reply would be taken for the next one's."""
        self.close()
        return DeviceError(f"{self.transport}: {step}: {why}")


def _strip_braces(text: str) -> str:
    """Return a Tcl list element as text: without its braces, or its backslashes undone."""
    if text.startswith("{") and text.endswith("}"):
        return text[1:-1]
    if text.startswith('"') and text.endswith('"'):
        text = text[1:-1]
    if "\\" not in text:
        return text
    for escaped, plain in (("\\n", "\n"), ("\\t", "\t"), ("\\r", "\r")):
        text = text.replace(escaped, plain)
    return text.replace("\\", "")

"""`DebugServer`: a TCP server for one debugger at a time."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from covp.base.closing import Owned
from covp.errors import DeviceError, UsageError

_ACCEPT_TIMEOUT = 0.1  # seconds between two checks whether the server is to end
PATIENCE = 3.0  # seconds that a second client waits before it is disconnected


class DebugServer(Owned):
    """A server in a thread of its own, for one connection after the other.

    A handler that raises ends its connection, never the server: what a debugger sends cannot
    take it down.

    A second client waits until the first has gone; ``on_event`` says so at once.

    Args:
        handler: serves a connected socket and returns when the client has disconnected.
        host: to bind to; the default accepts connections from this machine only.
        port: 0 picks a free one.
        on_event: called with lines for the person at the server.
        busy: sent to a client that has waited for `PATIENCE` seconds, which is then
            disconnected; None lets it wait.

    Attributes:
        host, port: where it listens.
        failures: exceptions of handlers, newest last; for tests and logs.

    Raises:
        UsageError: ``host`` is empty.
        DeviceError: the address cannot be bound.
    """

    def __init__(
        self,
        handler: Callable[[socket.socket], None],
        host: str = "127.0.0.1",
        port: int = 0,
        on_event: Callable[[str], None] = lambda line: None,
        busy: bytes | None = None,
    ) -> None:
        if not host:  # of bind(2): every one
            raise UsageError("host: an address is needed; 127.0.0.1 is this machine, 0.0.0.0 all")
        self._handler, self._on_event, self._busy = handler, on_event, busy
        self.failures: list[BaseException] = []
        self._client: socket.socket | None = None
        self._closing = False
        self._listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._listener.bind((host, port))
            self._listener.listen(4)
        except (OSError, OverflowError) as error:
            self._listener.close()
            reason = getattr(error, "strerror", None) or error
            raise DeviceError(f"cannot listen on {host}:{port}: {reason}") from None
        self._listener.settimeout(_ACCEPT_TIMEOUT)
        self.host, self.port = host, self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, name="covp-server", daemon=True)
        self._thread.start()

    @property
    def label(self) -> str:
        """The server's name, for messages."""
        return f"the server on {self.host}:{self.port}"

    def close(self) -> None:
        """End the connection and the server, and wait for its thread."""
        self._closing = True
        client = self._client
        if client is not None:
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def wait(self, seconds: float | None = None) -> None:
        """Block until the server is closed, or the time is over."""
        self._thread.join(seconds)

    def _serve(self) -> None:
        """Accept clients; one is served in a thread of its own, the others wait."""
        serving: threading.Thread | None = None
        waiting: deque[tuple[socket.socket, float]] = deque()
        while not self._closing:
            if waiting and (serving is None or not serving.is_alive()):
                serving = self._start(waiting.popleft()[0])
            try:
                client, _ = self._listener.accept()
            except TimeoutError:
                self._let_go(waiting)
                continue
            except OSError:
                break
            if serving is not None:
                serving.join(_ACCEPT_TIMEOUT)  # it may just be leaving
            if serving is None or not serving.is_alive():
                serving = self._start(client)
            else:
                self._tell(client)
                waiting.append((client, time.monotonic()))
        for client, _ in waiting:
            client.close()
        if serving is not None:
            serving.join()

    def _start(self, client: socket.socket) -> threading.Thread:
        self._client = client
        if self._closing:  # close() may have looked for a client before
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)
        thread = threading.Thread(target=self._talk, args=(client,), daemon=True)
        thread.start()
        return thread

    def _talk(self, client: socket.socket) -> None:
        with client:
            try:
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                client.settimeout(None)
                self._handler(client)
            except Exception as error:
                self.failures.append(error)
            self._client = None

    def _tell(self, client: socket.socket) -> None:
        """Say on this side that a client waits."""
        with contextlib.suppress(OSError):
            self._on_event(
                f"{_name(client.getpeername())} waits: {_name(self._peer())} is connected; detach "
                "or end that one first"
            )

    def _peer(self) -> Any:
        client = self._client
        return ("another", 0) if client is None else client.getpeername()

    def _let_go(self, waiting: deque[tuple[socket.socket, float]]) -> None:
        """Tell clients that have waited for long why, and close."""
        if self._busy is None:
            return
        while waiting and time.monotonic() - waiting[0][1] > PATIENCE:
            client, _ = waiting.popleft()
            with contextlib.suppress(OSError), client:
                client.settimeout(_ACCEPT_TIMEOUT)
                client.recv(1 << 16)  # its first request, which this answers
                client.sendall(self._busy)
                client.shutdown(socket.SHUT_WR)


def _name(address: Any) -> str:
    return f"{address[0]}:{address[1]}"


def receive_exactly(client: socket.socket, size: int) -> bytes:
    """Read ``size`` bytes. Raises ConnectionError where the client disconnects before."""
    parts = bytearray()
    while len(parts) < size:
        data = client.recv(size - len(parts))
        if not data:
            raise ConnectionError("the client has disconnected")
        parts += data
    return bytes(parts)

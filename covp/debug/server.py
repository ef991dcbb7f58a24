"""`DebugServer`: a TCP server for one debugger at a time."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable

from covp.errors import DeviceError

_ACCEPT_TIMEOUT = 0.1  # seconds between two checks whether the server is to end


class DebugServer:
    """Listens, and serves one connection after the other in a thread of its own.

    A handler that raises ends its connection, never the server: what a debugger sends cannot
    take it down.

    Args:
        handler: serves a connected socket and returns when the client has gone.
        host: to bind to; the default accepts connections from this machine only.
        port: 0 picks a free one.

    Attributes:
        host, port: where it listens.
        failures: exceptions of handlers, newest last; for tests and logs.

    Raises:
        DeviceError: the address cannot be bound.
    """

    def __init__(
        self, handler: Callable[[socket.socket], None], host: str = "127.0.0.1", port: int = 0
    ) -> None:
        self._handler = handler
        self.failures: list[BaseException] = []
        self._client: socket.socket | None = None
        self._closing = False
        self._listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._listener.bind((host, port))
            self._listener.listen(1)
        except (OSError, OverflowError) as error:
            self._listener.close()
            reason = getattr(error, "strerror", None) or error
            raise DeviceError(f"cannot listen on {host}:{port}: {reason}") from None
        self._listener.settimeout(_ACCEPT_TIMEOUT)
        self.host, self.port = host, self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, name="covp-server", daemon=True)
        self._thread.start()

    def __enter__(self) -> DebugServer:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

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
        while not self._closing:
            try:
                client, _ = self._listener.accept()
            except TimeoutError:
                continue
            except OSError:
                return
            self._client = client
            with client:
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                client.settimeout(None)
                try:
                    if not self._closing:
                        self._handler(client)
                except Exception as error:
                    self.failures.append(error)
                self._client = None


def receive_exactly(client: socket.socket, size: int) -> bytes:
    """That many bytes. Raises ConnectionError where the client has gone before."""
    parts = bytearray()
    while len(parts) < size:
        data = client.recv(size - len(parts))
        if not data:
            raise ConnectionError("the client has gone")
        parts += data
    return bytes(parts)

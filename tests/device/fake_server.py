"""A server for one client after the other, in a thread of its own: what the fakes share."""

from __future__ import annotations

import contextlib
import socket
import threading
from abc import abstractmethod


class FakeServer:
    """Listens on 127.0.0.1 from its construction on; a context manager.

    Attributes:
        port: that it got.
    """

    def __init__(self, port: int = 0) -> None:
        self._client: socket.socket | None = None
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __exit__(self, *error: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        if self._client is not None:
            self._client.close()
        self._thread.join(10)
        assert not self._thread.is_alive()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._client = client
            with client, contextlib.suppress(OSError):  # a client that had enough
                client.settimeout(10)
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.answer_all(client)

    @abstractmethod
    def answer_all(self, client: socket.socket) -> None:
        """Serve one client until it goes."""

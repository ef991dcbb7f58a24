"""The other side of a pseudo terminal: what a program with a serial port does."""

from __future__ import annotations

import os
import select
import threading
import time


class Client:
    """Opens the device file at ``path``; a thread reads all the time, as the official runner's."""

    def __init__(self, path: str) -> None:
        self._handle = os.open(path, os.O_RDWR | os.O_NOCTTY)
        self._text, self._seen, self._ended = "", 0, False
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self._ended = True
        self._thread.join()
        os.close(self._handle)

    def send(self, text: str) -> None:
        os.write(self._handle, text.encode())

    def until(self, end: str, seconds: float = 60) -> str:
        """What has come since the last call, up to ``end``."""
        deadline = time.monotonic() + seconds
        while (found := self._text.find(end, self._seen)) < 0:
            assert time.monotonic() < deadline, f"no {end!r} in {self._text[-200:]!r}"
            time.sleep(0.005)
        begin, self._seen = self._seen, found + len(end)
        return self._text[begin : self._seen]

    def _read(self) -> None:
        while not self._ended:
            if select.select([self._handle], [], [], 0.05)[0]:
                self._text += os.read(self._handle, 4096).decode()

"""The other side of a program's ``:tt``: standard input, output and errors."""

from __future__ import annotations

import queue
import threading
from typing import BinaryIO, Protocol

_PATIENCE = 0.05  # seconds in which a read may block


class Console(Protocol):
    """The destination of a program's standard streams.

    Attributes:
        is_terminal: the answer to ISTTY.
    """

    is_terminal: bool

    def write(self, data: bytes, is_error: bool) -> None:
        """Write a program's ``data`` to its standard output, or errors with ``is_error``."""
        ...

    def read(self, size: int) -> bytes | None:
        """Return up to ``size`` bytes of input; empty at its end; None: none yet, try again."""
        ...


class Collected:
    """A console in memory.

    Args:
        typed: the whole input.

    Attributes:
        output, errors: what the program wrote.
    """

    is_terminal = False

    def __init__(self, typed: bytes = b"") -> None:
        self.output, self.errors = bytearray(), bytearray()
        self._typed = bytearray(typed)

    @property
    def text(self) -> str:
        """The output as UTF-8."""
        return self.output.decode("utf-8", errors="replace")

    def write(self, data: bytes, is_error: bool) -> None:
        """Append ``data`` to `output`, with ``is_error`` to `errors`."""
        (self.errors if is_error else self.output).extend(data)

    def read(self, size: int) -> bytes:
        """Take up to ``size`` bytes of what was typed."""
        taken = bytes(self._typed[:size])
        del self._typed[:size]
        return taken


class Streams:
    """A console on binary streams, such as a terminal's.

    Args:
        typed: the input; it is not read before the program reads.
        output, errors: for what the program writes, flushed at once.
    """

    def __init__(self, typed: BinaryIO, output: BinaryIO, errors: BinaryIO) -> None:
        self.is_terminal = output.isatty()
        self._reader = StreamReader(typed)
        self._output, self._errors = output, errors

    def write(self, data: bytes, is_error: bool) -> None:
        """Write ``data`` to the output, with ``is_error`` to the errors, at once."""
        stream = self._errors if is_error else self._output
        stream.write(data)
        stream.flush()

    def read(self, size: int) -> bytes | None:
        """Read up to ``size`` bytes of the input."""
        return self._reader.read(size)


class StreamReader:
    """A reader of a stream in its own thread, so that a core that waits for input can be halted.

    Args:
        stream: read line by line, and not before the first `read`.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._rest = b""
        self._thread: threading.Thread | None = None

    def read(self, size: int) -> bytes | None:
        """Read up to ``size`` bytes, with a time limit."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._follow, daemon=True)
            self._thread.start()
        if not self._rest:
            try:
                self._rest = self._lines.get(timeout=_PATIENCE)
            except queue.Empty:
                return None if self._thread.is_alive() else b""
        taken, self._rest = self._rest[:size], self._rest[size:]
        return taken

    def _follow(self) -> None:
        for line in self._stream:
            self._lines.put(line)

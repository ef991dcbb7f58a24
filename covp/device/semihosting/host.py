"""`Semihosting`: executes the calls of a program (Arm's specification, chapter 6)."""

from __future__ import annotations

import errno
import struct
import time
from collections.abc import Callable
from pathlib import Path

from covp.device.semihosting.abi import APPLICATION_EXIT, REASONS, Operation
from covp.device.semihosting.console import Collected, Console
from covp.device.semihosting.files import HostFiles
from covp.errors import ProgramExit
from covp.hardware.bus import Bus
from covp.hardware.clock import Clock

_CENTISECONDS = 100
_LONGEST_NAME = 4096


class Semihosting:
    """The host of a program: a console, files in one folder, a clock, the program's end.

    Time is the board's virtual time, so that a run is repeatable. SYSTEM is refused: programs
    start no commands of the host.

    Args:
        console: the other side of ``:tt``; by default it is collected in memory.
        folder: the only place where the program may open, rename and remove files; None: none.
        arguments: the command line of GET_CMDLINE.
        epoch: seconds since 1970 at the reset; None: those of the host's clock then.
        heap: addresses of the RAM that the program does not take; None: HEAPINFO says 0, "unknown".

    Attributes:
        console, folder, arguments: as given.
    """

    def __init__(
        self,
        console: Console | None = None,
        folder: Path | None = None,
        arguments: str = "",
        epoch: float | None = None,
        heap: range | None = None,
    ) -> None:
        self.console: Console = Collected() if console is None else console
        self.folder, self.arguments = folder, arguments
        self._epoch, self._heap = epoch, heap
        self._files = HostFiles(self.console, folder)
        self._calls: dict[int, Callable[[int], int | None]] = {
            Operation.OPEN: self._open, Operation.CLOSE: self._close,
            Operation.WRITEC: self._write_character, Operation.WRITE0: self._write_string,
            Operation.WRITE: self._write, Operation.READ: self._read,
            Operation.READC: self._read_character, Operation.ISERROR: self._is_error,
            Operation.ISTTY: self._is_terminal, Operation.SEEK: self._seek,
            Operation.FLEN: self._length, Operation.TMPNAM: self._temporary_name,
            Operation.REMOVE: self._remove, Operation.RENAME: self._rename,
            Operation.CLOCK: self._centiseconds, Operation.TIME: self._seconds,
            Operation.ERRNO: lambda parameter: self._errno,
            Operation.GET_CMDLINE: self._command_line, Operation.HEAPINFO: self._heap_info,
            Operation.EXIT: lambda reason: self._exit(reason, 0),
            Operation.EXIT_EXTENDED: lambda block: self._exit(*self._words(block, 2)),
            Operation.ELAPSED: self._store_ticks, Operation.TICKFREQ: lambda _: self._clock.hertz,
        }  # fmt: skip

    def attach(self, bus: Bus, clock: Clock) -> None:
        """Serve a board's programs from now on.

        Args:
            bus: reads and writes the program's memory.
            clock: of the board.
        """
        self._bus, self._clock = bus.for_master("semihosting"), clock
        self.reset()

    def reset(self) -> None:
        """Close the files; the program starts anew."""
        self._files.close_all()
        self._errno = 0
        self._start = self._clock.now
        self._started = time.time() if self._epoch is None else self._epoch

    def call(self, operation: int, parameter: int) -> int | None:
        """Execute a call.

        Args:
            operation: r0 or a0, see `Operation`.
            parameter: r1 or a1: a number, or the address of a block of words.

        Returns:
            the value for r0 or a0; None: there is no input yet, and the call is to be repeated.

        Raises:
            DeviceFault: a pointer leads out of the memory.
            ProgramExit: it was EXIT or EXIT_EXTENDED.
        """
        work = self._calls.get(operation)
        try:
            if work is None:
                raise OSError(errno.ENOSYS, f"operation 0x{operation:x}")
            result = work(parameter)
        except OSError as error:
            self._errno, result = error.errno or errno.EIO, -1
        return None if result is None else result & 0xFFFFFFFF

    # -- memory -------------------------------------------------------------------------------

    def _words(self, address: int, count: int) -> tuple[int, ...]:
        return struct.unpack(f"<{count}I", self._bus.read(address, 4 * count))

    def _bytes(self, address: int, size: int) -> bytes:
        return self._bus.read(address, size) if size else b""

    def _name(self, address: int, size: int) -> str:
        if size > _LONGEST_NAME:
            raise OSError(errno.ENAMETOOLONG, f"{size} bytes")
        return self._bytes(address, size).decode("utf-8", errors="surrogateescape")

    # -- streams ------------------------------------------------------------------------------

    def _open(self, block: int) -> int:
        name, mode, size = self._words(block, 3)
        return self._files.open(self._name(name, size), mode)

    def _close(self, block: int) -> int:
        self._files.close(*self._words(block, 1))
        return 0

    def _write_character(self, address: int) -> int:
        self.console.write(self._bytes(address, 1), is_error=False)
        return 0

    def _write_string(self, address: int) -> int:
        text = bytearray()
        while byte := self._bus.read(address + len(text), 1)[0]:
            text.append(byte)
        self.console.write(bytes(text), is_error=False)
        return 0

    def _write(self, block: int) -> int:
        """Return the number of bytes that are not written."""
        handle, address, size = self._words(block, 3)
        data = self._bytes(address, size)
        try:
            return size - self._files[handle].write(data)
        except OSError as error:
            self._errno = error.errno or errno.EIO
            return size

    def _read(self, block: int) -> int | None:
        """Return the number of bytes that are not filled; all of them: the end of the file."""
        handle, address, size = self._words(block, 3)
        if size:
            self._bus.view(address, size)  # faults before anything is consumed
        data = self._files[handle].read(size)
        if data:
            self._bus.write(address, data)
        return None if data is None else size - len(data)

    def _read_character(self, parameter: int) -> int | None:
        data = self.console.read(1)
        if data is None:
            return None
        return data[0] if data else -1

    def _is_error(self, block: int) -> int:
        return self._words(block, 1)[0] >> 31

    def _is_terminal(self, block: int) -> int:
        return int(self._files[self._words(block, 1)[0]].is_terminal)

    def _seek(self, block: int) -> int:
        handle, position = self._words(block, 2)
        self._files[handle].seek(position)
        return 0

    def _length(self, block: int) -> int:
        return self._files[self._words(block, 1)[0]].length()

    # -- names --------------------------------------------------------------------------------

    def _temporary_name(self, block: int) -> int:
        address, number, size = self._words(block, 3)
        name = f"tmp{number & 0xFF:03}.tmp".encode() + b"\0"
        self._files.path(name[:-1].decode())
        if len(name) > size:
            return -1
        self._bus.write(address, name)
        return 0

    def _remove(self, block: int) -> int:
        self._files.path(self._name(*self._words(block, 2))).unlink()
        return 0

    def _rename(self, block: int) -> int:
        old, old_size, new, new_size = self._words(block, 4)
        target = self._files.path(self._name(new, new_size))
        self._files.path(self._name(old, old_size)).rename(target)
        return 0

    # -- time and surroundings ----------------------------------------------------------------

    @property
    def _ticks(self) -> int:
        return self._clock.now - self._start

    def _centiseconds(self, parameter: int) -> int:
        return self._ticks * _CENTISECONDS // self._clock.hertz

    def _seconds(self, parameter: int) -> int:
        return int(self._started + self._ticks / self._clock.hertz)

    def _store_ticks(self, address: int) -> int:
        self._bus.write(address, struct.pack("<Q", self._ticks))
        return 0

    def _command_line(self, block: int) -> int:
        address, size = self._words(block, 2)
        line = self.arguments.encode()
        if len(line) >= size:
            raise OSError(errno.E2BIG, f"{len(line)} bytes and a zero")
        self._bus.write(address, line + b"\0")
        self._bus.write(block + 4, struct.pack("<I", len(line)))
        return 0

    def _heap_info(self, block: int) -> int:
        """Write base and limit of the heap and of the stack, which grow towards each other."""
        low, high = (self._heap.start, self._heap.stop) if self._heap else (0, 0)
        self._bus.write(self._words(block, 1)[0], struct.pack("<4I", low, high, high, low))
        return 0

    def _exit(self, reason: int, subcode: int) -> int:
        self._files.close_all()
        status = subcode if reason == APPLICATION_EXIT else 1
        raise ProgramExit(status, REASONS.get(reason, f"reason 0x{reason:x}"))

"""`Rtt`: SEGGER's Real Time Transfer, ring buffers in a program's RAM that a debugger empties.

The control block is laid out as in SEGGER's UM08001, "RTT Control Block" (J-Link manual, chapter
RTT): 16 bytes of identification, the numbers of up and down buffers, and 24 bytes per buffer.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from covp.chip.platform_file import Region
from covp.errors import DeviceError

_ID = b"SEGGER RTT\0\0\0\0\0\0"
_HEADER, _BUFFER = struct.Struct("<16s2i"), struct.Struct("<6I")
_WRITE_OFFSET, _READ_OFFSET = 12, 16
_MOST = 64  # buffers of a direction that are believed
_LONGEST_NAME = 64


@dataclass(frozen=True)
class RttBuffer:
    """A ring buffer as the program has it at the moment.

    Attributes:
        at: address of its description in the control block.
        start, size: where its bytes are; one of them always stays free.
        written, taken: offsets at which the writer and the reader go on.
        name: address of its name, or 0.
    """

    at: int
    name: int
    start: int
    size: int
    written: int
    taken: int

    def spans(self, first: int, end: int) -> list[tuple[int, int]]:
        """Split offsets ``first`` to ``end`` into (address, bytes), around the end of the ring."""
        if first <= end:
            return [(self.start + first, end - first)]
        return [(self.start + first, self.size - first), (self.start, end)]


class Rtt:
    """The host's side of RTT, over any access to the target's memory.

    Args:
        read: address and size to bytes, e.g. `DebugTarget.read_memory`, which works while the core
            runs.
        write: address and bytes.
        regions: the RAM in which the control block is searched for.

    Attributes:
        address: of the control block; None until it was found.
    """

    def __init__(
        self,
        read: Callable[[int, int], bytes],
        write: Callable[[int, bytes], None],
        regions: Iterable[Region],
    ) -> None:
        self._read, self._write = read, write
        self._regions = [region for region in regions if region.kind == "ram"]
        self.address: int | None = None

    def find(self) -> bool:
        """Search until the program has set up its control block; return whether it has."""
        if self.address is None:
            for region in self._regions:
                at = self._read(region.start, region.bytes).find(_ID)
                if at >= 0:
                    self.address = region.start + at
                    break
        return self.address is not None

    def read(self, channel: int = 0) -> bytes:
        """Return all that the program has written to an up buffer since the last call.

        Raises:
            DeviceError: there is no such buffer, or the control block is damaged.
        """
        buffer = self._buffer(channel, is_up=True)
        if buffer is None:
            return b""
        spans = buffer.spans(buffer.taken, buffer.written)
        data = b"".join(self._read(address, size) for address, size in spans if size)
        if data:
            self._store(buffer.at + _READ_OFFSET, buffer.written)
        return data

    def write(self, data: bytes, channel: int = 0) -> int:
        """Give bytes to a down buffer.

        Args:
            data: from its start, as many as there is room for.
            channel: number of the down buffer.

        Returns:
            the number of bytes that it took.

        Raises:
            DeviceError: see `read`.
        """
        buffer = self._buffer(channel, is_up=False)
        if buffer is None:
            return 0
        count = min(len(data), (buffer.taken - buffer.written - 1) % buffer.size)
        end, done = (buffer.written + count) % buffer.size, 0
        for address, size in buffer.spans(buffer.written, end):
            if size:
                self._write(address, data[done : done + size])
            done += size
        if count:
            self._store(buffer.at + _WRITE_OFFSET, end)
        return count

    def names(self) -> tuple[list[str], list[str]]:
        """Return the names of the up and of the down buffers, "" for those without one."""
        ups, downs = self._counts()
        found = [self._name(self._describe(number)) for number in range(ups + downs)]
        return found[:ups], found[ups:]

    # -- the control block --------------------------------------------------------------------

    def _counts(self) -> tuple[int, int]:
        if not self.find():
            return 0, 0
        assert self.address is not None
        mark, ups, downs = _HEADER.unpack(self._read(self.address, _HEADER.size))
        if mark != _ID or not 0 <= ups <= _MOST or not 0 <= downs <= _MOST:
            raise DeviceError(
                f"RTT: the control block at 0x{self.address:08x} is damaged: {ups} up and {downs} "
                "down buffers; does the program write over it?"
            )
        return ups, downs

    def _buffer(self, channel: int, is_up: bool) -> RttBuffer | None:
        """Return a channel's buffer; None: the program has not set it up yet."""
        ups, downs = self._counts()
        if self.address is None:
            return None
        count = ups if is_up else downs
        if not 0 <= channel < count:
            way = "up" if is_up else "down"
            raise DeviceError(f"RTT: no {way} buffer {channel}; the program has {count}")
        buffer = self._describe(channel if is_up else ups + channel)
        if not buffer.size:
            return None
        if buffer.written >= buffer.size or buffer.taken >= buffer.size:
            raise DeviceError(
                f"RTT: buffer {channel} at 0x{buffer.at:08x} is damaged: offsets {buffer.written} "
                f"and {buffer.taken} of {buffer.size} bytes"
            )
        return buffer

    def _describe(self, number: int) -> RttBuffer:
        assert self.address is not None
        at = self.address + _HEADER.size + number * _BUFFER.size
        name, start, size, written, taken, _ = _BUFFER.unpack(self._read(at, _BUFFER.size))
        return RttBuffer(at, name, start, size, written, taken)

    def _name(self, buffer: RttBuffer) -> str:
        text = bytearray()
        while buffer.name and len(text) < _LONGEST_NAME:
            byte = self._read(buffer.name + len(text), 1)[0]
            if not byte:
                break
            text.append(byte)
        return text.decode("utf-8", errors="replace")

    def _store(self, address: int, value: int) -> None:
        self._write(address, value.to_bytes(4, "little"))

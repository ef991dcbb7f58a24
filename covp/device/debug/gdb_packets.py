"""`GdbPackets`: answers to the packets of GDB's remote protocol that leave the core where it is.

GDB manual, appendix E "GDB Remote Serial Protocol": registers, memory, flash, breakpoints and
queries. What lets the core run is in `covp.device.debug.gdb_stub`.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable

from covp.device.debug.gdb_breakpoints import GdbBreakpoints
from covp.device.debug.monitor import Monitor
from covp.device.debug.target import DebugTarget
from covp.device.debug.target_xml import (
    GdbRegister,
    gdb_registers,
    general_registers,
    memory_map,
    target_description,
)
from covp.errors import DeviceError, UsageError

PACKET_BYTES = 0x4000
"""The largest packet that may be sent here, without its framing."""

OK, UNKNOWN = b"OK", b""
MALFORMED, BAD_ADDRESS = b"E16", b"E0e"  # EINVAL, EFAULT
_NOT_FLASH = b"E.memtype"
_FEATURES = (
    f"PacketSize={PACKET_BYTES:x};QStartNoAckMode+;qXfer:features:read+;qXfer:memory-map:read+;"
    "swbreak+;hwbreak+;vContSupported+"
)
_ERASED = b"\xff"
_NUMBER = re.compile(rb"[0-9a-fA-F]{1,8}")


class GdbPackets:
    """An executor of packets on a halted target.

    Attributes:
        breakpoints: what this GDB has set.
    """

    def __init__(self, target: DebugTarget) -> None:
        self.breakpoints = GdbBreakpoints(target)
        self._target = target
        self._monitor = Monitor(target)
        device = target.device
        core = device.platform.core
        self._registers = gdb_registers(core, target.register_names)
        self._general = general_registers(self._registers)
        self._documents = {
            b"features:read:target.xml": target_description(core, self._registers).encode(),
            b"memory-map:read:": memory_map(device.platform, device.peripherals).encode(),
        }
        self._letters: dict[bytes, Callable[[bytes], bytes]] = {
            b"g": self._read_all, b"G": self._write_all, b"p": self._read_one,
            b"P": self._write_one, b"m": self._read_memory, b"M": self._write_memory,
            b"X": self._write_binary, b"Z": self._insert, b"z": self._remove,
            b"H": lambda rest: OK, b"T": lambda rest: OK, b"q": self._query, b"v": self._flash,
        }  # fmt: skip

    def answer(self, packet: bytes) -> bytes:
        """Return the reply; empty for a packet that is not known."""
        work = self._letters.get(packet[:1])
        if work is None:
            return UNKNOWN
        try:
            return work(packet[1:])
        except DeviceError:
            return BAD_ADDRESS
        except ValueError:  # numbers and hexadecimal digits that are none
            return MALFORMED

    # -- registers ----------------------------------------------------------------------------

    def _read_all(self, rest: bytes) -> bytes:
        return b"".join(map(self._read, self._general))

    def _write_all(self, rest: bytes) -> bytes:
        data = unhex(rest)
        for register in self._general:
            value, data = data[: register.bytes], data[register.bytes :]
            if len(value) < register.bytes:
                return MALFORMED
            self._write(register, value)
        return OK

    def _read_one(self, rest: bytes) -> bytes:
        register = self._register(number(rest))
        return self._read(register) if register else MALFORMED

    def _write_one(self, rest: bytes) -> bytes:
        which, _, value = rest.partition(b"=")
        register, data = self._register(number(which)), unhex(value)
        if register is None or len(data) != register.bytes:
            return MALFORMED
        self._write(register, data)
        return OK

    def _register(self, position: int) -> GdbRegister | None:
        return self._registers[position] if position < len(self._registers) else None

    def _read(self, register: GdbRegister) -> bytes:
        values = [self._target.read_register(name) for name in register.parts]
        return binascii.hexlify(b"".join(value.to_bytes(4, "little") for value in values))

    def _write(self, register: GdbRegister, data: bytes) -> None:
        for position, name in enumerate(register.parts):
            word = data[4 * position : 4 * position + 4]
            self._target.write_register(name, int.from_bytes(word, "little"))

    # -- memory -------------------------------------------------------------------------------

    def _read_memory(self, rest: bytes) -> bytes:
        address, size = numbers(rest)
        size = min(size, PACKET_BYTES // 2)  # GDB asks for the rest
        return binascii.hexlify(self._target.read_memory(address, size) if size else b"")

    def _write_memory(self, rest: bytes) -> bytes:
        where, _, data = rest.partition(b":")
        return self._store(where, unhex(data))

    def _write_binary(self, rest: bytes) -> bytes:
        where, _, data = rest.partition(b":")
        return self._store(where, data)

    def _store(self, where: bytes, data: bytes) -> bytes:
        address, size = numbers(where)
        if len(data) != size:
            return MALFORMED
        if data:
            self._target.write_memory(address, data)
        return OK

    def _flash(self, rest: bytes) -> bytes:
        """vFlashErase, vFlashWrite and vFlashDone; other v packets are not known."""
        word, _, rest = rest.partition(b":")
        if word == b"FlashDone":
            return OK
        if word == b"FlashErase":
            address, size = numbers(rest)
            return self._program(address, size, lambda: _ERASED * size)
        if word == b"FlashWrite":
            where, _, data = rest.partition(b":")
            return self._program(number(where), len(data), lambda: data)
        return UNKNOWN

    def _program(self, address: int, size: int, content: Callable[[], bytes]) -> bytes:
        region = self._target.device.platform.region_of(address, size)
        if region is None or region.kind != "flash":
            return _NOT_FLASH
        self._target.write_memory(address, content())
        return OK

    # -- breakpoints --------------------------------------------------------------------------

    def _insert(self, rest: bytes) -> bytes:
        return OK if self.breakpoints.insert(*_place(rest)) else UNKNOWN

    def _remove(self, rest: bytes) -> bytes:
        return OK if self.breakpoints.remove(*_place(rest)) else UNKNOWN

    # -- queries ------------------------------------------------------------------------------

    def _query(self, rest: bytes) -> bytes:
        word, _, text = rest.partition(b":")
        if word == b"Supported":
            return _FEATURES.encode()
        if word == b"Xfer":
            return self._transfer(text)
        if word.startswith(b"Rcmd,"):
            return self._command(unhex(word[5:]))
        fixed = {b"Attached": b"1", b"C": b"QC1", b"fThreadInfo": b"m1", b"sThreadInfo": b"l"}
        return fixed.get(word, UNKNOWN)

    def _transfer(self, text: bytes) -> bytes:
        what, _, part = text.rpartition(b":")
        document = self._documents.get(what)
        if document is None:
            return b"E00" if what.count(b":") == 2 else UNKNOWN
        start, size = numbers(part)
        piece = document[start : start + min(size, PACKET_BYTES - 1)]
        return (b"m" if start + len(piece) < len(document) else b"l") + piece

    def _command(self, line: bytes) -> bytes:
        try:
            text = self._monitor.run(line.decode("utf-8", "replace"))
        except UsageError as error:
            text = f"{error}\n"
        return binascii.hexlify(text.encode())


def number(text: bytes) -> int:
    """Return a hexadecimal number of up to 32 bits. Raises ValueError."""
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{text!r} is not a number")
    return int(text, 16)


def numbers(text: bytes) -> tuple[int, int]:
    """Parse two numbers with a comma between. Raises ValueError."""
    first, _, second = text.partition(b",")
    return number(first), number(second)


def unhex(text: bytes) -> bytes:
    """Return the bytes of hexadecimal digits. Raises ValueError."""
    return binascii.unhexlify(text)


def _place(text: bytes) -> tuple[int, int, int]:
    """Kind, address and size of packets Z and z."""
    kind, _, where = text.partition(b",")
    address, size = numbers(where.partition(b";")[0])  # conditions were not offered
    if size == 0 or address + size > 1 << 32:
        raise ValueError("nothing to watch")
    return number(kind), address, size

"""`GdbDevice`: a core that a GDB server controls: QEMU, OpenOCD, pyOCD, a vendor's."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass

from covp.chip.isa import ARCHITECTURES
from covp.chip.platform_file import Platform, Region
from covp.device.debugger import DEFAULT_TIMEOUT, DebuggerDevice
from covp.device.machine.engine import register_ids
from covp.device.rsp_link import REPLY_SECONDS, RspLink, connect, split_address
from covp.errors import DeviceError

# A description is read with regular expressions: QEMU's uses the prefix xi: without declaring it.
_TAG = re.compile(r"<(?:xi:include|reg)\b[^>]*>")
_ATTRIBUTE = re.compile(r'(\w+)\s*=\s*"([^"]*)"')
_DEPTH = 4
_LARGEST = 256  # bytes; vector registers are the longest there are


@dataclass(frozen=True)
class RemoteRegister:
    """A register as the server numbers it; ``size`` is in bytes."""

    number: int
    size: int


def default_registers(architecture: str) -> dict[str, RemoteRegister]:
    """Return the registers of servers that describe none: GDB's own numbers."""
    shown = ARCHITECTURES[architecture].shown
    found = {name: RemoteRegister(number, 4) for number, name in enumerate(shown)}
    return found | ({"xpsr": RemoteRegister(25, 4)} if "xpsr" in found else {})


def parse_description(
    text: str, read_annex: Callable[[str], str], depth: int = 0, after: int = -1
) -> dict[str, RemoteRegister]:
    """Return registers by name, lower case, in the order of the description.

    Args:
        text: the XML of target.xml.
        read_annex: gives the text of an included file.

    Raises:
        ValueError: a number or a size of a register that makes no sense.
    """
    found: dict[str, RemoteRegister] = {}
    for tag in _TAG.findall(text):
        attributes = dict(_ATTRIBUTE.findall(tag))
        if tag.startswith("<reg"):
            after = int(attributes.get("regnum", after + 1))
            size = -(-int(attributes.get("bitsize", 32)) // 8)
            if not 0 < size <= _LARGEST or after < 0:
                raise ValueError(f"a register {after} of {size} bytes")
            found[_canonical(attributes.get("name", "").lower())] = RemoteRegister(after, size)
        elif depth < _DEPTH and "href" in attributes:
            inner = parse_description(read_annex(attributes["href"]), read_annex, depth + 1, after)
            found |= inner
            after = max((r.number for r in found.values()), default=after)
    return found


def _canonical(name: str) -> str:
    """Return the usual name of a register: fp is s0."""
    return {"fp": "s0", "cpsr": "xpsr"}.get(name, name)


_NUMBER = "(0x[0-9a-fA-F]+|[1-9][0-9]*|0)"
_FLASH = re.compile(
    rf'<memory\s+type="flash"\s+start="{_NUMBER}"\s+length="{_NUMBER}"\s*>'
    rf'\s*<property\s+name="blocksize"\s*>\s*{_NUMBER}\s*<'
)


@dataclass(frozen=True)
class FlashArea:
    """An area of flash [``start``, ``end``) that is erased in blocks of ``block`` bytes."""

    start: int
    end: int
    block: int

    def block_of(self, address: int) -> tuple[int, int]:
        """Return the first address of the block there, and the first one past its end."""
        start = address - (address - self.start) % self.block
        return start, min(start + self.block, self.end)


def parse_memory_map(text: str) -> list[FlashArea]:
    """Return the flash areas of the XML; those without a block size cannot be erased."""
    found = (tuple(int(number, 0) for number in match) for match in _FLASH.findall(text))
    return [FlashArea(start, start + size, block) for start, size, block in found if block]


_OVERHEAD = 32  # of a packet, beside its data
_SMALL_PACKET = 400
_HALT_SECONDS = 5.0
_FLASH_SECONDS = 60.0
_LONGEST_TEXT = 1 << 20
_MARK = 0x5A5AA5A4


class GdbDevice(DebuggerDevice):
    """A core that a GDB server controls.

    Args:
        connect: gives a connected socket; called again by `reopen`.
        transport: for messages.

    Raises:
        DeviceError: no connection, or what answers is not a GDB server.
    """

    def __init__(
        self,
        platform: Platform,
        connect: Callable[[], socket.socket],
        transport: str,
        timeout: float = DEFAULT_TIMEOUT,
        verify: bool = True,
    ) -> None:
        super().__init__(platform, transport, timeout, verify)
        self._connect = connect
        self._link: RspLink | None = None
        self.reopen()

    @classmethod
    def at(cls, platform: Platform, address: str) -> GdbDevice:
        """Connect to the server at HOST:PORT."""
        host, port = split_address(address, "gdb")
        transport = f"gdb:{host}:{port}"
        return cls(platform, lambda: connect(host, port, transport), transport)

    def close(self) -> None:
        """End the connection; the core stays as it is. A second call does nothing."""
        if self._link is not None:
            link, self._link = self._link, None
            link.close()

    def reopen(self) -> None:
        """Connect (again), halt and reset the core. Raises DeviceError."""
        self.close()
        self._link = RspLink(self._connect(), self.transport)
        try:
            self._negotiate()
            self._reset_halt()
        except BaseException:
            self.close()
            raise
        self._cycles.forget()
        if self.is_qemu:
            self._cycles.disable()  # it counts host time

    @property
    def link(self) -> RspLink:
        """The connection. Raises DeviceError after `close`."""
        if self._link is None:
            raise DeviceError(f"{self.transport}: the device is closed")
        return self._link

    # -- connecting ---------------------------------------------------------------------------

    def _negotiate(self) -> None:
        offered = self.link.request("qSupported:swbreak+;hwbreak+", "the greeting").decode("latin1")
        features = dict(part.partition("=")[::2] for part in offered.split(";"))
        self._packet_size = _packet_size(features.get("PacketSize", ""))
        if "QStartNoAckMode+" in features and self._ask("QStartNoAckMode") == b"OK":
            self.link.leave_acknowledgements()
        self.is_qemu = bool(self._ask("qqemu.sstepbits"))
        self._stop_reply(self._ask("?", "the first stop"), "the first stop")
        self._registers = self._describe("qXfer:features:read+" in features)
        offers_map = "qXfer:memory-map:read+" in features
        self._flash = parse_memory_map(self._transfer("memory-map", "")) if offers_map else []
        self._binary = self._ask(f"X{self.platform.ram.start:x},0:") == b"OK"

    def _describe(self, offered: bool) -> dict[str, RemoteRegister]:
        if offered:
            text = self._transfer("features", "target.xml")
            try:
                found = parse_description(text, lambda name: self._transfer("features", name))
            except ValueError as error:
                raise DeviceError(
                    f"{self.transport}: reading features target.xml failed: {error}"
                ) from None
            if "pc" in found:
                return found
        return default_registers(self.platform.core.architecture)

    def _transfer(self, kind: str, annex: str) -> str:
        parts = b""
        while True:
            size = self._packet_size - _OVERHEAD
            reply = self._ask(f"qXfer:{kind}:read:{annex}:{len(parts):x},{size:x}")
            parts += reply[1:]
            if reply[:1] not in (b"m", b"l") or reply == b"m" or len(parts) > _LONGEST_TEXT:
                raise self._rejection(f"reading {kind} {annex}", reply)
            if reply[:1] == b"l":
                return parts.decode("utf-8", "replace")

    # -- DebuggerDevice -----------------------------------------------------------------------

    def read_memory(self, address: int, size: int) -> bytes:
        step = (self._packet_size - _OVERHEAD) // 2
        parts = []
        for start in range(address, address + size, step):
            count = min(step, address + size - start)
            what = f"reading {count} bytes at 0x{start:08x}"
            data = _unhex(self._ask(f"m{start:x},{count:x}", what))
            if data is None or len(data) != count:
                raise self._rejection(what, b"")
            parts.append(data)
        return b"".join(parts)

    def write_memory(self, address: int, data: bytes) -> None:
        # every byte of a binary packet may have to be escaped
        step = (self._packet_size - _OVERHEAD) // 2
        for start in range(0, len(data), step):
            part = data[start : start + step]
            place = f"{address + start:x},{len(part):x}:"
            what = f"writing {len(part)} bytes at 0x{address + start:08x}"
            if self._binary:
                self._expect_ok(b"X" + place.encode() + part, what)
            else:
                self._expect_ok(b"M" + place.encode() + part.hex().encode(), what)

    def _write_flash(self, region: Region, address: int, data: bytes) -> None:
        """Write with vFlash packets where the server says that it is flash.

        OpenOCD erases whole blocks only; their other content is kept.
        """
        first, last = self._flash_at(address), self._flash_at(address + len(data) - 1)
        if first is None or last is None:
            self.write_memory(address, data)
            return
        if self.read_memory(address, len(data)) == data:
            return  # no wear for nothing
        start, end = first.block_of(address)[0], last.block_of(address + len(data) - 1)[1]
        before = self.read_memory(start, address - start)
        after = self.read_memory(address + len(data), end - address - len(data))
        self._program(start, before + data + after)

    def _program(self, address: int, data: bytes) -> None:
        """Erase and write whole blocks."""
        what = f"programming {len(data)} bytes of flash at 0x{address:08x}"
        place = f"vFlashErase:{address:x},{len(data):x}"
        self._expect_ok(place.encode(), what, _FLASH_SECONDS)
        step = (self._packet_size - _OVERHEAD) // 2
        for start in range(0, len(data), step):
            head = f"vFlashWrite:{address + start:x}:".encode()
            self._expect_ok(head + data[start : start + step], what, _FLASH_SECONDS)
        self._expect_ok(b"vFlashDone", what, _FLASH_SECONDS)
        self._cycles.forget()  # OpenOCD resets the board before and after

    def _flash_at(self, address: int) -> FlashArea | None:
        return next((area for area in self._flash if area.start <= address < area.end), None)

    def _read_registers(self) -> dict[str, int]:
        names = [n for n in register_ids(self.platform.core.architecture) if n in self._registers]
        reply = _unhex(self._ask("g", "reading the registers"))
        found: dict[str, int] = {}
        if reply is not None:
            position = 0
            places = {}
            for register in sorted(set(self._registers.values()), key=lambda r: r.number):
                places[register.number] = position
                position += register.size
            for name in names:
                at, size = places[self._registers[name].number], self._registers[name].size
                if at + size <= len(reply):
                    found[name] = int.from_bytes(reply[at : at + size], "little")
        return {name: found[name] if name in found else self.read_register(name) for name in names}

    def read_register(self, name: str) -> int:
        """Read a register with packet p."""
        register = self._register(name)
        what = f"reading register {name}"
        value = _unhex(self._ask(f"p{register.number:x}", what))
        if not value:
            raise self._rejection(what, b"")
        return int.from_bytes(value, "little")

    def write_register(self, name: str, value: int) -> None:
        """Write a register with packet P."""
        register = self._register(name)
        raw = (value & (1 << 8 * register.size) - 1).to_bytes(register.size, "little")
        what = f"writing register {name}"
        self._expect_ok(f"P{register.number:x}={raw.hex()}".encode(), what)

    def _register(self, name: str) -> RemoteRegister:
        if name not in self._registers:
            raise DeviceError(f"{self.transport}: the server has no register {name!r}")
        return self._registers[name]

    def _set_breakpoint(self, address: int) -> None:
        self._breakpoint_packet("Z", address)

    def _clear_breakpoint(self, address: int) -> None:
        self._breakpoint_packet("z", address)

    def _breakpoint_packet(self, letter: str, address: int) -> None:
        """Set a hardware breakpoint, or a software one where the server has no other."""
        kind = 2 if self.platform.core.architecture == "arm" else 4
        what = f"{'setting' if letter == 'Z' else 'clearing'} a breakpoint at 0x{address:08x}"
        reply = b""
        for number in (1, 0):
            reply = self._ask(f"{letter}{number},{address:x},{kind}", what)
            if reply == b"OK":
                return
        raise self._rejection(what, reply)

    def _resume(self) -> None:
        self.link.send("c", "resuming")

    def _wait_halted(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while True:
            reply = self.link.receive(deadline - time.monotonic(), "waiting for the core to halt")
            if reply is None:
                return False
            if not reply.startswith(b"O"):
                self._stop_reply(reply, "waiting for the core to halt")
                return True

    def _halt(self) -> None:
        self.link.interrupt()
        if not self._wait_halted(_HALT_SECONDS):
            raise DeviceError(
                f"{self.transport}: the core did not halt within {_HALT_SECONDS:g} s of an "
                "interrupt; reset the board and open the session again"
            )

    def _reset_halt(self) -> None:
        if not self.is_qemu:
            self._monitor("reset halt")
            return
        # QEMU resets some time after it has said OK; the pc shows when
        self.write_register("pc", _MARK)
        self._monitor("system_reset")
        deadline = time.monotonic() + _HALT_SECONDS
        while self.read_register("pc") == _MARK:
            if time.monotonic() > deadline:
                raise DeviceError(f"{self.transport}: monitor system_reset has no effect")
            time.sleep(0.001)

    def _monitor(self, command: str) -> None:
        what = f"monitor {command}"
        reply = self.link.request("qRcmd," + command.encode().hex(), what, _HALT_SECONDS)
        if reply != b"OK" and reply[:1] == b"E":
            raise self._rejection(what, reply)

    # -----------------------------------------------------------------------------------------

    def _ask(self, data: str | bytes, step: str = "", seconds: float = REPLY_SECONDS) -> bytes:
        text = data if isinstance(data, str) else data[:20].decode("latin1")
        return self.link.request(data, step or text, seconds)

    def _expect_ok(self, data: bytes, what: str, seconds: float = REPLY_SECONDS) -> None:
        reply = self._ask(data, what, seconds)
        if reply != b"OK":
            raise self._rejection(what, reply)

    def _stop_reply(self, reply: bytes, step: str) -> None:
        if reply[:1] in (b"W", b"X"):
            raise DeviceError(f"{self.transport}: the target has ended during {step}")
        if reply[:1] not in (b"S", b"T"):
            raise self._rejection(step, reply)

    def _rejection(self, what: str, reply: bytes) -> DeviceError:
        answer = reply[:60].decode("latin1") if reply else "nothing usable"
        return DeviceError(f"{self.transport}: {what} failed: the server answered {answer}")


def _packet_size(text: str) -> int:
    try:
        size = int(text, 16)
    except ValueError:
        return _SMALL_PACKET
    return max(_SMALL_PACKET, min(size, 1 << 16))


def _unhex(reply: bytes) -> bytes | None:
    """Return the bytes of a hexadecimal answer; None where it is none, as "E01"."""
    try:
        return bytes.fromhex(reply.decode("ascii"))
    except ValueError:
        return None

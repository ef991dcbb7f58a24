"""`GdbPackets`: answers to the packets of GDB's remote protocol that leave the core where it is.

GDB manual, appendix E "GDB Remote Serial Protocol": registers, memory, flash, breakpoints and
queries. What lets the core run is in `covp.device.debug.gdb_stub`.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable

from covp.device.debug.target import DebugTarget, WatchedAccess
from covp.device.debug.target_xml import (
    GdbRegister,
    gdb_registers,
    general_registers,
    memory_map,
    target_description,
)
from covp.device.machine.watchpoints import WatchHit
from covp.errors import DeviceError, UsageError, near_misses

_SOFTWARE, _HARDWARE, _WRITE, _READ, _ANY = range(5)
_BREAKPOINTS = {_SOFTWARE: b"swbreak", _HARDWARE: b"hwbreak"}
_WATCHPOINTS = {_WRITE: WatchedAccess.WRITE, _READ: WatchedAccess.READ, _ANY: WatchedAccess.ANY}
_WATCH_NAMES = {_WRITE: b"watch", _READ: b"rwatch", _ANY: b"awatch"}


class GdbBreakpoints:
    """The breakpoints one GDB has set; setting twice is setting once, as the protocol requires.

    Software and hardware breakpoints are the same on the virtual device: neither changes memory
    nor is there a limit; they differ in the name of a stop.
    """

    def __init__(self, target: DebugTarget) -> None:
        self._target = target
        self._set: set[tuple[int, int, int]] = set()

    def insert(self, kind: int, address: int, size: int) -> bool:
        """Set one; return whether ``kind``, the digit after Z, is known."""
        entry = (kind, address, size)
        if kind in _BREAKPOINTS:
            if entry not in self._set:
                self._target.set_breakpoint(address)
        elif kind in _WATCHPOINTS:
            if entry not in self._set:
                self._target.set_watchpoint(address, size, _WATCHPOINTS[kind])
        else:
            return False
        self._set.add(entry)
        return True

    def remove(self, kind: int, address: int, size: int) -> bool:
        """Clear a breakpoint or watchpoint if it is set; return whether its kind is known."""
        entry = (kind, address, size)
        if entry in self._set:
            self._set.remove(entry)
            if kind in _BREAKPOINTS:
                self._target.clear_breakpoint(address)
            else:
                self._target.clear_watchpoint(address, size, _WATCHPOINTS[kind])
        return kind in _BREAKPOINTS or kind in _WATCHPOINTS

    def clear(self) -> None:
        """Remove all."""
        for entry in list(self._set):
            self.remove(*entry)

    def at(self, pc: int) -> bytes | None:
        """Return ``swbreak`` or ``hwbreak`` where a breakpoint lies at the address."""
        for kind, address, _ in self._set:
            if kind in _BREAKPOINTS and address & ~1 == pc & ~1:
                return _BREAKPOINTS[kind]
        return None

    def find_watchpoint(self, hit: WatchHit) -> tuple[bytes, int] | None:
        """Return ``watch``, ``rwatch`` or ``awatch`` and the address, if the access met one.

        The address lies inside what is watched, as GDB finds its watchpoint by it.
        """
        for kind, address, size in self._set:
            if (address, size) == (hit.watch.address, hit.watch.size) and kind in _WATCHPOINTS:
                reads, writes = kind != _WRITE, kind != _READ
                if (reads, writes) == (hit.watch.reads, hit.watch.writes):
                    return _WATCH_NAMES[kind], max(address, hit.address)
        return None


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
        """Execute vFlashErase, vFlashWrite or vFlashDone; other v packets are unsupported."""
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
    """Parse kind, address and size of packets Z and z."""
    kind, _, where = text.partition(b",")
    address, size = numbers(where.partition(b";")[0])  # conditions were not offered
    if size == 0 or address + size > 1 << 32:
        raise ValueError("nothing to watch")
    return number(kind), address, size


_HELP = {
    "help": "this list",
    "reset [halt|run]": "reset core and peripherals; memory is kept; stays halted, or runs",
    "halt": "halt the core",
    "instructions": "retired instructions, exact, in all and since last asked",
    "cycles": "estimated core cycles, in all and since last asked",
    "fault": "the program's last fault",
    "peripherals": "names and addresses of the peripherals on the bus",
    "semihosting [enable|disable]": "the program's requests: answered, or breakpoints",
    "arm semihosting ...": "the same, as OpenOCD spells it",
}


class Monitor:
    """An executor of monitor commands on a target."""

    def __init__(self, target: DebugTarget) -> None:
        self._target = target
        self._host = target.device.board.semihosting
        self._asked = {"instructions": 0, "cycles": 0}

    def run(self, line: str) -> str:
        """Execute a command; the text to print. Raises UsageError: no such command."""
        words = line.split() or ["help"]
        command = getattr(self, f"_{words[0]}", None)
        names = [name.split()[0] for name in _HELP]
        if words[0] not in names or command is None:
            raise UsageError(f"no monitor command {words[0]!r}:", hint=near_misses(words[0], names))
        return str(command(words[1:]))

    def _help(self, words: list[str]) -> str:
        return "".join(f"{name:28} {text}\n" for name, text in _HELP.items())

    def _reset(self, words: list[str]) -> str:
        how = words[0] if words else "halt"
        if how not in ("halt", "init", "run"):  # init: as OpenOCD's scripts say
            raise UsageError(f"reset {how!r}: it is halt or run")
        self._target.reset(halt=how != "run")
        if how == "run":
            return "running\n"
        # the protocol has no word for it
        return (
            f"halted at 0x{self._pc():08x}; for GDB to see it: maintenance flush register-cache\n"
        )

    def _halt(self, words: list[str]) -> str:
        self._target.halt()
        return f"halted at 0x{self._pc():08x}\n"

    def _instructions(self, words: list[str]) -> str:
        return self._count("instructions", self._target.device.instructions)

    def _cycles(self, words: list[str]) -> str:
        return self._count("cycles", self._target.device.cycles)

    def _count(self, what: str, now: int) -> str:
        before, self._asked[what] = self._asked[what], now
        return f"{now} {what}, {now - before} since last asked\n"

    def _fault(self, words: list[str]) -> str:
        return f"{self._target.fault}\n" if self._target.fault else "no fault\n"

    def _peripherals(self, words: list[str]) -> str:
        every = sorted(self._target.device.peripherals.items(), key=lambda item: item[1][0])
        return "".join(f"0x{base:08x} {name}\n" for name, (base, _) in every)

    def _semihosting(self, words: list[str]) -> str:
        board, how = self._target.device.board, words[0] if words else ""
        if how not in ("enable", "disable", ""):
            raise UsageError(f"semihosting {how!r}: it is enable or disable")
        if how == "enable" and self._host is None:
            raise UsageError("semihosting: the server was started without it")
        if how:
            board.set_semihosting(self._host if how == "enable" else None)
        return f"semihosting is {'disabled' if board.semihosting is None else 'enabled'}\n"

    def _arm(self, words: list[str]) -> str:
        if words[:1] != ["semihosting"]:
            raise UsageError("no monitor command 'arm' but arm semihosting")
        return self._semihosting(words[1:])

    def _pc(self) -> int:
        return self._target.read_register("pc") & ~1

"""`OpenOcdDevice`: a real board, or the virtual debug port, through OpenOCD's Tcl port."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path

from covp.base.temporary import temporary_folder
from covp.chip.platform_file import Platform, Region
from covp.device.debugger import DEFAULT_TIMEOUT, DebuggerDevice
from covp.device.machine.engine import register_ids
from covp.device.rsp_link import split_address
from covp.device.tcl_port import CommandFailed, TclPort
from covp.errors import DeviceError

DEFAULT_PORT = 6666
_CHUNK_ITEMS = 1 << 14  # read_memory takes at most 64K of them
_FILE_BYTES = 1 << 13  # from there on a file is faster than a list of numbers
_WAIT_MILLISECONDS = 200
_FLASH_SECONDS = 120.0
_IMAGE_SECONDS = 120.0
_BANK = re.compile(r"#(\d+) : \S+ \(\S+\) at (0x[0-9a-f]+), size (0x[0-9a-f]+)")
_SECTOR = re.compile(r"#\s*\d+: (0x[0-9a-f]+) \((0x[0-9a-f]+) ")
_NAMES = {"xpsr": "xPSR", "s0": "fp"}


@dataclass(frozen=True)
class FlashBank:
    """A bank as OpenOCD knows it; sectors are (first address, size in bytes)."""

    number: int
    start: int
    end: int
    sectors: tuple[tuple[int, int], ...]


class OpenOcdDevice(DebuggerDevice):
    """The current target of a running OpenOCD.

    It is reset and halted when this is made: the board's own ``reset`` handlers run.

    Args:
        address: HOST:PORT, or HOST for port 6666.

    Raises:
        DeviceError: nothing listens there, or the target cannot be halted.
    """

    def __init__(
        self,
        platform: Platform,
        address: str,
        timeout: float = DEFAULT_TIMEOUT,
        verify: bool = True,
    ) -> None:
        host, port = split_address(address, "openocd", DEFAULT_PORT)
        super().__init__(platform, f"openocd:{host}:{port}", timeout, verify)
        self._port = TclPort(host, port)
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the connection; OpenOCD and the target stay as they are."""
        self._port.close()

    def reopen(self) -> None:
        """Connect again, reset and halt. Raises DeviceError."""
        self._port.reconnect()
        self._start()

    def _start(self) -> None:
        self._port.value("version")  # soon answered, by OpenOCD only
        self._reset_halt()
        self._port.output("rbp all")  # a client that broke off may have left one
        self._cycles.forget()
        self._banks = self._flash_banks()

    # -- DebuggerDevice -----------------------------------------------------------------------

    def read_memory(self, address: int, size: int) -> bytes:
        if size >= _FILE_BYTES and self._port.is_local:
            return self._dump(address, size)
        if address % 4 == 0 and size % 4 == 0:
            return self._read_items(address, 32, size // 4)
        return self._read_items(address, 8, size)

    def _read_items(self, address: int, width: int, count: int) -> bytes:
        bytes_ = width // 8
        parts = []
        for first in range(0, count, _CHUNK_ITEMS):
            items = min(_CHUNK_ITEMS, count - first)
            command = f"read_memory 0x{address + first * bytes_:x} {width} {items}"
            values = self._port.value(command).split()
            if len(values) != items:
                raise DeviceError(
                    f"{self.transport}: {command}: {len(values)} values instead of {items}"
                )
            numbers = (self._number(value, command, width) for value in values)
            parts.append(b"".join(number.to_bytes(bytes_, "little") for number in numbers))
        return b"".join(parts)

    def _dump(self, address: int, size: int) -> bytes:
        with temporary_folder("openocd") as folder:
            path = Path(folder) / "dump.bin"
            command = f"dump_image {{{path}}} 0x{address:x} {size}"
            self._port.output(command, _IMAGE_SECONDS)
            data = path.read_bytes() if path.is_file() else b""
        if len(data) != size:
            raise DeviceError(f"{self.transport}: {command}: {len(data)} bytes came")
        return data

    def write_memory(self, address: int, data: bytes) -> None:
        if len(data) >= _FILE_BYTES and self._port.is_local:
            self._with_file(data, f"load_image {{@}} 0x{address:x} bin", _IMAGE_SECONDS)
            return
        width = 32 if address % 4 == 0 and len(data) % 4 == 0 else 8
        bytes_ = width // 8
        step = _CHUNK_ITEMS * bytes_
        for start in range(0, len(data), step):
            part = data[start : start + step]
            values = (
                f"0x{int.from_bytes(part[i : i + bytes_], 'little'):x}"
                for i in range(0, len(part), bytes_)
            )
            self._port.value(f"write_memory 0x{address + start:x} {width} {{{' '.join(values)}}}")

    def _with_file(self, data: bytes, command: str, seconds: float) -> None:
        """Run a command with "@" replaced by the path of a file that holds the data."""
        with temporary_folder("openocd") as folder:
            path = Path(folder) / "image.bin"
            path.write_bytes(data)
            self._port.output(command.replace("@", str(path)), seconds)

    def _read_registers(self) -> dict[str, int]:
        names = list(register_ids(self.platform.core.architecture))
        wanted = " ".join(map(self._name, names))
        words = self._port.value(f"{self._get_reg} {{{wanted}}}").split()
        values = dict(zip(words[::2], words[1::2], strict=False))
        return {name: self._number(values.get(self._name(name), ""), "get_reg") for name in names}

    def read_register(self, name: str) -> int:
        """Read a register with OpenOCD's get_reg."""
        command = f"{self._get_reg} {{{self._name(name)}}}"
        words = self._port.value(command).split()
        return self._number(words[1] if len(words) == 2 else "", command)

    def write_register(self, name: str, value: int) -> None:
        """Write a register with OpenOCD's set_reg."""
        self._port.value(f"set_reg {{{self._name(name)} 0x{value:x}}}")

    @property
    def _get_reg(self) -> str:
        """The command that reads a register.

        For Arm, OpenOCD keeps what set_reg writes until the core resumes: -force would read over
        it. For RISC-V it writes at once, but keeps an old pc.
        """
        return "get_reg" if self.platform.core.architecture == "arm" else "get_reg -force"

    def _name(self, name: str) -> str:
        arm = self.platform.core.architecture == "arm"
        return name if (name == "s0") == arm else _NAMES.get(name, name)

    def _set_breakpoint(self, address: int) -> None:
        self._port.output(f"bp 0x{address:x} 2 hw")

    def _clear_breakpoint(self, address: int) -> None:
        self._port.output(f"rbp 0x{address:x}")

    def _resume(self) -> None:
        self._port.output("resume")

    def _wait_halted(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while True:
            left = max(1, min(_WAIT_MILLISECONDS, round(1000 * (deadline - time.monotonic()))))
            try:
                self._port.output(f"wait_halt {left}")
                return True
            except CommandFailed as error:
                if "timed out" not in error.reason:  # OpenOCD's words for a core that runs
                    raise
            if time.monotonic() >= deadline:
                return False

    def _halt(self) -> None:
        self._port.output("halt")

    def _reset_halt(self) -> None:
        self._port.output("reset halt", _IMAGE_SECONDS)
        state = self._port.value("[target current] curstate").strip()
        if state != "halted":
            raise DeviceError(
                f"{self.transport}: the target is {state} after reset halt; is the board powered, "
                "and its reset line connected?"
            )

    # -- flash --------------------------------------------------------------------------------

    def _write_flash(self, region: Region, address: int, data: bytes) -> None:
        """Program whole sectors, with their other content kept; nothing where all is there."""
        bank = next((b for b in self._banks if b.start <= address < b.end), None)
        if bank is None:
            self.write_memory(address, data)
            return
        touched = [s for s in bank.sectors if s[0] < address + len(data) and address < sum(s)]
        start, end = touched[0][0], sum(touched[-1])
        before = self.read_memory(start, end - start)
        after = before[: address - start] + data + before[address + len(data) - start :]
        if after != before:
            command = f"flash write_image erase {{@}} 0x{start:x} bin"
            self._with_file(after, command, _FLASH_SECONDS)

    def _flash_banks(self) -> list[FlashBank]:
        """Return the banks that OpenOCD can probe; others are written as memory, and verified."""
        found = []
        for number, _, _ in _BANK.findall(self._port.output("flash banks")):
            try:
                self._port.output(f"flash probe {number}", _FLASH_SECONDS)
                text = self._port.output(f"flash info {number}", _FLASH_SECONDS)
            except DeviceError:
                continue
            bank = next((b for b in _BANK.findall(text) if b[0] == number), None)
            sectors = [(int(a, 0), int(n, 0)) for a, n in _SECTOR.findall(text)]
            if bank is not None and sectors:
                start = int(bank[1], 0)
                absolute = tuple((start + offset, size) for offset, size in sectors)
                found.append(FlashBank(int(number), start, sum(absolute[-1]), absolute))
        return found

    def _number(self, text: str, command: str, bits: int = 32) -> int:
        try:
            number = int(text, 0)
        except ValueError:
            raise DeviceError(f"{self.transport}: {command}: {text!r} is not a number") from None
        if number >> bits:
            raise DeviceError(f"{self.transport}: {command}: {text} does not fit {bits} bits")
        return number

"""An ST-Link V2-1 behind ST's TCP protocol, for OpenOCD's ``hla_stlink_backend tcp PORT``.

The TCP protocol is stlink-server's, version 2 of its API: a command code in the first byte; USB
requests carry the 16 bytes of an ST-Link command from byte 8, the direction at 24 and the data's
size at 28; each answer starts with a status word, 1 for success. The commands are those that
ST-Link firmware J32 and later knows.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable

from covp.debug.cortex_m import CortexMDebug
from covp.debug.server import receive_exactly
from covp.errors import DeviceError

# stlink-server's requests
_REFRESH, _COUNT, _INFO, _OPEN, _CLOSE, _USB, _VERSION, _CLIENTS = range(8)
_SUCCESS = struct.pack("<I", 1)
_API_VERSION = 2
_CONNECTION = 1
_LONGEST = 1 << 17

# ST-Link commands
_GET_VERSION, _DEBUG, _DFU, _SWIM, _GET_MODE, _GET_VOLTAGE = 0xF1, 0xF2, 0xF3, 0xF4, 0xF5, 0xF7
_DEBUG_MODE = b"\x02\x00"
_VENDOR, _PRODUCT = 0x0483, 0x374B
_SERIAL = b"COVP0000000000000001"
_VERSION_V2J37M26 = 2 << 12 | 37 << 6 | 26
_ADC_REFERENCE, _ADC_TARGET = 1500, 2063  # 2 * 2063 * 1.2 / 1500 = 3.3 V

_OK, _FAULT = 0x80, 0x81
_SWD_IDCODE = 0x5BA02477


class StLink:
    """One ST-Link and the core behind it.

    Args:
        core: what the access port sees.
    """

    def __init__(self, core: CortexMDebug) -> None:
        self._core = core
        self._status = _OK
        self._fault_address = 0
        self._held = False
        self._commands: dict[int, Callable[[bytes], bytes]] = {
            0x07: self._read_words, 0x0C: self._read_bytes, 0x47: self._read_halves,
            0x21: self._ok, 0x30: self._ok, 0x31: self._id_codes, 0x32: self._reset,
            0x33: self._read_register, 0x34: self._write_register,
            0x35: self._write_debug_register, 0x36: self._read_debug_register,
            0x3A: self._read_all_registers, 0x3B: self._last_status, 0x3E: self._last_status_2,
            0x3C: self._drive_reset, 0x40: self._ok, 0x41: self._ok, 0x42: self._no_trace,
            0x43: self._ok, 0x44: self._ok, 0x4B: self._ok, 0x4C: self._ok,
        }  # fmt: skip

    def serve(self, client: socket.socket) -> None:
        """Handle one connection until the client goes. Raises ConnectionError."""
        while True:
            code = client.recv(1)
            if not code:
                return
            client.sendall(self._request(code[0], client))

    # -- stlink-server ------------------------------------------------------------------------

    def _request(self, code: int, client: socket.socket) -> bytes:
        if code == _USB:
            return self._usb(client)
        lengths = {_REFRESH: 2, _COUNT: 1, _INFO: 8, _OPEN: 8, _CLOSE: 8, _CLIENTS: 8}
        receive_exactly(client, lengths.get(code, 4) - 1)
        if code == _VERSION:
            return struct.pack("<4I", _API_VERSION, 2, 1, 0)
        if code == _COUNT:
            return struct.pack("<I", 1)
        if code == _INFO:
            serial = _SERIAL.ljust(32, b"\0")
            return _SUCCESS + struct.pack("<I32sHHB", 1, serial, _VENDOR, _PRODUCT, 0)
        if code == _OPEN:
            return _SUCCESS + struct.pack("<I", _CONNECTION)
        if code == _CLIENTS:
            return _SUCCESS + struct.pack("<I", 1)
        if code in (_REFRESH, _CLOSE):
            return _SUCCESS
        raise ConnectionError(f"request {code} is none of stlink-server's")

    def _usb(self, client: socket.socket) -> bytes:
        header = b"\0" + receive_exactly(client, 31)
        command, direction = header[8:24], header[24]
        (size,) = struct.unpack_from("<I", header, 28)
        if size > _LONGEST:
            raise ConnectionError(f"{size} bytes in one transfer are too many")
        if direction == 0:
            data = receive_exactly(client, size)
            self._write(command, data)
            return _SUCCESS
        answer = self._answer(command)
        return _SUCCESS + answer[:size].ljust(size, b"\0")

    # -- ST-Link ------------------------------------------------------------------------------

    def _answer(self, command: bytes) -> bytes:
        kind = command[0]
        if kind == _GET_VERSION:
            return struct.pack(">H", _VERSION_V2J37M26) + struct.pack("<HH", _VENDOR, _PRODUCT)
        if kind == _GET_MODE:
            return _DEBUG_MODE
        if kind == _GET_VOLTAGE:
            return struct.pack("<II", _ADC_REFERENCE, _ADC_TARGET)
        if kind != _DEBUG or command[1] not in self._commands:
            return bytes([_FAULT, 0])
        try:
            return self._commands[command[1]](command[2:])
        except DeviceError:
            return bytes([_FAULT, 0])

    def _write(self, command: bytes, data: bytes) -> None:
        """Memory writes; how they went is asked for afterwards."""
        if command[0] != _DEBUG or command[1] not in (0x08, 0x0D, 0x48):
            return
        (address,) = struct.unpack_from("<I", command, 2)
        self._access(address, lambda: self._core.write(address, data))

    def _access(self, address: int, work: Callable[[], bytes | None]) -> bytes:
        self._status, self._fault_address = _OK, 0
        try:
            return work() or b""
        except DeviceError:
            self._status, self._fault_address = _FAULT, address
            return b""

    def _read(self, arguments: bytes) -> bytes:
        address, size = struct.unpack_from("<IH", arguments)
        return self._access(address, lambda: self._core.read(address, size)).ljust(size, b"\0")

    def _read_words(self, arguments: bytes) -> bytes:
        return self._read(arguments)

    def _read_halves(self, arguments: bytes) -> bytes:
        return self._read(arguments)

    def _read_bytes(self, arguments: bytes) -> bytes:
        return self._read(arguments)

    def _ok(self, arguments: bytes) -> bytes:
        return bytes([_OK, 0])

    def _id_codes(self, arguments: bytes) -> bytes:
        return struct.pack("<III", _OK, _SWD_IDCODE, 0)

    def _no_trace(self, arguments: bytes) -> bytes:
        return struct.pack("<H", 0)

    def _reset(self, arguments: bytes) -> bytes:
        self._core.reset()
        return self._ok(arguments)

    def _drive_reset(self, arguments: bytes) -> bytes:
        """0 holds the reset line, 1 lets it go, 2 is a pulse; the core resets when it goes up."""
        if arguments[0] == 0:
            self._held = True
        elif self._held or arguments[0] == 2:
            self._held = False
            self._core.reset()
        return self._ok(arguments)

    def _read_register(self, arguments: bytes) -> bytes:
        return struct.pack("<II", _OK, self._core.core_register(arguments[0]))

    def _write_register(self, arguments: bytes) -> bytes:
        number, value = struct.unpack_from("<BI", arguments)
        self._core.set_core_register(number, value)
        return self._ok(arguments)

    def _read_all_registers(self, arguments: bytes) -> bytes:
        values = [self._core.core_register(number) for number in range(19)]
        return struct.pack("<I21I", _OK, *values, 0, 0)

    def _read_debug_register(self, arguments: bytes) -> bytes:
        (address,) = struct.unpack_from("<I", arguments)
        return struct.pack("<I", _OK) + self._core.read(address, 4)

    def _write_debug_register(self, arguments: bytes) -> bytes:
        address, value = struct.unpack_from("<II", arguments)
        self._core.write(address, value.to_bytes(4, "little"))
        return self._ok(arguments)

    def _last_status(self, arguments: bytes) -> bytes:
        return bytes([self._status, 0])

    def _last_status_2(self, arguments: bytes) -> bytes:
        return struct.pack("<III", self._status, self._fault_address, 0)

"""`StLink`: a virtual ST-LINK/V2-1 with a Cortex-M at its debug port, over TCP.

It speaks what OpenOCD's ``hla_stlink_backend tcp`` and ``st-link backend tcp`` and ST's own
stlink-server speak: commands of the server, one of which carries a USB command of the probe. The
protocol is not published; the names of commands are those of OpenOCD's driver
(src/jtag/drivers/stlink_usb.c), which is its usual reference.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable

from covp.device.debug.cortex_m import CortexMDebug
from covp.device.debug.server import receive_exactly
from covp.errors import DeviceError

DEFAULT_PORT = 7184
"""The TCP port of stlink-server."""

# Commands of the server: their length, first byte included.
_REFRESH, _GET_NUMBER, _GET_INFO, _OPEN, _CLOSE, _USB, _GET_VERSION = range(7)
_LENGTHS = {
    _REFRESH: 2, _GET_NUMBER: 1, _GET_INFO: 8, _OPEN: 8, _CLOSE: 8, _USB: 32, _GET_VERSION: 4
}  # fmt: skip
_SERVER_OK, _BAD_PARAMETER = 0x00000001, 0x00001002
_API, _VERSION = 3, (2, 1, 1)  # from API 3 on OpenOCD puts accesses together
_VENDOR, _PRODUCT = 0x0483, 0x374B
_SERIAL = b"434F56503030303030303031"
_DEVICE, _CONNECTION = 1, 1
_TO_PROBE, _FROM_PROBE = 0, 1
_MOST_BYTES = 10240  # of the client's buffers

# USB commands of the probe.
_PROBE_VERSION, _DEBUG, _CURRENT_MODE, _VOLTAGE = 0xF1, 0xF2, 0xF5, 0xF7
_MASS_STORAGE_MODE, _DEBUG_MODE = 1, 2
# V2, J40 (debugging; from J32 on all of this is there), M27 (mass storage)
_FIRMWARE = 2 << 12 | 40 << 6 | 27
_ADC_REFERENCE, _ADC_TARGET = 1200, 1650  # 2 * 1650 * 1.2 V / 1200 = 3.3 V

_OK, _FAULT, _ACCESS_FAULT = 0x80, 0x81, 0x11


class StLink:
    """A probe: `serve` is the handler of a `DebugServer`.

    Args:
        debug: what it is attached to.
    """

    def __init__(self, debug: CortexMDebug) -> None:
        self._debug = debug
        self._mode = _MASS_STORAGE_MODE
        self._last_access = (_OK, 0)
        self._commands = self._debug_commands()

    def serve(self, client: socket.socket) -> None:
        """Answer until the client disconnects. Raises ConnectionError at an unknown command."""
        while kind := client.recv(1):
            length = _LENGTHS.get(kind[0])
            if length is None:
                raise ConnectionError(f"0x{kind[0]:02x} is not an ST-LINK command")
            client.sendall(self._answer(kind[0], receive_exactly(client, length - 1), client))

    def _answer(self, kind: int, arguments: bytes, client: socket.socket) -> bytes:
        if kind == _USB:
            return self._usb(arguments, client)
        if kind == _GET_NUMBER:
            return struct.pack("<I", 1)
        if kind == _GET_VERSION:
            return struct.pack("<4I", _API, *_VERSION)
        if kind == _GET_INFO:
            return _device_info(arguments[0], int.from_bytes(arguments[3:7], "little"))
        if kind == _OPEN:
            return struct.pack("<2I", _SERVER_OK, _CONNECTION)
        return struct.pack("<I", _SERVER_OK)  # the list is fresh, the device is closed

    def _usb(self, header: bytes, client: socket.socket) -> bytes:
        """Answer a USB transfer: 16 bytes of command, and data one way or the other."""
        command, direction = header[7:23], header[23]
        size = int.from_bytes(header[27:31], "little")
        if size > _MOST_BYTES:
            raise ConnectionError(f"a transfer of {size} bytes; at most {_MOST_BYTES} can be")
        if direction == _TO_PROBE:
            self._command(command, receive_exactly(client, size))
            return struct.pack("<I", _SERVER_OK)
        data = self._command(command, b"") if direction == _FROM_PROBE else b""
        return struct.pack("<I", _SERVER_OK) + data[:size].ljust(size, b"\0")

    # -- commands of the probe ----------------------------------------------------------------

    def _command(self, command: bytes, data: bytes) -> bytes:
        kind = command[0]
        if kind == _DEBUG:
            work = self._commands.get(command[1])
            return work(command[2:], data) if work is not None else bytes([_FAULT, 0])
        if kind == _PROBE_VERSION:
            return struct.pack(">H", _FIRMWARE) + struct.pack("<2H", _VENDOR, _PRODUCT)
        if kind == _CURRENT_MODE:
            return bytes([self._mode, 0])
        if kind == _VOLTAGE:
            return struct.pack("<2I", _ADC_REFERENCE, _ADC_TARGET)
        return bytes([_FAULT, 0])

    def _debug_commands(self) -> dict[int, Callable[[bytes, bytes], bytes]]:
        return {
            0x07: self._read_memory,  # READMEM_32BIT
            0x08: self._write_memory,  # WRITEMEM_32BIT
            0x0C: self._read_memory,  # READMEM_8BIT
            0x0D: self._write_memory,  # WRITEMEM_8BIT
            0x21: self._exit,  # EXIT
            0x22: self._read_core_id,  # READCOREID
            0x30: self._enter,  # APIV2_ENTER
            0x31: self._read_id_codes,  # APIV2_READ_IDCODES
            0x32: self._reset,  # APIV2_RESETSYS
            0x33: self._read_register,  # APIV2_READREG
            0x34: self._write_register,  # APIV2_WRITEREG
            0x35: self._write_word,  # APIV2_WRITEDEBUGREG
            0x36: self._read_word,  # APIV2_READDEBUGREG
            0x3A: self._read_registers,  # APIV2_READALLREGS
            0x3B: self._last_status,  # APIV2_GETLASTRWSTATUS
            0x3C: self._drive_reset,  # APIV2_DRIVE_NRST
            0x3E: self._last_status,  # APIV2_GETLASTRWSTATUS2
            0x41: _done,  # APIV2_STOP_TRACE_RX
            0x43: _done,  # APIV2_SWD_SET_FREQ
            0x44: _done,  # APIV2_JTAG_SET_FREQ
            0x47: self._read_memory,  # APIV2_READMEM_16BIT
            0x48: self._write_memory,  # APIV2_WRITEMEM_16BIT
            0x4B: _done,  # APIV2_INIT_AP
            0x4C: _done,  # APIV2_CLOSE_AP_DBG
        }

    def _enter(self, arguments: bytes, data: bytes) -> bytes:
        self._mode = _DEBUG_MODE
        return bytes([_OK, 0])

    def _exit(self, arguments: bytes, data: bytes) -> bytes:
        self._mode = _MASS_STORAGE_MODE
        return b""

    def _read_core_id(self, arguments: bytes, data: bytes) -> bytes:
        return struct.pack("<I", self._debug.ids.swd_id)

    def _read_id_codes(self, arguments: bytes, data: bytes) -> bytes:
        return struct.pack("<3I", _OK, self._debug.ids.swd_id, 0)

    def _reset(self, arguments: bytes, data: bytes) -> bytes:
        self._debug.control.reset()
        return bytes([_OK, 0])

    def _drive_reset(self, arguments: bytes, data: bytes) -> bytes:
        low, high, pulse = range(3)
        if arguments[0] in (low, pulse):
            self._debug.control.drive_reset(low=True)
        if arguments[0] in (high, pulse):
            self._debug.control.drive_reset(low=False)
        return bytes([_OK, 0])

    def _read_register(self, arguments: bytes, data: bytes) -> bytes:
        return struct.pack("<2I", _OK, self._debug.control.read_core_register(arguments[0]))

    def _write_register(self, arguments: bytes, data: bytes) -> bytes:
        value = int.from_bytes(arguments[1:5], "little")
        self._debug.control.write_core_register(arguments[0], value)
        return bytes([_OK, 0])

    def _read_registers(self, arguments: bytes, data: bytes) -> bytes:
        """Return r0 to pc, xPSR, MSP, PSP and CONTROL to PRIMASK."""
        numbers = (*range(19), 20)
        values = [self._debug.control.read_core_register(number) for number in numbers]
        return struct.pack("<22I", _OK, *values, 0)

    def _read_word(self, arguments: bytes, data: bytes) -> bytes:
        address = int.from_bytes(arguments[:4], "little")
        word = self._read(address, 4)
        return bytes([self._last_access[0], 0, 0, 0]) + word

    def _write_word(self, arguments: bytes, data: bytes) -> bytes:
        self._write(int.from_bytes(arguments[:4], "little"), arguments[4:8])
        return bytes([self._last_access[0], 0])

    def _read_memory(self, arguments: bytes, data: bytes) -> bytes:
        address, size = struct.unpack_from("<IH", arguments)
        return self._read(address, size)

    def _write_memory(self, arguments: bytes, data: bytes) -> bytes:
        address, size = struct.unpack_from("<IH", arguments)
        self._write(address, data[:size])
        return b""

    def _last_status(self, arguments: bytes, data: bytes) -> bytes:
        status, address = self._last_access
        return struct.pack("<3I", status, address, 0)

    def _read(self, address: int, size: int) -> bytes:
        """Read bytes, zeros where the access fails; GETLASTRWSTATUS reports it."""
        self._last_access = (_OK, 0)
        try:
            return self._debug.read(address, size)
        except DeviceError:
            self._last_access = (_ACCESS_FAULT, address)
            return bytes(size)

    def _write(self, address: int, data: bytes) -> None:
        self._last_access = (_OK, 0)
        try:
            self._debug.write(address, data)
        except DeviceError:
            self._last_access = (_ACCESS_FAULT, address)


def _done(arguments: bytes, data: bytes) -> bytes:
    """Do nothing: there are no wires."""
    return bytes([_OK, 0])


def _device_info(index: int, size: int) -> bytes:
    """Return the answer to GET_DEV_INFO; ``size`` is that of the client's structure."""
    if index != 0 or size > _MOST_BYTES:
        return struct.pack("<I", _BAD_PARAMETER)
    info = struct.pack("<I32s2HB", _DEVICE, _SERIAL, _VENDOR, _PRODUCT, 0)
    return struct.pack("<I", _SERVER_OK) + info[:size].ljust(size, b"\0")

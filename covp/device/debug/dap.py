"""Arm's debug access port at JTAG: a JTAG-DP and one MEM-AP.

Source: Arm Debug Interface Architecture v5.2 (IHI0031E): chapter B3 for the JTAG-DP, B2.2 for its
registers, C2 for the MEM-AP.
"""

from __future__ import annotations

from typing import Protocol

from covp.errors import DeviceError

_ABORT, _DPACC, _APACC, _IDCODE, _BYPASS = 0x8, 0xA, 0xB, 0xE, 0xF
_ACK_OK = 2
_CTRL_STAT, _SELECT, _RDBUFF = 0x4, 0x8, 0xC
_STICKY = 1 << 1 | 1 << 4 | 1 << 5
_STICKYERR = 1 << 5
_POWER_REQUESTS = 1 << 28 | 1 << 30
_CSW, _TAR, _DRW, _BD, _CFG, _BASE, _IDR = 0x00, 0x04, 0x0C, 0x10, 0xF4, 0xF8, 0xFC
_ROM_TABLE = 0xE00FF003
_CSW_KEPT = 0x7F000F37
_CSW_ENABLED = 1 << 6


class AddressSpace(Protocol):
    """The address space that the access port reaches."""

    def read(self, address: int, size: int) -> bytes:
        """Read bytes. Raises DeviceError where nothing is."""
        ...

    def write(self, address: int, data: bytes) -> None:
        """Write bytes. Raises DeviceError where nothing is."""
        ...


class MemAp:
    """A memory access port; a failed access sets the sticky error of the DP.

    Args:
        memory: what it reaches.
        identity: IDR.
        increment_bits: bits of TAR that are incremented; the implementation's choice, 10 or more
            (IHI0031E C2.2.2).
    """

    def __init__(self, memory: AddressSpace, identity: int, increment_bits: int) -> None:
        self._memory = memory
        self._identity = identity
        self._wrap = (1 << increment_bits) - 1
        self._csw = 0x23000052 & _CSW_KEPT | 2
        self._tar = 0

    def read(self, register: int) -> int:
        """Return an AP register. Raises DeviceError: the access failed."""
        if register == _DRW:
            return self._transfer(None)
        if _BD <= register < _BD + 16:
            return self._word((self._tar & ~0xF) + register - _BD)
        return {
            _CSW: self._csw | _CSW_ENABLED,
            _TAR: self._tar,
            _BASE: _ROM_TABLE,
            _IDR: self._identity,
        }.get(register, 0)

    def write(self, register: int, value: int) -> None:
        """Change an AP register. Raises DeviceError: the access failed."""
        if register == _CSW:
            self._csw = value & _CSW_KEPT
        elif register == _TAR:
            self._tar = value
        elif register == _DRW:
            self._transfer(value)
        elif _BD <= register < _BD + 16:
            address = (self._tar & ~0xF) + register - _BD
            self._memory.write(address, value.to_bytes(4, "little"))

    def _word(self, address: int) -> int:
        return int.from_bytes(self._memory.read(address, 4), "little")

    def _transfer(self, value: int | None) -> int:
        """Access DRW: once, or with packed increment a word's worth; bytes in their lanes."""
        size = 1 << min(self._csw & 7, 2)
        increment = self._csw >> 4 & 3
        count = 4 // size if increment == 2 else 1
        result = 0
        for _ in range(count):
            lane = 8 * (self._tar & 3 & -size)
            mask = (1 << 8 * size) - 1
            if value is None:
                got = int.from_bytes(self._memory.read(self._tar, size), "little")
                result |= got << lane
            else:
                self._memory.write(self._tar, (value >> lane & mask).to_bytes(size, "little"))
            if increment:
                self._tar = self._tar & ~self._wrap | (self._tar + size) & self._wrap
        return result


class JtagDp:
    """The debug port as a `Tap`.

    Args:
        memory: reached by access port 0; there is no other.
        idcode: of the port.
        ap_identity: IDR of the access port.
        increment_bits: see `MemAp`.
    """

    ir_length = 4

    def __init__(
        self, memory: AddressSpace, idcode: int, ap_identity: int, increment_bits: int = 10
    ) -> None:
        self._ap = MemAp(memory, ap_identity, increment_bits)
        self._idcode = idcode
        self._select = 0
        self._control = 0
        self._sticky = 0
        self._result = 0
        self.reset()

    def reset(self) -> None:
        """Set the instruction to IDCODE; registers are kept."""
        self._instruction = _IDCODE

    def set_instruction(self, value: int) -> None:
        """Set the instruction (Update-IR)."""
        self._instruction = value

    def capture(self) -> tuple[int, int]:
        """Return IDCODE, or acknowledgement and result of the previous transfer, and its bits."""
        if self._instruction == _IDCODE:
            return self._idcode, 32
        if self._instruction in (_ABORT, _DPACC, _APACC):
            return self._result << 3 | _ACK_OK, 35
        return 0, 1

    def update(self, value: int) -> None:
        """Make a transfer: bit 0 reads, then A[3:2], then 32 bits of data."""
        is_read, register, data = value & 1, (value >> 1 & 3) << 2, value >> 3
        if self._instruction == _DPACC:
            self._access_dp(bool(is_read), register, data)
        elif self._instruction == _APACC:
            self._access_ap(bool(is_read), register, data)
        elif self._instruction == _ABORT:
            self._sticky = 0

    def _access_dp(self, is_read: bool, register: int, data: int) -> None:
        if register == _CTRL_STAT:
            if is_read:
                self._result = self._status()
            else:
                self._sticky &= ~(data & _STICKY)
                self._control = data & ~_STICKY
        elif register == _SELECT:
            if is_read:
                self._result = self._select
            else:
                self._select = data
        elif is_read and register != _RDBUFF:
            self._result = 0

    def _status(self) -> int:
        """Return the status register: power-up acknowledges follow the requests."""
        return self._control | (self._control & _POWER_REQUESTS) << 1 | self._sticky

    def _access_ap(self, is_read: bool, register: int, data: int) -> None:
        register |= self._select & 0xF0
        if self._select >> 24 or self._sticky & _STICKYERR:
            self._result = 0 if is_read else self._result
            return
        try:
            if is_read:
                self._result = self._ap.read(register)
            else:
                self._ap.write(register, data)
        except DeviceError:
            self._sticky |= _STICKYERR
            self._result = 0

"""A chain of JTAG test access ports (IEEE 1149.1), all shift registers of it as one integer."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Protocol


class TapState(IntEnum):
    """The sixteen states of the TAP controller, IEEE 1149.1 figure 6-1."""

    RESET = 0
    IDLE = 1
    SELECT_DR = 2
    CAPTURE_DR = 3
    SHIFT_DR = 4
    EXIT1_DR = 5
    PAUSE_DR = 6
    EXIT2_DR = 7
    UPDATE_DR = 8
    SELECT_IR = 9
    CAPTURE_IR = 10
    SHIFT_IR = 11
    EXIT1_IR = 12
    PAUSE_IR = 13
    EXIT2_IR = 14
    UPDATE_IR = 15


# The next state with TMS = 0 and TMS = 1.
NEXT: tuple[tuple[int, int], ...] = tuple(
    (int(low), int(high))
    for low, high in (
        (TapState.IDLE, TapState.RESET),
        (TapState.IDLE, TapState.SELECT_DR),
        (TapState.CAPTURE_DR, TapState.SELECT_IR),
        (TapState.SHIFT_DR, TapState.EXIT1_DR),
        (TapState.SHIFT_DR, TapState.EXIT1_DR),
        (TapState.PAUSE_DR, TapState.UPDATE_DR),
        (TapState.PAUSE_DR, TapState.EXIT2_DR),
        (TapState.SHIFT_DR, TapState.UPDATE_DR),
        (TapState.IDLE, TapState.SELECT_DR),
        (TapState.CAPTURE_IR, TapState.RESET),
        (TapState.SHIFT_IR, TapState.EXIT1_IR),
        (TapState.SHIFT_IR, TapState.EXIT1_IR),
        (TapState.PAUSE_IR, TapState.UPDATE_IR),
        (TapState.PAUSE_IR, TapState.EXIT2_IR),
        (TapState.SHIFT_IR, TapState.UPDATE_IR),
        (TapState.IDLE, TapState.SELECT_DR),
    )
)


_SHIFTING = frozenset((int(TapState.SHIFT_DR), int(TapState.SHIFT_IR)))
_ACTING = frozenset(
    map(
        int,
        (
            TapState.RESET,
            TapState.CAPTURE_DR,
            TapState.UPDATE_DR,
            TapState.CAPTURE_IR,
            TapState.UPDATE_IR,
        ),
    )
)


class Tap(Protocol):
    """A test access port: its instruction and data registers."""

    ir_length: int

    def reset(self) -> None:
        """Test-Logic-Reset: the instruction is IDCODE or BYPASS."""
        ...

    def set_instruction(self, value: int) -> None:
        """Update-IR."""
        ...

    def capture(self) -> tuple[int, int]:
        """Capture-DR: value and length in bits of the selected data register."""
        ...

    def update(self, value: int) -> None:
        """Update-DR: the value that was shifted into the selected data register."""
        ...


class BypassTap:
    """A port without function here, such as a boundary scan: IDCODE and BYPASS."""

    def __init__(self, ir_length: int, idcode: int, idcode_instruction: int) -> None:
        self.ir_length = ir_length
        self._idcode, self._identify = idcode, idcode_instruction
        self.reset()

    def reset(self) -> None:
        """Select the identification, as Test-Logic-Reset does."""
        self._instruction = self._identify

    def set_instruction(self, value: int) -> None:
        """Set the instruction (Update-IR)."""
        self._instruction = value

    def capture(self) -> tuple[int, int]:
        """Return IDCODE and 32 bits, or the one bit of BYPASS (Capture-DR)."""
        return (self._idcode, 32) if self._instruction == self._identify else (0, 1)

    def update(self, value: int) -> None:
        """Ignore the value: no register can be written (Update-DR)."""


class TapChain:
    """The ports between TDI and TDO; the first one is nearest to TDO.

    Attributes:
        state: of all ports, which move together.
        is_shifting: a clock with TMS = 0 shifts and does nothing else.
    """

    def __init__(self, taps: Sequence[Tap]) -> None:
        self._taps = tuple(taps)
        self._ir_length = sum(tap.ir_length for tap in taps)
        self.state: int = TapState.RESET
        self.is_shifting = False
        self._shift, self._top = 0, 0
        self._lengths: list[int] = []
        self.reset()

    @property
    def tdo(self) -> int:
        """The level that the chain drives, 1 outside of the shift states."""
        return self._shift & 1 if self.is_shifting else 1

    def reset(self) -> None:
        """Reset the TAPs, as a pulse on TRST does."""
        self.state = TapState.RESET
        self.is_shifting = False
        for tap in self._taps:
            tap.reset()

    def clock(self, tms: int, tdi: int) -> None:
        """Handle a rising edge of TCK."""
        if self.is_shifting:
            self._shift = self._shift >> 1 | tdi << self._top
        self.state = state = NEXT[self.state][tms]
        self.is_shifting = state in _SHIFTING
        if state in _ACTING:
            self._act(state)

    def _act(self, state: int) -> None:
        """Execute the action of the state that was entered."""
        if state == TapState.CAPTURE_DR:
            self._capture_dr()
        elif state == TapState.UPDATE_DR:
            for tap, value in zip(self._taps, self._parts(self._lengths), strict=True):
                tap.update(value)
        elif state == TapState.CAPTURE_IR:
            self._capture_ir()
        elif state == TapState.UPDATE_IR:
            for tap, value in zip(self._taps, self._parts(self._ir_lengths()), strict=True):
                tap.set_instruction(value)
        else:
            self.reset()

    def shift(self, tdi: int, count: int) -> int:
        """Clock ``count`` times with TMS = 0 in a shift state; return TDO, first bit lowest."""
        combined = self._shift | tdi << (self._top + 1)
        self._shift = combined >> count
        return combined & (1 << count) - 1

    def _capture_dr(self) -> None:
        self._lengths, self._shift, position = [], 0, 0
        for tap in self._taps:
            value, length = tap.capture()
            self._shift |= value << position
            position += length
            self._lengths.append(length)
        self._top = position - 1

    def _capture_ir(self) -> None:
        """Load the shift register: the two low bits are 01 (IEEE 1149.1, 7.1.1)."""
        self._shift, position = 0, 0
        for length in self._ir_lengths():
            self._shift |= 1 << position
            position += length
        self._top = position - 1

    def _ir_lengths(self) -> list[int]:
        return [tap.ir_length for tap in self._taps]

    def _parts(self, lengths: Sequence[int]) -> list[int]:
        parts, rest = [], self._shift
        for length in lengths:
            parts.append(rest & (1 << length) - 1)
            rest >>= length
        return parts

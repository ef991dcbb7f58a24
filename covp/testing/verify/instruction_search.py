"""`check_instructions`: custom instructions by what executes them and by their Python models.

`search_instructions` draws sequences of them and shrinks one that differs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from hypothesis.errors import Flaky

from covp.accelerator.backend import new_peripheral
from covp.accelerator.core_unit import CoreUnit
from covp.accelerator.registry import find_backend
from covp.accelerator.rtl.instruction_code import RtlInstructionCode
from covp.device.machine.instruction_code import make_custom_unit
from covp.errors import UsageError, WrongResult
from covp.hardware.custom_instruction import CfuState, InstructionUnit

_WORD = 0xFFFFFFFF
SEQUENCES, _LONGEST, _MOST_IDLE = 5, 24, 3
_STALLS = 0x9E3779B9, 0x85EBCA6B
"""Seeds."""
_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)
_byte = st.sampled_from([0, 1, 2, 0x7F, 0x80, 0x81, 0xFE, 0xFF]) | st.integers(0, 255)
WORDS = st.one_of(
    st.integers(0, _WORD),
    st.tuples(_byte, _byte, _byte, _byte).map(lambda b: int.from_bytes(bytes(b), "little")),
    st.integers(-1000, 1000).map(lambda value: value & _WORD),
    st.sampled_from([0, 1, 0x7FFFFFFF, 0x80000000, _WORD, 0x7F7F7F7F, 0x80808080]),
)
"""Operands: words, four bytes that are often at a border of int8, small ones, borders of int32."""


@dataclass(frozen=True)
class Executed:
    """An instruction of a sequence.

    Attributes:
        name: of the instruction.
        a, b: its operands, unsigned.
        idle: cycles between the one before it and this one, in which none executes.
    """

    name: str
    a: int
    b: int
    idle: int = 0

    def __str__(self) -> str:
        pause = f", idle={self.idle}" if self.idle else ""
        return f'Executed("{self.name}", 0x{self.a:x}, 0x{self.b:x}{pause})'


def check_instructions(spec: str, sequence: Sequence[Executed]) -> None:
    """Execute instructions from reset on; each has the result and the cycles that its model states.

    Args:
        spec: of the accelerator; with ``rtl=yes`` its Verilog executes them, else their C.
        sequence: of instructions.

    Raises:
        UsageError: it has no such instructions.
        WrongResult: one differs.
    """
    backend = find_backend(spec)
    if not isinstance(backend, CoreUnit):
        raise UsageError(f"accelerator {backend.name} has no custom instructions of a `CoreUnit`")
    difference = _Witness(backend).difference(sequence)
    if difference:
        raise WrongResult(f"{backend.name}: {difference}")


class _Witness:
    """What executes a unit's instructions, called directly."""

    def __init__(self, backend: CoreUnit) -> None:
        unit = new_peripheral(backend)
        assert isinstance(unit, InstructionUnit)
        self._backend = backend
        self._by = "native" if unit.code is None else "the RTL"
        self._code = make_custom_unit(backend.name, unit.instructions, unit.code).code
        self._state = CfuState.from_address(self._code.state)
        self._functions = {
            one.name: _FUNCTION(self._code.function(one)) for one in unit.instructions
        }

    def difference(self, sequence: Sequence[Executed]) -> str:
        """Describe the first instruction that is not as its model says; "": all are.

        Verilog executes them once more for a core that is at times too busy to take an answer.
        """
        found = self._difference(sequence)
        if found or not isinstance(self._code, RtlInstructionCode):
            return found
        for seed in _STALLS:
            self._code.set_stalls(seed)
            found = found or self._difference(sequence)
        self._code.set_stalls(0)
        return f"{found}, for a core that takes answers late" if found else ""

    def _difference(self, sequence: Sequence[Executed]) -> str:
        models = {one.name: one for one in self._backend.make_instructions()}
        self._code.reset()
        now = 0
        for place, one in enumerate(sequence):
            model = models.get(one.name)
            if model is None:
                raise UsageError(f"{self._backend.name} has no instruction {one.name}")
            now += one.idle
            self._state.now = now
            result = self._functions[one.name](one.a, one.b, self._code.state)
            late, self._state.late = self._state.late, 0
            now += model.cycles + late
            error = self._code.error()
            if error:
                return error
            wanted = int(model.compute(one.a, one.b)) & _WORD
            call = f"instruction {place + 1}, {one.name}(0x{one.a:x}, 0x{one.b:x}),"
            if wanted != result:
                return f"{call} is 0x{wanted:x} by compute and 0x{result:x} by {self._by}"
            if late:
                return (
                    f"{call} takes {model.cycles + late} cycles by {self._by}; "
                    f"it states cycles={model.cycles}"
                )
        return ""


def search_instructions(backend: CoreUnit, spec: str, examples: int, seed: int) -> tuple[str, str]:
    """Try sequences of a unit's instructions.

    Args:
        backend: the unit.
        spec: by which it is found again.
        examples: a fifth of the sequences, of up to 24 instructions.
        seed: the same one draws the same sequences.

    Returns:
        what differs and a test that shows it, for the smallest sequence; two empty texts: nothing.
    """
    witness = _Witness(backend)
    smallest: list[tuple[str, Sequence[Executed]]] = []

    @seeded(seed)
    @settings(
        max_examples=SEQUENCES * examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
        report_multiple_bugs=False,
    )
    @given(sequence=_instructions(backend))
    def search(sequence: list[Executed]) -> None:
        difference = witness.difference(sequence)
        if difference:
            smallest.append((difference, sequence))
            raise WrongResult(difference)

    try:
        search()
    except WrongResult:
        shortest = _shortest(witness, smallest[-1][1])
        return witness.difference(shortest), _test(spec, shortest)
    except Flaky:
        difference, sequence = smallest[0]
        return f"{difference}; not always: a reset leaves state", _test(spec, sequence)
    return "", ""


def _instructions(backend: CoreUnit) -> st.SearchStrategy[list[Executed]]:
    """Return sequences of all instructions, and of those alone that share a funct7."""

    def drawn(name: str, operands: Any) -> st.SearchStrategy[Executed]:
        both: st.SearchStrategy[tuple[tuple[int, int], int]]
        both = st.tuples(operands, st.integers(0, _MOST_IDLE))
        return both.map(lambda found: Executed(name, *found[0], found[1]))

    by_number: dict[int, list[st.SearchStrategy[Executed]]] = {}
    for one in backend.make_instructions():
        operands = backend.operands(one)
        pairs = st.tuples(WORDS, WORDS) if operands is None else operands
        by_number.setdefault(one.funct7, []).append(drawn(one.name, pairs))
    some = [_sequences([*chain.from_iterable(by_number.values())])]
    if len(by_number) > 1:
        # often the number of a register of the unit
        some += [_sequences(own) for own in by_number.values() if len(own) > 1]
    return st.one_of(some)


def _shortest(witness: _Witness, sequence: Sequence[Executed]) -> list[Executed]:
    """Return a sequence that differs without those of its instructions that do not matter."""
    left = list(sequence)
    for one in reversed(sequence):
        without = [other for other in left if other is not one]
        if witness.difference(without):
            left = without
    return left


def _sequences(some: list[st.SearchStrategy[Executed]]) -> st.SearchStrategy[list[Executed]]:
    return st.lists(st.one_of(some), min_size=1, max_size=_LONGEST)


def _test(spec: str, sequence: Sequence[Executed]) -> str:
    steps = "".join(f"        {one},\n" for one in sequence)
    return (
        "from covp.testing.verify import Executed, check_instructions\n\n\n"
        "def test_instructions():\n"
        f'    sequence = [\n{steps}    ]\n    check_instructions("{spec}", sequence)\n'
    )

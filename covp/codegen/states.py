"""The C functions of a program's states: reset, and what keeps them for the next inference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from covp.codegen.arena import ArenaPlan
from covp.codegen.c_text import c_array, c_comment
from covp.codegen.program import ProgramState
from covp.graph.graph import State


@dataclass(frozen=True)
class StateCode:
    """The states of a program and their C.

    Attributes:
        name: of the program.
        states: with their place in the arena.
        moves: target, source and bytes of what is copied after the last layer; offsets from the
            start of the arena.
    """

    name: str
    states: tuple[ProgramState, ...]
    moves: tuple[tuple[int, int, int], ...]

    @staticmethod
    def of(name: str, states: Sequence[State], memory: ArenaPlan) -> StateCode:
        """Return the code for the states of a graph whose memory is planned."""
        places = [
            (memory.offset(s.before), memory.offset(s.after), s.before.nbytes) for s in states
        ]
        described = [ProgramState(s.name, memory.describe(s.before), s.initial) for s in states]
        moved = [(to, source, count) for to, source, count in places if to != source]
        return StateCode(name, tuple(described), tuple(moved))

    @property
    def reset_function(self) -> str:
        """Name of the function that resets the states; empty without states."""
        return f"{self.name}_reset_states" if self.states else ""

    @property
    def keep_function(self) -> str:
        """Name of the function that keeps the states; empty where nothing is moved."""
        return f"{self.name}_keep_states" if self.moves else ""

    @property
    def declaration(self) -> str:
        """C declarations for the program's header."""
        if not self.states:
            return ""
        upper = self.name.upper()
        nbytes = sum(state.tensor.nbytes for state in self.states)
        lines = [f"   {_describe(state)}: arena + {state.tensor.offset}" for state in self.states]
        listed = "\n".join(lines)
        return (
            c_comment(f"States, kept in the arena from one inference to the next:\n{listed}") + "\n"
            f"#define {upper}_STATE_BYTES {nbytes}\n\n"
            "/* Gives the states their initial values: before the first inference, and to begin "
            f"anew. */\nvoid {self.reset_function}(uint8_t *arena);\n\n"
        )

    @property
    def definitions(self) -> str:
        """The functions, for the file of the run function."""
        if not self.states:
            return ""
        constants: list[str] = []
        resets = [self._reset(number, constants) for number in range(len(self.states))]
        text = "".join(f"{constant}\n" for constant in constants)
        text += _function(self.reset_function, resets)
        if self.moves:
            moves = [f"memcpy(arena + {to}, arena + {source}, {count});"
                     for to, source, count in self.moves]  # fmt: skip
            text += f"void {self.keep_function}(uint8_t *arena);\n"
            text += _function(self.keep_function, moves)
        return text

    def _reset(self, number: int, constants: list[str]) -> str:
        """Return a state's statement; a value other than a repeated byte becomes a constant."""
        state = self.states[number]
        raw = np.frombuffer(np.ascontiguousarray(state.initial).tobytes(), np.uint8)
        place = f"arena + {state.tensor.offset}"
        if (raw == raw[:1]).all():
            value = int(raw[0]) if raw.size else 0
            return f"memset({place}, {value}, {raw.size});"
        constants.append(c_array(f"initial_{number}", raw, _describe(state)))
        return f"memcpy({place}, initial_{number}, {raw.size});"


def _describe(state: ProgramState) -> str:
    shape = "x".join(map(str, state.tensor.shape))
    return f"{state.name.replace('*/', '')}: {state.tensor.dtype.name} {shape}"


def _function(name: str, statements: Sequence[str]) -> str:
    body = "\n".join(f"    {statement}" for statement in statements)
    return f"void {name}(uint8_t *arena)\n{{\n{body}\n}}\n\n"

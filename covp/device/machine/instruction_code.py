"""`NativeCode`: custom instructions as compiled functions of the host, or their Python models."""

from __future__ import annotations

import ctypes
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from covp.compilers.host_compiler import compile_for_host
from covp.compilers.toolchain import SourceText
from covp.errors import AcceleratorError, DeviceError
from covp.hardware.custom_instruction import (
    STATE_HEADER,
    CfuState,
    CustomInstruction,
    InstructionCode,
)

_PRELUDE = f"""
#include <stdbool.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif
{STATE_HEADER.read_text(encoding="utf-8")}
#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif
"""
_WORD = 0xFFFFFFFF
_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)


class NativeCode:
    """Instructions as C, compiled; those without C are calls of their models.

    Args:
        name: of the unit, for messages.
        instructions: whose names differ.
        prelude: C before theirs.

    Attributes:
        library: the compiled functions; units of the same source share one.

    Raises:
        ToolchainError: the C of an instruction cannot be compiled.
    """

    clocked: tuple[int, int, int] | None = None

    def __init__(
        self, name: str, instructions: Sequence[CustomInstruction], prelude: str = ""
    ) -> None:
        self._shared = CfuState()
        self.state = ctypes.addressof(self._shared)
        self._error = ""
        self._models = {
            one.name: _FUNCTION(self._model(one)) for one in instructions if not one.native
        }
        sources = [instruction.source for instruction in instructions if instruction.native]
        source = SourceText("custom.c", _PRELUDE + prelude + "".join(sources))
        path = compile_for_host("custom", f"the custom instructions of {name}", [source])
        self.library = ctypes.CDLL(str(path))

    def _model(self, instruction: CustomInstruction) -> Callable[[int, int, int], int]:
        def call(a: int, b: int, state: int) -> int:
            try:
                return int(instruction.compute(a, b)) & _WORD
            except Exception as error:
                frame = traceback.extract_tb(error.__traceback__)[-1]
                place = f"{Path(frame.filename).name}:{frame.lineno}"
                self._error = self._error or (
                    f"{instruction.name}: compute(0x{a:x}, 0x{b:x}) raised {error!r} ({place})"
                )
                return 0

        return call

    def function(self, instruction: CustomInstruction) -> int:
        """Return the host address of an instruction's function."""
        function = self._models.get(instruction.name)
        if function is None:
            function = getattr(self.library, f"covp_{instruction.name}")
        address = ctypes.cast(function, ctypes.c_void_p).value
        assert address is not None
        return address

    def reset(self) -> None:
        """Make the state zero."""
        ctypes.memset(self._shared.word, 0, ctypes.sizeof(self._shared.word))

    def save_state(self) -> bytes:
        """Return the words of the state."""
        return bytes(self._shared.word)

    def load_state(self, state: bytes) -> None:
        """Go back to the words that `save_state` returned."""
        ctypes.memmove(self._shared.word, state, len(state))

    def error(self) -> str:
        """Return what a model raised; "": nothing."""
        return self._error


@dataclass(frozen=True)
class CustomUnit:
    """A unit of instructions on a device.

    Attributes:
        instructions: that share a state.
        code: what executes them.
    """

    instructions: tuple[CustomInstruction, ...]
    code: InstructionCode


def make_custom_unit(
    name: str,
    instructions: Sequence[CustomInstruction],
    code: Callable[[], InstructionCode] | None,
) -> CustomUnit:
    """Return a new unit, reset.

    Args:
        name: of the unit, for messages.
        instructions: whose names differ.
        code: makes what executes them; None: their C, or their models.

    Raises:
        ToolchainError: C or RTL cannot be compiled.
    """
    made = NativeCode(name, instructions) if code is None else code()
    made.reset()
    return CustomUnit(tuple(instructions), made)


def find_unit(units: Mapping[str, CustomUnit], name: str) -> CustomUnit:
    """Return the unit of a name. Raises DeviceError: there is none."""
    if name not in units:
        there = ", ".join(units) or "none"
        raise DeviceError(f"no unit {name!r} of custom instructions; there are: {there}")
    return units[name]


def raise_error(units: Mapping[str, CustomUnit]) -> None:
    """Raise AcceleratorError if a call of an instruction of these units went wrong."""
    for name, unit in units.items():
        error = unit.code.error()
        if error:
            raise AcceleratorError(f"unit {name}: {error}")

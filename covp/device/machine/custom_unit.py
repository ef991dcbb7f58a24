"""`CustomUnit`: the custom instructions that share state, compiled for this machine."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from covp.compilers.host_compiler import compile_for_host
from covp.compilers.toolchain import SourceText
from covp.hardware.custom_instruction import CustomInstruction

STATE_WORDS = 16
_PRELUDE = f"""
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif
typedef struct {{ uint32_t word[{STATE_WORDS}]; }} CfuState;
#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif
"""


class CustomUnit:
    """A unit of instructions that share state, compiled.

    Args:
        name: of the unit, for messages.
        instructions: whose names differ.

    Attributes:
        instructions: as given.
        state: the words that they share, zero at first.
        library: the compiled functions; units of the same source share one.

    Raises:
        ToolchainError: the C of an instruction cannot be compiled.
    """

    def __init__(self, name: str, instructions: Sequence[CustomInstruction]) -> None:
        self.instructions = tuple(instructions)
        self.state = (ctypes.c_uint32 * STATE_WORDS)()
        source = _PRELUDE + "".join(instruction.source for instruction in instructions)
        what = f"the custom instructions of {name}"
        path = compile_for_host("custom", what, [SourceText("custom.c", source)])
        self.library = ctypes.CDLL(str(path))

    def function(self, instruction: CustomInstruction) -> int:
        """Return the host address of an instruction's function."""
        function = getattr(self.library, f"covp_{instruction.name}")
        address = ctypes.cast(function, ctypes.c_void_p).value
        assert address is not None
        return address

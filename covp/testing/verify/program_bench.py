"""`ProgramBench`: an accelerator inside the core; a layer is a program or calls of its driver."""

from __future__ import annotations

import copy
import ctypes
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.accelerator.backend import AcceleratorBackend, new_peripheral
from covp.accelerator.call import CoreKernel
from covp.base.request import EVERY_MATCH
from covp.chip.platform_file import Platform, load_platform
from covp.codegen.calls import lower_placement
from covp.codegen.generate import generate
from covp.codegen.offload import split_graph
from covp.device.machine.instruction_code import NativeCode, make_custom_unit
from covp.graph.graph import Graph
from covp.graph.passes import run_passes
from covp.hardware.custom_instruction import CustomInstruction, InstructionCode, InstructionUnit
from covp.runtime.session import Session
from covp.testing.verify.bench import FLAGS, USUAL, Conditions, LayerOutcome
from covp.testing.verify.bench_device import BenchDevice
from covp.testing.verify.driver_bench import DriverBench

_GUARD, _GUARDS = 0xA5, 256


class ProgramBench:
    """A bench of units inside the core, whose driver runs call by call, as on the bus.

    Layers that are the core's own kernels with more instructions are compiled and loaded, each as
    a program. All instructions are compared with their Python model.
    """

    def __init__(
        self, backend: AcceleratorBackend, platform: str | Platform, toolchain: str = "zig"
    ) -> None:
        self.compiled: set[str] = set()
        self.log = InstructionLog(backend)
        self.backend = copy.copy(backend)
        self.backend.make_peripheral = lambda: self.log.unit  # type: ignore[method-assign]
        self.platform = load_platform(platform)
        with ExitStack() as stack:
            self.session = stack.enter_context(
                Session(self.platform, BenchDevice(self.platform), toolchain=toolchain)
            )
            self.calls = stack.enter_context(DriverBench(self.backend, self.platform, toolchain))
            self._stack = stack.pop_all()

    def __enter__(self) -> ProgramBench:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @property
    def rates(self) -> tuple[float, float]:
        """No rates: a unit in the core has no jobs."""
        return 0.0, 0.0

    def begin(self) -> None:
        """Begin with a device that has run nothing yet."""
        self.calls.begin()
        self.log.clear()

    def run(
        self, graph: Graph, inputs: Sequence[NDArray[Any]], conditions: Conditions = USUAL
    ) -> LayerOutcome:
        """Run a graph once."""
        _, split = split_graph(run_passes(graph), [self.backend], options=EVERY_MATCH)
        own = [placement for placement in split.placements if placement.match is not None]
        if not any(isinstance(lower_placement(each)[0], CoreKernel) for each in own):
            # as the memory planner aligns them
            outcome = self.calls.run(graph, inputs, replace(conditions, gap=0))
        elif conditions == Conditions(conditions.gap):
            self.log.clear()
            self.compiled.add(graph.ops[-1].kind)
            outcome = self._program(graph, inputs)
        else:
            return LayerOutcome(None, [], [])  # a program has places of its own, and no unit's time
        return replace(outcome, wrong=outcome.wrong or self.log.difference())

    def _program(self, graph: Graph, inputs: Sequence[NDArray[Any]]) -> LayerOutcome:
        """Return two inferences of a program between guards; the second one's result counts."""
        program = generate(graph, self.platform, [self.backend], EVERY_MATCH)
        program = replace(program, flags=(*program.flags, *FLAGS))
        guard = bytes([_GUARD]) * _GUARDS
        below = self.session.place(guard, what="guards")
        module = self.session.load(program)
        above = self.session.place(guard, what="guards")
        try:
            first, result = (_several(module.run(*inputs)) for _ in range(2))
            damage = [
                placed.address + i
                for placed in (below, above)
                for i, byte in enumerate(self.session.read(placed.address, _GUARDS))
                if byte != _GUARD
            ]
        finally:
            module.unload()
            above.free()
            below.free()
        same = all(np.array_equal(a, b, equal_nan=True) for a, b in zip(first, result, strict=True))
        wrong = "" if same else "the same inference gives another result the second time"
        return LayerOutcome(result, damage, [], wrong)


def _several(result: Any) -> list[NDArray[Any]]:
    return result if isinstance(result, list) else [result]


_LENGTH = 4096
"""Instructions that are kept: the first ones since `clear`."""
_LOG = f"""
typedef uint32_t (*CustomFunction)(uint32_t a, uint32_t b, CfuState *state);
EXPORT CustomFunction covp_inner[1024];
EXPORT uint32_t covp_log_count, covp_log[{_LENGTH}][5];
static uint32_t covp_call(uint32_t which, uint32_t a, uint32_t b, CfuState *state) {{
uint32_t result = covp_inner[which](a, b, state);
if (covp_log_count < {_LENGTH}) {{
uint32_t *entry = covp_log[covp_log_count++];
entry[0] = which, entry[1] = a, entry[2] = b, entry[3] = result;
entry[4] = (uint32_t)state->late; }}
return result; }}
"""


class _LoggedCode(NativeCode):
    """What executes instructions, with a record of each.

    Args:
        name: of the unit.
        instructions: of the unit.
        inner: executes them.
    """

    def __init__(
        self, name: str, instructions: Sequence[CustomInstruction], inner: InstructionCode
    ) -> None:
        calls = [
            replace(one, native=f"return covp_call({place}, a, b, state);")
            for place, one in enumerate(instructions)
        ]
        super().__init__(name, calls, _LOG)
        self.inner, self.state, self.clocked = inner, inner.state, inner.clocked
        functions = (ctypes.c_void_p * 1024).in_dll(self.library, "covp_inner")
        for place, one in enumerate(instructions):
            functions[place] = inner.function(one)
        # the same source is the same library, so these are those of all such objects
        self.count = ctypes.c_uint32.in_dll(self.library, "covp_log_count")
        self.entries = (ctypes.c_uint32 * 5 * _LENGTH).in_dll(self.library, "covp_log")

    def reset(self) -> None:
        self.inner.reset()

    def save_state(self) -> bytes:
        return self.inner.save_state()

    def load_state(self, state: bytes) -> None:
        self.inner.load_state(state)

    def error(self) -> str:
        return self.inner.error()


class InstructionLog:
    """A unit in the core whose instructions are recorded and compared with their model.

    Args:
        backend: of the unit; `model` makes its Python model anew.

    Attributes:
        unit: the same instructions, to be given to a device.
    """

    def __init__(self, backend: AcceleratorBackend) -> None:
        self._model: Callable[[], InstructionUnit] = lambda: _made(backend)
        made = self._model()
        self._witness = "native" if made.code is None else "the RTL"

        def code() -> _LoggedCode:
            inner = make_custom_unit(backend.name, made.instructions, made.code).code
            return _LoggedCode(backend.name, made.instructions, inner)

        self._code = code()
        self.unit = InstructionUnit(made.instructions, code)

    def clear(self) -> None:
        """Begin anew; the unit's state has to be zero."""
        self._code.count.value = 0

    def difference(self) -> str:
        """Describe the first instruction since `clear` for which model and unit differ, or ""."""
        instructions = self._model().instructions
        for which, a, b, result, late in self._code.entries[: self._code.count.value]:
            instruction = instructions[which]
            wanted = int(instruction.compute(a, b)) & 0xFFFFFFFF
            call = f"{instruction.name}(0x{a:x}, 0x{b:x})"
            if wanted != result:
                return f"{call} is 0x{wanted:x} by compute and 0x{result:x} by {self._witness}"
            if late:
                took = instruction.cycles + ctypes.c_int32(late).value
                return (
                    f"{call} takes {took} cycles by {self._witness}, "
                    f"its `cycles` are {instruction.cycles}"
                )
        return ""


def _made(backend: AcceleratorBackend) -> InstructionUnit:
    unit = new_peripheral(backend)
    assert isinstance(unit, InstructionUnit)
    return unit

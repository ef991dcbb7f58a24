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
from covp.device.machine.custom_instructions import CustomUnit
from covp.graph.graph import Graph
from covp.graph.passes import run_passes
from covp.hardware.custom_instruction import CustomInstruction, InstructionUnit
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
#ifndef COVP_LOG
#define COVP_LOG
EXPORT uint32_t covp_log_count, covp_log[{_LENGTH}][4];
static uint32_t covp_logged(uint32_t which, uint32_t a, uint32_t b, uint32_t result) {{
if (covp_log_count < {_LENGTH}) {{
uint32_t *entry = covp_log[covp_log_count++];
entry[0] = which, entry[1] = a, entry[2] = b, entry[3] = result; }}
return result; }}
#endif
"""


class _Logged(CustomInstruction):
    """An instruction whose C records what it did."""

    position: int = 0

    @property
    def source(self) -> str:
        """The instruction's own function under another name, and one that calls it."""
        plain = super().source.replace("EXPORT uint32_t ", "static uint32_t plain_", 1)
        return (
            f"{_LOG}{plain}"
            f"EXPORT uint32_t covp_{self.name}(uint32_t a, uint32_t b, CfuState *state) {{\n"
            f"return covp_logged({self.position}, a, b, plain_covp_{self.name}(a, b, state)); }}\n"
        )


class InstructionLog:
    """A unit in the core whose instructions are recorded and compared with their model.

    Args:
        backend: of the unit; `model` makes its Python model anew.

    Attributes:
        unit: the same instructions, to be given to a device.
    """

    def __init__(self, backend: AcceleratorBackend) -> None:
        self._model: Callable[[], InstructionUnit] = lambda: _made(backend)
        logged = []
        for position, given in enumerate(self._model().instructions):
            fields = {name: getattr(given, name) for name in given.__dataclass_fields__}
            instruction = _Logged(**fields)
            object.__setattr__(instruction, "position", position)
            logged.append(instruction)
        self.unit = replace(self._model(), instructions=tuple(logged))
        # the same source is the same library, so these are the device's own variables
        library = CustomUnit(backend.name, self.unit.instructions).library
        self._count = ctypes.c_uint32.in_dll(library, "covp_log_count")
        self._entries = (ctypes.c_uint32 * 4 * _LENGTH).in_dll(library, "covp_log")

    def clear(self) -> None:
        """Begin anew; the unit's state has to be zero."""
        self._count.value = 0

    def difference(self) -> str:
        """Describe the first instruction since `clear` for which model and C differ, or ""."""
        instructions = self._model().instructions
        for which, a, b, result in self._entries[: self._count.value]:
            instruction = instructions[which]
            wanted = int(instruction.compute(a, b)) & 0xFFFFFFFF
            if wanted != result:
                return (
                    f"{instruction.name}(0x{a:x}, 0x{b:x}) is 0x{wanted:x} by compute and "
                    f"0x{result:x} by native"
                )
        return ""


def _made(backend: AcceleratorBackend) -> InstructionUnit:
    unit = new_peripheral(backend)
    assert isinstance(unit, InstructionUnit)
    return unit

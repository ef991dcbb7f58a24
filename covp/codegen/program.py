"""`Program`: what the model wing hands to the machine wing.

Programs are plain data: they pickle, and a process that was just started runs the copy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.accelerator.backend import AcceleratorBackend, new_peripheral
from covp.accelerator.placement import Alternative, Refusal
from covp.chip.platform_file import Platform, Region
from covp.graph.graph import Graph, Quantization
from covp.graph.reference import ReferenceExecutor, run_reference
from covp.graph.user_operators import UserOperator, find_user_operator, register_operator


@dataclass(frozen=True)
class ProgramTensor:
    """An input or output of a program.

    Attributes:
        name: the tensor's name in the model.
        shape: all dimensions, batch first.
        dtype: as stored in memory.
        offset: bytes from the start of the arena.
        quantization: None for float and plain integer tensors.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    offset: int
    quantization: Quantization | None = None

    @property
    def nbytes(self) -> int:
        """Bytes in memory, dense and row-major."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize


@dataclass(frozen=True, eq=False)
class ProgramState:
    """A state that a program keeps in its arena from one inference to the next.

    Attributes:
        name: of the state in the model's graph.
        tensor: its place.
        initial: its value after a reset.
    """

    name: str
    tensor: ProgramTensor
    initial: NDArray[Any]


@dataclass(frozen=True)
class LayerMemory:
    """A piece of the arena that a layer is given.

    Attributes:
        name: of the tensor, or of the parameter for scratch memory.
        offset: bytes from the start of the arena.
        nbytes: its size.
        is_read: it holds something before the layer.
        is_written: the layer leaves something there, or needs it to work in.
        is_output: all of it is to be written.
    """

    name: str
    offset: int
    nbytes: int
    is_read: bool
    is_written: bool
    is_output: bool


@dataclass(frozen=True)
class Piece:
    """Bytes of a tensor.

    Attributes:
        tensor: its name; of tensors that are the same bytes the first one's.
        start, end: first byte, and one past the last.
    """

    tensor: str
    start: int
    end: int

    def meets(self, other: Piece) -> bool:
        """Return whether both share a byte."""
        return self.tensor == other.tensor and self.start < other.end and other.start < self.end


@dataclass(frozen=True)
class LayerPart:
    """A layer, or a band of its rows, in a program in which core and units work at once.

    Attributes:
        functions: one that computes it, or two: what begins it, and what waits for its end.
        reads, writes: the pieces of tensors.
        unit: name of the accelerator that computes it; "": the layer's target.
    """

    functions: tuple[str, ...]
    reads: tuple[Piece, ...]
    writes: tuple[Piece, ...]
    unit: str = ""

    @property
    def is_asynchronous(self) -> bool:
        """True if the core may do something else while a unit computes it."""
        return len(self.functions) > 1


MOST_ARGUMENTS = 12
"""Most arguments of a function that the host calls; a device's task has no room for more."""


def wrapper_of(function: str, arguments: int) -> str:
    """Return the name of the function that calls a layer's with its places in the arena.

    Args:
        function: of the layer.
        arguments: that it has. Up to `MOST_ARGUMENTS` there is no such function, and no name.
    """
    return f"{function}_in_arena" if arguments > MOST_ARGUMENTS else ""


@dataclass(frozen=True)
class ProgramLayer:
    """One function of a program.

    Attributes:
        index: the operator's position in the model file.
        name: the operator's name in the graph.
        op: its kind, e.g. "CONV_2D".
        target: "cpu", or the `AcceleratorInstance.name` of an accelerator.
        macs: multiply-accumulates of the layer as the model states it.
        function: name of the C function.
        schedule: the choice the kernel made, short.
        arguments: of the function, all of them pointers: bytes from the start of the arena.
        outputs: what the layer leaves in the arena, by the tensor's name in the model.
        operators: names of the operators that it computes.
        estimated_cycles: by which the partitioner chose, the driver's included; None: unknown.
        work: multiply-accumulates that are left of ``macs`` after the passes.
        memory: all that it is given of the arena.
        parts: that the run function calls instead of ``function``; empty where it calls that.
        strip_of: name of the operator some of whose rows it computes or copies; mostly empty.
        keeps_constants: they stay in the accelerator's memory after the first inference.
    """

    index: int
    name: str
    op: str
    target: str
    macs: int
    function: str
    schedule: str = ""
    arguments: tuple[int, ...] = ()
    outputs: tuple[ProgramTensor, ...] = ()
    operators: tuple[str, ...] = ()
    estimated_cycles: int | None = None
    work: int = 0
    memory: tuple[LayerMemory, ...] = ()
    parts: tuple[LayerPart, ...] = ()
    strip_of: str = ""
    keeps_constants: bool = False

    @property
    def units(self) -> tuple[str, ...]:
        """Names of the accelerators that compute it; several are equal ones that share it."""
        if self.target == "cpu":
            return ()
        return tuple(dict.fromkeys(part.unit or self.target for part in self.parts)) or (
            self.target,
        )

    @property
    def wrapper(self) -> str:
        """``void f(uint8_t *arena)`` that calls the function; empty where it has few arguments."""
        return wrapper_of(self.function, len(self.arguments))

    @property
    def functions(self) -> tuple[str, ...]:
        """All C functions that belong to the layer alone, each once."""
        found = [self.function, *(name for part in self.parts for name in part.functions)]
        return tuple(dict.fromkeys(found))


@dataclass(frozen=True)
class AcceleratorInstance:
    """An accelerator that the program's drivers expect on the bus.

    Attributes:
        name: unique in its program; what `ProgramLayer.target` says.
        backend: its compiler side, which makes the hardware model.
        base: bus address of its registers.
        irq: its interrupt line; None where the platform has none for it.
        files: of its driver, names in the program's sources.
    """

    name: str
    backend: AcceleratorBackend
    base: int
    irq: int | None = None
    files: tuple[str, ...] = ()

    @property
    def spec(self) -> str:
        """The accelerator and its parameters, as a user writes them, e.g. "gemm:size=16"."""
        return self.backend.spec

    def is_like(self, other: AcceleratorInstance) -> bool:
        """Return whether one hardware model can serve two programs for this and the other."""
        mine, theirs = self.backend, other.backend
        return (self.name, self.spec, type(mine)) == (other.name, other.spec, type(theirs))

    def make(self) -> Any:
        """Make a hardware model for the bus at ``base``: a peripheral or an instruction unit.

        Raises:
            AcceleratorError: the backend gives none.
        """
        return new_peripheral(self.backend)


@dataclass(frozen=True, eq=False)
class Program:
    """C sources, a memory plan and the description of a compiled model.

    Attributes:
        name: of the model, a C identifier.
        graph: the model as it was read; `reference` computes it.
        platform: what it was compiled for.
        sources: file name to text; ``.c`` files are compiled, ``.h`` files are included.
        run_function: ``void f(uint8_t *arena)``, one inference from the arena's inputs to its
            outputs.
        arena_symbol: a uint8_t array for all activations, which simulations and firmware pass; in a
            file of its own, ``NAME_arena.c``.
        arena_bytes: its size.
        arena_alignment: its address is a multiple of it: 16, or a line of the core's data cache.
        inputs, outputs: in the model's order; offsets count from ``arena_symbol``.
        layers: in the order they run.
        accelerators: what has to be on the bus.
        refusals: what each accelerator left to others, and why.
        alternatives: what the partitioner had to choose from, with its estimates.
        warnings: what the user should know; one line each.
        flags: extra compiler options.
        startup_function: ``void f(void)``, what accelerators want called before every inference;
            the run function calls it. Empty: nothing.
        operators: those of users in the graph; a process that unpickles the program learns them.
        states: what the arena keeps between inferences.
        reset_function: ``void f(uint8_t *arena)``, gives the states their initial
            values. Empty: no states.
        keep_function: ``void f(uint8_t *arena)``, moves the states' next values to
            their place after the last layer; the run function calls it. Empty: layers leave
            all of them there.
        lowered: the graph whose operators the layers are, after all passes; None where the program
            was not made by `covp.compile`.
    """

    name: str
    graph: Graph
    platform: Platform
    sources: Mapping[str, str]
    run_function: str
    arena_symbol: str
    arena_bytes: int
    inputs: tuple[ProgramTensor, ...]
    outputs: tuple[ProgramTensor, ...]
    layers: tuple[ProgramLayer, ...]
    accelerators: tuple[AcceleratorInstance, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    warnings: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    startup_function: str = ""
    operators: tuple[UserOperator, ...] = ()
    lowered: Graph | None = None
    states: tuple[ProgramState, ...] = ()
    reset_function: str = ""
    keep_function: str = ""
    arena_alignment: int = 16

    @property
    def state_bytes(self) -> int:
        """Bytes of the arena that hold the states."""
        return sum(state.tensor.nbytes for state in self.states)

    def ram_left(self, regions: Sequence[Region]) -> int:
        """Return the bytes of memory ``regions`` that the stack and the arena leave."""
        return sum(one.bytes for one in regions) - self.platform.stack_bytes - self.arena_bytes

    def reference(self, inputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Return the outputs that are expected: the graph in numpy, with TFLM's arithmetic.

        States have their initial values; `executor` keeps them.

        Args:
            inputs: one array per input, of its shape and dtype.

        Raises:
            UsageError: an input does not fit.
        """
        return run_reference(self.graph, inputs)

    def executor(self) -> ReferenceExecutor:
        """Return the graph in numpy, for several inferences one after the other."""
        return ReferenceExecutor(self.graph)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for operator in self.operators:
            if find_user_operator(operator.kind) is None:
                register_operator(operator)

"""`Program`: what the model wing hands to the machine wing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.accelerator.partition import Refusal as Refusal
from covp.graph.graph import Quantization
from covp.platform_file import Platform

Reference = Callable[[Sequence[NDArray[Any]]], list[NDArray[Any]]]


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


@dataclass(frozen=True)
class ProgramLayer:
    """One function of a program.

    Attributes:
        index: the operator's position in the model file.
        name: the operator's name in the graph.
        op: its kind, e.g. "CONV_2D".
        target: "cpu" or the accelerator's name.
        macs: multiply-accumulates of the layer as the model states it.
        function: name of the C function.
        schedule: the choice the kernel made, short.
        arguments: of the function, all of them pointers: bytes from the start of the arena.
        outputs: what the layer leaves in the arena, by the tensor's name in the model.
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


@dataclass(frozen=True)
class AcceleratorInstance:
    """An accelerator that the program's drivers expect on the bus.

    Attributes:
        name: as it was asked for.
        make: gives a new peripheral model, attached to the device at ``base``.
        base: bus address of its registers.
        irq: its interrupt line; None where the platform has none for it.
        files: of its driver, names in the program's sources.
        kind: its class; two programs share a model only of the same one.
    """

    name: str
    make: Callable[[], Any]
    base: int
    irq: int | None = None
    files: tuple[str, ...] = ()
    kind: object = None


@dataclass(frozen=True, eq=False)
class Program:
    """C sources, a memory plan and the description of a compiled model.

    Attributes:
        name: of the model, a C identifier.
        platform: what it was compiled for.
        sources: file name to text; ``.c`` files are compiled, ``.h`` files are included.
        run_function: ``void f(void)``, one inference from the arena's inputs to its outputs.
        arena_symbol: the uint8_t array that holds all activations.
        arena_bytes: its size.
        inputs, outputs: in the model's order; offsets count from ``arena_symbol``.
        layers: in the order they run.
        accelerators: what has to be on the bus.
        reference: inputs to outputs with TFLM's arithmetic, in numpy; the oracle of `matches`.
        refusals: what each accelerator left to the core, and why.
        warnings: what the user should know; a line each.
        flags: extra compiler options.
        startup_function: ``void f(void)``, what accelerators want called in front of every
            inference; the run function calls it. Empty: nothing.
    """

    name: str
    platform: Platform
    sources: Mapping[str, str]
    run_function: str
    arena_symbol: str
    arena_bytes: int
    inputs: tuple[ProgramTensor, ...]
    outputs: tuple[ProgramTensor, ...]
    layers: tuple[ProgramLayer, ...]
    accelerators: tuple[AcceleratorInstance, ...] = ()
    reference: Reference | None = None
    refusals: tuple[Refusal, ...] = ()
    warnings: tuple[str, ...] = ()
    flags: tuple[str, ...] = field(default=())
    startup_function: str = ""

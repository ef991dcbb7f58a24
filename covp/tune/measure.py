"""Measuring one schedule: generate, compile, run on the device, compare with the reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import covp.codegen.kernels  # noqa: F401  (they register themselves)
from covp.codegen.layer import KernelRequest, LayerCode, Scratch, emit_layer
from covp.codegen.schedule import Schedule
from covp.errors import CapacityError
from covp.graph.graph import Op, Tensor
from covp.graph.ops import definition
from covp.platform_file import Platform
from covp.runtime.linking import FLASH_SECTIONS
from covp.runtime.session import Session
from covp.tune.records import VERSION, Trial, layer_key

_FUNCTION = "layer"
_FLAGS = ("-fno-strict-aliasing",)


class Bench:
    """Measures schedules of operators in one session.

    Args:
        platform: whose core and memory are used.
        toolchain: "zig" or "gcc".
        device: as for `Session`.
    """

    def __init__(self, platform: Platform, toolchain: str, device: str = "virtual") -> None:
        self.session = Session(platform, device=device, toolchain=toolchain)

    def close(self) -> None:
        """Let the device go."""
        self.session.close()

    def measure(self, op: Op, schedule: Schedule, seed: int = 0) -> Trial | None:
        """One trial on random inputs; None where the schedule does not fit the memory."""
        core = self.session.platform.core
        code = emit_layer(KernelRequest(op, core, _FUNCTION, schedule))
        inputs = _random_inputs(op, seed)
        try:
            return self._run(op, code, schedule, inputs)
        except CapacityError:
            return None

    def _run(
        self, op: Op, code: LayerCode, schedule: Schedule, inputs: dict[int, NDArray[Any]]
    ) -> Trial:
        session = self.session
        module = session.load_c(code.source, flags=_FLAGS)
        tensors = []
        try:
            for argument in code.arguments.values():
                tensors.append(session.tensor(_initial(argument, inputs)))
            module[_FUNCTION](*tensors)
            instructions, cycles = self._cost_of_sync()
            arguments = zip(code.arguments.values(), tensors, strict=True)
            results = {id(a): t.numpy() for a, t in arguments if isinstance(a, Tensor)}
            return Trial(
                layer=layer_key(op),
                core=session.platform.core.name,
                compiler=session.toolchain.version,
                version=VERSION,
                schedule=str(schedule),
                instructions=instructions,
                cycles=cycles,
                flash_bytes=module.image.bytes_in(FLASH_SECTIONS),
                scratch_bytes=sum(
                    a.nbytes for a in code.arguments.values() if isinstance(a, Scratch)
                ),
                exact=_is_exact(op, inputs, results),
            )
        finally:
            for tensor in tensors:
                tensor.free()
            module.unload()

    def _cost_of_sync(self) -> tuple[int, int | None]:
        device: Any = self.session.device
        before = device.instructions, device.cycles
        self.session.sync()
        return device.instructions - before[0], device.cycles - before[1]


def _random_inputs(op: Op, seed: int) -> dict[int, NDArray[Any]]:
    rng = np.random.default_rng(seed)
    return {
        id(tensor): rng.integers(-128, 128, tensor.shape).astype(tensor.dtype)
        for tensor in op.inputs
        if tensor is not None and not tensor.constant
    }


def _initial(argument: Tensor | Scratch, inputs: dict[int, NDArray[Any]]) -> NDArray[Any]:
    if isinstance(argument, Scratch):
        return np.zeros(-(-argument.nbytes // 4), np.int32)
    return inputs.get(id(argument), np.zeros(argument.shape, argument.dtype))


def _is_exact(op: Op, inputs: dict[int, NDArray[Any]], results: dict[int, NDArray[Any]]) -> bool:
    values: Sequence[NDArray[Any] | None] = [
        None if t is None else t.data if t.data is not None else inputs[id(t)] for t in op.inputs
    ]
    wanted = definition(op.kind).reference(op, values)
    return all(
        np.array_equal(results[id(tensor)], value)
        for tensor, value in zip(op.outputs, wanted, strict=True)
    )

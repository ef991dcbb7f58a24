"""Measuring one schedule: generate, compile, run on the device, compare with the reference."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

import covp.codegen.kernels  # noqa: F401  (they register themselves)
from covp.base.closing import Closing
from covp.building.tune.records import VERSION, ScheduleTrial, layer_key, structure_key
from covp.chip.platform_file import Platform
from covp.codegen.layer import KernelRequest, LayerCode, Scratch, emit_layer
from covp.codegen.schedule import Schedule
from covp.errors import CapacityError, DeviceError, DeviceFault
from covp.graph.equality import differences
from covp.graph.graph import Op, Tensor
from covp.graph.ops import definition
from covp.graph.random_inputs import random_inputs
from covp.runtime.devices import scheme_of
from covp.runtime.linking import FLASH_SECTIONS
from covp.runtime.module import Function
from covp.runtime.profile import Cost
from covp.runtime.session import Session
from covp.runtime.tensor import DeviceTensor

_FUNCTION = "layer"
_FLAGS = ("-fno-strict-aliasing",)
_REPEATS = 9


class ScheduleBench(Closing):
    """Measures schedules of operators in one session. Pickles, without the session.

    Args:
        platform: whose core and memory are used.
        toolchain: "zig" or "gcc".
        device: as for `Session`.
    """

    def __init__(self, platform: Platform, toolchain: str, device: str = "virtual") -> None:
        self._given = platform, toolchain, device
        self.device_kind = scheme_of(device)

    def __reduce__(self) -> tuple[Any, ...]:
        return ScheduleBench, self._given

    @cached_property
    def session(self) -> Session:
        """Session that the schedules run in; opened when it is first used."""
        platform, toolchain, device = self._given
        return Session(platform, device=device, toolchain=toolchain)

    def close(self) -> None:
        """Close the session."""
        if "session" in vars(self):
            self.session.close()

    def __call__(self, trial: tuple[Op, Schedule]) -> ScheduleTrial | None:
        """Measure the operator and schedule of ``trial``, see `measure`."""
        return self.measure(*trial)

    def measure(self, op: Op, schedule: Schedule, seed: int = 0) -> ScheduleTrial | None:
        """Return one trial on random inputs; None where the schedule does not fit the memory.

        Code that faults does not match the reference: the trial says so and has no cost.
        """
        core = self.session.platform.core
        code = emit_layer(KernelRequest(op, core, _FUNCTION, schedule))
        inputs = _inputs(op, seed)
        try:
            return self._run(op, code, schedule, inputs)
        except CapacityError:
            return None
        except DeviceFault:
            return self._trial(code, schedule, Cost(None, None), flash=0, exact=False)

    def _run(
        self, op: Op, code: LayerCode, schedule: Schedule, inputs: dict[int, NDArray[Any]]
    ) -> ScheduleTrial:
        session = self.session
        module = session.load_c(code.source, flags=_FLAGS)
        tensors = []
        try:
            for argument in code.arguments.values():
                tensors.append(session.tensor(_initial(argument, inputs)))
            cost = self._cost(module[_FUNCTION], tensors)
            arguments = zip(code.arguments.values(), tensors, strict=True)
            results = {id(a): t.numpy() for a, t in arguments if isinstance(a, Tensor)}
            flash = module.image.bytes_in(FLASH_SECTIONS)
            return self._trial(code, schedule, cost, flash, _is_exact(op, inputs, results))
        finally:
            for tensor in tensors:
                tensor.free()
            module.unload()

    def _trial(
        self, code: LayerCode, schedule: Schedule, cost: Cost, flash: int, exact: bool
    ) -> ScheduleTrial:
        return ScheduleTrial(
            layer=layer_key(code.op),
            core=self.session.platform.core.key,
            compiler=self.session.toolchain.version,
            version=VERSION,
            schedule=str(schedule),
            instructions=cost.instructions,
            cycles=cost.cycles,
            flash_bytes=flash,
            scratch_bytes=sum(a.nbytes for a in code.arguments.values() if isinstance(a, Scratch)),
            exact=exact,
            device=self.device_kind,
            nanoseconds=None if cost.seconds is None else round(cost.seconds * 1e9),
            structure=structure_key(code.op),
            memory=self.session.platform.memory_timing,
        )

    def _cost(self, layer: Function, tensors: Sequence[DeviceTensor]) -> Cost:
        """Return the cost of one call; where only run time is known, the shortest of several.

        Raises:
            DeviceError: the device can measure nothing.
        """
        layer(*tensors)
        cost = self.session.sync()
        if cost.instructions is None and cost.cycles is None:
            if cost.seconds is None:
                raise DeviceError(
                    f"device {self.device_kind} measures neither instructions, cycles nor time on "
                    f"{self.session.platform.name}: it cannot be tuned for"
                )
            for _ in range(_REPEATS):
                layer(*tensors)
                again = self.session.sync()
                cost = min(cost, again, key=lambda c: c.seconds or 0.0)
        return cost


def _inputs(op: Op, seed: int) -> dict[int, NDArray[Any]]:
    tensors = [t for t in op.inputs if t is not None and not t.constant]
    return dict(zip(map(id, tensors), random_inputs(tensors, seed, [op]), strict=True))


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
        differences(results[id(tensor)], value).size == 0
        for tensor, value in zip(op.outputs, wanted, strict=True)
    )

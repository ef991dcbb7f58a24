"""`GraphModule`: a compiled model on the device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from covp.errors import AcceleratorError, DeviceFault, UsageError
from covp.hardware.job_unit import JobRecord, JobUnit
from covp.program import Program, ProgramTensor
from covp.runtime.abi import Task
from covp.runtime.image import RETURN
from covp.runtime.module import Call, Module
from covp.runtime.profile import Cost, LayerProfile, Offload, Profile
from covp.runtime.signature import VOID, Signature

if TYPE_CHECKING:
    from covp.device.base import Stop
    from covp.runtime.linking import LoadedImage
    from covp.runtime.session import Session

_OUTSIDE, _BETWEEN, _FIRST_LAYER = range(3)


class GraphModule(Module):
    """A `Program` in the device's memory; `Session.load` makes them.

    Attributes:
        program: what was loaded.
    """

    def __init__(self, session: Session, image: LoadedImage, program: Program) -> None:
        super().__init__(session, image, program.name)
        self.program = program
        self._arena = self.address(program.arena_symbol)
        self._profile: Profile | None = None
        self._uses: dict[str, int] = {}

    def run(self, *inputs: ArrayLike) -> Any:
        """One inference.

        Args:
            inputs: one array for each input of the model, of exactly its shape and dtype.

        Returns:
            The output as a numpy array; a list of them where the model has several.

        Raises:
            UsageError: a wrong number, shape or dtype of inputs.
            DeviceFault: the program faulted.
        """
        arrays = self._check(inputs)
        session = self.session
        session.sync()
        before = session._io.transfers
        for tensor, array in zip(self.program.inputs, arrays, strict=True):
            session._io.write(self._arena + tensor.offset, array.tobytes())
        self._count_layers()
        try:
            stops = self._infer()
        except (AcceleratorError, DeviceFault) as error:
            raise self._in_layer(error) from error.__cause__
        profile = self._measure(stops)
        outputs = [self._read(tensor) for tensor in self.program.outputs]
        self._profile = replace(profile, transfers=session._io.transfers.since(before))
        session._last_run = self
        return outputs[0] if len(outputs) == 1 else outputs

    def _in_layer(self, error: AcceleratorError | DeviceFault) -> AcceleratorError | DeviceFault:
        """The error with the layer that was running, where the device knows."""
        phases = self.session.device.abilities.phases
        if phases is None:
            return error
        layer = phases.current_phase() - _FIRST_LAYER
        if not 0 <= layer < len(self.program.layers):
            return error
        where = f"in layer {self.program.layers[layer].name} ({self.program.layers[layer].target})"
        if isinstance(error, DeviceFault):
            error.detail = f"{error.detail}; {where}" if error.detail else where
            return error
        return AcceleratorError(f"{error}, {where}")

    def _infer(self) -> Sequence[Stop]:
        """From inputs in the arena to outputs there; what each execution says of its cost."""
        entry = self._loaded().elf.symbols[self.program.run_function].value
        return [self.session._queue.run([self._call(self.program.run_function, Task(entry))])]

    def _call(self, function: str, task: Task) -> Call:
        return Call(self.session, Signature(function, (), VOID), task, ())

    def profile(self) -> Profile:
        """The cost of the latest `run`. Raises UsageError before the first."""
        if self._profile is None:
            raise UsageError(f"{self.name} has not run yet: call run() first")
        return self._profile

    def _check(self, inputs: tuple[ArrayLike, ...]) -> list[NDArray[Any]]:
        self._loaded()
        expected = self.program.inputs
        if len(inputs) != len(expected):
            raise UsageError(
                f"{self.name} takes {len(expected)} input{'s' if len(expected) != 1 else ''}, "
                f"not {len(inputs)}"
            )
        arrays = []
        for tensor, given in zip(expected, inputs, strict=True):
            array = np.asarray(given)
            if array.shape != tensor.shape or array.dtype != tensor.dtype:
                raise UsageError(
                    f"{self.name}: input {tensor.name} must be {tensor.dtype.name} of shape "
                    f"{tensor.shape}, not {array.dtype.name} of shape {array.shape}"
                )
            arrays.append(np.ascontiguousarray(array))
        return arrays

    def _read(self, tensor: ProgramTensor) -> NDArray[Any]:
        raw = self.session._io.read(self._arena + tensor.offset, tensor.nbytes)
        values: NDArray[Any] = np.frombuffer(raw, tensor.dtype).reshape(tensor.shape)
        return np.array(values)

    def _count_layers(self) -> None:
        """Let the device count by layer, from zero, where it can."""
        phases = self.session.device.abilities.phases
        if phases is not None:
            phases.set_phases(self._markers)
        for unit in self._units.values():
            unit.forget_jobs()
        self._uses = self._instruction_uses()

    @cached_property
    def _markers(self) -> list[tuple[int, int]]:
        """Where layers begin, and where control is back in the run function.

        Control comes back to the run function at a return address, which is some instruction of
        it; marking all of them saves finding the calls. A call as the last thing may come back to
        the task runner at once, hence the mark there.
        """
        symbols = self._loaded().elf.symbols
        run = symbols[self.program.run_function]
        markers = [(address, _BETWEEN) for address in range(run.address, run.address + run.size, 2)]
        if self.program.startup_function in symbols:
            markers.append((symbols[self.program.startup_function].address, _BETWEEN))
        for bucket, layer in enumerate(self.program.layers, _FIRST_LAYER):
            markers.append((self.address(layer.function), bucket))
        markers.append((self.session._symbol(RETURN), _OUTSIDE))
        return markers

    def _measure(self, stops: Sequence[Stop]) -> Profile:
        clock_hz = self.session.platform.clock_hz
        if not all(stop.phases for stop in stops):
            return self._from_stops(stops)
        rows = zip(*(stop.phases for stop in stops), strict=True)
        counts = [(sum(c.instructions for c in row), sum(c.cycles for c in row)) for row in rows]
        known = all(stop.cycles is not None for stop in stops)
        costs = [(count[0], count[1] if known else None) for count in counts]
        started = [job for unit in self._units.values() for job in unit.jobs]
        layers = tuple(
            LayerProfile(layer, *cost, _offload(started, bucket, cost[1]))
            for bucket, (layer, cost) in enumerate(
                zip(self.program.layers, costs[_FIRST_LAYER:], strict=True), _FIRST_LAYER
            )
        )
        inside = counts[_BETWEEN:]
        return Profile(
            program=self.name,
            instructions=sum(count[0] for count in inside),
            cycles=sum(count[1] for count in inside) if known else None,
            clock_hz=clock_hz,
            layers=layers,
            between=Cost(*costs[_BETWEEN]),
            jobs={name: len(unit.jobs) for name, unit in self._units.items()}
            | {n: uses - self._uses[n] for n, uses in self._instruction_uses().items()},
            sources=stops[0].sources,
        )

    @property
    def _units(self) -> dict[str, JobUnit]:
        """The hardware models of the program's accelerators that keep a record of their jobs."""
        hardware = self.session.device.abilities.hardware
        present = hardware.peripherals if hardware is not None else {}
        named = {a.name: present[a.name][1] for a in self.program.accelerators if a.name in present}
        return {name: unit for name, unit in named.items() if isinstance(unit, JobUnit)}

    def _from_stops(self, stops: Sequence[Stop]) -> Profile:
        """Of a device that does not count by layer, but may know the cost of an execution."""
        cost = Cost.of(stops)
        layers: tuple[LayerProfile, ...] = ()
        if len(stops) == len(self.program.layers) and cost.cycles is not None:
            layers = tuple(
                LayerProfile(layer, stop.instructions, stop.cycles)
                for layer, stop in zip(self.program.layers, stops, strict=True)
            )
        clock_hz = self.session.platform.clock_hz
        return Profile(
            self.name,
            cost.instructions,
            cost.cycles,
            clock_hz,
            layers,
            measured=cost.seconds,
            sources=cost.sources,
        )

    def _instruction_uses(self) -> dict[str, int]:
        """How often the instructions of the program's tightly coupled units were executed."""
        hardware = self.session.device.abilities.hardware
        if hardware is None:
            return {}
        names = [a.name for a in self.program.accelerators if a.name not in hardware.peripherals]
        return {name: sum(hardware.instruction_uses(name).values()) for name in names}


def _offload(jobs: Sequence[JobRecord], bucket: int, cycles: int | None) -> Offload | None:
    """How a layer's cycles split, from the jobs that were started in it."""
    own = sorted((job for job in jobs if job.phase == bucket), key=lambda job: job.start)
    return Offload.of(own, cycles) if own and cycles is not None else None

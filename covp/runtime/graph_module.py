"""`GraphModule`: a compiled model on the device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from covp.codegen.program import Program, ProgramTensor
from covp.device.stop import Stop
from covp.errors import AcceleratorError, DeviceFault, UsageError, near_misses
from covp.runtime.abi import word_task
from covp.runtime.call import Call
from covp.runtime.linking import LoadedImage
from covp.runtime.measurement import BETWEEN, FIRST_LAYER, OUTSIDE, Measurement
from covp.runtime.module import Module
from covp.runtime.profile import Profile
from covp.runtime.resident import Resident
from covp.runtime.sanitizer import Extent
from covp.runtime.signature import VOID, Signature

_INITIAL: Mapping[str, ArrayLike] = MappingProxyType({})


class GraphModule(Module):
    """A `Program` in the device's memory; `Session.load` makes them.

    Attributes:
        program: what was loaded.
    """

    def __init__(
        self,
        session: Resident,
        image: LoadedImage,
        program: Program,
        unloaded: Callable[[Module], None] = lambda module: None,
    ) -> None:
        super().__init__(session, image, program.name, unloaded)
        self.program = program
        self._arena = self.address(program.arena_symbol)
        self._profile: Profile | None = None
        self._whole = Extent(self._arena, program.arena_bytes, "the arena")
        if session.sanitizer is not None:
            session.sanitizer.reserve(self._whole)

    def run(self, *inputs: ArrayLike) -> Any:
        """Run one inference.

        Args:
            inputs: one array for each input of the model, of exactly its shape and dtype.

        Returns:
            The output as a numpy array; a list of them where the model has several.

        Raises:
            UsageError: a wrong number, shape or dtype of inputs.
            DeviceFault: the program faulted.
        """
        arrays = self._check(inputs)
        with self.session.in_use:
            self.session.sync()
            before = self.session.io.transfers
            self._store(arrays)
            profile = self._measure()
            outputs = [self._read(tensor) for tensor in self.program.outputs]
            self._profile = replace(profile, transfers=self.session.io.transfers.since(before))
            self.session.latest = self._profile
        return outputs[0] if len(outputs) == 1 else outputs

    def reset(self, states: Mapping[str, ArrayLike] = _INITIAL) -> None:
        """Begin anew: the states get their initial values. `Session.load` has done it once.

        Args:
            states: other values, by the state's name.

        Raises:
            UsageError: there is no such state, or a value has another shape or dtype.
            DeviceFault: the program faulted.
        """
        tensors = {state.name: state.tensor for state in self.program.states}
        for name in states:
            if name not in tensors:
                raise UsageError(
                    f"{self.name} has no state {name!r}:", hint=near_misses(name, tensors)
                )
        values = {name: self._match_array(f"state {name}", tensors[name], states[name])
                  for name in states}  # fmt: skip
        with self.session.in_use:
            self.session.sync()
            self._call_now(self.program.reset_function)
            for name, value in values.items():
                self.session.io.write(self._arena + tensors[name].offset, value.tobytes())

    def states(self) -> dict[str, NDArray[Any]]:
        """Return the states that the next inference starts with, by name."""
        self._demand_image()
        with self.session.in_use:
            self.session.sync()
            return {state.name: self._read(state.tensor) for state in self.program.states}

    def _call_now(self, function: str) -> None:
        """Run a function of the program on its arena; the empty name is none."""
        self.session.queue.run(self._calls_of(function))

    def _calls_of(self, function: str) -> list[Call]:
        """Return the call of a function of the program on its arena; none for the empty name."""
        if not function:
            return []
        value = self._demand_image().elf.symbols[function].value
        return [void_call(function, word_task(value, (self._arena,)), [self._whole])]

    def _measure(self) -> Profile:
        """Run the layers; an error says in which layer it happened."""
        self.session.counted.clear()
        measurement = Measurement(self.program, self.session.device.abilities, self._markers)
        try:
            return measurement.profile(self._infer())
        except (AcceleratorError, DeviceFault) as error:
            raise self._in_layer(error) from error.__cause__

    def profile(self) -> Profile:
        """Return the cost of the latest `run`. Raises UsageError before the first."""
        if self._profile is None:
            raise UsageError(f"{self.name} has not run yet: call run() first")
        return self._profile

    def _in_layer(self, error: AcceleratorError | DeviceFault) -> AcceleratorError | DeviceFault:
        """Return the error with the layer that was running, where the device knows."""
        phases = self.session.device.abilities.phases
        if phases is None:
            return error
        layer = phases.current_phase() - FIRST_LAYER
        if not 0 <= layer < len(self.program.layers):
            return error
        where = f"in layer {self.program.layers[layer].name} ({self.program.layers[layer].target})"
        error.subject["operator"] = self.program.layers[layer].name
        if isinstance(error, DeviceFault):
            error.detail = f"{error.detail}; {where}" if error.detail else where
            return error
        return AcceleratorError(f"{error}, {where}", **error.subject)

    def _infer(self) -> Sequence[Stop]:
        """Run from inputs in the arena to outputs there; return the `Stop` of each execution."""
        return [self.session.queue.run(self._calls_of(self.program.run_function))]

    def _check(self, inputs: tuple[ArrayLike, ...]) -> list[NDArray[Any]]:
        self._demand_image()
        expected = self.program.inputs
        if len(inputs) != len(expected):
            raise UsageError(
                f"{self.name} takes {len(expected)} input{'s' if len(expected) != 1 else ''}, "
                f"not {len(inputs)}"
            )
        return [
            self._match_array(f"input {tensor.name}", tensor, given)
            for tensor, given in zip(expected, inputs, strict=True)
        ]

    def _match_array(self, what: str, tensor: ProgramTensor, given: ArrayLike) -> NDArray[Any]:
        """Return the array in the memory order of a tensor. Raises UsageError: shape or dtype."""
        array = np.asarray(given)
        if array.shape != tensor.shape or array.dtype != tensor.dtype:
            raise UsageError(
                f"{self.name}: {what} must be {tensor.dtype.name} of shape "
                f"{tensor.shape}, not {array.dtype.name} of shape {array.shape}"
            )
        return np.ascontiguousarray(array)

    def _store(self, arrays: Sequence[NDArray[Any]]) -> None:
        """Put the inputs into the arena."""
        for tensor, array in zip(self.program.inputs, arrays, strict=True):
            self.session.io.write(self._arena + tensor.offset, array.tobytes())

    def _read(self, tensor: ProgramTensor) -> NDArray[Any]:
        raw = self.session.io.read(self._arena + tensor.offset, tensor.nbytes)
        values: NDArray[Any] = np.frombuffer(raw, tensor.dtype).reshape(tensor.shape)
        return np.array(values)

    @cached_property
    def _markers(self) -> list[tuple[int, int]]:
        """The addresses where layers begin, and where control is back in the run function.

        Control comes back to the run function at a return address, which is some instruction of
        it; marking all of them saves finding the calls. A call as the last thing may come back to
        the task runner at once, hence the mark there.
        """
        symbols = self._demand_image().elf.symbols
        run = symbols[self.program.run_function]
        markers = [(address, BETWEEN) for address in range(run.address, run.address + run.size, 2)]
        for function in (self.program.startup_function, self.program.keep_function):
            if function in symbols:
                markers.append((symbols[function].address, BETWEEN))
        for phase, layer in enumerate(self.program.layers, FIRST_LAYER):
            linked = [name for name in layer.functions if name in symbols]
            markers += [(symbols[name].address, phase) for name in linked]
        markers.append((self.session.queue.call_return, OUTSIDE))
        return markers


def void_call(function: str, task: bytes, memory: Sequence[Extent] = ()) -> Call:
    """Return a call of a function without a result.

    Args:
        function: its name.
        task: its entry in the queue.
        memory: that it may access.
    """
    return Call(Signature(function, (), VOID), task, memory)

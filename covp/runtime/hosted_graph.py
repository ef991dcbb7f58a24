"""`HostedGraph`: a model whose layers live on the device while the host drives their order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from numpy.typing import ArrayLike, NDArray

from covp.base.memory_states import Forbidden
from covp.codegen.program import ProgramLayer
from covp.device.stop import Stop
from covp.errors import AcceleratorError, DeviceFault, UsageError, near_misses
from covp.runtime.abi import word_task
from covp.runtime.call import Call
from covp.runtime.graph_module import GraphModule, void_call
from covp.runtime.sanitizer import Extent


class HostedGraph(GraphModule):
    """The graph executor of microTVM: operators and tensors are resident on the device.

    `Session.load` makes them with ``hosted=True``. Each layer is a call of its own. In a lazy
    session all of them travel in one queue and run in one execution; in a strict one each layer
    is an execution, whose cost any device with a cycle counter gives (`profile`), and after
    which its output can be read (`tensor`).
    """

    _ran = 0
    """How many layers of the latest inference ran."""

    def tensor(self, name: str) -> NDArray[Any]:
        """Return an output of the layer that ran last, or of the model, by its name in the model.

        Layers share memory: any other tensor may have been written over. `run_until` gives it.

        Raises:
            UsageError: no layer writes such a tensor, it was not computed yet, or a later layer
                may have taken its memory.
        """
        tensors = {tensor.name: tensor for layer in self.program.layers for tensor in layer.outputs}
        if name not in tensors:
            raise UsageError(
                f"{self.name} has no resident tensor {name!r}:", hint=near_misses(name, tensors)
            )
        self._check_present(name)
        self.session.sync()
        return self._read(tensors[name])

    def _check_present(self, name: str) -> None:
        """Raise UsageError where the tensor's memory may hold something else."""
        layers, ran = self.program.layers, self._ran
        present = [tensor.name for tensor in layers[ran - 1].outputs] if ran else []
        if ran == len(layers):
            present += [tensor.name for tensor in self.program.outputs]
        if name not in present:
            state = f"layer {layers[ran - 1].name} ran last" if ran else "no layer has run"
            raise UsageError(
                f"{self.name}: {state}, the memory of {name!r} may hold another tensor; "
                f"run_until({name!r}, ...) gives it"
            )

    def run_until(self, name: str, *inputs: ArrayLike) -> NDArray[Any]:
        """Run up to and with the layer that writes a tensor, and return the tensor's content.

        The states are then what they were before: the inference did not end.

        Args:
            name: of the tensor in the model.
            inputs: as for `run`.

        Raises:
            UsageError: no layer writes it, or the inputs do not fit.
            DeviceFault: a layer faulted.
        """
        arrays = self._check(inputs)
        last = next(
            (
                position
                for position, layer in enumerate(self.program.layers)
                if any(tensor.name == name for tensor in layer.outputs)
            ),
            None,
        )
        if last is None:
            return self.tensor(name)  # says what there is
        with self.session.in_use:
            self.session.sync()
            states = self.states()
            self._store(arrays)
            self._run_layers(last + 1)
            content = self.tensor(name)
            if states:
                self.reset(states)
            return content

    def steps(
        self,
        *inputs: ArrayLike,
        fill: bytes = b"",
        states: Mapping[str, ArrayLike] | None = None,
    ) -> Iterator[tuple[ProgramLayer, list[NDArray[Any]]]]:
        """Run the layers one by one; after each, the layer and the content of its outputs.

        Args:
            inputs: as for `run`.
            fill: is repeated over the arena first, so that results of an earlier inference cannot
                be taken for those of this one. Empty: the arena stays as it is. The states of the
                program begin anew then.
            states: as for `reset`, which is called with them; None leaves the states as they are.

        Raises:
            UsageError: the inputs do not fit.
            AcceleratorError, DeviceFault: in a layer, which the error names.
        """
        arrays = self._check(inputs)
        with self.session.in_use:
            self.session.sync()
            if fill:
                count = self.program.arena_bytes
                self.session.io.write(self._arena, (fill * (count // len(fill) + 1))[:count])
            if fill or states is not None:
                self.reset(states or {})
            self._store(arrays)
            self._run_layers(0)
            for layer, call in zip(self.program.layers, self._calls(), strict=True):
                self._run_step(layer, call)
                self._ran += 1
                yield layer, [self._read(tensor) for tensor in layer.outputs]
            self._call_now(self.program.keep_function)

    def _run_step(self, layer: ProgramLayer, call: Call) -> None:
        try:
            self.session.queue.run([call])
        except DeviceFault as error:
            where = f"in layer {layer.name} ({layer.target})"
            error.detail = f"{error.detail}; {where}" if error.detail else where
            error.subject["operator"] = layer.name
            raise
        except AcceleratorError as error:
            text = f"{error}, in layer {layer.name} ({layer.target})"
            raise AcceleratorError(text, operator=layer.name) from error

    def outputs(self) -> list[NDArray[Any]]:
        """Return the model's outputs as they are in the arena now."""
        return [self._read(tensor) for tensor in self.program.outputs]

    def _infer(self) -> Sequence[Stop]:
        return self._run_layers(len(self.program.layers))

    def _run_layers(self, count: int) -> list[Stop]:
        """Begin an inference and run its first layers."""
        self._ran = 0
        calls = [*self._calls_of(self.program.startup_function), *self._calls()[:count]]
        if count == len(self.program.layers):
            calls += self._calls_of(self.program.keep_function)
        stops = self._run_calls(calls)
        self._ran = count
        return stops

    def _calls(self) -> list[Call]:
        return [
            void_call(layer.function, self._task_of(layer), self._memory_of(layer))
            for layer in self.program.layers
        ]

    def _task_of(self, layer: ProgramLayer) -> bytes:
        symbols = self._demand_image().elf.symbols
        if layer.wrapper:
            return word_task(symbols[layer.wrapper].value, [self._arena])
        words = [self._arena + offset for offset in layer.arguments]
        return word_task(symbols[layer.function].value, words)

    def _memory_of(self, layer: ProgramLayer) -> list[Extent]:
        """Return the memory of a layer; outputs and scratch count as unwritten unless also read."""
        read = [piece for piece in layer.memory if piece.is_read]
        found = []
        for piece in layer.memory:
            start, end = piece.offset, piece.offset + piece.nbytes
            shared = any(r.offset < end and start < r.offset + r.nbytes for r in read)
            state = Forbidden.NOTHING if shared else Forbidden.UNWRITTEN
            if not piece.is_written:
                state = Forbidden.STORE
            found.append(
                Extent(self._arena + start, piece.nbytes, piece.name, state, piece.is_output)
            )
        return found

    def _run_calls(self, calls: list[Call]) -> list[Stop]:
        queue = self.session.queue
        if self.session.strict:
            return [queue.run([call]) for call in calls]
        return [queue.run(calls)]

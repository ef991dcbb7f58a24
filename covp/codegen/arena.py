"""`ArenaPlan`: the memory of a program's activations and scratch buffers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from covp.codegen.aliases import ALIASES
from covp.codegen.layer import Argument, LayerCode, Scratch
from covp.codegen.planner import ALIGNMENT, LiveBuffer, plan
from covp.codegen.program import ProgramTensor
from covp.errors import ModelError
from covp.graph.attributes import JoinedRows, RowsOf
from covp.graph.cuts import row_bytes
from covp.graph.graph import Graph, Op, Tensor


class ArenaPlan:
    """The place of every tensor and scratch buffer of a program in its arena.

    Args:
        graph: whose tensors they are.
        layers: in an order that can run.
        around: the first and last action of each layer, where the run function has another order.
        cache_line: bytes of a line where the core has a data cache and accelerators do not see it:
            no two buffers share one.

    Attributes:
        nbytes: of the arena.
        alignment: of its address.
    """

    def __init__(
        self,
        graph: Graph,
        layers: Sequence[LayerCode],
        around: Sequence[tuple[int, int]] = (),
        cache_line: int = 0,
    ) -> None:
        self._around, self._cache_line = around, cache_line
        self.alignment = max(ALIGNMENT, cache_line)
        self._end = 1 + max((last for _, last in around), default=-1)
        self._buffers: dict[int, LiveBuffer] = {}
        self._starts: dict[int, int] = {}
        """Offsets within their buffer of tensors that are a part of it, by id."""
        self._joined: set[int] = set()
        """Ids of buffers that several layers write."""
        self._scratch: dict[int, LiveBuffer] = {}
        written = {id(t): step for step, layer in enumerate(layers) for t in layer.op.outputs}
        for tensor in (*graph.inputs, *(state.before for state in graph.states)):
            self._buffers[id(tensor)] = LiveBuffer(
                tensor.name, tensor.nbytes, 0, 0, ends=self._end - 1
            )
        for op in graph.ops:
            self._allocate(op, layers, written)
        self._keys: dict[int, list[int]] = defaultdict(list)
        for key, buffer in self._buffers.items():
            self._keys[id(buffer)].append(key)
        self._extend(graph, layers)
        self._change_states_in_place(graph, layers)
        self._share_in_place(graph, layers)
        self._lay_over_inputs(graph, layers)
        for step, layer in enumerate(layers):
            for argument in layer.arguments.values():
                if isinstance(argument, Scratch):
                    name = f"scratch of {layer.function}"
                    self._scratch[id(argument)] = self._buffer(name, argument.nbytes, step)
        unique = {id(b): b for b in (*self._buffers.values(), *self._scratch.values())}
        self.nbytes = plan(list(unique.values()), self.alignment) if unique else 0

    def offset(self, item: Tensor | Scratch) -> int:
        """Return the bytes from the start of the arena."""
        table = self._scratch if isinstance(item, Scratch) else self._buffers
        return table[id(item)].offset + self._starts.get(id(item), 0)

    def describe(self, tensor: Tensor) -> ProgramTensor:
        """Return the tensor as the session needs it."""
        if id(tensor) not in self._buffers:
            raise _constant(tensor)
        return ProgramTensor(
            tensor.name, tensor.shape, tensor.dtype, self.offset(tensor), tensor.quantization
        )

    def _own(self, tensor: Tensor, step: int) -> None:
        self._buffers[id(tensor)] = self._buffer(tensor.name, tensor.nbytes, step)

    def _buffer(self, name: str, nbytes: int, step: int) -> LiveBuffer:
        """Return the live range of a buffer that a layer writes."""
        begins, ends = self._around[step] if self._around else (0, -1)
        return LiveBuffer(name, nbytes, step, step, begins=begins, ends=ends)

    def _allocate(self, op: Op, layers: Sequence[LayerCode], written: dict[int, int]) -> None:
        """Allocate a buffer for each output that a layer writes; an alias has its input's."""
        if isinstance(op.attributes, JoinedRows):
            self._join(op)
            return
        if isinstance(op.attributes, RowsOf):
            whole, (first, _, _) = op.input(0), op.attributes.slices[1]
            start = self._starts.get(id(whole), 0) + first * row_bytes(whole)
            self._starts[id(op.output)] = start
            self._buffers[id(op.output)] = self._buffers[id(whole)]
            return
        for tensor in op.outputs:
            if id(tensor) in written:
                self._own(tensor, written[id(tensor)])
            elif op.kind in ALIASES:
                source = self._buffers.get(id(op.input(0)))
                if source is None:
                    raise _constant(tensor)
                self._buffers[id(tensor)] = source

    def _join(self, op: Op) -> None:
        """Let the parts of a tensor be written where it lies."""
        parts = [op.input(position) for position in range(len(op.inputs))]
        old = [self._buffers[id(part)] for part in parts]
        whole = LiveBuffer(
            op.output.name,
            op.output.nbytes,
            min(buffer.first for buffer in old),
            max(buffer.last for buffer in old),
            begins=min(buffer.begins for buffer in old),
            ends=max(buffer.ends for buffer in old),
        )
        self._joined.add(id(whole))
        self._buffers[id(op.output)] = whole
        start = 0
        for part in parts:
            self._buffers[id(part)], self._starts[id(part)] = whole, start
            start += part.nbytes

    def _lay_over_inputs(self, graph: Graph, layers: Sequence[LayerCode]) -> None:
        """Let what is joined take the place of rows of an input that were read before."""
        if self._around:
            return
        inputs = {id(self._buffers[id(t)]): self._buffers[id(t)] for t in graph.inputs}
        joined = [op for op in graph.ops if isinstance(op.attributes, JoinedRows)]
        for op in sorted(joined, key=lambda op: -op.output.nbytes):
            whole = self._buffers[id(op.output)]
            under = next((b for b in inputs.values() if self._is_free(op, whole, b, layers)), None)
            if under is not None:
                whole.over = inputs.pop(id(under))

    def _is_free(
        self, op: Op, whole: LiveBuffer, under: LiveBuffer, layers: Sequence[LayerCode]
    ) -> bool:
        """Return whether each part is written after what lies there is read for the last time."""
        if not whole.first <= under.last < whole.last or under.nbytes < whole.nbytes:
            return False
        written = {id(t): step for step, layer in enumerate(layers) for t in layer.op.outputs}
        reads = [
            (step, self._starts.get(id(a), 0))
            for step, layer in enumerate(layers)
            for a in self._reads(layer, under)
        ]
        return all(
            step < written[id(part)] or start >= self._starts[id(part)] + part.nbytes
            for part in op.inputs
            if part is not None
            for step, start in reads
        )

    def _extend(self, graph: Graph, layers: Sequence[LayerCode]) -> None:
        """Keep every buffer until its last reader, results and states until the end."""
        for step, layer in enumerate(layers):
            for argument in layer.arguments.values():
                if isinstance(argument, Tensor):
                    buffer = self._buffers.get(id(argument))
                    if buffer is None:
                        raise _constant(layer.op.output)
                    buffer.last = max(buffer.last, step)
                    if self._around:
                        buffer.ends = max(buffer.ends, self._around[step][1])
        for tensor in (*graph.results, *(state.before for state in graph.states)):
            if id(tensor) in self._buffers:
                self._buffers[id(tensor)].last = len(layers)
                self._buffers[id(tensor)].ends = self._end if self._around else -1

    def _share_in_place(self, graph: Graph, layers: Sequence[LayerCode]) -> None:
        """Let an output take over the memory of an input that is not read afterwards."""
        kept = {id(self._buffers[id(state.before)]) for state in graph.states}
        for step, layer in enumerate(layers):
            output = self._buffers[id(layer.op.output)]
            if id(output) in kept or id(output) in self._joined:
                continue
            for tensor in layer.in_place:
                source = self._buffers[id(tensor)]
                if id(tensor) in self._starts:
                    continue
                if source is output or source.last != step or source.nbytes < output.nbytes:
                    continue
                if not self._read_before(layers, source, step):
                    continue
                source.last, source.ends = output.last, max(source.ends, output.ends)
                self._replace(output, source)
                break

    def _change_states_in_place(self, graph: Graph, layers: Sequence[LayerCode]) -> None:
        """Let a state's next value be written where the state is, if no one reads it after that."""
        others = [*graph.inputs, *(state.before for state in graph.states)]
        given = {id(self._buffers[id(tensor)]) for tensor in others}
        for state in graph.states:
            if id(state.after) not in self._buffers:
                raise _constant(state.after)
            before, after = self._buffers[id(state.before)], self._buffers[id(state.after)]
            if id(after) in given or after.nbytes != before.nbytes:
                continue
            reads = [step for step, layer in enumerate(layers) if self._reads(layer, before)]
            last = max(reads, default=-1)
            if not self._read_before(layers, before, after.first):
                continue
            if last < after.first or (
                last == after.first and self._is_in_place(layers[last], before, after)
            ):
                self._replace(after, before)

    def _read_before(self, layers: Sequence[LayerCode], buffer: LiveBuffer, step: int) -> bool:
        """Return whether all other layers that read a buffer are over when a layer begins.

        In the order of the layers; that of the run function is another one. Where an accelerator
        does not see the core's cache, all that write it have to be over, too: the core's stores
        to a line would take back what is stored to the rest of it.
        """
        if not self._around:
            return True
        begins, written = self._around[step][0], {id(t) for t in layers[step].op.outputs}
        for other, layer in enumerate(layers):
            inputs = [a for a in self._reads(layer, buffer) if id(a) not in written]
            outputs = {id(tensor) for tensor in layer.op.outputs}
            reads = any(id(argument) not in outputs for argument in inputs)
            uses = len(inputs) > 0 if self._cache_line else reads
            if other != step and uses and self._around[other][1] >= begins:
                return False
        return True

    def _reads(self, layer: LayerCode, buffer: LiveBuffer) -> list[Argument]:
        """Return the arguments of a layer that it reads from a buffer."""
        arguments = layer.arguments.values()
        return [a for a in arguments if self._buffers.get(id(a)) is buffer]

    def _is_in_place(self, layer: LayerCode, source: LiveBuffer, output: LiveBuffer) -> bool:
        """Return whether a layer may write its output over all that it reads from a buffer."""
        pairs = [(tensor, layer.op.output) for tensor in layer.in_place]
        allowed = {
            id(tensor)
            for tensor, written in (*pairs, *layer.changed)
            if self._buffers.get(id(written)) is output
        }
        return {id(argument) for argument in self._reads(layer, source)} <= allowed

    def _replace(self, old: LiveBuffer, new: LiveBuffer) -> None:
        """Let everything that is in one buffer be in another."""
        for key in self._keys[id(old)]:
            self._buffers[key] = new
        self._keys[id(new)] += self._keys.pop(id(old))


def _constant(output: Tensor) -> ModelError:
    return ModelError(f"output {output.name} is a constant; nothing is left to compute")

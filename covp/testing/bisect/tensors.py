"""`Tensors`: where a program's tensors lie in its arena, which layers read them, what is expected.

A layer is a function of the arena's content. `image` gives a content that holds exactly the tensors
that are alive before a layer, so that each layer can run alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.codegen.aliases import ALIASES
from covp.codegen.program import Program, ProgramTensor
from covp.errors import UsageError
from covp.graph.attributes import JoinedRows, RowsOf
from covp.graph.graph import Graph, Op, Tensor
from covp.graph.ops import OPS, definition

Array = NDArray[Any]
FILL = bytes(np.random.default_rng(0xB15EC7).integers(0, 256, 251, np.uint8))
"""What the rest of an arena holds; its length, a prime, keeps rows from being alike."""


class Tensors:
    """The tensors of a program that `covp.compile` made.

    Args:
        program: its lowered graph says which layer reads what.

    Attributes:
        places: name to place, of the inputs, the states and what layers write.
        reads: for each layer the names of the tensors in the arena that it reads.

    Raises:
        UsageError: the program has no lowered graph.
    """

    def __init__(self, program: Program) -> None:
        if program.lowered is None:
            raise UsageError(
                f"{program.name} was not made by covp.compile: nothing to compare with"
            )
        self.program, self._graph = program, program.lowered
        self._writer = {t.name: op for op in self._graph.ops for t in op.outputs}
        self.places = {tensor.name: tensor for tensor in program.inputs}
        before = {state.name: state.before.name for state in self._graph.states}
        self.places |= {before[state.name]: state.tensor for state in program.states}
        for layer in program.layers:
            self.places |= {tensor.name: tensor for tensor in layer.outputs}
        self._operators = [_operators(self._graph, layer.operators) for layer in program.layers]
        self.reads = [self._read_by(operators) for operators in self._operators]
        self._last = self._last_readers()

    def root(self, tensor: Tensor) -> str:
        """Return the name under which a tensor's memory is known: operators may only rename it."""
        op = self._writer.get(tensor.name)
        while tensor.name not in self.places and op is not None and op.kind in ALIASES:
            tensor = op.input(0)
            op = self._writer.get(tensor.name)
        return tensor.name

    def _roots(self, tensor: Tensor) -> Iterator[str]:
        """Yield the names of the tensors in whose memory a tensor is: a joined one is its parts."""
        op = self._writer.get(tensor.name)
        if tensor.name in self.places or op is None:
            yield self.root(tensor)
        elif isinstance(op.attributes, JoinedRows | RowsOf):
            for part in op.inputs:
                if part is not None:
                    yield from self._roots(part)
        elif op.kind in ALIASES:
            yield from self._roots(op.input(0))
        else:
            yield tensor.name

    def _read_by(self, operators: list[Op]) -> tuple[str, ...]:
        inside = {tensor.name for op in operators for tensor in op.outputs}
        names = [
            name
            for op in operators
            for tensor in op.inputs
            if tensor is not None and tensor.data is None and tensor.name not in inside
            for name in self._roots(tensor)
        ]
        return tuple(dict.fromkeys(name for name in names if name in self.places))

    def _last_readers(self) -> dict[str, int]:
        """Name to the last layer that reads it; results are read after all of them."""
        last = {name: i for i, names in enumerate(self.reads) for name in names}
        results = [*self._graph.outputs, *(state.after for state in self._graph.states)]
        return last | {self.root(tensor): len(self.reads) for tensor in results}

    def alive(self, position: int) -> list[str]:
        """Return the tensors that hold something at a layer's begin and are read from then on."""
        layers = self.program.layers
        written = {tensor.name for layer in layers[:position] for tensor in layer.outputs}
        later = {tensor.name for layer in layers[position:] for tensor in layer.outputs}
        return [
            name
            for name in self.places
            if self._last.get(name, -1) >= position and (name in written or name not in later)
        ]

    def kept(self, position: int) -> list[str]:
        """Return the tensors that a layer must leave as they are: alive before and after it."""
        layer = self.program.layers[position]
        own = {tensor.name for tensor in layer.outputs}
        after = set(self.alive(position + 1))
        if layer.strip_of:  # strips may lie over rows of an input that were read
            strips = [*layer.outputs, *(self.places[n] for n in after)]
            given = {tensor.name for tensor in self.program.inputs}
            after -= {name for name in given if self._is_under(name, strips)}
        return [name for name in self.alive(position) if name in after and name not in own]

    def _is_under(self, name: str, outputs: Sequence[ProgramTensor]) -> bool:
        place = self.places[name]
        return any(
            output is not place
            and place.offset < output.offset + output.nbytes
            and output.offset < place.offset + place.nbytes
            for output in outputs
        )

    def image(self, position: int, values: Mapping[str, Array], fill: bytes = FILL) -> bytes:
        """Return the arena's content when a layer begins.

        Args:
            position: of the layer in the program.
            values: the content of the tensors, by name; those left out are ``fill``.
            fill: is repeated where no tensor is.
        """
        count = self.program.arena_bytes
        content = bytearray((fill * (count // len(fill) + 1))[:count])
        for name in self.alive(position):
            if name in values:
                place = self.places[name]
                raw = np.ascontiguousarray(values[name], place.dtype).tobytes()
                content[place.offset : place.offset + place.nbytes] = raw
        return bytes(content)

    def expected(self, position: int, values: Mapping[str, Array]) -> dict[str, Array] | None:
        """Compute a layer's outputs from its inputs with the reference, by name.

        Args:
            position: of the layer in the program.
            values: at least the tensors of `reads`.

        Returns:
            the tensors that the layer writes; None where a kind has no reference.
        """
        known = dict(values)
        for op in self._operators[position]:
            if op.kind not in OPS:
                return None
            arguments = [None if t is None else self._value(t, known) for t in op.inputs]
            results = definition(op.kind).reference(op, arguments)
            known |= {t.name: array for t, array in zip(op.outputs, results, strict=True)}
        return {tensor.name: known[tensor.name] for tensor in self.program.layers[position].outputs}

    def _value(self, tensor: Tensor, known: Mapping[str, Array]) -> Array:
        if tensor.data is not None:
            return tensor.data
        root = self.root(tensor)
        if root in known:
            return known[root].reshape(tensor.shape)
        op = self._writer[root]  # it has no memory of its own: rows, or what is joined of them
        values = [None if t is None else self._value(t, known) for t in op.inputs]
        return definition(op.kind).reference(op, values)[0].reshape(tensor.shape)


def content(arena: bytes, place: ProgramTensor) -> Array:
    """Return a tensor out of an arena's content."""
    raw = arena[place.offset : place.offset + place.nbytes]
    return np.frombuffer(raw, place.dtype).reshape(place.shape)


def _operators(graph: Graph, names: tuple[str, ...]) -> list[Op]:
    return [op for op in graph.ops if op.name in names]

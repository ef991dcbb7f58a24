"""`GraphBuilder`: graphs written by hand, for the synthetic models and for tests.

b = GraphBuilder("tiny")
x = b.input((1, 8, 8, 3), scale=0.05, zero_point=-3)
w = b.constant(weights, scale=scales)
y = b.add("CONV_2D", x, w, attributes=Conv2D((1, 1), Padding()), scale=0.1, zero_point=4)
data = write_tflite(b.graph(y))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from covp.graph.graph import Graph, Op, Quantization, State, Tensor
from covp.graph.ops import definition


class GraphBuilder:
    """A builder that collects operators in order and infers shapes.

    The operands that TFLite keeps in constant tensors (axes, paddings, a permutation, a size)
    come from the attributes and need not be given.
    """

    def __init__(self, name: str = "model") -> None:
        self.name = name
        self.inputs: list[Tensor] = []
        self.ops: list[Op] = []
        self.states: list[State] = []
        self._constants = 0

    def input(
        self,
        shape: tuple[int, ...],
        dtype: DTypeLike = np.int8,
        scale: float | None = None,
        zero_point: int = 0,
    ) -> Tensor:
        """Add an input of the graph; int8 ones need a scale."""
        name = f"input_{len(self.inputs)}"
        tensor = Tensor(name, shape, np.dtype(dtype), quantization(scale, zero_point))
        self.inputs.append(tensor)
        return tensor

    def state(
        self, name: str, initial: NDArray[Any], scale: float | None = None, zero_point: int = 0
    ) -> Tensor:
        """Add a state, which from the second inference on holds the tensor given to `becomes`."""
        own = quantization(scale, zero_point)
        before = Tensor(f"{name}_before", initial.shape, initial.dtype, own)
        self.states.append(State(name, before, before, initial))
        return before

    def becomes(self, before: Tensor, after: Tensor) -> None:
        """Set the value of a `state` in the next inference."""
        self.states = [
            replace(state, after=after) if state.before is before else state
            for state in self.states
        ]

    def constant(
        self,
        data: NDArray[Any],
        scale: ArrayLike | None = None,
        zero_point: int = 0,
        axis: int = 0,
    ) -> Tensor:
        """Add a constant; several scales run along ``axis``."""
        self._constants += 1
        name = f"constant_{self._constants}"
        return Tensor(name, data.shape, data.dtype, quantization(scale, zero_point, axis), data)

    def add(self, kind: str, *inputs: Tensor | None, **how: Any) -> Tensor:
        """Add an operator with one output; see `add_all` for the keywords."""
        return self.add_all(kind, *inputs, **how)[0]

    def add_all(
        self,
        kind: str,
        *inputs: Tensor | None,
        attributes: Any = None,
        shape: tuple[int, ...] = (),
        dtype: DTypeLike | None = None,
        scale: float | None = None,
        zero_point: int = 0,
        outputs: int = 1,
    ) -> list[Tensor]:
        """Return an operator and its outputs.

        Args:
            inputs: the data; None for an operand left out.
            attributes: the kind's object of `covp.graph.attributes`.
            shape: of the output, for RESHAPE only.
            dtype: of the output; the first input's by default.
            scale, zero_point: of the output; without a scale the first input's quantization.
            outputs: how many, for SPLIT, SPLIT_V and UNPACK.
        """
        source = inputs[0]
        assert source is not None
        result = np.dtype(dtype if dtype is not None else source.dtype)
        scaled = source.quantization if scale is None else quantization(scale, zero_point)
        if result == np.float32:
            scaled = None
        index = len(self.ops)
        name = f"{kind.lower()}_{index}"
        results = [
            Tensor(f"{name}_out{n}" if n else f"{name}_out", shape, result, scaled)
            for n in range(outputs)
        ]
        op = Op(kind, name, list(inputs), results, attributes, index)
        operands = _OPERANDS.get(kind)
        if operands is not None:
            op.inputs = operands(self, op)
        for tensor, inferred in zip(results, definition(kind).infer_shapes(op), strict=True):
            tensor.shape = inferred
        self.ops.append(op)
        return results

    def graph(self, *outputs: Tensor) -> Graph:
        """Return the graph with these outputs."""
        return Graph(
            self.name, list(self.inputs), list(outputs), list(self.ops), states=list(self.states)
        )

    def _integers(self, values: ArrayLike) -> Tensor:
        return self.constant(np.array(values, np.int32))


def single_op_graph(kind: str, *inputs: Tensor | None, **how: Any) -> Graph:
    """Return a graph of one operator; inputs without data are inputs of the graph."""
    builder = GraphBuilder(kind.lower())
    builder.inputs = [tensor for tensor in inputs if tensor is not None and tensor.data is None]
    return builder.graph(*builder.add_all(kind, *inputs, **how))


def quantization(
    scale: ArrayLike | None, zero_point: ArrayLike = 0, axis: int = 0
) -> Quantization | None:
    """Return the quantization from one scale or several; None without a scale."""
    if scale is None:
        return None
    scales = np.atleast_1d(np.array(scale, np.float32))
    points = np.broadcast_to(np.array(zero_point, np.int32), scales.shape)
    return Quantization(scales, points, axis if scales.size > 1 else 0)


def _padding_value(builder: GraphBuilder, op: Op) -> Tensor:
    source = op.input(0)
    value = np.array([op.attributes.value], source.dtype)
    if source.quantization is None:
        return builder.constant(value)
    return builder.constant(value, source.scale, source.zero_point)


def _slice_operands(builder: GraphBuilder, op: Op) -> list[Tensor | None]:
    slices = op.attributes.slices
    begin, end, stride = zip(*((b, 0 if e is None else e, s) for b, e, s in slices), strict=True)
    return [op.inputs[0], *(builder._integers(part) for part in (begin, end, stride))]


def _sliced_sizes(builder: GraphBuilder, op: Op) -> list[Tensor | None]:
    begin, end, _ = zip(*op.attributes.slices, strict=True)
    sizes = [e - b for b, e in zip(begin, end, strict=True)]
    return [op.inputs[0], builder._integers(begin), builder._integers(sizes)]


def _blocks(builder: GraphBuilder, op: Op) -> list[Tensor | None]:
    a = op.attributes
    return [op.inputs[0], builder._integers(a.sizes), builder._integers(a.margins)]


def _axes_operand(builder: GraphBuilder, op: Op) -> list[Tensor | None]:
    return [op.inputs[0], builder._integers(op.attributes.axes)]


def _axis_operand(builder: GraphBuilder, op: Op) -> list[Tensor | None]:
    return [op.inputs[0], builder._integers(op.attributes.axis)]


_REDUCTIONS = (
    "MEAN",
    "REDUCE_ALL",
    "REDUCE_ANY",
    "REDUCE_MAX",
    "REDUCE_MIN",
    "REDUCE_PROD",
    "SUM",
)
_OPERANDS: dict[str, Callable[[GraphBuilder, Op], list[Tensor | None]]] = {
    "BATCH_TO_SPACE_ND": _blocks,
    "BROADCAST_TO": lambda b, op: [op.inputs[0], b._integers(op.attributes.shape)],
    "MIRROR_PAD": lambda b, op: [op.inputs[0], b._integers(op.attributes.paddings)],
    **dict.fromkeys(("ARG_MAX", "ARG_MIN", "CUMSUM"), _axis_operand),
    **dict.fromkeys(_REDUCTIONS, _axes_operand),
    "PAD": lambda b, op: [op.inputs[0], b._integers(op.attributes.paddings)],
    "PADV2": lambda b, op: [
        op.inputs[0],
        b._integers(op.attributes.paddings),
        _padding_value(b, op),
    ],
    "RESHAPE": lambda b, op: [op.inputs[0], b._integers(op.output.shape)],
    "RESIZE_BILINEAR": lambda b, op: [op.inputs[0], b._integers(op.attributes.size)],
    "RESIZE_NEAREST_NEIGHBOR": lambda b, op: [op.inputs[0], b._integers(op.attributes.size)],
    "REVERSE_V2": lambda b, op: [op.inputs[0], b._integers(op.attributes.axes)],
    "SLICE": _sliced_sizes,
    "SPACE_TO_BATCH_ND": _blocks,
    "SPLIT": lambda b, op: [b._integers(op.attributes.axis), op.inputs[0]],
    "SPLIT_V": lambda b, op: [
        op.inputs[0],
        b._integers(op.attributes.sizes),
        b._integers(op.attributes.axis),
    ],
    "STRIDED_SLICE": _slice_operands,
    "TILE": lambda b, op: [op.inputs[0], b._integers(op.attributes.multiples)],
    "TRANSPOSE": lambda b, op: [op.inputs[0], b._integers(op.attributes.permutation)],
}
"""The inputs of a kind, with the constants that its attributes stand for."""

"""`ChainCase`: layers that feed one another, as a pattern of several operators wants them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, is_dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.graph.graph import Graph, Op, Quantization, Tensor
from covp.graph.typed_convolution import CONVOLUTIONS
from covp.testing import (
    ConvCase,
    ElementwiseCase,
    Layer,
    OperatorCase,
    PoolCase,
    SoftmaxCase,
)
from covp.testing.layers import CONVERSIONS, FUNCTIONS
from covp.testing.tensors import Shape, filled

_FOLLOWS = ("MAX_POOL_2D", "AVERAGE_POOL_2D", "RELU", "RELU6", "RESHAPE", "PAD", "TRANSPOSE")
"""Operators whose result is in the scale of what they read."""
_ANY_SHAPE = (*FUNCTIONS, *CONVERSIONS)


@dataclass(frozen=True)
class ChainCase:
    """Several layers; some of their inputs are earlier ones' outputs.

    Attributes:
        parts: the layers, each after those that it reads.
        wires: (reader, input, writer): input number ``input`` of ``parts[reader]`` is the output of
            ``parts[writer]``, which has the shape that the reader's own input has.
        seed: of the inputs.
        gap: unused elements before each buffer in memory.
    """

    parts: tuple[Layer, ...]
    wires: tuple[tuple[int, int, int], ...]
    seed: int = 0
    gap: int = 0

    @property
    def kind(self) -> str:
        """Kind of the last operator."""
        return self.parts[-1].kind

    def graph(self) -> Graph:
        """Return all layers as one graph."""
        graphs = [part.graph() for part in self.parts]
        ops = [graph.ops[-1] for graph in graphs]
        for number, op in enumerate(ops):
            op.name, op.index = f"layer{number}", number
            for tensor in (*op.inputs, *op.outputs):
                if tensor is not None:
                    tensor.name = f"{tensor.name}{number}"
            for reader, position, writer in self.wires:
                if reader == number:
                    connect(op, position, ops[writer].output)
        made = {id(tensor) for op in ops for tensor in op.outputs}
        inputs: dict[int, Tensor] = {}
        for op in ops:
            for value in op.inputs:
                if value is not None and not value.constant and id(value) not in made:
                    inputs.setdefault(id(value), value)
        return Graph("layers", list(inputs.values()), list(ops[-1].outputs), ops)

    def inputs(self) -> list[NDArray[Any]]:
        """Return values for the graph's inputs: random, or those that their reader wants."""
        rng = np.random.default_rng(self.seed)
        graph = self.graph()
        found = []
        for tensor in graph.inputs:
            reader, position = next(
                (number, position)
                for number, op in enumerate(graph.ops)
                for position, value in enumerate(op.inputs)
                if value is tensor
            )
            wanted = _wanted_input(self.parts[reader], position)
            found.append(filled(tensor, rng) if wanted is None else wanted)
        return found


def _wanted_input(part: Any, position: int) -> NDArray[Any] | None:
    """Return the value that a layer wants as an input where it is not random, else None."""
    is_special = any(getattr(part, name, False) for name in ("largest", "extreme", "ties"))
    if not is_special and getattr(part, "content", "random") == "random":
        return None
    graph = part.graph()
    read = graph.ops[-1].inputs[position]
    value: NDArray[Any] = part.inputs()[next(n for n, t in enumerate(graph.inputs) if t is read)]
    return value


def form_of(case: Any) -> object:
    """Return what chains of the same operators, wired in the same way, have in common."""
    if isinstance(case, ChainCase):
        return tuple(part.kind for part in case.parts), case.wires
    return case.kind


def sibling(case: Any) -> Any:
    """Return the same layers with other values, where they come from a seed."""
    if isinstance(case, ChainCase):
        return replace(case, parts=tuple(map(sibling, case.parts)), seed=case.seed + 1)
    if isinstance(case, Layer) and is_dataclass(case):
        return replace(case, seed=case.seed + 1)
    return case


def refit(chain: ChainCase, parts: Sequence[Layer]) -> ChainCase | None:
    """Fit a chain of other layers to the same wires: readers get their writers' shapes.

    None where some do not fit one another.
    """
    new = list(parts)
    shapes: list[Shape] = []
    for number in range(len(new)):
        read = [(position, shapes[w]) for r, position, w in chain.wires if r == number]
        if read:
            new[number] = with_input(new[number], read[0][1], read[0][0])
        op = new[number].graph().ops[-1]
        if any(op.input(position).shape != shape for position, shape in read):
            return None
        shapes.append(op.output.shape)
    return replace(chain, parts=tuple(new))


def fit_part(chain: ChainCase, number: int, layer: Any) -> ChainCase | None:
    """Replace a part of a chain by another layer; None where the others cannot fit it.

    What it reads gets the shapes that it wants, what reads it those that it has. Where the layer
    wants values at one end of their range, convolutions before it give channels of such values.
    """
    parts: list[Any] = list(chain.parts)
    at_ends = getattr(layer, "content", "") in ("lowest", "highest")
    parts[number] = _of_rank(layer, parts[number])

    def write(part: int) -> None:
        """Fit the writers of a part's inputs, from the part backwards."""
        own = parts[part].graph().ops[-1]
        for reader, position, writer in chain.wires:
            if reader == part:
                wanted = with_output(parts[writer], own.input(position).shape)
                parts[writer] = _saturate(wanted) if at_ends else wanted
                write(writer)

    write(number)
    parts[number] = with_room(parts[number]) if not _reads(chain, number) else parts[number]
    return refit(chain, parts)


def _saturate(case: Any) -> Any:
    """Return a convolution whose channels have all the lowest results, or all the highest."""
    if not isinstance(case, ConvCase):
        return case
    return replace(
        case,
        largest=True,
        levels=(),
        extreme=False,
        spread_multipliers=False,
        activation="none",
        bias=False,
    )


def _reads(chain: ChainCase, number: int) -> bool:
    return any(reader == number for reader, _, _ in chain.wires)


def _of_rank(layer: Any, old: Any) -> Any:
    """Return a layer of any shape with as many axes as the one in whose place it is."""
    if not hasattr(layer, "shape") or len(layer.shape) >= len(old.shape):
        return layer
    return replace(layer, shape=(1,) * (len(old.shape) - len(layer.shape)) + layer.shape)


def with_output(case: Any, shape: Shape) -> Any:
    """Return the same kind of layer with a result of a shape, as far as that is simple."""
    if isinstance(case, ConvCase) and len(shape) == 4:
        return replace(
            case,
            batch=shape[0],
            size=shape[1:3],
            channels=(case.channels[0] if case.kind == "CONV_2D" else shape[3], shape[3]),
            stride=(1, 1),
            same=True,
            padding=None,
        )
    if isinstance(case, ConvCase) and len(shape) == 2:
        return replace(case, batch=shape[0], channels=(case.channels[0], shape[1]))
    if isinstance(case, PoolCase) and len(shape) == 4:
        return replace(
            case, batch=shape[0], size=shape[1:3], channels=shape[3], stride=(1, 1), same=True
        )
    if isinstance(case, ElementwiseCase):
        return _with_operand(case, shape)
    return replace(case, shape=shape) if isinstance(case, OperatorCase) else case


def with_room(case: Any) -> Any:
    """Return the same layer with a result large enough for a window of what reads it."""
    if isinstance(case, ConvCase) and case.kind != "FULLY_CONNECTED":
        height, width = (
            max(size, (taps - 1) * dilation + 1 + 3 * step)
            for size, taps, dilation, step in zip(
                case.size, case.kernel, case.dilation, case.stride, strict=True
            )
        )
        return replace(case, size=(height, width))
    return case


def with_input(case: Any, shape: Shape, position: int = 0) -> Any:
    """Return the same layer for an input of another shape, as far as that goes.

    Args:
        case: the layer.
        shape: of the input.
        position: of the input among those of the layer.
    """
    if isinstance(case, ConvCase) and case.kind == "FULLY_CONNECTED":
        return replace(case, batch=shape[0], channels=(shape[-1], case.channels[1]))
    if isinstance(case, ConvCase) and len(shape) == 4:
        wide = (shape[3], shape[3] if case.kind == "DEPTHWISE_CONV_2D" else case.channels[1])
        return replace(case, batch=shape[0], size=shape[1:3], channels=wide)
    if isinstance(case, PoolCase) and len(shape) == 4:
        window = min(case.filter[0], shape[1]), min(case.filter[1], shape[2])
        return replace(
            case, batch=shape[0], size=shape[1:3], channels=shape[3], filter=window, padding=None
        )
    if isinstance(case, SoftmaxCase) and len(shape) == 2:
        return replace(case, rows=shape[0], depth=shape[1])
    if isinstance(case, ElementwiseCase):
        return _with_operand(case, shape, position)
    if isinstance(case, OperatorCase) and case.kind in _ANY_SHAPE:
        return replace(case, shape=shape)
    if isinstance(case, OperatorCase) and case.kind == "RESHAPE":
        return replace(case, shape=shape, reshaped=(shape[0], int(np.prod(shape[1:]))))
    return case


def _with_operand(case: ElementwiseCase, shape: Shape, position: int = 0) -> ElementwiseCase:
    """Return the same layer with an operand of another shape; the other one follows.

    It stays broadcast along the axes along which it is.
    """
    if case.other is None:
        return replace(case, shape=shape)
    old, beside = (
        ((1,) * len(shape) + operand)[-len(shape) :]
        for operand in ((case.shape, case.other), (case.other, case.shape))[position]
    )
    follows = tuple(
        1 if was == 1 != own else was if own == 1 == new else new
        for new, own, was in zip(shape, old, beside, strict=True)
    )
    first, second = ((shape, follows), (follows, shape))[position]
    return replace(case, shape=first, other=second)


def connect(op: Op, position: int, source: Tensor) -> None:
    """Let an operator read a tensor of the shape of its own input; its arithmetic follows."""
    own = op.input(position)
    if own.shape != source.shape:
        raise ValueError(f"{source.shape} does not fit {own.shape}")
    for i, value in enumerate(op.inputs):
        if value is own:
            op.inputs[i] = source
    if own.quantization is None or source.quantization is None:
        return
    if op.kind in _FOLLOWS:
        op.output.quantization = source.quantization
        if op.kind == "PAD":  # with the real 0
            op.attributes = replace(op.attributes, value=float(source.zero_point))
    elif op.kind in CONVOLUTIONS:
        ratio = np.float32(source.scale / own.scale)
        for tensor in (op.output, op.inputs[2] if len(op.inputs) > 2 else None):
            if tensor is not None and tensor.quantization is not None:
                old = tensor.quantization
                tensor.quantization = Quantization(
                    (old.scale * ratio).astype(np.float32), old.zero_point, old.axis
                )

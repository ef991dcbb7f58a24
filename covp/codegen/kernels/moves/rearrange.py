"""Operators whose elements lie at fixed strides on both sides: a few copies each.

`moves` says where the elements of an operator go, as numbers; one emitter writes the loops.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

from covp.codegen.c_text import c_type
from covp.codegen.kernels.loop_nest import broadcast_strides, dense_strides
from covp.codegen.kernels.moves.copy import c_element, copy_loops, fill_loops
from covp.codegen.kernels.operands import Operands
from covp.codegen.layer import KernelRequest, LayerCode, kernel
from covp.graph.graph import Op
from covp.graph.ops.layout import ELEMENT_TYPES

Strides = Sequence[int]


@dataclass(frozen=True)
class Move:
    """Elements of an input that go to an output.

    Attributes:
        extents: of the index space that is copied.
        source, target: strides on both sides.
        start, end: the first element on both sides.
        input, output: positions.
    """

    extents: Sequence[int]
    source: Strides
    target: Strides
    start: int = 0
    end: int = 0
    input: int = 0
    output: int = 0


def _split(op: Op) -> list[Move]:
    source, axis = dense_strides(op.input(0).shape), op.attributes.axis
    starts = [sum(op.attributes.sizes[:n]) * source[axis] for n in range(len(op.outputs))]
    return [
        Move(part.shape, source, dense_strides(part.shape), starts[n], output=n)
        for n, part in enumerate(op.outputs)
    ]


def _pack(op: Op) -> list[Move]:
    axis, shape = op.attributes.axis, op.input(0).shape
    target = dense_strides(op.output.shape)
    rest = target[:axis] + target[axis + 1 :]
    return [
        Move(shape, dense_strides(shape), rest, end=n * target[axis], input=n)
        for n in range(len(op.inputs))
    ]


def _unpack(op: Op) -> list[Move]:
    axis, source = op.attributes.axis, dense_strides(op.input(0).shape)
    rest = source[:axis] + source[axis + 1 :]
    return [
        Move(part.shape, rest, dense_strides(part.shape), n * source[axis], output=n)
        for n, part in enumerate(op.outputs)
    ]


def _tile(op: Op) -> list[Move]:
    shape, strides = op.input(0).shape, dense_strides(op.input(0).shape)
    extents, source = [], []
    for extent, stride, multiple in zip(shape, strides, op.attributes.multiples, strict=True):
        extents += [multiple, extent]
        source += [0, stride]
    return [Move(extents, source, dense_strides(extents))]


def _broadcast(op: Op) -> list[Move]:
    out = op.output.shape
    return [Move(out, broadcast_strides(op.input(0).shape, out), dense_strides(out))]


def _reverse(op: Op) -> list[Move]:
    shape, axes = op.input(0).shape, op.attributes.axes
    target = dense_strides(shape)
    source = [-stride if axis in axes else stride for axis, stride in enumerate(target)]
    start = sum((shape[axis] - 1) * target[axis] for axis in axes)
    return [Move(shape, source, target, start)]


def _depth_to_space(op: Op) -> list[Move]:
    return [_blocks(op.attributes, op.output.shape, op.input(0).shape)]


def _space_to_depth(op: Op) -> list[Move]:
    move = _blocks(op.attributes, op.input(0).shape, op.output.shape)
    return [Move(move.extents, move.target, move.source)]


def _blocks(attributes: object, wide: tuple[int, ...], deep: tuple[int, ...]) -> Move:
    """Return the move from deep to wide: batch, row, its row in the block, column ..."""
    n: int = attributes.size  # type: ignore[attr-defined]
    batch, height, width, deep_channels = deep
    channels = wide[3]
    dcr = attributes.order == "dcr"  # type: ignore[attr-defined]
    row, column, channel = (n * channels, channels, 1) if dcr else (n, 1, n * n)
    extents = (batch, height, n, width, n, channels)
    source = (
        *(height * width * deep_channels, width * deep_channels, row),
        *(deep_channels, column, channel),
    )
    return Move(extents, source, dense_strides(extents))


def _space_to_batch(op: Op) -> list[Move]:
    return _batch_moves(op, op.input(0).shape, op.output.shape, wide_is_source=True)


def _batch_to_space(op: Op) -> list[Move]:
    return _batch_moves(op, op.output.shape, op.input(0).shape, wide_is_source=False)


def _batch_moves(
    op: Op, wide: tuple[int, ...], deep: tuple[int, ...], wide_is_source: bool
) -> list[Move]:
    """Return a move for each place in a block: its pixels that lie in the wide image."""
    a, count = op.attributes, len(op.attributes.sizes)
    outer, inner = dense_strides(wide), dense_strides(deep)
    moves = []
    for number, place in enumerate(product(*map(range, a.sizes))):
        at_wide, at_deep = 0, number * wide[0] * inner[0]
        extents, strides = [wide[0]], [outer[0]]
        for axis in range(1, 1 + count):
            size, before, offset = a.sizes[axis - 1], a.margins[axis - 1][0], place[axis - 1]
            # of pixel i of the block's place, at i * size + offset - before in the wide image
            first = max(-((offset - before) // size), 0)
            position = first * size + offset - before
            extents.append(max(-(-(wide[axis] - position) // size), 0))
            strides.append(outer[axis] * size)
            at_wide += position * outer[axis]
            at_deep += first * inner[axis]
        extents += wide[1 + count :]
        strides += outer[1 + count :]
        if wide_is_source:
            moves.append(Move(extents, strides, inner, at_wide, at_deep))
        else:
            moves.append(Move(extents, inner, strides, at_deep, at_wide))
    return [move for move in moves if math.prod(move.extents)]


MOVES: dict[str, Callable[[Op], list[Move]]] = {
    "BATCH_TO_SPACE_ND": _batch_to_space,
    "BROADCAST_TO": _broadcast,
    "DEPTH_TO_SPACE": _depth_to_space,
    "PACK": _pack,
    "REVERSE_V2": _reverse,
    "SPACE_TO_BATCH_ND": _space_to_batch,
    "SPACE_TO_DEPTH": _space_to_depth,
    "SPLIT_V": _split,
    "TILE": _tile,
    "UNPACK": _unpack,
}
"""Kind to where its elements go."""


def emit_moves(request: KernelRequest) -> LayerCode:
    """Emit an operator that moves values: one nest of loops for each move."""
    op = request.op
    inputs = range(len(op.inputs) if op.kind == "PACK" else 1)
    sources = [f"input{n}" if len(inputs) > 1 else "input" for n in inputs]
    targets = [f"output{n}" if len(op.outputs) > 1 else "output" for n in range(len(op.outputs))]
    body = []
    if op.kind == "SPACE_TO_BATCH_ND" and any(map(any, op.attributes.margins)):
        value = c_element(op.attributes.value, op.output.dtype)
        body += fill_loops((op.output.size,), ("output", (1,), 0), value)
    for move in MOVES[op.kind](op):
        source = sources[move.input], move.source, move.start
        target = targets[move.output], move.target, move.end
        body += copy_loops(move.extents, source, target, op.output.dtype.itemsize)
    return Operands.of(op, inputs, len(op.outputs)).layer(request, body)


for _kind in MOVES:
    kernel(_kind, *ELEMENT_TYPES)(emit_moves)


@kernel("TRILU", *ELEMENT_TYPES)
def emit_triangle(request: KernelRequest) -> LayerCode:
    """Emit TRILU: each element or 0, by its distance from the diagonal."""
    op, a = request.op, request.op.attributes
    rows, columns = op.input(0).shape[-2:]
    matrices = op.output.size // (rows * columns or 1)
    late = len(op.inputs) > 1
    source, k = ("input0", "input1[0]") if late else ("input", str(a.k))
    kept = f"column - row {'>=' if a.upper else '<='} {k}"
    body = [
        f"const {c_type(op.output.dtype)} *from = {source};",
        f"for (int32_t matrix = 0; matrix < {matrices}; matrix++) {{",
        f"    for (int32_t row = 0; row < {rows}; row++) {{",
        f"        for (int32_t column = 0; column < {columns}; column++) {{",
        f"            *output++ = {kept} ? *from : {c_element(0, op.output.dtype)};",
        "            from++;",
        "        }",
        "    }",
        "}",
    ]
    positions = (0, 1) if late else (0,)
    return Operands.of(op, positions).layer(request, body, in_place=[op.input(0)])

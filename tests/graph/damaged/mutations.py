"""Damaged .tflite files: offsets, lengths and numbers within the flatbuffer, and wrong graphs."""

from __future__ import annotations

import dataclasses
import random
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from covp.graph.graph import Graph, Op, Quantization, Tensor
from covp.graph.zoo.tflite_writer import write_tflite

INTEGERS = [0, 1, 2, 3, 255, 65535, 2**20, 2**24, 2**31 - 1, 2**31, 2**32 - 1, 2**32 - 128]
FLOATS = [0.0, -0.0, -1.0, float("nan"), float("inf"), float("-inf"), 1e-45, 1e-30, 3e38, 1.0]
EXTENTS = [0, -1, -(2**31), 1, 3, 7, 4096, 2**16, 2**31 - 1]
AXES = [-5, -1, 0, 1, 2, 3, 4, 5, 2**31 - 1]


def damaged_file(rng: random.Random, data: bytes) -> bytes:
    """A file with one to four words changed: what they mean depends on where they are."""
    changed = bytearray(data)
    for _ in range(rng.randrange(1, 5)):
        rng.choice(_FILE)(rng, changed)
    return bytes(changed)


def damaged_graph(rng: random.Random, graph: Graph) -> bytes:
    """A well-formed file of a graph that is none; changes ``graph``.

    Raises:
        ValueError, OverflowError, struct.error, TypeError: the format has no place for it.
    """
    for _ in range(rng.randrange(1, 4)):
        rng.choice(_GRAPH)(rng, graph)
    return write_tflite(graph)


# words of the file


def _word(rng: random.Random, data: bytearray) -> int:
    """The place of a word that is not zero, where there is one: most words are."""
    for _ in range(40):
        at = rng.randrange(2, len(data) // 4) * 4
        if any(data[at : at + 4]):
            break
    return at


def _offsets(data: bytearray) -> list[int]:
    """Places that may hold an offset: forward to another word, not far away."""
    words = struct.unpack_from(f"<{len(data) // 4}I", data)
    return [4 * i for i, w in enumerate(words) if 4 <= w < len(data) - 4 * i and w % 4 == 0]


def _integer(rng: random.Random, data: bytearray) -> None:
    struct.pack_into("<I", data, _word(rng, data), rng.choice(INTEGERS))


def _float(rng: random.Random, data: bytearray) -> None:
    struct.pack_into("<f", data, _word(rng, data), rng.choice(FLOATS))


def _small(rng: random.Random, data: bytearray) -> None:
    """One more or less: lengths, extents, indices, codes."""
    at = _word(rng, data)
    (value,) = struct.unpack_from("<I", data, at)
    struct.pack_into("<I", data, at, (value + rng.choice([-2, -1, 1, 2, 4])) % 2**32)


def _swap(rng: random.Random, data: bytearray) -> None:
    """Two offsets are swapped, as they are or so that each leads where the other did."""
    places = _offsets(data)
    if len(places) < 2:
        return
    one, two = rng.sample(places, 2)
    (a,), (b,) = struct.unpack_from("<I", data, one), struct.unpack_from("<I", data, two)
    if rng.random() < 0.5:
        a, b = a + one - two, b + two - one
    struct.pack_into("<I", data, one, b % 2**32)
    struct.pack_into("<I", data, two, a % 2**32)


def _redirect(rng: random.Random, data: bytearray) -> None:
    """An offset leads nowhere, to itself, back, or somewhere else."""
    places = _offsets(data)
    if places:
        at = rng.choice(places)
        new = rng.choice([0, 4, -at, rng.randrange(-at, len(data) - at), len(data) - at, 2**31])
        struct.pack_into("<I", data, at, new % 2**32)


def _cut_out(rng: random.Random, data: bytearray) -> None:
    at = rng.randrange(8, len(data))
    del data[at : at + 4 * rng.randrange(1, 5)]


_FILE: list[Callable[[random.Random, bytearray], None]] = [
    _integer, _float, _small, _small, _swap, _swap, _redirect, _cut_out
]  # fmt: skip


# graphs


def _tensor(rng: random.Random, graph: Graph) -> Tensor:
    return rng.choice(list(graph.tensors()))


def _op(rng: random.Random, graph: Graph) -> Op:
    return rng.choice(graph.ops)


def _shape(rng: random.Random, graph: Graph) -> None:
    tensor = _tensor(rng, graph)
    shape = list(tensor.shape)
    how = rng.randrange(4)
    if how == 0 or not shape:
        shape.insert(rng.randrange(len(shape) + 1), rng.choice([1, 1, 2]))
    elif how == 1:
        del shape[rng.randrange(len(shape))]
    else:
        shape[rng.randrange(len(shape))] = rng.choice(EXTENTS)
    tensor.shape = tuple(shape)


def _scales(rng: random.Random, graph: Graph) -> None:
    tensor = _tensor(rng, graph)
    found = tensor.quantization
    count = rng.choice([0, 1, 1, 1, 2, 3, 5, 1000])
    scale = np.full(count, rng.choice([*FLOATS, 0.1]), np.float32)
    if found is not None and rng.random() < 0.4:  # one bad among the good ones
        scale = np.array(found.scale)
        scale[rng.randrange(len(scale))] = rng.choice(FLOATS)
    points = np.full(rng.choice([0, 1, len(scale), 7]), rng.choice([0, 0, 1, -129, 2**31 - 1]))
    with np.errstate(all="ignore"):
        tensor.quantization = Quantization(scale, points.astype(np.int32), rng.choice(AXES))


def _no_quantization(rng: random.Random, graph: Graph) -> None:
    _tensor(rng, graph).quantization = None


def _dtype(rng: random.Random, graph: Graph) -> None:
    kinds = ["int8", "uint8", "int16", "int32", "int64", "float32", "float16", "bool"]
    _tensor(rng, graph).dtype = np.dtype(rng.choice(kinds))


def _buffer(rng: random.Random, graph: Graph) -> None:
    """A constant without data, with too little or too much, or with other data."""
    constants = [t for t in graph.tensors() if t.data is not None]
    if not constants:
        return
    tensor = rng.choice(constants)
    assert tensor.data is not None
    how, flat = rng.randrange(4), tensor.data.ravel()
    if how == 0:
        tensor.data = None
    elif how == 1:
        tensor.data = flat[: rng.randrange(len(flat) + 1)]
    elif how == 2:
        tensor.data = np.concatenate([flat, flat])
    elif tensor.data.dtype.kind == "f":
        tensor.data = np.full_like(tensor.data, rng.choice(FLOATS))
    else:
        limits = np.iinfo(tensor.data.dtype)
        extremes = [int(limits.min), int(limits.max), -1, 0]
        tensor.data = np.full_like(tensor.data, rng.choice(extremes))


def _data_of_an_activation(rng: random.Random, graph: Graph) -> None:
    tensor = _tensor(rng, graph)
    if all(0 <= extent < 4096 for extent in tensor.shape) and tensor.size < 10**5:
        tensor.data = np.zeros(tensor.shape, tensor.dtype)


def _rewire(rng: random.Random, graph: Graph) -> None:
    """An operand is another tensor: of a later operator (a cycle), of no operator, or None."""
    op = _op(rng, graph)
    if op.inputs:
        op.inputs[rng.randrange(len(op.inputs))] = rng.choice([_tensor(rng, graph), None])


def _operands(rng: random.Random, graph: Graph) -> None:
    op = _op(rng, graph)
    how = rng.randrange(4)
    if how == 0:
        rng.shuffle(op.inputs)
    elif how == 1:
        op.inputs = op.inputs[: rng.randrange(len(op.inputs) + 1)]
    elif how == 2:
        op.inputs = [*op.inputs, *op.inputs]
    else:
        op.outputs = [_op(rng, graph).outputs[0], *op.outputs[1:]]


def _attributes(rng: random.Random, graph: Graph) -> None:
    """Strides, axes, sizes, activations: one of an operator's attributes is replaced."""
    op = _op(rng, graph)
    if op.attributes is None:
        return
    field = rng.choice(dataclasses.fields(op.attributes))
    value = _other(rng, getattr(op.attributes, field.name))
    op.attributes = dataclasses.replace(op.attributes, **{field.name: value})


def _other(rng: random.Random, value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice(EXTENTS)
    if isinstance(value, float):
        return rng.choice(FLOATS)
    if isinstance(value, tuple) and value:
        at = rng.randrange(len(value))
        return (*value[:at], _other(rng, value[at]), *value[at + 1 :])
    return value


def _kind(rng: random.Random, graph: Graph) -> None:
    """The options of one operator on another."""
    _op(rng, graph).kind = _op(rng, graph).kind


def _order(rng: random.Random, graph: Graph) -> None:
    rng.shuffle(graph.ops)


def _interface(rng: random.Random, graph: Graph) -> None:
    which = rng.choice([graph.inputs, graph.outputs])
    how = rng.randrange(3)
    if how == 0:
        which.append(_tensor(rng, graph))
    elif how == 1:
        which.clear()
    elif which:
        which[0] = _tensor(rng, graph)


def _name(rng: random.Random, graph: Graph) -> None:
    names = ["", "a" * 5000, "\0", "\n\n", "*/ x", '"', "int", "g0_run", "\u202e", "%s%n"]
    if rng.random() < 0.5:
        _tensor(rng, graph).name = rng.choice(names)
    else:
        _op(rng, graph).name = rng.choice(names)


_GRAPH: list[Callable[[random.Random, Graph], None]] = [
    _shape, _shape, _shape, _scales, _scales, _scales, _no_quantization, _dtype, _dtype, _buffer,
    _buffer, _data_of_an_activation, _rewire, _rewire, _operands, _operands, _attributes,
    _attributes, _attributes, _kind, _order, _interface, _interface, _name,
]  # fmt: skip

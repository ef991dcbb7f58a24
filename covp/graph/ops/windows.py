"""Convolutions with any number of axes: CONV_ND and TRANSPOSE_CONV, and what windows share.

Images have their channels last: (batch, *space, channels).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from covp.errors import ModelError
from covp.graph.attributes import Activation, Pair
from covp.graph.graph import Op
from covp.graph.index_map import Index, IndexMap, Space, slid
from covp.graph.ops.convolution import bias_reads
from covp.graph.ops.definition import (
    OPS,
    Array,
    OpDefinition,
    Shape,
    check_type,
    given,
    ieee,
    of_one_type,
)
from covp.graph.quantization import float_activation_range
from covp.graph.typed_convolution import resolve

Extents = tuple[int, ...]


@dataclass(frozen=True)
class ConvND:
    """CONV_ND: weights (outputs, *kernel, channels / groups), which may come at run time.

    Attributes:
        stride, dilation: for each axis of space.
        padding: (before, after) for each.
        groups: into which channels and outputs are divided; each output reads those of its group.
    """

    stride: Extents
    padding: tuple[Pair, ...]
    dilation: Extents
    groups: int = 1
    activation: Activation = "none"


@dataclass(frozen=True)
class TransposeConv:
    """TRANSPOSE_CONV: the inputs are image, weights (outputs, *kernel, channels / groups), bias.

    Element i of the image adds to elements i * stride + tap * dilation - before of the output.

    Attributes:
        stride, dilation: for each axis of space.
        before: elements that are cut off before each axis of the output.
        size: of the output's axes of space.
    """

    stride: Extents
    before: Extents
    size: Extents
    dilation: Extents
    groups: int = 1
    activation: Activation = "none"


Slices = tuple[slice, ...]


def taps(
    kernel: Extents, moving: Shape, fixed: Shape, stride: Extents, dilation: Extents, pads: Extents
) -> Iterator[tuple[Extents, Slices, Slices]]:
    """Yield each tap of a window with the slices that it pairs, of the moving and the fixed side.

    Element i of the moving side and i * stride + tap * dilation - pads of the fixed one belong
    together. A convolution moves over its input, so its output is the moving side.
    """
    for tap in product(*map(range, kernel)):
        ours, theirs = [], []
        for axis, k in enumerate(tap):
            offset = k * dilation[axis] - pads[axis]
            first = max(-(offset // stride[axis]), 0)
            last = min((fixed[axis] - 1 - offset) // stride[axis], moving[axis] - 1)
            at = first * stride[axis] + offset
            count = max(last - first + 1, 0)
            ours.append(slice(first, first + count))
            end = at + (count - 1) * stride[axis] + 1
            theirs.append(slice(at, max(end, at), stride[axis]))
        if all(part.stop > part.start for part in ours):
            yield tap, tuple(ours), tuple(theirs)


def grouped_product(image: Array, weights: Array, groups: int) -> Array:
    """Multiply (..., channels) by (outputs, channels / groups) per group, to (..., outputs)."""
    if groups == 1:
        return np.asarray(image @ weights.T)
    parts = image.reshape(*image.shape[:-1], groups, -1)
    filters = weights.reshape(groups, -1, weights.shape[-1])
    return np.asarray(np.einsum("...gc,goc->...go", parts, filters)).reshape(*image.shape[:-1], -1)


def _sums(op: Op, image: Array, weights: Array) -> Array:
    """Return the sums of CONV_ND or TRANSPOSE_CONV, without bias, in the type of both."""
    a = op.attributes
    kernel, space = weights.shape[1:-1], image.shape[1:-1]
    result = op.output.shape[1:-1] if op.output.shape else _shapes(op)[0][1:-1]
    sums = np.zeros((image.shape[0], *result, weights.shape[0]), image.dtype)
    transposed = op.kind == "TRANSPOSE_CONV"
    pads = a.before if transposed else tuple(before for before, _ in a.padding)
    moving, fixed = (space, result) if transposed else (result, space)
    for tap, ours, theirs in taps(kernel, moving, fixed, a.stride, a.dilation, pads):
        source, target = (ours, theirs) if transposed else (theirs, ours)
        part, filters = image[_every(source)], weights[_every(tap)]
        sums[_every(target)] += grouped_product(part, filters, a.groups)
    return sums


def _every(rest: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the index of the whole first axis and a part of the rest."""
    return (slice(None), *rest)


def _reference(op: Op, values: Sequence[Array | None]) -> list[Array]:
    x, weights = given(values, 0), given(values, 1)
    bias = values[2] if len(values) > 2 else None
    if x.dtype == np.float32:
        with ieee():
            sums = _sums(op, x, weights)
            sums = sums if bias is None else sums + bias
            low, high = float_activation_range(op.attributes.activation)
            return [np.clip(sums, low, high).astype(np.float32)]
    problem = resolve(op)
    sums = _sums(op, x.astype(np.int64) - op.input(0).zero_point, weights.astype(np.int64))
    result = problem.arithmetic.finish(sums + problem.bias, problem.scaling)
    return [result.astype(op.output.dtype)]


def _shapes(op: Op) -> list[Shape]:
    a, source, weights = op.attributes, op.input(0).shape, op.input(1).shape
    rank = len(source) - 2
    if rank < 1 or len(weights) != rank + 2 or len(a.stride) != rank:
        raise ModelError(f"shapes {source} and {weights} do not fit a convolution")
    if weights[-1] * a.groups != source[-1] or weights[0] % a.groups:
        raise ModelError(
            f"{source[-1]} channels and filters {weights} do not divide into {a.groups} groups"
        )
    bias = op.inputs[2] if len(op.inputs) > 2 else None
    if bias is not None and bias.size != weights[0]:
        raise ModelError(f"bias {bias.name} has {bias.size} values for {weights[0]} channels")
    if op.kind == "TRANSPOSE_CONV":
        size = a.size
    else:
        reach = [(k - 1) * d + 1 for k, d in zip(weights[1:-1], a.dilation, strict=True)]
        wide = [n + sum(pads) for n, pads in zip(source[1:-1], a.padding, strict=True)]
        size = tuple((n - r) // s + 1 for n, r, s in zip(wide, reach, a.stride, strict=True))
    if min(size) < 1:
        raise ModelError(f"filters {weights} leave nothing of {source}")
    return [(source[0], *size, weights[0])]


def _types(op: Op) -> None:
    of_one_type("int8", "int16", "float32")(op)
    check_type(op.input(1), "float32" if op.output.dtype == np.float32 else "int8")


def _macs(op: Op) -> int:
    weights = op.input(1)
    images = op.output if op.kind == "CONV_ND" else op.input(0)
    filters = weights.size // weights.shape[0]
    if op.kind == "TRANSPOSE_CONV":
        filters = math.prod(weights.shape[:-1]) // op.attributes.groups
    return images.size * filters


def _reads(op: Op) -> list[IndexMap]:
    a, space, weights = op.attributes, Space(op), op.input(1).shape
    batch, *places, channel = space.axes
    taps, depth = space.loops(weights[1:-1]), space.loop(weights[-1])
    inside: list[Index] = []  # conditions
    if op.kind == "TRANSPOSE_CONV":
        steps = slid(places, taps, None, tuple(-n for n in a.before), tuple(-d for d in a.dilation))
        image = [at // stride for at, stride in zip(steps, a.stride, strict=True)]
        inside = [at % stride for at, stride in zip(steps, a.stride, strict=True)]
    else:
        image = slid(places, taps, a.stride, [pads[0] for pads in a.padding], a.dilation)
    group = channel // (weights[0] // a.groups) * weights[-1] if a.groups > 1 else Index()
    x = batch, *image, group + depth, *inside
    return [space.make_map(x, (channel, *taps, depth), bias_reads(op, channel))]


for _kind in ("CONV_ND", "TRANSPOSE_CONV"):
    OPS[_kind] = OpDefinition(_shapes, _reference, _macs, _types, reads=_reads, clamps=True)

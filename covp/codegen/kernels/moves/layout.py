"""Operators that move values: IDENTITY, RESHAPE, PAD, CONCATENATION, TRANSPOSE, slices, SPLIT."""

from __future__ import annotations

import numpy as np

from covp.codegen.c_text import c_array
from covp.codegen.kernels.loop_nest import dense_strides
from covp.codegen.kernels.moves.copy import c_element, copy_loops, fill_loops
from covp.codegen.kernels.operands import Operands
from covp.codegen.layer import KernelRequest, LayerCode, kernel
from covp.errors import ModelError
from covp.graph.graph import Op, Tensor
from covp.graph.ops.layout import ELEMENT_TYPES, rescaled_part

_ANY = ELEMENT_TYPES


@kernel("RESHAPE", *_ANY)
def emit_reshape(request: KernelRequest) -> LayerCode:
    """Emit a copy, for when the output cannot be the input's memory."""
    op = request.op
    size = (op.output.size,)
    body = copy_loops(size, ("input", (1,), 0), ("output", (1,), 0), _itemsize(op))
    return Operands.of(op).layer(request, body, in_place=[op.input(0)])


@kernel("TRANSPOSE", *_ANY)
def emit_transpose(request: KernelRequest) -> LayerCode:
    """Emit TRANSPOSE: the output in order, the input read with permuted strides."""
    op = request.op
    source = dense_strides(op.input(0).shape)
    strides = [source[axis] for axis in op.attributes.permutation]
    target = dense_strides(op.output.shape)
    body = copy_loops(op.output.shape, ("input", strides, 0), ("output", target, 0), _itemsize(op))
    return Operands.of(op).layer(request, body)


@kernel("SLICE", *_ANY)
@kernel("STRIDED_SLICE", *_ANY)
def emit_strided_slice(request: KernelRequest) -> LayerCode:
    """Emit STRIDED_SLICE: the output in order, the input from where the slice begins."""
    op = request.op
    shape = op.input(0).shape
    taken = [range(*slice(*b).indices(n)) for b, n in zip(op.attributes.slices, shape, strict=True)]
    source = dense_strides(shape)
    start = sum(r.start * stride for r, stride in zip(taken, source, strict=True))
    strides = [r.step * stride for r, stride in zip(taken, source, strict=True)]
    extents = [len(r) for r in taken]
    target = dense_strides(extents)
    body = copy_loops(extents, ("input", strides, start), ("output", target, 0), _itemsize(op))
    return Operands.of(op).layer(request, body)


@kernel("SPLIT", "int32", "int64")
def emit_split(request: KernelRequest) -> LayerCode:
    """Emit SPLIT of input 1; input 0 is the axis."""
    op = request.op
    source = dense_strides(op.input(1).shape)
    axis = op.attributes.axis
    body = []
    for number, part in enumerate(op.outputs):
        start = number * part.shape[axis] * source[axis]
        name = f"output{number}" if len(op.outputs) > 1 else "output"
        target = name, dense_strides(part.shape), 0
        body += copy_loops(part.shape, ("input", source, start), target, part.dtype.itemsize)
    return Operands.of(op, (1,), len(op.outputs)).layer(request, body)


@kernel("PAD", *_ANY)
@kernel("PADV2", *_ANY)
def emit_pad(request: KernelRequest) -> LayerCode:
    """Emit the margins of every axis, then the middle."""
    op = request.op
    value = op.attributes.value
    text = c_element(value, op.output.dtype)
    shape, out = op.input(0).shape, op.output.shape
    target = dense_strides(out)
    body = []
    # the margins of an axis reach over all of the later axes, but only the middle of earlier ones
    start, extents = 0, list(out)
    for axis, (before, after) in enumerate(op.attributes.paddings):
        end = start + (before + shape[axis]) * target[axis]
        for count, at in ((before, start), (after, end)):
            if count:
                margin = [*extents[:axis], count, *extents[axis + 1 :]]
                body += fill_loops(margin, ("output", target, at), text)
        start += before * target[axis]
        extents[axis] = shape[axis]
    source = "input", dense_strides(shape), 0
    body += copy_loops(shape, source, ("output", target, start), _itemsize(op))
    return Operands.of(op).layer(request, body)


@kernel("CONCATENATION", *_ANY)
def emit_concatenation(request: KernelRequest) -> LayerCode:
    """Emit one part after the other; parts of another quantization go through a table."""
    op = request.op
    axis = op.attributes.axis
    if op.attributes.activation != "none":
        raise ModelError(f"{op.name}: CONCATENATION with a fused activation is not supported")
    target = dense_strides(op.output.shape)
    definitions, body, start = [], [], 0
    for number in range(len(op.inputs)):
        part = op.input(number)
        name = f"input{number}" if len(op.inputs) > 1 else "input"
        value = None
        if part.dtype == np.int8 and not _same_quantization(part, op.output):
            every = np.arange(256, dtype=np.uint8).view(np.int8)
            table = rescaled_part(op, number, every)
            definitions.append(c_array(f"table{number}", table, f"{part.name} rescaled"))
            value = f"table{number}[(uint8_t){{}}]".format
        source = name, dense_strides(part.shape), 0
        place = "output", target, start
        body += copy_loops(part.shape, source, place, part.dtype.itemsize, value)
        start += part.shape[axis] * target[axis]
    positions = range(len(op.inputs))
    return Operands.of(op, positions).layer(request, body, definitions)


def _itemsize(op: Op) -> int:
    return op.output.dtype.itemsize


def _same_quantization(a: Tensor, b: Tensor) -> bool:
    if a.quantization is None or b.quantization is None:
        return True
    return (a.scale, a.zero_point) == (b.scale, b.zero_point)


_TYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "float32", "bool")


@kernel("IDENTITY", *_TYPES)
def emit_identity(request: KernelRequest) -> LayerCode:
    """Emit one memcpy."""
    nbytes = request.op.output.nbytes
    body = [f"memcpy(output, input, {nbytes});"] if nbytes else ["(void)output;"]
    return Operands.of(request.op).layer(request, body, includes=["#include <string.h>"])

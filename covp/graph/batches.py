"""`run_batch`: the reference executor over many samples at once, with the bits of single runs.

Operators whose results along the first axis depend on nothing else there, by their index maps, take
all samples in one call: the tensors' first extents are multiplied by the number of samples. The
others run sample by sample, and so do sums of floats, whose result depends on their order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.errors import ModelError
from covp.graph.graph import Graph, Op, Tensor
from covp.graph.index_map import Index, IndexMap, is_moved
from covp.graph.ops.definition import definition
from covp.graph.reference import one_thread

Array = NDArray[Any]

_NONE: Mapping[str, Array] = MappingProxyType({})
_CACHED = 1 << 18
"""Bytes of sums per block: numpy passes over them several times, so they fit the cache."""


def run_batch(
    graph: Graph, inputs: Sequence[Array], states: Mapping[str, Array] = _NONE
) -> tuple[list[Array], dict[str, Array]]:
    """Return the outputs of many inferences.

    Args:
        graph: what is computed.
        inputs: (samples, *shape) of each input, of its dtype.
        states: (samples, *shape) before the inference, by name; those left out have their initial
            values.

    Returns:
        (samples, *shape) of each output, and of each state after the inference by its name.
    """
    samples = len(inputs[0])
    fixed = {t.name: t.data for t in graph.tensors() if t.data is not None}
    fixed |= {s.before.name: s.initial for s in graph.states if s.name not in states}
    each = {t.name: value for t, value in zip(graph.inputs, inputs, strict=True)}
    each |= {s.before.name: states[s.name] for s in graph.states if s.name in states}
    with one_thread():
        for op in graph.ops:
            names = [tensor.name for tensor in op.outputs]
            if any(tensor is not None and tensor.name in each for tensor in op.inputs):
                each |= dict(zip(names, _compute(op, fixed, each, samples), strict=True))
            else:
                fixed |= dict(zip(names, _reference(op, fixed), strict=True))

    def every(name: str) -> Array:
        if name in each:
            return each[name]
        return np.broadcast_to(fixed[name], (samples, *fixed[name].shape))

    outputs = [every(tensor.name) for tensor in graph.outputs]
    return outputs, {state.name: every(state.after.name) for state in graph.states}


def _reference(op: Op, values: Mapping[str, Array]) -> list[Array]:
    arguments = [None if t is None else values[t.name] for t in op.inputs]
    return definition(op.kind).reference(op, arguments)


def _compute(
    op: Op, fixed: Mapping[str, Array], each: Mapping[str, Array], samples: int
) -> list[Array]:
    """Return the outputs of an operator, (samples, *shape)."""
    is_each = [tensor is not None and tensor.name in each for tensor in op.inputs]
    at_once = _at_once(op) if _takes_many(op, is_each) else 1
    parts = []
    for start in range(0, samples, at_once):
        count = min(at_once, samples - start)
        own = {t.name: each[t.name][start : start + count] for t in op.inputs
               if t is not None and t.name in each}  # fmt: skip
        if at_once == 1:
            own = {name: value[0] for name, value in own.items()}
            parts.append([result[None] for result in _reference(op, {**fixed, **own})])
            continue
        wide = _widen(op, is_each, count)
        own = {name: value.reshape(-1, *value.shape[2:]) for name, value in own.items()}
        results = _reference(wide, {**fixed, **own})
        shapes = [(count, *tensor.shape) for tensor in op.outputs]
        parts.append([r.reshape(shape) for r, shape in zip(results, shapes, strict=True)])
    if len(parts) == 1:
        return parts[0]
    return [np.concatenate(results) for results in zip(*parts, strict=True)]


def _at_once(op: Op) -> int:
    """Return how many samples of an operator the cache holds, at least 2."""
    return max(2, _CACHED // (8 * max(1, op.output.size)))


def _widen(op: Op, is_each: Sequence[bool], samples: int) -> Op:
    """Return the operator for several samples, one after the other along the first axis."""

    def wide(tensor: Tensor) -> Tensor:
        return replace(tensor, shape=(tensor.shape[0] * samples, *tensor.shape[1:]))

    inputs = [
        wide(tensor) if tensor is not None and varies else tensor
        for tensor, varies in zip(op.inputs, is_each, strict=True)
    ]
    return replace(op, inputs=inputs, outputs=[wide(tensor) for tensor in op.outputs])


# -- which operators take many samples ------------------------------------------------------------

_TRIED = 3
"""Number of samples whose independence is tested: further ones move by the same steps."""


def _takes_many(op: Op, is_each: Sequence[bool]) -> bool:
    """Return whether the operator computes samples, side by side along the first axis, alike."""
    rule = definition(op.kind)
    varying = [t for t, varies in zip(op.inputs, is_each, strict=True) if varies and t is not None]
    moved = (*varying, *op.outputs)
    if not all(tensor.shape and tensor.shape[0] for tensor in moved) or 0 in rule.positional(op):
        return False
    if any(t.quantization and t.quantization.per_channel for t in moved):
        return False
    wide = _widen(op, is_each, _TRIED)
    try:
        if rule.infer_shapes(wide) != [tensor.shape for tensor in wide.outputs]:
            return False
    except ModelError:
        return False
    single, many = rule.reads(op), rule.reads(wide)
    return _exact(op, single) and all(
        _independent(op, is_each, *each) for each in zip(single, many, op.outputs, strict=True)
    )


def _exact(op: Op, maps: Sequence[IndexMap]) -> bool:
    """Return whether each float is rounded on its own, only moved, or the same in every order."""
    floats = any(t is not None and t.dtype.kind == "f" for t in (*op.inputs, *op.outputs))
    return not floats or all(loop.order == "any order" for own in maps for loop in own.loops)


def _independent(
    op: Op, is_each: Sequence[bool], single: IndexMap, many: IndexMap, output: Tensor
) -> bool:
    """Return whether samples read separate parts of varying inputs and the same of all others."""
    if single.loops != many.loops:
        return False
    extents = (*output.shape, *(loop.extent for loop in single.loops))
    ranges = [(0, extent - 1) for extent in extents]
    for tensor, varies, one, all_ in zip(
        op.inputs, is_each, single.inputs, many.inputs, strict=True
    ):
        if tensor is None or one is None or all_ is None:
            continue
        for axis, (own, wide) in enumerate(zip(one, all_, strict=True)):
            step = tensor.shape[0] if varies and axis == 0 else 0
            if step and isinstance(own, Index) and not _inside(own.bounds(ranges), step):
                return False  # it would read the sample beside its own
            shifts = [(sample * output.shape[0], sample * step) for sample in range(_TRIED)]
            if not all(is_moved(wide, own, 0, shift, extents) for shift in shifts):
                return False
    return True


def _inside(bounds: tuple[int, int], extent: int) -> bool:
    return bounds[0] >= 0 and bounds[1] < extent

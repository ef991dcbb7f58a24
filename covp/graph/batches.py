"""`run_batch`: the reference executor over many samples at once, with the bits of single runs.

Operators whose results along the first axis depend on nothing else there take all samples in one
call: the tensors' first extents are multiplied by the number of samples. The others run sample by
sample, and so does arithmetic of floats whose result depends on the order of its sums.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.graph.graph import Graph, Op, Tensor
from covp.graph.ops.definition import definition
from covp.graph.reference import one_thread

Array = NDArray[Any]

_NONE: Mapping[str, Array] = MappingProxyType({})
_CACHED = 1 << 18
"""Bytes of sums at a time: numpy goes over them several times, and the cache holds them."""


def run_batch(
    graph: Graph, inputs: Sequence[Array], states: Mapping[str, Array] = _NONE
) -> tuple[list[Array], dict[str, Array]]:
    """The outputs of many inferences.

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
                each |= dict(zip(names, _computed(op, fixed, each, samples), strict=True))
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


def _computed(
    op: Op, fixed: Mapping[str, Array], each: Mapping[str, Array], samples: int
) -> list[Array]:
    """The outputs of an operator, (samples, *shape)."""
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
        wide = _widened(op, is_each, count)
        own = {name: value.reshape(-1, *value.shape[2:]) for name, value in own.items()}
        results = _reference(wide, {**fixed, **own})
        shapes = [(count, *tensor.shape) for tensor in op.outputs]
        parts.append([r.reshape(shape) for r, shape in zip(results, shapes, strict=True)])
    if len(parts) == 1:
        return parts[0]
    return [np.concatenate(results) for results in zip(*parts, strict=True)]


def _at_once(op: Op) -> int:
    """How many samples of an operator the cache holds, at least 2."""
    return max(2, _CACHED // (8 * max(1, op.output.size)))


def _widened(op: Op, is_each: Sequence[bool], samples: int) -> Op:
    """The operator for so many samples one after the other along the first axis."""

    def wide(tensor: Tensor) -> Tensor:
        return replace(tensor, shape=(tensor.shape[0] * samples, *tensor.shape[1:]))

    inputs = [
        wide(tensor) if tensor is not None and varies else tensor
        for tensor, varies in zip(op.inputs, is_each, strict=True)
    ]
    return replace(op, inputs=inputs, outputs=[wide(tensor) for tensor in op.outputs])


# -- which operators take many samples ------------------------------------------------------------


def _takes_many(op: Op, is_each: Sequence[bool]) -> bool:
    """Whether the results along the first axis depend on nothing else there."""
    rule = _RULES.get(op.kind)
    tensors = [tensor for tensor in (*op.inputs, *op.outputs) if tensor is not None]
    if rule is None or not op.output.shape or any(t.dtype == np.bool_ for t in tensors):
        return False
    if op.kind not in _EXACT and any(tensor.dtype.kind == "f" for tensor in tensors):
        return False
    varying = [t for t, varies in zip(op.inputs, is_each, strict=True) if varies and t is not None]
    return all(tensor.shape for tensor in varying) and rule(op, is_each)


def _first_only(op: Op, is_each: Sequence[bool]) -> bool:
    """The other inputs are weights and the like."""
    return is_each[0] and not any(is_each[1:])


def _images(op: Op, is_each: Sequence[bool]) -> bool:
    return _first_only(op, is_each) and len(op.input(0).shape) == 4


def _along_the_last_axis(op: Op, is_each: Sequence[bool]) -> bool:
    return _first_only(op, is_each) and len(op.input(0).shape) > 1


def _broadcasting(op: Op, is_each: Sequence[bool]) -> bool:
    """No input has more, or other, along the first axis than the output."""
    shape = op.output.shape
    for tensor, varies in zip(op.inputs, is_each, strict=True):
        if tensor is None:
            return False
        own = tensor.shape
        if varies and (len(own) != len(shape) or own[0] != shape[0]):
            return False
        if not varies and len(own) == len(shape) and own[0] != 1:
            return False
    return True


def _other_axes(op: Op, is_each: Sequence[bool]) -> bool:
    axes = op.attributes.axes
    return _first_only(op, is_each) and axes is not None and 0 not in axes


def _joined(op: Op, is_each: Sequence[bool]) -> bool:
    return all(is_each) and op.attributes.axis != 0


def _not_padded(op: Op, is_each: Sequence[bool]) -> bool:
    return _first_only(op, is_each) and op.attributes.paddings[0] == (0, 0)


def _kept_first(op: Op, is_each: Sequence[bool]) -> bool:
    return _first_only(op, is_each) and op.attributes.permutation[0] == 0


_RULES: dict[str, Callable[[Op, Sequence[bool]], bool]] = {
    **dict.fromkeys(("ADD", "SUB", "MUL"), _broadcasting),
    **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D"), _images),
    **dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D"), _images),
    **dict.fromkeys(("RELU", "RELU6", "LEAKY_RELU", "LOGISTIC", "TANH"), _first_only),
    **dict.fromkeys(("LOOKUP_TABLE", "QUANTIZE", "DEQUANTIZE"), _first_only),
    **dict.fromkeys(("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN"), _other_axes),
    **dict.fromkeys(("PAD", "PADV2"), _not_padded),
    "CONCATENATION": _joined,
    "FULLY_CONNECTED": _first_only,
    "RESHAPE": _first_only,
    "SOFTMAX": _along_the_last_axis,
    "TRANSPOSE": _kept_first,
}
"""Kind to whether an operator takes many samples; the second argument says which inputs differ."""

_EXACT = frozenset(
    {
        *("ADD", "SUB", "MUL", "RELU", "RELU6", "LEAKY_RELU", "QUANTIZE", "DEQUANTIZE"),
        *("MAX_POOL_2D", "PAD", "PADV2", "CONCATENATION", "RESHAPE", "TRANSPOSE"),
    }
)
"""Kinds of which each float is rounded on its own, or only moved."""

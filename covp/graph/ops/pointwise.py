"""Operators that work element by element, with numpy's broadcasting: what they have in common.

A family file registers its kinds with `pointwise`. Quantized tensors need a rule of their own,
which `quantized` adds; without one they are rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from covp.base.registry import Registry
from covp.errors import ModelError
from covp.graph.graph import Op, Tensor
from covp.graph.index_map import elementwise
from covp.graph.ops.definition import LIMITS, OPS, Array, OpDefinition, Shape, ieee
from covp.graph.ops.int16 import check_int16

Compute = Callable[..., Any]
"""Function of an operator and its inputs' values (None: left out) that returns the output."""
Result = Literal["same", "bool", "any"]

FLOATS = "f"
INTEGERS = "iu"
NUMBERS = "fiu"
ANYTHING = "fiub"


@dataclass(frozen=True)
class Pointwise:
    """The declaration of a pointwise kind.

    Attributes:
        compute: of plain numbers; integers wrap modulo their size.
        takes: numpy's letters of the types that its data may have.
        gives: the output's type: that of the data, bool, or any that the graph states.
        data: positions of the inputs that have one type; None for all.
    """

    compute: Compute
    takes: str = FLOATS
    gives: Result = "same"
    data: tuple[int, ...] | None = None


POINTWISE: Registry[str, Pointwise] = Registry("covp.graph.ops")
"""The rule of each kind for plain numbers."""
QUANTIZED: Registry[str, Compute] = Registry("covp.graph.ops")
"""The rule of each kind for quantized tensors."""


QUANTIZED_INT16 = frozenset(
    {"ABS", "PRELU", "SQUARED_DIFFERENCE"}
    | {"EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "NOT_EQUAL"}
)
"""Kinds whose rule holds for int16 too, with zero points of 0; slopes of PRELU are int8 then."""
INT16: Registry[str, Compute] = Registry("covp.graph.ops")
"""The rule of each kind for quantized int16, where it differs."""
STORED = ("CAST", "MAXIMUM", "MINIMUM")
"""Kinds that work on stored values of any type, whatever they stand for; and SELECT_V2."""


def pointwise(
    kind: str,
    compute: Compute,
    takes: str = FLOATS,
    gives: Result = "same",
    data: tuple[int, ...] | None = None,
) -> None:
    """Register an operator kind; the arguments are those of `Pointwise`."""
    POINTWISE[kind] = Pointwise(compute, takes, gives, data)
    OPS[kind] = OpDefinition(broadcast, reference, types=check_types, reads=elementwise)


def is_quantized(op: Op) -> bool:
    """Return whether the operator works on quantized values."""
    tensors = [*op.inputs, *op.outputs]
    return any(t is not None and t.quantization is not None for t in tensors)


def broadcast(op: Op) -> list[Shape]:
    """Return the shape that all inputs broadcast to."""
    shapes = [tensor.shape for tensor in op.inputs if tensor is not None]
    try:
        return [tuple(np.broadcast_shapes(*shapes))]
    except ValueError:
        raise ModelError(f"shapes {' and '.join(map(str, shapes))} do not broadcast") from None


def reference(op: Op, values: Sequence[Array | None]) -> list[Array]:
    """Compute the operator in numpy, by the rule of the tensors' types."""
    compute = POINTWISE[op.kind].compute
    if is_quantized(op):
        rules = INT16 if op.input(0).dtype == np.int16 and op.kind in INT16 else QUANTIZED
        compute = rules[op.kind]
    with ieee():
        return [np.asarray(compute(op, *values)).astype(op.output.dtype)]


def check_types(op: Op) -> None:
    """Raise ModelError where the tensors are not of the types that the kind takes."""
    rule = POINTWISE[op.kind]
    positions = range(len(op.inputs)) if rule.data is None else rule.data
    data = [t for i in positions if i < len(op.inputs) and (t := op.inputs[i]) is not None]
    if op.kind == "PRELU" and data[0].dtype == np.int16 and data[1].dtype == np.int8:
        del data[1]
    if rule.gives == "same":
        data.append(op.output)
    for tensor in data[1:]:
        if tensor.dtype != data[0].dtype:
            raise ModelError(
                f"tensor {tensor.name} is {tensor.dtype} and {data[0].name} is "
                f"{data[0].dtype}; one type is needed, convert the model again",
                tensor=tensor.name,
            )
    if rule.gives == "bool" and op.output.dtype != np.bool_:
        raise ModelError(
            f"tensor {op.output.name} is {op.output.dtype}; {op.kind} needs bool",
            tensor=op.output.name,
        )
    if is_quantized(op):
        _check_quantization(op)
    else:
        _check_plain(op.kind, data[0], rule.takes)


def _check_plain(kind: str, tensor: Tensor, takes: str) -> None:
    if tensor.dtype.kind not in takes or (tensor.dtype.kind == "f" and tensor.dtype != np.float32):
        names = {"f": "float32", "i": "integers", "u": "unsigned integers", "b": "bool"}
        known = ", ".join(names[letter] for letter in takes)
        raise ModelError(
            f"tensor {tensor.name} is {tensor.dtype}; {kind} takes {known}", tensor=tensor.name
        )


def _check_quantization(op: Op) -> None:
    dtype = op.input(0).dtype
    known = op.kind in QUANTIZED and (dtype == np.int8 or op.kind in (*STORED, "SELECT_V2"))
    if dtype == np.int16 and (op.kind in QUANTIZED_INT16 or op.kind in INT16):
        known = True
        check_int16(*(t for t in (*op.inputs, op.output) if t is not None))
    if not known:
        raise ModelError(
            f"{op.kind} of quantized {dtype}, which is not supported; "
            "keep it in float32 when converting"
        )
    if (limit := LIMITS.known(op.kind)) is not None:
        limit(op)

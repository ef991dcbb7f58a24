"""`OpDefinition`: what the graph knows of an operator kind, and the registry."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.base.registry import Registry
from covp.errors import ModelError, near_misses
from covp.graph.graph import Graph, Op, Tensor
from covp.graph.index_map import IndexMap, everything

Array = NDArray[Any]
Shape = tuple[int, ...]
PLAIN_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
"""Types of integers without a scale."""
TypeRule = Callable[[Op], None]
"""Check that raises ModelError if an operator does not take the types of its tensors."""


def no_macs(op: Op) -> int:
    """Return 0, for operators without multiplications worth counting."""
    return 0


def of_one_type(*dtypes: str, data: Sequence[int] | None = (0,)) -> TypeRule:
    """Return the rule that some inputs and all outputs are of one type.

    Args:
        dtypes: the types it may be; none given: int8, int16, float32 and int32.
        data: positions of the inputs that it holds for; None for all. Those left out are ignored,
            as are the ones that say how to work (axes, weights, biases).
    """
    allowed = dtypes or ("int8", "int16", "float32", "int32")

    def rule(op: Op) -> None:
        positions = range(len(op.inputs)) if data is None else data
        inputs = [t for i in positions if i < len(op.inputs) and (t := op.inputs[i]) is not None]
        tensors = [*inputs, *op.outputs]
        for tensor in tensors:
            check_type(tensor, *allowed)
        for tensor in tensors[1:]:
            if tensor.dtype != tensors[0].dtype:
                raise ModelError(
                    f"tensor {tensor.name} is {tensor.dtype} and {tensors[0].name} is "
                    f"{tensors[0].dtype}; one type is needed, convert the model again",
                    tensor=tensor.name,
                )

    return rule


def check_type(tensor: Tensor, *dtypes: str) -> None:
    """Raise ModelError for a tensor of another type."""
    if tensor.dtype.name not in dtypes:
        known = [name for name in dtypes if name != "int32"] or list(dtypes)
        raise ModelError(
            f"tensor {tensor.name} is {tensor.dtype}; "
            f"{' and '.join([', '.join(known[:-1]), known[-1]][len(known) < 2 :])} are supported",
            tensor=tensor.name,
        )


ACTIVATIONS = of_one_type()
"""The rule of most operators: the first input and the outputs."""


Domain = tuple[int | Array, int | Array]
"""The least and the largest value of an input; arrays are broadcast with it."""
Domains = Mapping[int, Domain]
"""The domain of inputs, by position."""


@dataclass(frozen=True)
class OpDefinition:
    """Shape rule, reference implementation, dependences and cost of one operator kind.

    Attributes:
        infer_shapes: the outputs' shapes from the inputs' and the attributes; raises ModelError
            where the inputs do not fit each other.
        reference: the inputs' values (None for one that is left out) to the outputs', with TFLM's
            arithmetic for int8.
        macs: multiply-accumulates as the model states them.
        types: the rule of its tensors' types, which readers apply.
        domains: the integers that have a meaning for its inputs, such as indices and lengths;
            inputs that take any value are left out.
        reads: for each output, which elements of the inputs its elements are computed from; where
            it is left out, the definition says why all of them may be.
        positional: the axes of the first output along which a result depends on its position, too:
            it is a coordinate, or compared with one.
        is_product: whether results are sums of products of its first two inputs, or of their
            differences from the zero points, so that products with a zero can be left out.
        clamps: whether its attributes' ``activation`` limits results in all its types.
    """

    infer_shapes: Callable[[Op], list[Shape]]
    reference: Callable[[Op, Sequence[Array | None]], list[Array]]
    macs: Callable[[Op], int] = no_macs
    types: TypeRule = ACTIVATIONS
    domains: Callable[[Op], Domains] = lambda op: {}
    reads: Callable[[Op], Sequence[IndexMap]] = everything
    positional: Callable[[Op], Collection[int]] = lambda op: ()
    is_product: bool = False
    clamps: bool = False


OPS: Registry[str, OpDefinition] = Registry("covp.graph.ops")
"""The definition of each operator kind; a new operator registers itself here."""


LIMITS: Registry[str, Callable[[Op], object]] = Registry("covp.graph.ops")
"""Kind of a quantized operator to what raises ModelError where its numbers, such as a scale, are
beyond its integer arithmetic; its rule of types calls it."""


def definition(kind: str) -> OpDefinition:
    """Return the definition of an operator kind.

    Raises:
        ModelError: there is none.
    """
    try:
        return OPS[kind]
    except KeyError:
        raise ModelError(f"unknown operator {kind}", hint=near_misses(kind, OPS)) from None


def macs(graph: Graph) -> int:
    """Return the multiply-accumulates of an inference."""
    return sum(definition(op.kind).macs(op) for op in graph.ops)


def ieee() -> np.errstate:
    """Silence numpy's warnings: overflow, infinity and NaN are valid results with floats."""
    return np.errstate(all="ignore")


def given(values: Sequence[Array | None], position: int) -> Array:
    """Return the value of a required input."""
    value = values[position]
    assert value is not None
    return value

"""uint8 of older files: stored values and zero points less 128, which is int8.

TFLite's arithmetic of quantized uint8 is that of int8 with other zero points, to the bit, but for
averages: those of uint8 round ties up. So the reader makes all quantized uint8 tensors int8, and a
QUANTIZE at inputs and outputs keeps uint8 for the user. Weights of uint8 mostly have a zero point;
`covp.graph.typed_convolution` subtracts it.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

import numpy as np

from covp.errors import ModelError
from covp.graph.graph import Graph, Op, Tensor

_OFFSET = 128
# kinds that take stored values for numbers
_NUMBERS = frozenset({"CAST", "GATHER_ND", "ONE_HOT", "BITWISE_XOR", "RIGHT_SHIFT"})


def shift_to_int8(tensor: Tensor) -> Tensor:
    """Return the int8 tensor of a quantized uint8 one; any other tensor itself."""
    scaled = tensor.quantization
    if tensor.dtype != np.uint8 or scaled is None:
        return tensor
    data = None if tensor.data is None else (tensor.data ^ np.uint8(_OFFSET)).view(np.int8)
    points = replace(scaled, zero_point=scaled.zero_point - np.int32(_OFFSET))
    return replace(tensor, dtype=np.dtype(np.int8), quantization=points, data=data)


def adapt(op: Op, unsigned: Container[int]) -> None:
    """Preserve what an operator does to uint8 where it treats int8 differently.

    Args:
        op: with its attributes.
        unsigned: ids of the tensors that `shift_to_int8` made.

    Raises:
        ModelError: the operator reads stored values as numbers.
    """
    changed = [t for t in op.inputs if t is not None and id(t) in unsigned]
    if changed and op.kind in _NUMBERS:
        raise ModelError(
            f"reads the quantized uint8 tensor {changed[0].name} as numbers, which is not "
            "supported; convert the model to int8"
        )
    if changed and op.kind == "AVERAGE_POOL_2D":
        op.attributes = replace(op.attributes, ties_up=True)


def keep_interface(graph: Graph, unsigned: Container[int]) -> None:
    """Insert QUANTIZE from uint8 at the graph's inputs and to uint8 at its outputs."""
    inputs, outputs = list(graph.inputs), list(graph.outputs)
    index = max((op.index for op in graph.ops), default=-1) + 1
    for position, tensor in enumerate(inputs):
        if id(tensor) in unsigned:
            inputs[position] = outer = _to_unsigned(tensor)
            tensor.name = f"{tensor.name}_int8"
            graph.ops.insert(0, Op("QUANTIZE", f"quantize_{index}", [outer], [tensor], None, index))
            index += 1
    made: dict[int, Tensor] = {}
    for position, tensor in enumerate(outputs):
        if id(tensor) in unsigned:
            if id(tensor) not in made:
                made[id(tensor)] = outer = _to_unsigned(tensor)
                tensor.name = f"{tensor.name}_int8"
                op = Op("QUANTIZE", f"quantize_{index}", [tensor], [outer], None, index)
                graph.ops.append(op)
                index += 1
            outputs[position] = made[id(tensor)]
    graph.inputs, graph.outputs = inputs, outputs


def _to_unsigned(tensor: Tensor) -> Tensor:
    scaled = tensor.quantization
    assert scaled is not None
    points = replace(scaled, zero_point=scaled.zero_point + np.int32(_OFFSET))
    return Tensor(tensor.name, tensor.shape, np.dtype(np.uint8), points)

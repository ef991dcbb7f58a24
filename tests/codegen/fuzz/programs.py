"""Many layers as one program: independent branches of a graph, some with a function after them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.graph.attributes import LeakyRelu
from covp.graph.graph import Graph, Op, Tensor

from .unusual import Unusual

_FOLLOWERS = ("RELU", "RELU6", "LEAKY_RELU", None, None)


def joined(cases: Sequence[Unusual]) -> tuple[Graph, list[NDArray[Any]]]:
    """One graph of all layers, and the values of its inputs.

    After some layers of int8 or float32 comes a RELU, RELU6 or LEAKY_RELU in the same
    quantization, which passes may fuse.
    """
    inputs: list[Tensor] = []
    outputs: list[Tensor] = []
    ops: list[Op] = []
    values: list[NDArray[Any]] = []
    for number, case in enumerate(cases):
        graph = case.graph()
        for tensor in graph.tensors():
            tensor.name = f"{tensor.name}_{number}"
        op = graph.ops[0]
        op.name, op.index = f"layer{number}", len(ops)
        ops.append(op)
        inputs += graph.inputs
        values += case.inputs()
        result = op.output
        follower = _FOLLOWERS[case.schedule % len(_FOLLOWERS)]
        if follower and result.dtype in (np.int8, np.float32) and len(op.outputs) == 1:
            after = Tensor(f"after_{number}", result.shape, result.dtype, result.quantization)
            attributes = LeakyRelu(0.125) if follower == "LEAKY_RELU" else None
            ops.append(Op(follower, f"after{number}", [result], [after], attributes, len(ops)))
            outputs.append(after)
        else:
            outputs += op.outputs
    return Graph("fuzzed", inputs, outputs, ops), values

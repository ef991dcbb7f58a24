"""int8 operators of one input: a table of 256 results, made when the code is generated."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.codegen.c_text import c_array
from covp.codegen.kernels.pointwise.each import emit_each
from covp.codegen.layer import KernelRequest, LayerCode, kernel
from covp.graph.graph import Op
from covp.graph.ops import definition


def table_of(op: Op) -> NDArray[Any]:
    """Return the reference's result for every input byte, in the order of unsigned bytes."""
    every = np.arange(256, dtype=np.uint8).view(op.input(0).dtype)
    return np.asarray(definition(op.kind).reference(op, [every])[0])


@kernel("LOGISTIC", "int8")
@kernel("LOOKUP_TABLE", "int8")
@kernel("TANH", "int8")
@kernel("GELU", "int8")
@kernel("LEAKY_RELU", "int8")
@kernel("RELU", "int8")
@kernel("RELU6", "int8")
def emit_unary_table(request: KernelRequest) -> LayerCode:
    """Look up every byte; may run in place."""
    table = c_array("table", table_of(request.op), "the result of each input, as an unsigned byte")
    return emit_each(request, "table[(uint8_t)@]", [table], schedule="table", most=8)

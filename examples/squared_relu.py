"""An operator that covp does not know, and a lookup unit for it, from outside the tree.

max(x, 0) ** 2, the activation of the Primer network, as a custom operator "SquaredRelu". On int8
the reference is TFLM's arithmetic of RELU and MUL, and the core looks up 256 results; on float32
the operator is composed of ones that covp knows. The accelerator `Lookup` fetches the table once
and turns a stream of bytes into another.

    covp run model.tflite -p riscv32 --operators examples/squared_relu.py
    covp run model.tflite -p riscv32 -a examples/squared_relu.py
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from covp.accelerator import Accelerator, Job, Limit, number, result, table, tensor
from covp.codegen.kernels.pointwise.unary_table import table_of
from covp.graph.attributes import Elementwise
from covp.graph.graph import Op, Tensor
from covp.graph.quantization import multiply_by_quantized_multiplier, quantize_multiplier
from covp.graph.user_operators import UserOperator, register_operator


def reference(op: Op, values: Sequence[Any]) -> list[Any]:
    """Stored values above the zero point, multiplied and requantized as MUL does."""
    (x,) = values
    if x.dtype == np.float32:
        return [np.maximum(x, 0) ** 2]
    source, out = op.input(0), op.output
    above = np.maximum(x.astype(np.int64) - source.zero_point, 0)
    factor = quantize_multiplier(source.scale * source.scale / out.scale)
    scaled = multiply_by_quantized_multiplier(above * above, *factor)
    return [np.clip(scaled + out.zero_point, -128, 127).astype(np.int8)]


def compose(op: Op) -> list[Op] | None:
    """Of float tensors: RELU, MUL with itself."""
    x = op.input(0)
    if x.dtype != np.float32:
        return None
    above = Tensor(f"{op.name}_above", x.shape, x.dtype)
    return [
        Op("RELU", "", [x], [above]),
        Op("MUL", "", [above, above], [op.output], Elementwise()),
    ]


register_operator(UserOperator("SquaredRelu", reference, compose=compose))


class Lookup(Accelerator):
    """int8 operators of one input as a table of 256 bytes."""

    name = "lookup"
    operators = ("SquaredRelu",)
    job = Job(
        tensor("INPUT", "int8", lambda job: job.LENGTH),
        table("TABLE", "int8", lambda job: 256, "Results in the order of unsigned bytes."),
        result("OUTPUT", "int8", lambda job: job.LENGTH),
        number("LENGTH", 1, 1 << 20),
    )

    def layer(self, match: Any) -> Op:
        """The operator of the graph: there is nothing to resolve."""
        return match.op

    def accepts(self, layer: Op) -> list[Limit]:
        """int8 only."""
        return [Limit("type", layer.input(0).dtype.name, one_of=("int8",))]

    def registers(self, layer: Op) -> Mapping[str, Any]:
        """The reference fills the table."""
        return {"TABLE": table_of(layer), "LENGTH": layer.output.size}

    def compute(self, job: Any) -> Any:
        """Look up every byte."""
        return job.TABLE[job.INPUT.view(np.uint8)]

    def macs(self, job: Any) -> int:
        """One lookup an element."""
        return int(job.LENGTH)

"""An operator that covp does not know, and a lookup unit for it, from outside the tree.

x * relu6(x + 3) / 6, as in MobileNetV3. On int8 the reference is TFLM's arithmetic, and the core
looks up 256 results; on float32 the operator is composed of ones that covp knows. The accelerator
`Lookup` fetches the table once and turns a stream of bytes into another.

    covp run model.tflite -p riscv32 --operators examples/hard_swish.py
    covp run model.tflite -p riscv32 -a examples/hard_swish.py
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from covp.accelerator import Accelerator, Job, Limit, number, result, table, tensor
from covp.codegen.kernels.unary_table import table_of
from covp.graph.attributes import Elementwise
from covp.graph.graph import Op, Tensor
from covp.graph.quantization import quantize_multiplier
from covp.graph.user_operators import UserOperator, register_operator

_INT16 = np.iinfo(np.int16)


def _saturate(value: Any) -> Any:
    return np.clip(value, _INT16.min, _INT16.max)


def _high_multiply(a: Any, b: Any) -> Any:
    """gemmlowp's SaturatingRoundingDoublingHighMul on int16."""
    product = a * b
    nudge = np.where(product >= 0, 1 << 14, 1 - (1 << 14))
    return _saturate(np.trunc((product + nudge) / (1 << 15)).astype(np.int64))


def _divide(x: Any, exponent: int) -> Any:
    """gemmlowp's RoundingDivideByPOT."""
    mask = (1 << exponent) - 1
    return (x >> exponent) + ((x & mask) > (mask >> 1) + (x < 0))


def _int16_multiplier(real: float) -> tuple[int, int]:
    multiplier, shift = quantize_multiplier(real)
    return min((multiplier + (1 << 15)) >> 16, _INT16.max), shift


def reference(op: Op, values: Sequence[Any]) -> list[Any]:
    """tensorflow/lite/kernels/internal/reference/hard_swish.h, int8 and float32."""
    (x,) = values
    if x.dtype == np.float32:
        return [(x * np.clip(x + np.float32(3), 0, 6) / np.float32(6)).astype(np.float32)]
    source, out = op.input(0), op.output
    hires_scale = np.float32(1 / 128) * np.float32(source.scale)
    out_multiplier, out_shift = _int16_multiplier(float(hires_scale / np.float32(out.scale)))
    relu_multiplier, relu_shift = _int16_multiplier(float(hires_scale / np.float32(3 / 32768)))
    hires = (x.astype(np.int64) - source.zero_point) << 7
    scaled = _high_multiply(hires, out_multiplier)
    relu = _saturate(hires << (relu_shift - 1)) if relu_shift > 0 else hires
    relu = _high_multiply(relu, relu_multiplier)
    relu = _saturate(relu << 1) if relu_shift > 0 else relu
    relu = _divide(relu, -relu_shift) if relu_shift < 0 else relu
    relu = (relu + (1 << 15)) >> 1
    product = np.trunc(relu * scaled / (1 << 15)).astype(np.int64)
    result = _divide(product, -out_shift) + out.zero_point
    return [np.clip(result, -128, 127).astype(np.int8)]


def compose(op: Op) -> list[Op] | None:
    """Of float tensors: ADD 3 with RELU6, MUL by x / 6."""
    if op.input(0).dtype != np.float32:
        return None
    x, single = op.input(0), np.dtype(np.float32)
    three, sixth = (
        Tensor(f"{op.name}_{name}", (1,), single, None, np.array([value], np.float32))
        for name, value in (("three", 3), ("sixth", 1 / 6))
    )
    gate, slope = (Tensor(f"{op.name}_{name}", x.shape, single) for name in ("gate", "slope"))
    return [
        Op("ADD", "", [x, three], [gate], Elementwise("relu6")),
        Op("MUL", "", [x, sixth], [slope], Elementwise()),
        Op("MUL", "", [gate, slope], [op.output], Elementwise()),
    ]


register_operator(UserOperator("HARD_SWISH", reference, compose=compose))


class Lookup(Accelerator):
    """int8 operators of one input as a table of 256 bytes."""

    name = "lookup"
    operators = ("HARD_SWISH",)
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

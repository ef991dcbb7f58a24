"""Cycles that a core needs for an operator: a rough estimate, to choose where a layer runs.

Measured on no silicon: the generated kernels, tuned for zig 0.17.0, were run on the virtual device
with the operators of the four MLPerf Tiny models, and ``a * work + b * results + c`` was fitted to
the estimated cycles of the cores' timing models (RV32IMC, Cortex-M0+, Cortex-M4). Layers of usual
sizes lie within a factor of two of it, most within a quarter. Schedules are not part of it, nor the
compiler; float32 is the roughest.
"""

from __future__ import annotations

from dataclasses import dataclass

from covp.chip.cores import Core
from covp.graph.graph import Op
from covp.graph.ops import OPS


@dataclass(frozen=True)
class _Cost:
    """Cycles of each multiply-accumulate (or element in a pooling window), each result, once."""

    work: float
    result: float
    once: float = 40


_PLAIN = {
    "CONV_2D": _Cost(2.2, 30),
    "DEPTHWISE_CONV_2D": _Cost(3, 15),
    "FULLY_CONNECTED": _Cost(3.3, 23),
    "POOL": _Cost(2.4, 3),
    "ELEMENTWISE": _Cost(0, 15),
    "SOFTMAX": _Cost(0, 43, 195),
    "REQUANTIZE": _Cost(0, 19),
    "COPY": _Cost(0, 3),
    "FLOAT": _Cost(110, 60),
}
"""Cores that multiply 32 by 32 bits to 64, without SIMD: fitted on RV32IMC."""

_SMALL = {
    "CONV_2D": _Cost(4.4, 75),
    "DEPTHWISE_CONV_2D": _Cost(9, 30),
    "FULLY_CONNECTED": _Cost(5.5, 50),
    "POOL": _Cost(6.2, 10),
    "ELEMENTWISE": _Cost(0, 26),
    "SOFTMAX": _Cost(0, 105, 470),
    "REQUANTIZE": _Cost(0, 49),
    "COPY": _Cost(0, 5),
    "FLOAT": _Cost(170, 90),
}
"""Cores that multiply to 32 bits: fitted on a Cortex-M0+."""

_DSP = {
    "CONV_2D": _Cost(1.6, 14),
    "DEPTHWISE_CONV_2D": _Cost(2, 11),
    "FULLY_CONNECTED": _Cost(1.8, 15),
    "POOL": _Cost(3.2, 5),
    "ELEMENTWISE": _Cost(0, 8),
    "SOFTMAX": _Cost(0, 32, 125),
    "REQUANTIZE": _Cost(0, 9.5),
    "COPY": _Cost(0, 2),
    "FLOAT": _Cost(110, 60),
}
"""Cores with Arm's DSP instructions: fitted on a Cortex-M4."""

_FLOAT_UNIT = _Cost(7, 10)
"""float32 on a core with an FPU; without one see FLOAT."""

_ROWS = {
    "CONV_2D": "CONV_2D",
    "DEPTHWISE_CONV_2D": "DEPTHWISE_CONV_2D",
    "FULLY_CONNECTED": "FULLY_CONNECTED",
    "AVERAGE_POOL_2D": "POOL",
    "MAX_POOL_2D": "POOL",
    "MEAN": "POOL",
    "ADD": "ELEMENTWISE",
    "SUB": "ELEMENTWISE",
    "MUL": "ELEMENTWISE",
    "QUANTIZE": "ELEMENTWISE",
    "DEQUANTIZE": "ELEMENTWISE",
    "SOFTMAX": "SOFTMAX",
    "CONCATENATION": "COPY",
    "LEAKY_RELU": "COPY",
    "LOGISTIC": "COPY",
    "PAD": "COPY",
    "PADV2": "COPY",
    "RELU": "COPY",
    "RELU6": "COPY",
    "RESIZE_NEAREST_NEIGHBOR": "COPY",
    "SPLIT": "COPY",
    "STRIDED_SLICE": "COPY",
    "TANH": "COPY",
    "TRANSPOSE": "COPY",
}
_FREE = frozenset({"RESHAPE"})


def core_cycles(op: Op, core: Core | None) -> int | None:
    """The cycles of an operator on a core, estimated.

    Args:
        op: as it is after all passes.
        core: None stands for a plain one.

    Returns:
        None where nothing is known of the operator's kind: one that a graph pass made, or a user's.
    """
    if op.kind in _FREE:
        return 0
    if op.kind not in _ROWS:
        return None
    cost = _cost(op, core)
    results = sum(tensor.size for tensor in op.outputs)
    return round(cost.work * _work(op) + cost.result * results + cost.once)


def requantize_cycles(results: int, core: Core | None) -> int:
    """The cycles that a core needs to turn int32 sums of an accelerator into int8, estimated.

    Args:
        results: how many there are.
        core: None stands for a plain one.
    """
    return round(_table(core)["REQUANTIZE"].result * results)


def _cost(op: Op, core: Core | None) -> _Cost:
    row = _ROWS[op.kind]
    if op.output.dtype.kind == "f" and row != "COPY":
        return _FLOAT_UNIT if core is not None and core.has("fpu") else _table(core)["FLOAT"]
    return _table(core)[row]


def _table(core: Core | None) -> dict[str, _Cost]:
    if core is None:
        return _PLAIN
    if core.has("dsp"):
        return _DSP
    return _PLAIN if core.has("mull") else _SMALL


def _work(op: Op) -> int:
    """Multiply-accumulates, or the elements that a pooling's windows see."""
    if _ROWS[op.kind] == "POOL":
        filter_size = getattr(op.attributes, "filter", None)
        if filter_size is not None:
            return op.output.size * int(filter_size[0]) * int(filter_size[1])
        return op.input(0).size
    return OPS[op.kind].macs(op)

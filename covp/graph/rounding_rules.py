"""The differences from other libraries that covp documents, one rule each.

`covp run --check source` names the rule that allows a difference; docs/accuracy.md prints them all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from covp.graph.graph import Op, Tensor
from covp.graph.quantization import activation_range

Array = NDArray[Any]
Oracle = Literal["onnxruntime", "LiteRT", "covp"]


LARGE = 2.0**124
"""Least large float: products of larger numbers and small factors overflow on the way."""


@dataclass(frozen=True)
class RoundingRule:
    """A documented difference from another library's results, and its reason.

    Attributes:
        oracle: whose results are compared; "covp": its own of the nodes before they were fused.
        name: short, unique.
        kinds: operators between two known tensors, of which there is at least one; empty: any.
        beside: operators that may stand there as well.
        dtypes: of what the operators compute, separated by commas; empty: any.
        steps: that an integer result may differ by; infinite: any number.
        tie: how many steps beyond half-way the exact value may lie from the result; None: it is
            not looked at.
        share: of the tensor's largest magnitude, that a float result may differ by.
        nan: whether covp's result may be NaN where the other is not.
        infinite: whether one result may be infinite where the other is at least `LARGE`, of the
            same sign.
        at_zero: whether an integer result may be anything where covp's stands for zero.
        theirs: what the library computes of an operator's inputs instead; steps count from it, too.
        nearby: whether elements may be those that a Resize in less precise places would take.
        reason: for people.
    """

    oracle: Oracle
    name: str
    kinds: str
    dtypes: str
    steps: float
    reason: str
    tie: float | None = None
    beside: str = ""
    share: float = 0.0
    nan: bool = False
    infinite: bool = False
    at_zero: bool = False
    theirs: Callable[[Op, Sequence[Array]], Array] | None = None
    nearby: bool = False

    def is_of(self, kinds: frozenset[str], dtype: str) -> bool:
        """Return whether the rule is for operators of these kinds that compute this type."""
        if self.dtypes and dtype not in self.dtypes.split(", "):
            return False
        own = frozenset(self.kinds.split())
        return not own or (bool(kinds & own) and kinds <= own.union(self.beside.split()))

    def allows(
        self,
        got: Array,
        wanted: Array,
        tensor: Tensor,
        exact: Array | None,
        theirs: Sequence[Array] = (),
    ) -> bool:
        """Return whether the rule allows every difference.

        Args:
            got, wanted: covp's values and the oracle's.
            tensor: whose values they are.
            exact: real values before they were rounded, where they are known.
            theirs: other values that `RoundingRule.theirs` or `RoundingRule.nearby` allow,
                each element of its own.
        """
        if wanted.dtype.kind == "f":
            largest = float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0))
            with np.errstate(invalid="ignore"):
                near = np.abs(got.astype(np.float64) - wanted) <= self.share * largest
            same = (got == wanted) | (np.isnan(got) & (np.isnan(wanted) | self.nan))
            ends = (np.isinf(got) | np.isinf(wanted)) & (got * np.sign(wanted) >= LARGE)
            ends &= (wanted * np.sign(got) >= LARGE) & self.infinite
            for other in theirs:
                same |= other == wanted
            return bool((near | same | ends).all())
        away = np.abs(got.astype(np.int64) - wanted)
        for other in theirs:
            away = np.minimum(away, np.abs(other.astype(np.int64) - wanted))
        if self.at_zero:
            away = away[got != tensor.zero_point]
        if away.max(initial=0) > self.steps:
            return False
        if self.tie is None or exact is None or tensor.quantization is None:
            return True
        info = np.iinfo(got.dtype)
        level = exact.astype(np.float64) / np.float64(tensor.scale) + tensor.zero_point
        beside = np.abs(np.clip(level, info.min, info.max) - got)[got != wanted]
        return bool((beside <= 0.5 + self.tie).all())


def _sum_of_bytes(op: Op, inputs: Sequence[Array]) -> Array:
    """Compute SUM of int8 as if input and output bytes were uint8; zero points stay signed."""
    source, out = op.input(0), op.output
    total = inputs[0].view(np.uint8).sum(axis=op.attributes.axes, dtype=np.int64).reshape(out.shape)
    total -= source.zero_point * (source.size // out.size)
    levels = np.rint(total * (source.scale / out.scale)) + out.zero_point
    return np.asarray(np.clip(levels, 0, 255).astype(np.uint8).view(np.int8))


def _raw_bytes(op: Op, inputs: Sequence[Array]) -> Array:
    return np.concatenate(inputs, axis=op.attributes.axis)


def _steps(tensor: Tensor) -> Array:
    """Return the scales of a quantized tensor in double precision."""
    assert tensor.quantization is not None
    return tensor.quantization.scale.astype(np.float64)


def _cast_to_32_bits(op: Op, inputs: Sequence[Array]) -> Array:
    """Compute int16 FULLY_CONNECTED, casting scaled sums to int32 as this machine casts doubles."""
    x, weights, *bias = (np.asarray(values, np.float64) for values in inputs)
    sums = x.reshape(-1, weights.shape[1]) @ weights.T + sum(bias)
    steps = [_steps(tensor) for tensor in (op.input(0), op.input(1), op.output)]
    with np.errstate(invalid="ignore"):
        levels = np.rint(sums * (steps[0] * steps[1] / steps[2])).astype(np.int32)
    limits = activation_range(op.attributes.activation, op.output.scale, 0, op.output.dtype)
    return np.asarray(np.clip(levels, *limits).astype(np.int16).reshape(op.output.shape))


_SUMS = "CONV_2D DEPTHWISE_CONV_2D CONV_ND FULLY_CONNECTED BATCH_MATMUL"
_CLAMPS = "RELU RELU6 RELU_N1_TO_1 RELU_0_TO_1 CLIP MINIMUM MAXIMUM"
SUMS, CLAMPS = frozenset(_SUMS.split()), frozenset(_CLAMPS.split())
ANY = math.inf
DYNAMIC = "float32 of int8"
"""Entry of `RoundingRule.dtypes` for floats in a model whose weights are int8."""

_BOTH: tuple[Oracle, ...] = ("onnxruntime", "LiteRT")
RULES: tuple[RoundingRule, ...] = (
    RoundingRule(
        "onnxruntime", "integer sums", f"{_SUMS} MEAN SUM", "int8", 1,
        "integer sums are exact and rounded once; floats are rounded at each addition",
        tie=2.0**-8, beside=f"ADD MUL {_CLAMPS}",
    ),
    RoundingRule(
        "onnxruntime", "float sums", _SUMS, "float32", 1,
        "float32 products are added in another order", tie=2.0**-8, share=1e-4,
        beside=f"ADD MUL {_CLAMPS}",
    ),
    RoundingRule(
        "onnxruntime", "one factor", "ADD MUL AVERAGE_POOL_2D AVERAGE_POOL", "int8", 1,
        "onnxruntime's own QLinearAdd, QLinearMul and QLinearAveragePool, which it makes of the "
        "pairs by default, join the scales to factors and round ties by them", tie=2.0**-12,
    ),
    RoundingRule(
        "onnxruntime", "whole steps", "SOFTMAX", "int8", 1,
        "onnxruntime's own QLinearSoftmax, which it makes of the pairs by default, takes the whole "
        "part of 1 / scale", tie=1.0,
    ),
    RoundingRule(
        "onnxruntime", "functions", "LOOKUP_TABLE LOGISTIC TANH EXP ERF GELU ELU SELU MISH",
        "int8", 1, "another library's last bit decides a tie in the table", tie=2.0**-12,
        beside="MUL ADD DIV",
    ),
    RoundingRule(
        "onnxruntime", "nearest in float32", "GATHER", "", 0,
        "onnxruntime computes a Resize's places in float32 and may take the other one of two "
        "elements that are as near as that tells; places are in double precision here, as in "
        "ONNX's own reference", nearby=True,
    ),
    *(
        RoundingRule(
            oracle, "a NaN among others",
            "REDUCE_MAX REDUCE_MIN MAX_POOL_2D MAX_POOL MAXIMUM MINIMUM HARDMAX", "float32", 0,
            "its place decides there whether it counts; here it does, as in numpy", nan=True,
        )
        for oracle in _BOTH
    ),
    RoundingRule(
        "onnxruntime", "no upper limit", "RELU", "float32", 0,
        "a Clip at 0 whose upper limit is missing is a RELU, which keeps infinity; onnxruntime "
        "takes the largest number for the limit", infinite=True,
    ),
    RoundingRule(
        "LiteRT", "infinities", "HARD_SWISH DIV SUB ADD MUL MAX_POOL_2D AVERAGE_POOL_2D", "float32",
        0, "LiteRT clamps infinities to the largest number, and HARD_SWISH overflows",
        infinite=True,
    ),
    RoundingRule(
        "LiteRT", "rounded twice", "FULLY_CONNECTED", "int8, int16", 1,
        "TFLM rounds a high multiplication, then a shift; LiteRT the whole product, once. Of int16 "
        "TFLM takes 15 bits of the multiplier where the bias is int64 (2 to 20 % of the values "
        "differ), and with one of int32 LiteRT 2.3 rounds twice as well (0 to 1 %)",
    ),
    RoundingRule(
        "LiteRT", "beyond 32 bits", "FULLY_CONNECTED", "int16", 1,
        "with a bias of int64 a scaled sum may be beyond 32 bits before it is limited: TFLM wraps "
        "it, LiteRT casts a double, which is undefined in C++", theirs=_cast_to_32_bits,
    ),
    RoundingRule(
        "LiteRT", "double precision", "MUL", "int16", 1,
        "TFLM has the factor in double precision, LiteRT in single: 1 of 5,000 values differs",
    ),
    RoundingRule(
        "LiteRT", "half written", "SUM", "int16", ANY,
        "LiteRT 2.3 sums bytes and writes one for each value: half of its result is never written, "
        "so nothing bounds it",
    ),
    RoundingRule(
        "LiteRT", "sums of bytes", "SUM", "int8", 1,
        "LiteRT's reference kernel of version 2.3 takes int8 for uint8 in what it reads, clamps "
        "and writes: 256 steps more for each negative value", theirs=_sum_of_bytes,
    ),
    RoundingRule(
        "LiteRT", "division", "DIV", "int8", 1,
        "a quotient below half a step is 0; LiteRT shifts by 32 bits and more there, which is "
        "undefined in C; it stops at a divisor of 0, where covp gives an end of the range",
        at_zero=True,
    ),
    RoundingRule(
        "LiteRT", "fixed point", "LOGISTIC TANH", "int8", 1,
        "TFLM computes in fixed point, LiteRT has a table of the float function",
    ),
    RoundingRule(
        "LiteRT", "raw bytes", "CONCATENATION", "int8", 0,
        "covp rescales inputs of other scales; LiteRT refuses such a file or copies the bytes",
        theirs=_raw_bytes,
    ),
    RoundingRule(
        "LiteRT", "dynamic range", f"{_SUMS} SVDF UNIDIRECTIONAL_SEQUENCE_LSTM", DYNAMIC, 0,
        "covp has int8 weights under float activations as float32, TFLM rejects them; LiteRT "
        "quantizes activations: 0.1 to 2 % of the results' range were measured",
        share=0.05,
    ),
)  # fmt: skip
"""All rules, in the order in which they are tried."""
FUSED = (
    RoundingRule(
        "covp", "soft maxima", "SOFTMAX", "int8", 1, "see 'whole steps'", 1.0, beside=_CLAMPS
    ),
    RoundingRule(
        "covp", "ties", "", "", 1, "float32 and integers round a tie each in their way", 2.0**-8
    ),
)
"""Differences allowed between integer operators and the float operators that they replace."""


def rules_of(oracle: Oracle) -> list[RoundingRule]:
    """Return the rules that are about a library."""
    return [rule for rule in RULES if rule.oracle == oracle]

"""`Arithmetic`: how an operator computes, found once: what it stores and how sums are rounded.

The one place that knows which rule an operator follows. References round by `Arithmetic.finish`
and `by_rule`, kernels are registered for an `ArithmeticPattern` of arithmetics, and
`covp.codegen.kernels.requantize.finisher` has the rules in C.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from covp.errors import ModelError
from covp.graph.float_scaling import rescale
from covp.graph.graph import Graph, Op, Rounding, Tensor
from covp.graph.quantization import (
    MOST_REDUCED_SHIFT,
    MOST_SHIFT,
    multiply_by_quantized_multiplier,
    multiply_by_reduced_multiplier,
    quantize_multiplier,
)

Array = NDArray[Any]
SumType = type[np.int32 | np.int64]
Rule = Literal["tflm", "reduced", "half even", "float", "wraps"]
"""Rule by which sums become outputs: TFLM's two roundings; its one with 16 bits of the multiplier,
for sums of 64 bits; onnxruntime's product in float32; floats; integers modulo their size."""
_SUMS = ("CONV_2D", "CONV_ND", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV")
_OWNERS = {"tflm": "TFLite Micro's", "litert": "LiteRT's", "onnxruntime": "onnxruntime's"}


@dataclass(frozen=True)
class ArithmeticPattern:
    """The arithmetics that a kernel implements.

    Attributes:
        stored: dtype of the first input.
        weights: "int4" where a kernel unpacks two from a byte; None: any.
        rule: None: any.
    """

    stored: str
    weights: str | None = None
    rule: Rule | None = None


@dataclass(frozen=True, eq=False)
class Scaling:
    """The numbers that turn sums into stored outputs.

    Attributes:
        multiplier, shift: int32, one per output channel; shift is positive to the left.
        zero_point: of the output.
        clamp: lowest and highest output, in stored units.
        factors: float32, one per output channel: what multiplier and shift stand for where the rule
            is "half even".
    """

    multiplier: NDArray[np.int32]
    shift: NDArray[np.int32]
    zero_point: int
    clamp: tuple[int, int]
    factors: NDArray[np.float32] | None = None


@dataclass(frozen=True)
class Arithmetic:
    """The arithmetic of one operator.

    Attributes:
        stored, result: dtypes of the first input and of the output.
        weights: dtype of the second input, "int4" where its values fit four bits; None without one.
        rule: of rounding.
        text: whose results they are, such as "TFLite Micro's"; empty where nothing is quantized.
    """

    stored: str
    result: str
    weights: str | None
    rule: Rule
    text: str = ""

    @staticmethod
    def of(op: Op) -> Arithmetic:
        """Return the arithmetic of an operator."""
        source, result = _source(op), op.output
        second = op.inputs[1] if len(op.inputs) > 1 else None
        packed = second is not None and second.bits == 4
        rule, owner = _rule(op), str(op.rounding.library)
        if op.kind == "UNIDIRECTIONAL_SEQUENCE_LSTM" and result.dtype == np.int8:
            owner = "litert"  # docs/accuracy.md says why
        return Arithmetic(
            source.dtype.name,
            result.dtype.name,
            "int4" if packed else None if second is None else second.dtype.name,
            rule,
            "" if rule in ("float", "wraps") else _OWNERS[owner],
        )

    @property
    def sum_type(self) -> SumType:
        """The type in which products are summed."""
        return np.int64 if self.rule == "reduced" else np.int32

    @property
    def most_shift(self) -> int:
        """The largest shift to the left that a multiplier may have."""
        return MOST_REDUCED_SHIFT if self.rule == "reduced" else MOST_SHIFT

    def patterns(self) -> Iterator[ArithmeticPattern]:
        """Yield the patterns that fit, the narrowest first."""
        if self.stored == "int8" and self.weights == "int4":
            yield ArithmeticPattern(self.stored, weights="int4")
        if self.rule in ("half even", "wraps"):
            yield ArithmeticPattern(self.stored, rule=self.rule)
        yield ArithmeticPattern(self.stored)

    def scaling(
        self,
        op: Op,
        fixed: Sequence[tuple[int, int]],
        single: ArrayLike,
        clamp: tuple[int, int],
    ) -> Scaling:
        """Return the numbers of a layer.

        Args:
            op: the layer.
            fixed: per channel multiplier and shift in TFLM's arithmetic.
            single: per channel the factor in onnxruntime's.
            clamp: of the output.

        Raises:
            ModelError: a factor is too large for the arithmetic.
        """
        factors: NDArray[np.float32] | None = None
        if self.rule == "half even":
            factors = np.asarray(single, np.float32)
            fixed = [quantize_multiplier(float(factor)) for factor in factors]
        pairs = np.array(fixed, np.int32)
        largest = int(pairs[:, 1].max(initial=0))
        if largest > self.most_shift:
            raise ModelError(
                f"{op.name}: its scales ask for a factor of 2**{largest - 1} and more, which "
                f"TFLM's arithmetic of {self.stored} does not have; calibrate the model again"
            )
        return Scaling(pairs[:, 0], pairs[:, 1], op.output.zero_point, clamp, factors)

    def finish(self, sums: Array, scaling: Scaling) -> Array:
        """Scale sums, channels last, to stored units without narrowing; 32-bit sums wrap."""
        pair = scaling.multiplier, scaling.shift
        if self.rule == "half even":
            assert scaling.factors is not None
            scaled = rescale(sums.astype(np.int64).astype(np.int32), scaling.factors)
        elif self.rule == "reduced":
            scaled = multiply_by_reduced_multiplier(sums, *pair)
        else:
            scaled = multiply_by_quantized_multiplier(sums, *pair)
        return np.clip(scaled + scaling.zero_point, *scaling.clamp)


INT8 = Arithmetic("int8", "int8", "int8", "tflm", _OWNERS["tflm"])
"""TFLite Micro's int8 arithmetic, which accelerators follow."""


def _rule(op: Op) -> Rule:
    """Return the rounding rule: TFLM's int16 sums have 64 bits if the bias has, or is missing.

    Sources: micro/kernels/conv.cc, depthwise_conv.cc, fully_connected.cc, batch_matmul.cc.
    """
    source = _source(op)
    if source.quantization is None and op.output.quantization is None:
        return "float" if source.dtype.kind == "f" else "wraps"
    if op.rounding.library == "onnxruntime":
        return "half even"
    if source.dtype == np.int16 and op.kind in (*_SUMS, "BATCH_MATMUL"):
        bias = op.inputs[2] if len(op.inputs) > 2 else None
        return "reduced" if bias is None or bias.dtype == np.int64 else "tflm"
    return "tflm"


def _source(op: Op) -> Tensor:
    return next((tensor for tensor in op.inputs if tensor is not None), op.output)


Reference = Callable[[Op, Sequence[Array | None]], list[Array]]


def by_rule(usual: Reference, half_even: Reference) -> Reference:
    """Return a reference that is another algorithm where ties go to even."""

    def reference(op: Op, values: Sequence[Array | None]) -> list[Array]:
        chosen = half_even if _rule(op) == "half even" else usual
        return chosen(op, values)

    return reference


def whose(graph: Graph) -> str:
    """Return the libraries whose arithmetic a network follows: "TFLite Micro's and LiteRT's".

    Empty where nothing is quantized.
    """
    found = {Arithmetic.of(op).text for op in graph.ops}
    if is_half_even(graph):  # of an ONNX file; what states no library moves bytes only
        found.discard(_OWNERS["tflm"])
    return " and ".join(owner for owner in _OWNERS.values() if owner in found)


def is_half_even(graph: Graph) -> bool:
    """Return whether a network's ties go to even, as onnxruntime's do and TFLite's do not."""
    return any(op.rounding.library == "onnxruntime" for op in graph.ops)


def is_tflm(op: Op) -> bool:
    """Return whether everything is rounded as in TFLite Micro."""
    return op.rounding == Rounding()

"""The requantizer of a layer: which rule, and how large its sums can be."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.chip.cores import Core
from covp.codegen.kernels.requantize.requantize import Requantizer, TflmRequantizer
from covp.codegen.kernels.requantize.requantize_half_even import HalfEvenRequantizer
from covp.codegen.kernels.requantize.requantize_int16 import ReducedRequantizer, Requantizer16
from covp.graph.arithmetic import Arithmetic, Scaling
from covp.graph.typed_convolution import QuantizedConv2D


def finisher(core: Core, arithmetic: Arithmetic, scaling: Scaling, bound: int) -> Requantizer:
    """Return the C by which sums become outputs: `Arithmetic.finish` on a core.

    Args:
        core: that it runs on.
        arithmetic, scaling: of the layer.
        bound: no sum is larger than this in magnitude.
    """
    if arithmetic.rule == "half even":
        return HalfEvenRequantizer(core, scaling, bound)
    if arithmetic.rule == "reduced":
        return ReducedRequantizer(core, scaling, bound)
    if arithmetic.result == "int16":
        return Requantizer16(core, scaling, bound)
    return TflmRequantizer(core, scaling, bound)


def layer_finisher(core: Core, problem: QuantizedConv2D) -> tuple[NDArray[Any], Requantizer]:
    """Return a convolution's bias, the input's zero point folded in, and its finisher."""
    bias = problem.bias - problem.input_zero_point * _by_channel(problem).sum(axis=1)
    most = 1 << 15 if problem.arithmetic.stored == "int16" else 128
    bound = sum_bound(problem, bias, most)
    requantizer = finisher(core, problem.arithmetic, problem.scaling, bound)
    return bias.astype(problem.bias.dtype), requantizer


def sum_bound(problem: QuantizedConv2D, bias: NDArray[Any], most: int) -> int:
    """Return a bound on sums of products with inputs up to ``most``, proved from the weights."""
    magnitudes = np.abs(_by_channel(problem)).sum(axis=1)
    # Python's integers: a bias may be any int64
    return max(abs(int(b)) + most * int(m) for b, m in zip(bias, magnitudes, strict=True))


def _by_channel(problem: QuantizedConv2D) -> NDArray[np.int64]:
    weights = np.moveaxis(problem.weights.astype(np.int64), 2 if problem.depthwise else 0, 0)
    return weights.reshape(problem.out_channels, -1)

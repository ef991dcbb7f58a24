"""Requantization inside attention: sums to codes of scores, sums to outputs.

A score's code, 127 - score after the MUL if there is one, comes from a table. On cores without a
saturating instruction the table spans all that the sums can reach, where that is not too much, and
takes the place of the clamp.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from covp.chip.cores import Core
from covp.codegen.c_text import c_array
from covp.codegen.kernels.clamp import clamp, clamp_includes
from covp.codegen.kernels.requantize.finisher import finisher
from covp.codegen.kernels.requantize.requantize import Requantizer
from covp.graph.arithmetic import Arithmetic
from covp.graph.graph import Op
from covp.graph.ops import definition
from covp.graph.ops.matmul import matmul_scaling
from covp.graph.ops.tiled_attention import TiledAttention
from covp.graph.quantization import multiply_by_quantized_multiplier

_LONGEST_TABLE = 4096
_MARGIN = 2  # what the proved form may give beyond the last step


def product_requantizer(core: Core, op: Op, depth: int) -> Requantizer:
    """Return the requantizer of an int8 BATCH_MATMUL with ``depth`` products per sum."""
    bound = depth * (128 + abs(op.input(0).zero_point)) * (128 + abs(op.input(1).zero_point))
    return finisher(core, Arithmetic.of(op), matmul_scaling(op), bound)


def mix_text(core: Core, attention: TiledAttention) -> str:
    """Return C text of START_mix and ``to_mix(sum, factor)``."""
    return _requantizer_text(product_requantizer(core, attention.mix, attention.shape.keys), "mix")


def score_text(core: Core, attention: TiledAttention) -> str:
    """Return C text of START_scores, ``to_scores(sum, factor)`` and ``CODE(score)``."""
    requantizer = product_requantizer(core, attention.scores, attention.shape.depth)
    low, high = _reach(requantizer)
    if clamp_includes(core, -128, 127) or high - low > _LONGEST_TABLE:
        low, high = -128, 127
        text = _requantizer_text(requantizer, "scores", _middle(128) if attention.scale else "")
        if attention.scale is None:
            return text + "#define CODE(score) (uint8_t)(127 - (score))\n"
    else:
        wide = replace(requantizer, scaling=replace(requantizer.scaling, clamp=(low, high)))
        text = _requantizer_text(wide, "scores", _middle(_MARGIN - low))
        text = text.replace(f"    {clamp(core, 'result', low, high)}\n", "")
        low, high = low - _MARGIN, high + _MARGIN
    table = _codes(attention, np.clip(np.arange(low, high + 1), -128, 127))
    note = f"127 less the scaled score, from score {low} on"
    return c_array("code_of_score", table, note) + text + "#define CODE(score) middle[score]\n"


def _reach(requantizer: Requantizer) -> tuple[int, int]:
    """Return the least and the largest result without a clamp."""
    ends = np.array([-requantizer.bound, requantizer.bound])
    scaling = requantizer.scaling
    scaled = multiply_by_quantized_multiplier(ends, scaling.multiplier, scaling.shift)
    low, high = (scaled + scaling.zero_point).tolist()
    return min(low, -128), max(high, 127)


def _codes(attention: TiledAttention, scores: NDArray[np.int64]) -> NDArray[np.uint8]:
    scaled = scores.astype(np.int8)
    if attention.scale is not None:
        factor = attention.scale.input(1).data
        scaled = definition("MUL").reference(attention.scale, [scaled, factor])[0].reshape(-1)
    return (127 - scaled.astype(np.int64)).astype(np.uint8)


def _middle(zero: int) -> str:
    """Return the place of score 0 in the table, which is read with negative indices too."""
    return f'; const uint8_t *middle = code_of_score + {zero}; __asm__("" : "+r"(middle))'


def _requantizer_text(requantizer: Requantizer, name: str, more: str = "") -> str:
    """Return C text of ``to_<name>(sum, factor)`` and of START_<name>, which declares the factor.

    It is an opaque variable: a compiler that knows it makes four instructions of what is one with a
    register.
    """
    factor, *others = (str(int(column[0])) for column in requantizer.columns())
    text = requantizer.function()
    for helper in ("requantize", "high_multiply"):
        text = text.replace(f"{helper}(", f"{helper}_{name}(")
    arguments = ", ".join(["sum", "factor", *others])
    return (
        f'#define START_{name} int32_t factor = {factor}; __asm__("" : "+r"(factor)){more}\n'
        f"{text}\nstatic inline int32_t to_{name}(int32_t sum, int32_t factor)\n{{\n"
        f"    return requantize_{name}({arguments});\n}}\n"
    )

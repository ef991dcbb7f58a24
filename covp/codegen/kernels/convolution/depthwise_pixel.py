"""int8 DEPTHWISE_CONV_2D pixel by pixel: for outputs of few pixels, such as those of a stream.

A plane per channel pays where many outputs share it. One output reads each value once, so this
kernel reads the input as it lies: all taps of a channel, then the next channel. With DSP it takes
the words of four channels: bytes 0 and 2, and 1 and 3, widened to halfwords, of which SMLABB and
SMLATT multiply one each.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from covp.chip.cores import Core
from covp.codegen.c_text import c_array, indent
from covp.codegen.intrinsics import MAC, SMLAD
from covp.codegen.kernels.compiler_barrier import barrier_macros, compiler_barrier
from covp.codegen.kernels.operands import Operands
from covp.codegen.kernels.requantize.finisher import layer_finisher
from covp.codegen.layer import KernelRequest, LayerCode
from covp.graph.typed_convolution import QuantizedConv2D

_MOST_TAPS = 32
"""Each tap is written out."""
_LANES = 4


def fits_pixels(problem: QuantizedConv2D) -> bool:
    """Return whether the kernel fits a layer: no padding, one filter per channel, few taps."""
    taps = problem.kernel[0] * problem.kernel[1]
    return not problem.padding.any and problem.depth_multiplier == 1 and taps <= _MOST_TAPS


class DepthwisePixelCode:
    """C text of one layer."""

    def __init__(self, request: KernelRequest, problem: QuantizedConv2D) -> None:
        self.request, self.problem = request, problem
        self.bias, self.requantizer = layer_finisher(request.core, problem)
        self.lanes = _lanes(problem, request.core)

    def layer(self, schedule: str) -> LayerCode:
        """Return the whole layer; ``schedule`` is for reports."""
        includes = [
            SMLAD.definitions if self.lanes > 1 else "",
            self.requantizer.includes,
            barrier_macros([self.lanes]),
        ]
        functions = [self.requantizer.function(), self._pixel()]
        operands = Operands.of(self.request.op)
        arguments = Operands(operands.arguments, self._constants())
        return arguments.layer(
            self.request, self._body(), functions, list(dict.fromkeys(includes)), schedule=schedule
        )

    @property
    def _taps(self) -> list[int]:
        """Offsets of the taps, in elements from the first."""
        p = self.problem
        return [
            (y * p.dilation[0] * p.in_width + x * p.dilation[1]) * p.in_channels
            for y in range(p.kernel[0])
            for x in range(p.kernel[1])
        ]

    def _constants(self) -> str:
        groups = self.problem.out_channels // self.lanes
        filters = self.problem.weights.reshape(len(self._taps), groups, self.lanes)
        columns: NDArray[np.int32] = np.stack(
            [self.bias, *self.requantizer.columns()], axis=1
        ).astype(np.int32)
        return c_array(
            "filters",
            np.ascontiguousarray(filters.transpose(1, 0, 2)),
            f"by {self.lanes} channels, then tap",
        ) + c_array("table", columns, "per channel: bias, requantization")

    def _pixel(self) -> str:
        """Return C text of ``pixel(input at the first tap, output)``."""
        columns = 1 + len(self.requantizer.columns())
        sums = [f"s{i}" for i in range(self.lanes)]
        starts = ", ".join(f"{s} = q[{i * columns}]" for i, s in enumerate(sums))
        arguments = [
            ", ".join(f"q[{i * columns + j}]" for j in range(1, columns)) for i in range(self.lanes)
        ]
        step = self._words if self.lanes > 1 else self._emit_byte_taps
        body = [
            f"int32_t {starts};",
            *step(sums),
            *(
                f"output[{i}] = (int8_t)requantize({s}, {given});"
                for i, (s, given) in enumerate(zip(sums, arguments, strict=True))
            ),
            f"input += {self.lanes};",
            f"output += {self.lanes};",
            f"w += {self.lanes * len(self._taps)};",
            f"q += {self.lanes * columns};",
        ]
        lines = [
            "static void pixel(const int8_t *input, int8_t *output)",
            "{",
            "    const int8_t *w = filters;",
            "    const int32_t *q = table;",
            f"    for (int32_t c = 0; c < {self.problem.out_channels // self.lanes}; c++) {{",
            indent(body, 2),
            "    }",
            "}\n",
        ]
        return "\n".join(lines)

    def _words(self, sums: Sequence[str]) -> list[str]:
        """Return C text for four channels, a tap at a time."""
        lines = []
        for number, at in enumerate(self._taps):
            lines += [
                "{",
                f"    uint32_t v = word_at(input + {at});",
                f"    uint32_t k = word_at(w + {_LANES * number});",
                "    int32_t v0 = widened(v), v1 = widened((v >> 8) | (v << 24));",
                "    int32_t k0 = widened(k), k1 = widened((k >> 8) | (k << 24));",
                "    s0 = __smlabb(v0, k0, s0);",
                "    s1 = __smlabb(v1, k1, s1);",
                "    s2 = __smlatt(v0, k0, s2);",
                "    s3 = __smlatt(v1, k1, s3);",
                f"    {compiler_barrier(sums)}",
                "}",
            ]
        return lines

    def _emit_byte_taps(self, sums: Sequence[str]) -> list[str]:
        """Emit the sum of one channel by pairs of taps, to hide the latency of their loads."""
        lines, taps = [], self._taps
        for first in range(0, len(taps), 2):
            pair = range(first, min(first + 2, len(taps)))
            loads = [f"v{i - first} = input[{taps[i]}], k{i - first} = w[{i}]" for i in pair]
            products = [
                MAC.add("s0", f"v{i - first}", f"k{i - first}", self.requantizer.wraps)
                for i in pair
            ]
            barrier = compiler_barrier(sums)
            lines.append(f"{{ int32_t {', '.join(loads)}; {' '.join(products)} {barrier} }}")
        return lines

    def _body(self) -> list[str]:
        p = self.problem
        row, image = p.in_width * p.in_channels, p.in_height * p.in_width * p.in_channels
        one_row = p.out_height == 1
        loops = [
            *((f"for (int32_t b = 0; b < {p.batch}; b++)",) if p.batch > 1 else ()),
            *(() if one_row else (f"for (int32_t y = 0; y < {p.out_height}; y++)",)),
            *((f"for (int32_t x = 0; x < {p.out_width}; x++)",) if p.out_width > 1 else ()),
        ]
        place = [
            *((f"b * {image}",) if p.batch > 1 else ()),
            *(() if one_row else (f"y * {p.stride[0] * row}",)),
            *((f"x * {p.stride[1] * p.in_channels}",) if p.out_width > 1 else ()),
        ]
        call = f"pixel({' + '.join(['input', *place])}, output);"
        if not loops:
            return [call]
        lines = [call, f"output += {p.out_channels};"]
        for head in reversed(loops):
            lines = [f"{head} {{", indent(lines), "}"]
        return lines


def _lanes(problem: QuantizedConv2D, core: Core) -> int:
    return _LANES if core.has("dsp") and problem.out_channels % _LANES == 0 else 1

"""int8 products for one pixel on cores with DSP: two SMLADs and one UXTB16 for four weights.

The usual way widens a word of four weights into two pairs of halfwords, for one SMLAD each; with
one pixel nothing else shares that work. Here the word itself is one of the pairs. With its bytes

    u0 = w0 + 128, w1, u2 = w2 + 128, w3          as halfwords: 256 w1 + u0, 256 w3 + u2

and UXTB16 of it (u0, u2), two sums of products give 256 times what is needed:

    y = x_odd - 127                      (256 w_odd + u) y + u z = 256 (w_odd y + u x_even)
    z = 256 x_even - y

z fits a halfword for all bytes x: it is least for x_even = -128, y = 0, and most, 32767, for
x_even = 127, y = -255. So after the last k the sum shifted right by 8 is, exactly,

    sum of w x  -  127 times the odd weights  +  128 times the even x

of which the second is folded into the bias and the third is a number per pixel. Sums are bounded
by the weights: layers whose sums may leave 32 bits are left to others. y and z are made once.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from covp.chip.cores import Core
from covp.codegen.c_text import c_array, indent
from covp.codegen.intrinsics import LOADS_MEMORY, SINGLE_LOADS, SMLAD, load_words
from covp.codegen.kernels.compiler_barrier import barrier_macros, compiler_barrier
from covp.codegen.kernels.operands import Operands
from covp.codegen.kernels.requantize.finisher import layer_finisher
from covp.codegen.layer import Argument, KernelRequest, LayerCode, Scratch
from covp.codegen.schedule import Schedule
from covp.graph.typed_convolution import QuantizedConv2D

_LARGEST = 1 << 23
"""A sum times 256 has to fit 32 bits."""
_TOGETHER = 2
"""Weights loaded in a row: an LDRD."""


class FoldedBytesCode:
    """C text of one layer: ``channels`` at once, ``unroll`` times 4 k per iteration.

    Args:
        schedule: with these two knobs.
    """

    def __init__(
        self, request: KernelRequest, problem: QuantizedConv2D, schedule: Schedule
    ) -> None:
        self.request, self.problem = request, problem
        self.channels, self.single = schedule["channels"], schedule.tile.endswith(SINGLE_LOADS)
        self.weights = problem.weights.reshape(problem.out_channels, -1).astype(np.int64)
        self.depth = self.weights.shape[1]
        self.unroll = min(schedule["unroll"], self.depth // 4)
        bias, self.requantizer = layer_finisher(request.core, problem)
        self.bias = bias + 127 * self.weights[:, 1::2].sum(axis=1)

    @staticmethod
    def fits(problem: QuantizedConv2D, core: Core, schedule: Schedule) -> bool:
        """Return whether there is one pixel, stored as one row, and its sums fit."""
        weights = problem.weights.reshape(problem.out_channels, -1).astype(np.int64)
        if not core.has("dsp") or not _is_row(problem) or weights.shape[1] % 4:
            return False
        if schedule["channels"] > problem.out_channels or np.abs(weights).max() > 127:
            return False
        odd, even = np.abs(weights[:, 1::2]).sum(axis=1), (weights[:, 0::2] + 128).sum(axis=1)
        _, requantizer = layer_finisher(core, problem)
        return bool((255 * odd + 128 * even).max() < _LARGEST) and requantizer.bound < 1 << 30

    def layer(self, schedule: str) -> LayerCode:
        """Return the whole layer; ``schedule`` is for reports."""
        op, p = self.request.op, self.problem
        arguments: dict[str, Argument] = {
            "input": op.input(0),
            "output": op.output,
            "scratch": Scratch(2 * self.depth),
        }
        body = [
            "const int32_t even = fold((const void *)input, scratch);",
            "multiply(scratch, even, output);",
        ]
        if p.batch > 1:
            body += [f"input += {self.depth};", f"output += {p.out_channels};"]
            body = [f"for (int32_t row = 0; row < {p.batch}; row++) {{", indent(body), "}"]
        functions = [self.requantizer.function(), self._fold(), self._multiply()]
        widths = {2, self.channels, p.out_channels % self.channels}
        includes = [SMLAD.definitions, barrier_macros(widths)]
        operands = Operands(arguments, self._constants())
        return operands.layer(self.request, body, functions, includes, schedule=schedule)

    def _constants(self) -> str:
        biased = self.weights.copy()
        biased[:, 0::2] += 128
        blocks = [
            biased[start : start + self.channels].reshape(-1, self.depth // 4, 4).transpose(1, 0, 2)
            for start in range(0, self.problem.out_channels, self.channels)
        ]
        stored: NDArray[np.uint8] = np.concatenate([block.ravel() for block in blocks]).astype(
            np.uint8
        )
        columns = np.stack([self.bias, *self.requantizer.columns()], axis=1)
        return c_array(
            "weights", stored, f"by block of {self.channels} channels, then 4 k, then channel"
        ) + c_array("channel_table", columns.astype(np.int32), "bias, then requantization")

    def _fold(self) -> str:
        """Return C text of ``fold(input, words)``: y and z of every four k; what the even x add."""
        lines = [
            "static int32_t fold(const word *input, uint32_t *words)",
            "{",
            "    int32_t even = 0;",
            f"    for (int32_t k = 0; k < {self.depth // 4}; k++) {{",
            "        uint32_t x = *input++;",
            "        uint32_t odd = (uint32_t)widened((x >> 8) | (x << 24));",
            "        uint32_t y = (uint32_t)__ssub16((int32_t)odd, 0x007f007f);",
            "        uint32_t high = (x << 8) & 0xff00ff00u;",
            "        *words++ = y;",
            "        *words++ = (uint32_t)__ssub16((int32_t)high, (int32_t)y);",
            "        even = __smlad(widened(x), 0x00010001, even);",
            "    }",
            "    return -128 * even;",
            "}\n",
        ]
        return "\n".join(lines)

    def _multiply(self) -> str:
        full, rest = divmod(self.problem.out_channels, self.channels)
        lines = [
            "static __attribute__((noinline)) void multiply(const uint32_t *words, int32_t even,",
            "                                               int8_t *output)",
            "{",
            *([f"    {LOADS_MEMORY}"] if self.single else []),
            "    const word *w = (const void *)weights;",
            "    const int32_t *q = channel_table;",
            f"    for (int32_t block = 0; block < {full}; block++) {{",
            indent([*self._block(self.channels), *self._advance(self.channels)], 2),
            "    }",
        ]
        if rest:
            lines += ["    {", indent(self._block(rest), 2), "    }"]
        return "\n".join([*lines, "}\n"])

    def _block(self, channels: int) -> list[str]:
        columns = 1 + len(self.requantizer.columns())
        rounds, rest = divmod(self.depth // 4, self.unroll)
        lines = [
            "int32_t " + ", ".join(f"s{c} = 0" for c in range(channels)) + ";",
            "const uint32_t *x = words;",
            f"for (int32_t k = 0; k < {rounds}; k++) {{",
            *(indent(self._step(channels, step)) for step in range(self.unroll)),
            f"    x += {2 * self.unroll};",
            f"    w += {self.unroll * channels};",
            "}",
            *(line for step in range(rest) for line in self._step(channels, step)),
        ]
        if rest:
            lines.append(f"w += {rest * channels};")
        for c in range(channels):
            q = [f"q[{c * columns + i}]" for i in range(columns)]
            total = f"(s{c} >> 8) + even + {q[0]}"
            lines.append(f"output[{c}] = (int8_t)requantize({total}, {', '.join(q[1:])});")
        return lines

    def _advance(self, channels: int) -> list[str]:
        """Emit the step to the next block of channels."""
        return [
            f"output += {channels};",
            f"q += {channels * (1 + len(self.requantizer.columns()))};",
        ]

    def _step(self, channels: int, step: int) -> list[str]:
        """Return C text of four k."""
        if self.single:
            words = [("y", "x", 2 * step), ("z", "x", 2 * step + 1)]
            words += [(f"v{c}", "w", step * channels + c) for c in range(channels)]
            return ["{", *load_words(words), *self._add(range(channels)), "}"]
        lines = [
            "{",
            f"    uint32_t y = x[{2 * step}], z = x[{2 * step + 1}];",
            f"    {compiler_barrier(['y', 'z'])}",
        ]
        for first in range(0, channels, _TOGETHER):
            pair = range(first, min(first + _TOGETHER, channels))
            loads = [f"v{c} = w[{step * channels + c}]" for c in pair]
            lines.append(f"    uint32_t {', '.join(loads)};")
            if len(pair) == _TOGETHER:
                lines.append(f"    {compiler_barrier([f'v{c}' for c in pair])}")
            lines += self._add(pair)
        return [*lines, f"    {compiler_barrier([f's{c}' for c in range(channels)])}", "}"]

    def _add(self, channels: Iterable[int]) -> list[str]:
        """Return C text of the products of some channels."""
        return [
            f"    s{c} = __smlad((int32_t){value}, (int32_t){word}, s{c});"
            for c in channels
            for value, word in ((f"v{c}", "y"), (f"((uint32_t)v{c} & 0x00ff00ffu)", "z"))
        ]


def _is_row(problem: QuantizedConv2D) -> bool:
    """Return whether each image has one output pixel, of the whole image in memory order."""
    image = problem.in_height, problem.in_width
    whole = problem.kernel == image and problem.dilation == (1, 1)
    return whole and not problem.padding.any and not problem.depthwise

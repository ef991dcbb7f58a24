"""3x3 convolutions with stride 1 by Winograd's minimal filtering, exact in integers.

Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (2015), F(2x2, 3x3): a tile of
2x2 outputs needs 16 multiplications per input channel instead of 36::

    Y = A^T [(G g G^T) * (B^T d B)] A

G holds halves. With 2 G instead all is integer, and Y is four times the convolution: exact, modulo
2**32 too, as long as four times the sums fit 32 bits. Transformed weights are at most 9 * 128 in
magnitude, transformed inputs 4 * 128: both are kept as int16, the weights in flash (3.6 times the
bytes of the filter), the inputs of a block of tiles in scratch.

Rows of the input are copied into a strip with padding around, so that no other code handles
borders. The last block of a row and the last row of tiles start early instead of being smaller.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from covp.chip.cores import Core
from covp.codegen.c_text import c_array, indent
from covp.codegen.intrinsics import (
    LOADS_MEMORY,
    MAC,
    SINGLE_LOADS,
    SMLAD,
    DotProduct,
    load_words,
)
from covp.codegen.kernels.compiler_barrier import LOADED, barrier_macros, compiler_barrier
from covp.codegen.kernels.operands import Operands
from covp.codegen.kernels.requantize.finisher import layer_finisher
from covp.codegen.layer import Argument, KernelRequest, LayerCode, Scratch
from covp.codegen.schedule import Schedule
from covp.graph.typed_convolution import QuantizedConv2D

_G = np.array([[2, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 2]], np.int64)
_POINTS = 16
_SCALE = 4
_LARGEST_INPUT = 4 * 128
"""Largest magnitude of a transformed input."""


class WinogradCode:
    """C text of one layer: ``tiles`` side by side times ``channels`` at once."""

    def __init__(
        self, request: KernelRequest, problem: QuantizedConv2D, schedule: Schedule
    ) -> None:
        self.request = request
        self.problem = problem
        self.tiles = schedule["tiles"]
        self.channels = schedule["channels"]
        self.unroll = schedule["unroll"]
        self.dot, self.single = _dot(request.core), schedule.tile.endswith(SINGLE_LOADS)
        # a core in order waits for a word that it has just loaded; 16 sums take all registers
        few = self.tiles > 1 and self.tiles * self.channels < 16
        self.ahead = request.core.architecture == "riscv" and few
        self.bias, self.requantizer = layer_finisher(request.core, problem)

    @staticmethod
    def fits(problem: QuantizedConv2D, core: Core, schedule: Schedule) -> bool:
        """Return whether the layer has that shape, whole blocks, and sums with enough headroom."""
        p, lanes = problem, _dot(core).lanes
        if p.kernel != (3, 3) or p.stride != (1, 1) or p.dilation != (1, 1):
            return False
        if p.out_height < 2 or p.out_width < 2 * schedule["tiles"]:
            return False
        if p.in_channels % (lanes * schedule["unroll"]) or p.out_channels % schedule["channels"]:
            return False
        bias, requantizer = layer_finisher(core, p)
        # neither the result nor a partial sum of the last transformation leaves int32
        points = np.abs(_transformed_weights(p)).sum(axis=(1, 2, 3))
        partial = _LARGEST_INPUT * points + _SCALE * np.abs(bias.astype(np.int64))
        return _SCALE * requantizer.bound < 1 << 31 and bool((partial < 1 << 31).all())

    @property
    def _steps(self) -> int:
        """The number of steps of the inner loop, each over all lanes."""
        return self.problem.in_channels // self.dot.lanes

    @property
    def _strip_width(self) -> int:
        """Elements of a padded row."""
        return (self.problem.out_width + 2) * self.problem.in_channels

    @property
    def _transformed_elements(self) -> int:
        """Elements of a block's transformed input."""
        return _POINTS * self.tiles * self.problem.in_channels

    def layer(self, schedule: str) -> LayerCode:
        """Return the whole layer; ``schedule`` is for reports."""
        op = self.request.op
        sums = 4 * _POINTS * self.tiles * self.channels
        arguments: dict[str, Argument] = {
            "input": op.input(0),
            "output": op.output,
            "scratch": Scratch(sums + 2 * self._transformed_elements + 4 * self._strip_width),
        }
        functions = [
            self.requantizer.function(),
            self._fill(),
            self._transform(),
            self._multiply(),
            self._finish(),
        ]
        includes = list(dict.fromkeys([self.dot.definitions, self.requantizer.includes]))
        operands = Operands(arguments, self._constants())
        return operands.layer(self.request, self._body(), functions, includes, schedule=schedule)

    def _constants(self) -> str:
        bias = _SCALE * self.bias.astype(np.int64)
        table = np.stack([bias.astype(np.int32), *self.requantizer.columns()], axis=1)
        layout = f"by block of {self.channels} channels, point, k, channel"
        return (
            barrier_macros([self.channels], opaque=self.dot.lanes == 1)
            + (LOADED if self.ahead else "")
            + c_array("weights", self._weights(), layout)
            + c_array("channel_table", table.astype(np.int32), "4 * bias, then requantization")
        )

    def _weights(self) -> NDArray[np.int16]:
        """Return ``2G g (2G)^T`` of every filter in the order in which it is read."""
        p, lanes = self.problem, self.dot.lanes
        points = _transformed_weights(p)
        # (block, channel, point, step, lane) to (block, point, step, channel, lane)
        split = points.reshape(-1, self.channels, _POINTS, self._steps, lanes)
        return np.ravel(split.transpose(0, 2, 3, 1, 4)).astype(np.int16)

    def _fill(self) -> str:
        """Return C text of ``fill(input, top, strip)``: four rows of the input, padded."""
        p = self.problem
        c, row = p.in_channels, p.in_width * p.in_channels
        element, to, from_ = (
            ("word", "(void *)", "(const void *)") if c % 4 == 0 else ("int8_t", "", "")
        )
        size = 4 if c % 4 == 0 else 1
        zero = p.input_zero_point if size == 1 else f"0x{(p.input_zero_point & 255) * 0x01010101:x}"
        left, right = p.padding.left * c, p.padding.right * c
        middle = self._strip_width - left - right
        return f"""\
static inline void fill(const int8_t *input, int32_t top, int8_t *strip)
{{
    {element} *to = {to}strip;
    for (int32_t y = top; y < top + 4; y++) {{
        const {element} *from = {from_}(input + y * {row});
        int32_t inside = (uint32_t)y < {p.in_height}u ? {middle // size} : 0;
        for (int32_t i = 0; i < {left // size}; i++)
            *to++ = {zero};
        for (int32_t i = 0; i < inside; i++)
            *to++ = from[i];
        for (int32_t i = inside; i < {(middle + right) // size}; i++)
            *to++ = {zero};
    }}
}}
"""

    def _transform(self) -> str:
        """Return C text of ``transform(strip, patch)``: B^T d B of a block of tiles."""
        c, lanes = self.problem.in_channels, self.dot.lanes
        lines: list[str] = []
        for column in range(2 * self.tiles + 2):
            d = [f"strip[{y * self._strip_width + column * c}]" for y in range(4)]
            lines += [
                f"int32_t d{column}1 = {d[1]}, d{column}2 = {d[2]};",
                f"int32_t e{column}0 = {d[0]} - d{column}2, e{column}1 = d{column}1 + d{column}2;",
                f"int32_t e{column}2 = d{column}2 - d{column}1, e{column}3 = d{column}1 - {d[3]};",
            ]
            if column >= 3 and column % 2:
                lines += self._across(column // 2 - 1)
        step = _POINTS * self.tiles * lanes
        return "\n".join(
            [
                "static __attribute__((noinline)) void transform(const int8_t *strip,"
                " int16_t *patch)",
                "{",
                f"    for (int32_t k = 0; k < {self._steps}; k++) {{",
                f"        for (int32_t lane = 0; lane < {lanes}; lane++, strip++, patch++) {{",
                indent(lines, 3),
                "        }",
                f"        patch += {step - lanes};",
                "    }",
                "}\n",
            ]
        )

    def _across(self, tile: int) -> Iterator[str]:
        """Yield the second half of the transformation for one tile, from columns e of four rows."""
        a, b, c, d = (f"e{2 * tile + i}" for i in range(4))
        for i in range(4):
            values = f"{a}{i} - {c}{i}", f"{b}{i} + {c}{i}", f"{c}{i} - {b}{i}", f"{b}{i} - {d}{i}"
            for j, value in enumerate(values):
                at = ((4 * i + j) * self.tiles + tile) * self.dot.lanes
                yield f"patch[{at}] = (int16_t)({value});"

    def _multiply(self) -> str:
        """Return C text of ``multiply(patch, w, sums)``: for each point, a block's sums over k."""
        names = [(t, c) for c in range(self.channels) for t in range(self.tiles)]
        pointer = "const word *" if self.dot.lanes == 2 else "const int16_t *"
        step = _POINTS * self.tiles
        inner: list[str] = []
        for k in range(self.unroll):
            inner += ["{", indent(self._step(k, step)), "}"]
        inner += [f"x += {self.unroll * step};", f"w += {self.unroll * self.channels};"]
        lines = [
            *([LOADS_MEMORY] if self.single else []),
            f"for (int32_t point = 0; point < {_POINTS}; point++) {{",
            "    int32_t " + ", ".join(f"s{t}{c} = 0" for t, c in names) + ";",
            f"    {pointer}x = patch + point * {self.tiles};",
            f"    {pointer}end = w + {self._steps * self.channels};",
            "    do {",
            indent(inner, 2),
            "    } while (w != end);",
            *(f"    sums[{c * self.tiles + t}] = s{t}{c};" for t, c in names),
            f"    sums += {len(names)};",
            "}",
        ]
        head = (
            f"static __attribute__((noinline)) void multiply({pointer}patch, {pointer}w,"
            " int32_t *sums)\n{"
        )
        return "\n".join([head, indent(lines), "}\n"])

    def _step(self, k: int, step: int) -> list[str]:
        if self.single:
            return self._step_single(k, step)
        kind = "uint32_t" if self.dot.lanes == 2 else "int32_t"
        loads = ", ".join(f"w{c} = w[{k * self.channels + c}]" for c in range(self.channels))
        words = [f"{kind} x{t} = x[{k * step + t}];" for t in range(self.tiles)]
        lines = [*words[: int(self.ahead)], f"{kind} {loads};"]
        cast = "(int32_t)" if self.dot.lanes == 2 else ""
        for t in range(self.tiles):
            if not self.ahead:
                lines.append(words[t])
            elif t + 1 < self.tiles:
                lines += [words[t + 1], f"LOADED(x{t}, x{t + 1});"]
            for c in range(self.channels):
                lines.append(self.dot.add(f"s{t}{c}", x=f"{cast}x{t}", w=f"{cast}w{c}"))
            lines.append(compiler_barrier([f"s{t}{c}" for c in range(self.channels)]))
        return lines

    def _step_single(self, k: int, step: int) -> list[str]:
        """Return C text of a step whose words come by `load_words`, tiles two by two."""
        words = [(f"w{c}", "w", k * self.channels + c) for c in range(self.channels)]
        lines = []
        for first in range(0, self.tiles, 2):
            pair = range(first, min(first + 2, self.tiles))
            lines += load_words([*words, *((f"x{t}", "x", k * step + t) for t in pair)])
            words = []
            for t in pair:
                for c in range(self.channels):
                    lines.append(self.dot.add(f"s{t}{c}", x=f"x{t}", w=f"w{c}"))
        return lines

    def _finish(self) -> str:
        """Return C text of ``finish(sums, q, output)``: A^T M A, then requantization."""
        p, stride = self.problem, self.tiles * self.channels
        columns = 1 + len(self.requantizer.columns())
        arguments = ", ".join(f"q{i}" for i in range(1, columns))
        # read once: a store to the output might change them for all that the compiler knows
        constants = ", ".join(f"q{i} = q[{i}]" for i in range(columns))
        lines = []
        for i in range(4):
            m = [f"m[{(4 * i + j) * stride}]" for j in range(4)]
            # the point in the middle counts once in every output
            bias = " + q0" if i == 1 else ""
            lines += [
                f"int32_t b{i} = {m[1]}{bias}, c{i} = {m[2]};",
                f"int32_t l{i} = {m[0]} + b{i} + c{i}, r{i} = b{i} - c{i} - {m[3]};",
            ]
        for x, s in enumerate("lr"):
            for y, value in enumerate((f"{s}0 + {s}1 + {s}2", f"{s}1 - {s}2 - {s}3")):
                at = (y * p.out_width + x) * p.out_channels
                lines.append(f"to[{at}] = (int8_t)requantize(({value}) >> 2, {arguments});")
        return "\n".join(
            [
                "static __attribute__((noinline)) void finish(const int32_t *m, const int32_t *q,"
                " int8_t *output)",
                "{",
                f"    for (int32_t c = 0; c < {self.channels}; c++, q += {columns}) {{",
                f"        int32_t {constants};",
                "        int8_t *to = output + c;",
                f"        for (int32_t t = 0; t < {self.tiles}; t++, m++) {{",
                indent(lines, 3),
                f"            to += {2 * p.out_channels};",
                "        }",
                "    }",
                "}\n",
            ]
        )

    def _body(self) -> list[str]:
        p = self.problem
        blocks, columns = p.out_channels // self.channels, 1 + len(self.requantizer.columns())
        words = "(const void *)" if self.dot.lanes == 2 else ""
        weights = _POINTS * p.in_channels * self.channels
        last_row, last = p.out_height - 2, p.out_width - 2 * self.tiles
        early_row = [f"if (row > {last_row})", f"    row = {last_row};"] if last_row % 2 else []
        early = [f"if (left > {last})", f"    left = {last};"] if last % (2 * self.tiles) else []
        inner = [
            *early,
            f"int8_t *to = output + (row * {p.out_width} + left) * {p.out_channels};",
            f"transform(strip + left * {p.in_channels}, patch);",
            f"for (int32_t b = 0; b < {blocks}; b++) {{",
            f"    multiply({words}patch, {words}(weights + b * {weights}), sums);",
            f"    finish(sums, channel_table + b * {self.channels * columns},"
            f" to + b * {self.channels});",
            "}",
        ]
        return [
            "int32_t *sums = scratch;",
            f"int16_t *patch = (int16_t *)(sums + {_POINTS * self.tiles * self.channels});",
            f"int8_t *strip = (int8_t *)(patch + {self._transformed_elements});",
            f"for (int32_t image = 0; image < {p.batch}; image++) {{",
            f"    for (int32_t row = 0; row < {p.out_height}; row += 2) {{",
            indent([*early_row, f"fill(input, row - {p.padding.top}, strip);"], 2),
            f"        for (int32_t left = 0; left < {p.out_width}; left += {2 * self.tiles}) {{",
            indent(inner, 3),
            "        }",
            "    }",
            f"    input += {p.in_height * p.in_width * p.in_channels};",
            f"    output += {p.out_height * p.out_width * p.out_channels};",
            "}",
        ]


def _transformed_weights(problem: QuantizedConv2D) -> NDArray[np.int64]:
    """Return ``2G g (2G)^T`` of every filter: (output channel, row, column, input channel)."""
    points: NDArray[np.int64] = np.einsum(
        "iy,oyxc,jx->oijc", _G, problem.weights.astype(np.int64), _G
    )
    return points


def _dot(core: Core) -> DotProduct:
    """Return the instruction for 16-bit products: SMLAD where the core has it."""
    return SMLAD if core.has("dsp") else MAC

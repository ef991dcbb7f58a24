"""3x3 convolutions with stride 1 by Winograd's minimal filtering, exact in integers.

Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (2015), F(2x2, 3x3): a tile of
2x2 outputs needs 16 multiplications per input channel instead of 36::

    Y = A^T [(G g G^T) * (B^T d B)] A

G holds halves. With 2 G instead all is integer, and Y is four times the convolution: exact, modulo
2**32 too, as long as four times the sums fit 32 bits. Transformed weights are at most 9 * 128 in
magnitude, transformed inputs 4 * 128: both are kept as int16, the weights in flash (3.6 times the
bytes of the filter), the inputs of a block of tiles in scratch.

Without SIMD the transformed inputs of four tiles may share three words (``winograd_fours``), whose
sums have 24 bits, see `shared_words.py`: three multiplications instead of four.

Rows of the input are copied into a strip with padding around, so that no other code handles
borders. The last block of a row and the last row of tiles start early instead of being smaller.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from covp.chip.cores import Core
from covp.codegen.c_text import c_array, indent
from covp.codegen.intrinsics import LOADS_MEMORY, MAC, SINGLE_LOADS, SMLAD, load_words
from covp.codegen.kernels.compiler_barrier import LOADED, barrier_macros, compiler_barrier, opaque
from covp.codegen.kernels.convolution.shared_words import SharedWords
from covp.codegen.kernels.operands import Operands
from covp.codegen.kernels.requantize.finisher import layer_finisher
from covp.codegen.layer import Argument, KernelRequest, LayerCode, Scratch
from covp.codegen.schedule import Schedule
from covp.graph.typed_convolution import QuantizedConv2D
from covp.hardware.intrinsics import DotProduct

_G = np.array([[2, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 2]], np.int64)
_POINTS = 16
_SCALE = 4
_LARGEST_INPUT = 4 * 128
"""Largest magnitude of a transformed input."""
_ROWS = ((0, "-", 2), (1, "+", 2), (2, "-", 1), (1, "-", 3))
"""Of B^T: the two rows that each of its rows combines, and how."""
_FOUR = SharedWords(4)
FOURS = "winograd_fours"
"""The tile whose inputs share words."""


class WinogradCode:
    """C text of one layer: ``tiles`` side by side times ``channels`` at once."""

    def __init__(
        self, request: KernelRequest, problem: QuantizedConv2D, schedule: Schedule
    ) -> None:
        self.request = request
        self.problem = problem
        self.shared = _FOUR if schedule.tile == FOURS else None
        self.tiles = _tiles(schedule)
        self.words = self.shared.words if self.shared else self.tiles
        """What is multiplied for a point and k: a word of each tile, or words that tiles share."""
        self.channels = schedule["channels"]
        self.unroll = schedule["unroll"]
        self.dot, self.single = _dot(request.core), schedule.tile.endswith(SINGLE_LOADS)
        # a core in order waits for a word that it has just loaded; 16 sums take all registers
        few = self.words > 1 and self.words * self.channels < 16
        self.ahead = request.core.architecture == "riscv" and few
        # small cores cannot load a halfword with its sign from a pointer alone
        even = self.unroll * self.channels % 2 == 0
        self.loads_pairs = self.shared is not None and not request.core.has("mull") and even
        self.bias, self.requantizer = layer_finisher(request.core, problem)

    @staticmethod
    def fits(problem: QuantizedConv2D, core: Core, schedule: Schedule) -> bool:
        """Return whether the layer has that shape, whole blocks, and sums with enough headroom."""
        p, lanes = problem, _dot(core).lanes
        if p.kernel != (3, 3) or p.stride != (1, 1) or p.dilation != (1, 1):
            return False
        if p.out_height < 2 or p.out_width < 2 * _tiles(schedule):
            return False
        if p.in_channels % (lanes * schedule["unroll"]) or p.out_channels % schedule["channels"]:
            return False
        bias, requantizer = layer_finisher(core, p)
        # neither the result nor a partial sum of the last transformation leaves int32
        points = np.abs(_transformed_weights(p)).sum(axis=3)
        if schedule.tile == FOURS and (
            core.has("dsp") or int(_LARGEST_INPUT * points.max()) > _FOUR.largest
        ):
            return False
        partial = _LARGEST_INPUT * points.sum(axis=(1, 2)) + _SCALE * np.abs(bias.astype(np.int64))
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
    def _word(self) -> str:
        """C type of a transformed input."""
        return "uint32_t" if self.shared else "int16_t"

    @property
    def _transformed_bytes(self) -> int:
        """Bytes of a block's transformed input."""
        return _POINTS * self.words * self.problem.in_channels * (4 if self.shared else 2)

    def layer(self, schedule: str) -> LayerCode:
        """Return the whole layer; ``schedule`` is for reports."""
        op = self.request.op
        sums = 4 * _POINTS * self.tiles * self.channels
        arguments: dict[str, Argument] = {
            "input": op.input(0),
            "output": op.output,
            "scratch": Scratch(sums + self._transformed_bytes + 4 * self._strip_width),
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
            (self.shared.definitions() if self.shared else "")
            + barrier_macros([self.channels], opaque=self.dot.lanes == 1)
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
        lanes = self.dot.lanes
        step = _POINTS * self.words * lanes
        return "\n".join(
            [
                "static __attribute__((noinline)) void transform(const int8_t *strip,"
                f" {self._word} *patch)",
                "{",
                f"    for (int32_t k = 0; k < {self._steps}; k++) {{",
                f"        for (int32_t lane = 0; lane < {lanes}; lane++, strip++, patch++) {{",
                indent(
                    self._transform_shared(self.shared) if self.shared else self._transform_tiles(),
                    3,
                ),
                "        }",
                f"        patch += {step - lanes};",
                "    }",
                "}\n",
            ]
        )

    def _transform_tiles(self) -> list[str]:
        """Emit the transformation of one k, tile by tile."""
        c = self.problem.in_channels
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
        return lines

    def _transform_shared(self, shared: SharedWords) -> list[str]:
        """Emit the transformation of one k, row by row: a word has the same point of all tiles."""
        c, width = self.problem.in_channels, self._strip_width
        lines: list[str] = []
        for i, (first, sign, second) in enumerate(_ROWS):
            lines.append("{")
            for column in range(2 * self.tiles + 2):
                a, b = (f"strip[{row * width + column * c}]" for row in (first, second))
                lines.append(f"    int32_t e{column} = {a} {sign} {b};")
            for j, (left, sign, right) in enumerate(_ROWS):
                points = [
                    f"(uint32_t)(e{2 * tile + left} {sign} e{2 * tile + right})"
                    for tile in range(self.tiles)
                ]
                for word, value in enumerate(shared.pack(points)):
                    lines.append(f"    patch[{(4 * i + j) * shared.words + word}] = {value};")
            lines.append("}")
        return lines

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
        names = [(t, c) for c in range(self.channels) for t in range(self.words)]
        pointer = "const word *" if self.dot.lanes == 2 else "const int16_t *"
        inputs = "const uint32_t *" if self.shared else pointer
        kind = "uint32_t" if self.shared else "int32_t"
        step = _POINTS * self.words
        inner = ["uint32_t pair;"] if self.loads_pairs else []
        for k in range(self.unroll):
            inner += ["{", indent(self._step(k, step)), "}"]
        weights = self.unroll * self.channels
        if self.loads_pairs:
            inner += _advance("w", weights)
        else:
            inner += [f"x += {self.unroll * step};", f"w += {weights};"]
        lines = [
            *([LOADS_MEMORY] if self.single else []),
            f"for (int32_t point = 0; point < {_POINTS}; point++) {{",
            f"    {kind} " + ", ".join(f"s{t}{c} = 0" for t, c in names) + ";",
            f"    {inputs}x = patch + point * {self.words};",
            f"    {pointer}end = w + {self._steps * self.channels};",
            "    do {",
            indent(inner, 2),
            "    } while (w != end);",
            indent(self._sums()),
            f"    sums += {self.tiles * self.channels};",
            "}",
        ]
        head = (
            f"static __attribute__((noinline)) void multiply({inputs}patch, {pointer}w,"
            " int32_t *sums)\n{"
        )
        return "\n".join([head, indent(lines), "}\n"])

    def _sums(self) -> list[str]:
        """Emit the stores of a point's sums."""
        lines = []
        for c in range(self.channels):
            targets = [f"sums[{c * self.tiles + t}] =" for t in range(self.tiles)]
            words = [f"s{t}{c}" for t in range(self.words)]
            if self.shared:
                lines += self.shared.unpack(words, [f"{target} (int32_t)" for target in targets])
            else:
                lines += [f"{target} {word};" for target, word in zip(targets, words, strict=True)]
        return lines

    def _step(self, k: int, step: int) -> list[str]:
        if self.single:
            return self._step_single(k, step)
        kind = "uint32_t" if self.dot.lanes == 2 or self.shared else "int32_t"
        loads = self._weight_loads(k)
        k = 0 if self.loads_pairs else k
        words = [f"{kind} x{t} = x[{k * step + t}];" for t in range(self.words)]
        lines = [*words[: int(self.ahead)], *loads]
        cast = "(int32_t)" if self.dot.lanes == 2 else ""
        for t in range(self.words):
            if not self.ahead:
                lines.append(words[t])
            elif t + 1 < self.words:
                lines += [words[t + 1], f"LOADED(x{t}, x{t + 1});"]
            for c in range(self.channels):
                lines.append(self.dot.add(f"s{t}{c}", x=f"{cast}x{t}", w=f"{cast}w{c}"))
            lines.append(compiler_barrier([f"s{t}{c}" for c in range(self.channels)]))
        return [*lines, *_advance("x", step)] if self.loads_pairs else lines

    def _weight_loads(self, k: int) -> list[str]:
        """Emit the weights of one k."""
        places = [k * self.channels + c for c in range(self.channels)]
        if self.loads_pairs:
            return [line for c, place in enumerate(places) for line in _half(f"w{c}", place)]
        kind = "uint32_t" if self.dot.lanes == 2 or self.shared else "int32_t"
        extend = "(uint32_t)" if self.shared else ""
        loads = ", ".join(f"w{c} = {extend}w[{place}]" for c, place in enumerate(places))
        return [f"{kind} {loads};"]

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
        p, word = self.problem, self._word
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
            f"{word} *patch = ({word} *)(sums + {_POINTS * self.tiles * self.channels});",
            f"int8_t *strip = (int8_t *)patch + {self._transformed_bytes};",
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


def _half(name: str, place: int) -> list[str]:
    """Emit a weight from the word ``pair`` of two, which is loaded with the first of them."""
    value = "(int32_t)pair >> 16" if place % 2 else "(int16_t)pair"
    load = [] if place % 2 else [f"pair = ((const word *)(const void *)w)[{place // 2}];"]
    return [*load, f"uint32_t {name} = (uint32_t)({value});", opaque("pair")]


def _advance(pointer: str, elements: int) -> list[str]:
    """Emit the step of a pointer, which compilers would keep as a base and an index."""
    return [f"{pointer} += {elements};", opaque(pointer)]


def _tiles(schedule: Schedule) -> int:
    """Return the number of tiles side by side."""
    return _FOUR.count if schedule.tile == FOURS else schedule["tiles"]


def _dot(core: Core) -> DotProduct:
    """Return the instruction for 16-bit products: SMLAD where the core has it."""
    return SMLAD if core.has("dsp") else MAC

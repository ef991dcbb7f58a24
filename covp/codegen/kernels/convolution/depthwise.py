"""int8 DEPTHWISE_CONV_2D on the core: one channel at a time, as a plane of its own.

NHWC puts the values of one channel far apart. The kernel gathers a channel into a padded plane
in scratch (the border holds the input's zero point), keeps the channel's filter and its
requantization constants in registers, and writes the outputs back with a stride. Because a
channel is read before it is written, the output may overwrite the input where the
shapes are equal.

With DSP the plane is int16 and two taps of a row go through one SMLAD: even outputs use the
filter's pairs (w0, w1), (w2, 0), odd ones (0, w0), (w1, w2), so that all loads are aligned words.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from covp.chip.cores import Core
from covp.codegen.c_text import c_array, c_type, indent
from covp.codegen.intrinsics import MAC
from covp.codegen.kernels.compiler_barrier import (
    LOADED,
    barrier_macros,
    before_branches,
    compiler_barrier,
)
from covp.codegen.kernels.convolution.depthwise_pixel import DepthwisePixelCode, fits_pixels
from covp.codegen.kernels.operands import Operands
from covp.codegen.kernels.requantize.finisher import layer_finisher
from covp.codegen.layer import Argument, KernelRequest, LayerCode, Scratch, kernel
from covp.codegen.schedule import KnobSpace, Schedule, valid_schedules
from covp.graph.typed_convolution import QuantizedConv2D, resolve

MAX_TAPS_IN_REGISTERS = 16


_SPACES = (
    KnobSpace("plane_smlad", {"at_once": (1, 2, 4, 6)}),
    KnobSpace("plane", {"at_once": (1, 2, 3, 4, 5, 6, 8)}),
)


def depthwise_schedules(request: KernelRequest) -> list[Schedule]:
    """Return the valid schedules of a depthwise convolution, the default first."""
    problem = resolve(request.op)
    default = default_schedule(problem, request.core)
    return valid_schedules(_SPACES, default, lambda s: is_valid(problem, request.core, s))


def is_valid(problem: QuantizedConv2D, core: Core, schedule: Schedule) -> bool:
    """Return whether the tile can compute the layer on the core."""
    if schedule["at_once"] > problem.out_width:
        return False
    if schedule.tile == "plane":
        return True
    # words of the plane are aligned at every block of outputs
    aligned = schedule["at_once"] * problem.stride[1] % 2 == 0 or problem.out_width == 1
    return aligned and core.has("dsp") and problem.kernel[1] > 1 and problem.dilation[1] == 1


def default_schedule(problem: QuantizedConv2D, core: Core) -> Schedule:
    """Return a good choice without a search."""
    at_once = min(4 if core.architecture == "riscv" else 2, problem.out_width)
    for tile in ("plane_smlad", "plane"):
        schedule = Schedule(tile, {"at_once": at_once})
        if is_valid(problem, core, schedule):
            break
    return schedule


def int8_schedules(request: KernelRequest) -> list[Schedule]:
    """Return the valid schedules of an int8 layer, the default first."""
    planes = depthwise_schedules(request)
    problem = resolve(request.op)
    if not fits_pixels(problem):
        return planes
    pixel = Schedule("pixel")
    return [pixel, *planes] if _is_default(problem, request.core) else [*planes, pixel]


def _is_default(problem: QuantizedConv2D, core: Core) -> bool:
    """Return whether pixel by pixel is likely faster than by planes, without a search."""
    if core.has("dsp"):
        return problem.out_width == 1
    return problem.out_height * problem.out_width == 1


@kernel("DEPTHWISE_CONV_2D", "int8", schedules=int8_schedules)
def emit_depthwise(request: KernelRequest) -> LayerCode:
    """Emit the C of one depthwise convolution."""
    problem = resolve(request.op)
    schedule = request.choose(int8_schedules)
    if schedule.tile == "pixel":
        return DepthwisePixelCode(request, problem).layer(str(schedule))
    widened = schedule.tile == "plane_smlad"
    code = DepthwiseCode(request, problem, widened, schedule["at_once"])
    return code.layer(str(schedule))


@dataclass(frozen=True)
class Plane:
    """One channel with its padding: all that the taps of all outputs reach."""

    problem: QuantizedConv2D
    widened: bool
    at_once: int
    source: str = "int8_t"

    @property
    def height(self) -> int:
        """The number of rows that outputs reach."""
        p = self.problem
        return (p.out_height - 1) * p.stride[0] + (p.kernel[0] - 1) * p.dilation[0] + 1

    @property
    def width(self) -> int:
        """Elements per row, in whole words."""
        p = self.problem
        # blocks of outputs may extend past the last one; those sums are discarded
        outputs = -(-p.out_width // self.at_once) * self.at_once
        reach = (outputs - 1) * p.stride[1] + (p.kernel[1] - 1) * p.dilation[1] + 2
        reach = max(reach, p.in_width + p.padding.left)
        return -(-reach // 4) * 4

    @property
    def input_rows(self) -> int:
        """The rows of the input within the plane."""
        p = self.problem
        return max(min(p.in_height, self.height - p.padding.top), 0)

    @property
    def nbytes(self) -> int:
        """The size in memory, in bytes."""
        return self.height * self.width * (1 if self.element == "int8_t" else 2)

    @property
    def element(self) -> str:
        """C type of an element."""
        return "int16_t" if self.widened else self.source


_TOGETHER = 4
"""Values of a channel that are loaded before the first of them is stored.

Measured: 3 to 14 % fewer cycles on Cortex-M4, 6 to 16 % on RISC-V, -2 to +11 % on Cortex-M7.
"""


class DepthwiseCode:
    """C text of one layer whose sums fit 32 bits, or wrap as TFLM's do."""

    def __init__(
        self, request: KernelRequest, problem: QuantizedConv2D, widened: bool, at_once: int
    ) -> None:
        self.request = request
        self.element = c_type(request.op.output.dtype)
        self.problem = problem
        self.widened = widened
        self.at_once = min(at_once, problem.out_width)
        if widened and problem.stride[1] % 2:
            self.at_once = max(self.at_once, 2)
        self.plane = Plane(problem, widened, self.at_once, self.element)
        # a core in order waits for a value that it has just loaded
        self.ahead = request.core.architecture == "riscv"
        self.bias, self.requantizer = layer_finisher(request.core, problem)

    def layer(self, schedule: str) -> LayerCode:
        """Return the whole layer; ``schedule`` is for reports."""
        op = self.request.op
        arguments: dict[str, Argument] = {
            "input": op.input(0),
            "output": op.output,
            "scratch": Scratch(self.plane.nbytes),
        }
        includes = [
            "#include <arm_acle.h>" if self.widened else self.requantizer.includes,
            "" if self.widened else barrier_macros(range(self.at_once + 1)),
            LOADED if self.ahead else "",
        ]
        functions = [self.requantizer.function(), self._gather(), self._convolve()]
        in_place = (op.input(0),) if self._may_run_in_place else ()
        operands = Operands(arguments, self._constants())
        return operands.layer(self.request, self._body(), functions, includes, in_place, schedule)

    @property
    def _may_run_in_place(self) -> bool:
        p = self.problem
        same = (p.in_height, p.in_width) == (p.out_height, p.out_width)
        return same and p.depth_multiplier == 1 and p.batch == 1

    @property
    def _pair_rows(self) -> list[list[tuple[int, int]]]:
        """Words of weights for DSP, per kernel row, as (parity of the output, first tap).

        A word holds taps (first, first + 1); taps outside the kernel are zero.
        """
        kw = self.problem.kernel[1]
        parities = (0, 1) if self.problem.stride[1] % 2 and self.problem.out_width > 1 else (0,)
        return [
            [(parity, first) for parity in parities for first in range(-parity, kw, 2)]
            for _ in range(self.problem.kernel[0])
        ]

    def _constants(self) -> str:
        columns = np.stack([self.bias, *self.requantizer.columns()], axis=1).astype(np.int32)
        if self.widened:
            words = np.concatenate([self._packed_pairs(), columns], axis=1)
            return c_array("table", words, "per channel: filter as pairs, bias, requantization")
        filters = self.problem.weights.reshape(-1, self.problem.out_channels).T
        return c_array("filters", filters, "per channel: the taps") + c_array(
            "table", columns, "per channel: bias, requantization"
        )

    def _packed_pairs(self) -> NDArray[np.int32]:
        """Return (channels, words): two int16 taps per word, the first in the lower half."""
        kw = self.problem.kernel[1]
        weights = self.problem.weights.astype(np.int64)
        words = []
        for y, row in enumerate(self._pair_rows):
            for _, first in row:
                low = weights[y, first] if 0 <= first < kw else 0 * weights[y, 0]
                high = weights[y, first + 1] if first + 1 < kw else 0 * weights[y, 0]
                words.append((low & 0xFFFF) | (high << 16))
        return np.stack(words, axis=1).astype(np.int32)

    def _gather(self) -> str:
        """Return C text of ``gather(input, plane)``: one channel into the plane's inside."""
        p, plane = self.problem, self.plane
        columns = p.in_width
        unroll = next(n for n in (8, 6, 5, 4, 3, 2, 1) if columns % n == 0)
        # some loads, then their stores: a load ends while the next one begins
        body = []
        core = self.request.core  # eight low registers have no room for them
        together = _TOGETHER if core.architecture == "riscv" or core.has("dsp") else 1
        for first in range(0, unroll, together):
            group = range(first, min(first + together, unroll))
            loads = ", ".join(f"v{i} = input[{i * p.in_channels}]" for i in group)
            stores = " ".join(f"plane[{i}] = v{i};" for i in group)
            body.append(f"{{ {self.element} {loads}; {stores} }}")
        lines = [
            f"static inline void gather(const {self.element} *input, {plane.element} *plane)",
            "{",
            f"    plane += {p.padding.top * plane.width + p.padding.left};",
            f"    for (int32_t y = 0; y < {plane.input_rows}; y++) {{",
            f"        for (int32_t x = 0; x < {columns // unroll}; x++) {{",
            indent(body, 3),
            f"            plane += {unroll};",
            f"            input += {unroll * p.in_channels};",
            "        }",
            f"        plane += {plane.width - columns};",
            "    }",
            "}\n",
        ]
        return "\n".join(lines)

    def _convolve(self) -> str:
        """Return C text of ``convolve(plane, channel's constants, output)``."""
        p = self.problem
        columns = len(self.requantizer.columns())
        loads, pointer, first = self._filter()
        parameters = [f"const {self.plane.element} *plane", f"{self.element} *output"]
        parameters += [*pointer, "const int32_t *q"]
        names = ["bias", *(f"q{i}" for i in range(columns))]
        loads += [f"int32_t {name} = q[{first + i}];" for i, name in enumerate(names)]
        full, rest = divmod(p.out_width, self.at_once)
        lines = [
            f"static inline void convolve({', '.join(parameters)})",
            "{",
            indent(loads),
            f"    for (int32_t y = 0; y < {p.out_height}; y++) {{",
            f"        const {self.plane.element} *x = plane;",
        ]
        if full:
            lines += [
                f"        for (int32_t block = 0; block < {full}; block++) {{",
                indent(self._outputs(self.at_once), 3),
                f"            x += {self.at_once * p.stride[1]};",
                f"            output += {self.at_once * p.out_channels};",
                "        }",
            ]
        if rest:
            lines += ["        {", indent(self._outputs(rest), 3)]
            lines += [f"            output += {rest * p.out_channels};", "        }"]
        lines += [f"        plane += {p.stride[0] * self.plane.width};", "    }", "}\n"]
        return "\n".join(lines)

    def _filter(self) -> tuple[list[str], list[str], int]:
        """Return the statements that load a filter, its parameter, and where ``q`` has the bias."""
        if self.widened:
            return self._load_pairs(), [], self._pairs
        return self._load_taps(), [f"const {c_type(self.problem.weights.dtype)} *w"], 0

    @property
    def _pairs(self) -> int:
        return sum(len(row) for row in self._pair_rows)

    def _filter_stride(self) -> int:
        """Return the elements of the array ``filters`` for each channel; 0 where there is none."""
        return 0 if self.widened else self.problem.kernel[0] * self.problem.kernel[1]

    def _load_taps(self) -> list[str]:
        taps = self.problem.kernel[0] * self.problem.kernel[1]
        if taps > MAX_TAPS_IN_REGISTERS:
            return []
        return [f"int32_t w{i} = w[{i}];" for i in range(taps)]

    def _load_pairs(self) -> list[str]:
        loads, at = [], 0
        for y, row in enumerate(self._pair_rows):
            for parity, first in row:
                loads.append(f"int32_t {self._pair(y, parity, first)} = q[{at}];")
                at += 1
        return loads

    @staticmethod
    def _pair(y: int, parity: int, first: int) -> str:
        return f"{'eo'[parity]}{y}_{first + parity}"

    def _outputs(self, count: int) -> list[str]:
        """Emit sums, requantization and stores of ``count`` neighbouring outputs."""
        sums = self._sums_wide(count) if self.widened else self._sums_narrow(count)
        arguments = ", ".join(f"q{i}" for i in range(len(self.requantizer.columns())))
        stores = [
            f"output[{o * self.problem.out_channels}] = "
            f"({self.element})requantize(s{o}, {arguments});"
            for o in range(count)
        ]
        start = "int32_t " + ", ".join(f"s{o} = bias" for o in range(count)) + ";"
        if self.requantizer.branches:
            sums = [*sums, *before_branches([f"s{o}" for o in range(count)])]
        return [start, *sums, *stores]

    def _sums_narrow(self, count: int) -> list[str]:
        p = self.problem
        (kh, kw), (dh, dw), stride = p.kernel, p.dilation, p.stride[1]
        in_registers = kh * kw <= MAX_TAPS_IN_REGISTERS
        steps: list[tuple[int, list[str], str]] = []
        for y in range(kh):
            for column in range((count - 1) * stride + (kw - 1) * dw + 1):
                products = []
                for o in range(count):
                    tap, odd = divmod(column - o * stride, dw)
                    if odd == 0 and 0 <= tap < kw:
                        weight = y * kw + tap
                        name = f"w{weight}" if in_registers else f"w[{weight}]"
                        products.append(MAC.add(f"s{o}", "v", name, self.requantizer.wraps))
                if products:
                    barrier = compiler_barrier([product.split()[0] for product in products])
                    steps.append((y * dh * self.plane.width + column, products, barrier))
        if not self.ahead:
            return [f"{{ int32_t v = x[{at}]; {' '.join(all)} {end} }}" for at, all, end in steps]
        # each value before the products of the one before it
        lines = ["{", f"    int32_t v = x[{steps[0][0]}], next;"]
        for number, (_, products, barrier) in enumerate(steps):
            after = [f"next = x[{at}]; LOADED(v, next);" for at, *_ in steps[number + 1 :][:1]]
            step = [*after, *products, barrier, *["v = next;"][: len(after)]]
            lines.append(f"    {' '.join(step)}")
        return [*lines, "}"]

    def _sums_wide(self, count: int) -> list[str]:
        """Emit sums of int16 pairs; each word of the plane is loaded once for all outputs."""
        p = self.problem
        (kh, kw), dh, stride = p.kernel, p.dilation[0], p.stride[1]
        lines = []
        for y in range(kh):
            for word in range(0, (count - 1) * stride + kw, 2):
                products = []
                for o in range(count):
                    parity = (o * stride) % 2
                    first = word - o * stride
                    if -parity <= first < kw:
                        name = self._pair(y, parity, first)
                        products.append(f"s{o} = __smlad({name}, v, s{o});")
                if products:
                    at = y * dh * self.plane.width + word
                    load = f"int32_t v = (int32_t)word_at(x + {at});"
                    lines.append(f"{{ {load} {' '.join(products)} }}")
        return lines

    def _body(self) -> list[str]:
        p, plane = self.problem, self.plane
        image = p.in_height * p.in_width * p.in_channels
        result = p.out_height * p.out_width * p.out_channels
        stride = self._filter_stride()
        words = (0 if stride else self._pairs) + 1 + len(self.requantizer.columns())
        constants = f"table + c * {words}"
        if stride:
            constants = f"filters + c * {stride}, {constants}"
        source = "c" if p.depth_multiplier == 1 else f"c / {p.depth_multiplier}"
        inner = [
            f"for (int32_t c = 0; c < {p.out_channels}; c++) {{",
            f"    gather(input + {source}, plane);",
            f"    convolve(plane, output + c, {constants});",
            "}",
        ]
        if p.batch > 1:
            inner = [
                f"for (int32_t b = 0; b < {p.batch}; b++) {{",
                *("    " + line for line in inner),
                f"    input += {image};",
                f"    output += {result};",
                "}",
            ]
        fill = [
            f"{plane.element} *plane = scratch;",
            f"for (int32_t i = 0; i < {plane.height * plane.width}; i++)",
            f"    plane[i] = {p.input_zero_point};",
        ]
        return [*fill, *inner]

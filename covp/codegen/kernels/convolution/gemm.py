"""The matrix kernel under convolutions and fully connected layers.

A tile computes a block of pixels (rows of a patch matrix, one row per pixel) times a block of
output channels with all sums in registers, then requantizes. The input's zero point is folded
into the bias, so the inner loop is loads, multiplies and additions only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.chip.cores import Core
from covp.codegen.c_text import c_array, c_type, indent
from covp.codegen.intrinsics import LOADS_MEMORY, load_words
from covp.codegen.kernels.compiler_barrier import (
    barrier_macros,
    before_branches,
    compiler_barrier,
)
from covp.codegen.kernels.requantize.finisher import layer_finisher
from covp.graph.typed_convolution import QuantizedConv2D
from covp.hardware.intrinsics import DotProduct

_REGISTERS, _POINTERS = 13, 2
"""Of an Arm core, but for its stack pointer, its program counter and a loop counter."""


@dataclass(frozen=True)
class RegisterBlock:
    """The register block of a tile.

    Attributes:
        pixels: rows of the patch matrix processed at once.
        channels: output channels computed at once.
        unroll: steps of the inner loop written out (`DotProduct.step` k each).
        dot: the instruction that multiplies and adds.
        weight_bits: 16 keeps the weights widened in flash, so that the core need not widen them.
        single: words are loaded by `load_words`.
    """

    pixels: int
    channels: int
    unroll: int
    dot: DotProduct
    weight_bits: int = 8
    single: bool = False

    @property
    def is_widened(self) -> bool:
        """True if patches are int16, two to a word."""
        return self.dot.operand == "int16"

    @property
    def reads_words(self) -> bool:
        """True if patches and weights are read as words."""
        return self.dot.lanes > 1


class Gemm:
    """C text of the tile of one int8 layer.

    Args:
        problem: weights as (out_channels, K) after flattening.
        block: pixels, channels and unroll.
        row_stride: elements from one patch row to the next.

    Attributes:
        element: C type of patches that are not widened, and of outputs.
        byte_order: how each four k of 8-bit weights lie in a word whose bytes are widened in pairs.
    """

    element = "int8_t"
    byte_order = (0, 1, 2, 3)

    def __init__(
        self, problem: QuantizedConv2D, core: Core, block: RegisterBlock, row_stride: int
    ) -> None:
        self.block = block
        self.row_stride = row_stride
        self.channels = problem.out_channels
        self.weights = problem.weights.reshape(problem.out_channels, -1)
        self.depth = self.weights.shape[1]
        self.bias, self.requantizer = layer_finisher(core, problem)

    @property
    def steps(self) -> int:
        """The number of steps of the inner loop."""
        return -(-self.depth // self.step)

    @property
    def step(self) -> int:
        """The number of k in a step."""
        return self.block.dot.step

    def constants(self) -> str:
        """Return the weights in the order the tile reads them, and the channel table."""
        table = np.stack(self._columns(), axis=1)
        rest = self.channels % self.block.channels
        widths = {min(self.block.channels, self.channels), rest} - {0}
        return (
            barrier_macros(widths, opaque=not self.block.is_widened or self.block.pixels == 1)
            + c_array("weights", self._pack(), self._layout())
            + c_array(
                "channel_table", table.astype(np.int32), "per channel: bias, then requantization"
            )
        )

    def _columns(self) -> list[NDArray[np.int32]]:
        """Return the channel table: the bias, then the arguments of the requantization."""
        return [self.bias.astype(np.int32), *self.requantizer.columns()]

    def _layout(self) -> str:
        unit = "4 k" if self.block.reads_words else "k"
        return f"by block of {self.block.channels} channels, then {unit}, then channel"

    def _pack(self) -> NDArray[Any]:
        group = self.step
        parts = []
        for start in range(0, self.channels, self.block.channels):
            block = self.weights[start : start + self.block.channels]
            padded = np.zeros((len(block), self.steps * group), self.weights.dtype)
            padded[:, : self.depth] = block
            parts.append(padded.reshape(len(block), self.steps, group).transpose(1, 0, 2))
        if self.block.is_widened:
            parts = [part[..., list(self.byte_order)] for part in parts]
        if self.block.weight_bits == 8:
            return np.concatenate([part.ravel() for part in parts])
        # the order in which SXTB16 splits four bytes
        return np.concatenate([part[..., [0, 2, 1, 3]].ravel() for part in parts]).astype(np.int16)

    def function(self, name: str) -> str:
        """Emit ``static void name(const T *patch, element *output)`` for a block of pixels.

        ``patch`` points to rows of elements, or to words of several lanes; rows are ``row_stride``
        elements apart. ``output`` is dense: a row of all channels per pixel.
        """
        pixels = self.block.pixels
        full, rest = divmod(self.channels, self.block.channels)
        weight = c_type(self.weights.dtype)
        words = self.block.reads_words or self.block.weight_bits == 4
        pointer = "const word *" if words else f"const {weight} *"
        patch = "const word *" if self.block.reads_words else f"const {self.element} *"
        # inlined, it would share registers with the loop over pixels
        lines = [
            f"static __attribute__((noinline)) void {name}({patch}patch, {self.element} *output)",
            "{",
        ]
        lines += [
            f"    {pointer}w = {'(const void *)' if words else ''}weights;",
            "    const int32_t *q = channel_table;",
        ]
        if self.block.single:
            lines.append(f"    {LOADS_MEMORY}")
        lines += [indent([line]) for line in self._before(pixels)]
        if full:
            lines.append(f"    for (int32_t block = 0; block < {full}; block++) {{")
            inner = [
                *self._block(pixels, self.block.channels),
                *self._advance(self.block.channels),
            ]
            lines += ["        " + line for line in inner]
            lines.append("    }")
        if rest:
            lines.append("    {")
            lines += ["        " + line for line in self._block(pixels, rest)]
            lines.append("    }")
        lines.append("}\n")
        return "\n".join(lines)

    def _block(self, pixels: int, channels: int) -> list[str]:
        columns = 1 + len(self.requantizer.columns())
        sums = [(p, c) for c in range(channels) for p in range(pixels)]
        lines = [
            *self._start_sums([(self._sum(p, c), self._first(p, c, columns)) for p, c in sums]),
            self._patch_pointer(),
        ]
        lines += self._loop(pixels, channels)
        if self.requantizer.branches and not self.block.dot.accumulators:
            lines += before_branches([self._sum(p, c) for p, c in sums])
        for c in range(channels):
            arguments = [f"q[{c * columns + i}]" for i in range(1, columns)]
            lines += [
                f"output[{p * self.channels + c}] = "
                f"({self.element}){self._result(p, c, arguments)};"
                for p in range(pixels)
            ]
        return lines

    def _advance(self, channels: int) -> list[str]:
        """Emit the step to the next block of channels."""
        return [f"output += {channels};", f"q += {channels * len(self._columns())};"]

    def _before(self, pixels: int) -> list[str]:
        """Return the statements before the blocks of channels."""
        return []

    def _first(self, pixel: int, channel: int, columns: int) -> str:
        """Return the C expression of the first value of a sum."""
        return f"q[{channel * columns}]"

    def _patch_pointer(self) -> str:
        return f"const {'word' if self.block.reads_words else self.element} *x = patch;"

    def _sum(self, pixel: int, channel: int) -> str:
        """Return the variable of a sum, or the number of its accumulator."""
        if self.block.dot.accumulators:
            return str(pixel * self.block.channels + channel)
        return f"s{pixel}{channel}"

    def _start_sums(self, sums: list[tuple[str, str]]) -> list[str]:
        """Emit the start of each sum at its C expression."""
        dot = self.block.dot
        if dot.accumulators:
            return [f"{dot.initialize.format(number=n, value=value)};" for n, value in sums]
        return ["int32_t " + ", ".join(f"{name} = {value}" for name, value in sums) + ";"]

    def _result(self, pixel: int, channel: int, constants: list[str]) -> str:
        """Return the C expression of an output."""
        dot, instruction = self.block.dot, self.requantizer.instruction
        total = self._sum(pixel, channel)
        if dot.accumulators and instruction is not None and instruction.of_accumulator:
            multiplier, packed_scale = constants
            return instruction.of_accumulator.format(
                number=total, multiplier=multiplier, packed_scale=packed_scale, how=packed_scale
            )
        value = dot.read.format(number=total) if dot.accumulators else total
        return f"requantize({', '.join([value, *constants])})"

    def _keep(self, pixel: int, channels: int) -> list[str]:
        """Return the barrier against reordering the sums of a pixel."""
        if self.block.dot.accumulators:
            return []
        return [compiler_barrier([f"s{pixel}{c}" for c in range(channels)])]

    def _loop(self, pixels: int, channels: int, steps: int = 0) -> list[str]:
        """Return the sums over all of k: a loop of unrolled steps, then the remaining steps.

        ``steps``: so many in place of all.
        """
        steps = steps or self.steps
        words, weights = self._strides(channels)
        unroll = min(self.block.unroll, steps)
        rounds, rest = divmod(steps, unroll)
        lines = []
        if rounds:
            lines.append(f"for (int32_t k = 0; k < {rounds}; k++) {{")
            for step in range(unroll):
                lines += ["    " + line for line in self._step(pixels, channels, step)]
            lines += [f"    x += {unroll * words};", f"    w += {unroll * weights};", "}"]
        for step in range(rest):
            lines += self._step(pixels, channels, step)
        if rest:
            lines.append(f"w += {rest * weights};")
        return lines

    def _strides(self, channels: int) -> tuple[int, int]:
        """Return a step's advance in a patch and in the weights, in units of the two pointers."""
        return 2 if self.block.is_widened else 1, channels * self.block.weight_bits // 8

    def _step(self, pixels: int, channels: int, step: int) -> list[str]:
        emit = {1: self._step_narrow, 2: self._step_wide, 4: self._step_words}[self.block.dot.lanes]
        return ["{", *("    " + line for line in emit(pixels, channels, step)), "}"]

    def _step_narrow(self, pixels: int, channels: int, step: int) -> list[str]:
        """Emit one k: a byte of each channel's weights times a byte of each pixel."""
        loads = [f"w{c} = w[{step * channels + c}]" for c in range(channels)]
        lines = ["int32_t " + ", ".join(loads) + ";"]
        for p in range(pixels):
            lines.append(f"int32_t x{p} = x[{step + p * self.row_stride}];")
            lines += self._add(p, channels, "w", f"x{p}")
            lines += self._keep(p, channels)
        return lines

    def _add(self, pixel: int, channels: int, weights: str, x: str) -> list[str]:
        dot = self.block.dot
        wraps = self.requantizer.wraps
        return [
            dot.add(self._sum(pixel, c), x=x, w=f"{weights}{c}", wraps=wraps)
            for c in range(channels)
        ]

    def _step_words(self, pixels: int, channels: int, step: int) -> list[str]:
        """Emit four k: a word of each channel's weights and one of each pixel, in memory order."""
        loads = [f"w{c} = w[{step * channels + c}]" for c in range(channels)]
        lines = ["uint32_t " + ", ".join(loads) + ";"]
        patches = [f"uint32_t x{p} = x[{step + p * self.row_stride // 4}];" for p in range(pixels)]
        if self.block.dot.accumulators:
            # a unit's instructions in a row: no load waits between them
            lines += patches
            return lines + [
                add for p in range(pixels) for add in self._add(p, channels, "w", f"x{p}")
            ]
        for p in range(pixels):
            lines += [patches[p], *self._add(p, channels, "w", f"x{p}"), *self._keep(p, channels)]
        return lines

    def _step_wide(self, pixels: int, channels: int, step: int) -> list[str]:
        """Return C text of four k: a word of weights is split into the pairs (0, 2) and (1, 3)."""
        if self.block.single:
            return self._step_single(pixels, channels, step)
        widen = self.block.dot.widen
        lines = []
        for c in range(channels):
            at = step * channels + c
            if self.block.weight_bits == 16:
                pair = f"a{c} = (int32_t)w[{2 * at}], b{c} = (int32_t)w[{2 * at + 1}]"
                lines.append(f"int32_t {pair};")
                continue
            lines.append(f"uint32_t v{c} = w[{at}];")
            lines.append(
                f"int32_t a{c} = {widen}(v{c}), b{c} = {widen}((v{c} >> 8) | (v{c} << 24));"
            )
        row = self.row_stride // 2
        for p in range(pixels):
            at = 2 * step + p * row
            lines.append(f"int32_t y{p} = (int32_t)x[{at}], z{p} = (int32_t)x[{at + 1}];")
            for c in range(channels):
                lines.append(self.block.dot.add(f"s{p}{c}", x=f"y{p}", w=f"a{c}"))
                lines.append(self.block.dot.add(f"s{p}{c}", x=f"z{p}", w=f"b{c}"))
            lines += self._keep(p, channels)
        return lines

    def _step_single(self, pixels: int, channels: int, step: int) -> list[str]:
        """Return C text of four k, with as many loads in a row as there are registers for."""
        dot, row = self.block.dot, self.row_stride // 2
        at = [step * channels + c for c in range(channels)]
        lines, widened = [], []
        if self.block.weight_bits == 16:
            words = [(f"{'ab'[n]}{c}", "w", 2 * at[c] + n) for c in range(channels) for n in (0, 1)]
        else:
            words = [(f"v{c}", "w", at[c]) for c in range(channels)]
            widened = [
                f"uint32_t u{c} = (uint32_t)v{c}; int32_t a{c} = {dot.widen}(u{c}), "
                f"b{c} = {dot.widen}((u{c} >> 8) | (u{c} << 24));"
                for c in range(channels)
            ]
        kept = pixels * channels + 2 * channels + _POINTERS
        groups: list[list[int]] = [[]]
        for p in range(pixels):
            if groups[-1] and kept + 2 * len(groups[-1]) + 2 > _REGISTERS:
                groups.append([])
            groups[-1].append(p)
        for group in groups:
            own = [(f"{'yz'[n]}{p}", "x", 2 * step + p * row + n) for p in group for n in (0, 1)]
            lines += [*load_words([*words, *own]), *widened]
            words, widened = [], []
            for p in group:
                for c in range(channels):
                    lines.append(dot.add(f"s{p}{c}", x=f"y{p}", w=f"a{c}"))
                    lines.append(dot.add(f"s{p}{c}", x=f"z{p}", w=f"b{c}"))
        return lines

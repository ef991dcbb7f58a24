"""int8 CONV_2D and FULLY_CONNECTED with int4 weights, which flash holds packed.

A word holds eight k of a channel. For SMLAD 8 is added to weights, so that one mask gives a pair of
them; the 8 count as often as the sum of a pixel's inputs, which is the same for all channels. Other
cores take one nibble after the other; the small weights make long runs of packed pixels.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from covp.chip.cores import Core
from covp.codegen.kernels.convolution.conv2d import Conv2DCode
from covp.codegen.kernels.convolution.conv2d_schedules import block_of
from covp.codegen.kernels.convolution.gemm import Gemm
from covp.codegen.kernels.convolution.nibbles import nibble, packed_words
from covp.codegen.kernels.convolution.packed_nibbles import PackedNibblesCode
from covp.codegen.kernels.convolution.packed_pixels import PackedGemm
from covp.codegen.layer import KernelRequest, LayerCode, kernel
from covp.codegen.schedule import KnobSpace, Schedule, valid_schedules
from covp.graph.typed_convolution import QuantizedConv2D, resolve

_GROUP = 8
_OFFSET = 8
_MOST_SUMS = 16
_DEEPEST = 1 << 17
"""k up to which sums of products with 15 instead of 7 surely fit 32 bits."""


class Gemm4(Gemm):
    """C text of the tile of one layer; arguments as `Gemm`."""

    @property
    def step(self) -> int:
        """The number of k in a step: those of a word."""
        return _GROUP

    def _pack(self) -> NDArray[Any]:
        """Pack weights into words in the order of `Gemm`; for SMLAD offset by 8 and interleaved."""
        parts = []
        for start in range(0, self.channels, self.block.channels):
            block = self.weights[start : start + self.block.channels]
            padded = np.zeros((len(block), self.steps * _GROUP), np.int64)
            padded[:, : self.depth] = block
            groups = padded.reshape(len(block), self.steps, _GROUP).transpose(1, 0, 2)
            if self.block.is_widened:
                groups = groups[..., [0, 1, 4, 5, 2, 3, 6, 7]] + _OFFSET
            parts.append(packed_words(groups).ravel())
        return np.concatenate(parts)

    def _layout(self) -> str:
        return f"by block of {self.block.channels} channels, then 8 k, then channel"

    def _strides(self, channels: int) -> tuple[int, int]:
        return 4 if self.block.is_widened else _GROUP, channels

    def _before(self, pixels: int) -> list[str]:
        """Return the sums of the pixels' inputs, by which the 8 that are added to weights count."""
        if not self.block.is_widened:
            return []
        row, words = self.row_stride // 2, _GROUP // 2 * self.steps
        add = [self.block.dot.add(f"i{p}", f"(int32_t)patch[k + {p * row}]", "0x00010001")
               for p in range(pixels)]  # fmt: skip
        names = ", ".join(f"i{p} = 0" for p in range(pixels))
        offsets = ", ".join(f"o{p} = (uint32_t)i{p} * {_OFFSET}u" for p in range(pixels))
        return [
            f"int32_t {names};",
            f"for (int32_t k = 0; k < {words}; k++) {{",
            *("    " + line for line in add),
            "}",
            f"const uint32_t {offsets};",
        ]

    def _first(self, pixel: int, channel: int, columns: int) -> str:
        first = super()._first(pixel, channel, columns)
        return f"(int32_t)((uint32_t){first} - o{pixel})" if self.block.is_widened else first

    def _step_narrow(self, pixels: int, channels: int, step: int) -> list[str]:
        """Return C text of eight k: one nibble of each channel's word after the other."""
        words = [f"v{c} = w[{step * channels + c}]" for c in range(channels)]
        lines = ["uint32_t " + ", ".join(words) + ";"]
        for k in range(_GROUP):
            weights = ", ".join(f"w{c} = {nibble(f'v{c}', k)}" for c in range(channels))
            lines += ["{", f"    int32_t {weights};"]
            for p in range(pixels):
                lines.append(f"    int32_t x{p} = x[{_GROUP * step + k + p * self.row_stride}];")
                lines += ["    " + line for line in self._add(p, channels, "w", f"x{p}")]
                lines += ["    " + line for line in self._keep(p, channels)]
            lines.append("}")
        return lines

    def _step_wide(self, pixels: int, channels: int, step: int) -> list[str]:
        """Return eight k: four words of patches, one mask each for the pairs of weights."""
        row = self.row_stride // 2
        words = ", ".join(f"v{c} = w[{step * channels + c}]" for c in range(channels))
        lines = [f"uint32_t {words};"]
        for first in (0, 2):
            inner = []
            for c in range(channels):
                a, b = (f"(int32_t)((v{c} >> {4 * n}) & 0x000f000fu)" for n in (first, first + 1))
                inner.append(f"int32_t a{c} = {a}, b{c} = {b};")
            for p in range(pixels):
                at = 4 * step + first + p * row
                inner.append(f"int32_t y{p} = (int32_t)x[{at}], z{p} = (int32_t)x[{at + 1}];")
                for c in range(channels):
                    inner.append(self.block.dot.add(f"s{p}{c}", x=f"y{p}", w=f"a{c}"))
                    inner.append(self.block.dot.add(f"s{p}{c}", x=f"z{p}", w=f"b{c}"))
                inner += self._keep(p, channels)
            lines += ["{", *("    " + line for line in inner), "}"]
        return lines


class PackedGemm4(PackedGemm):
    """The matrix kernel `PackedGemm` for int4 weights: a round has eight k, those of a word."""

    pointer = "const uint32_t *"

    def _pack(self, block: NDArray[np.int64]) -> NDArray[Any]:
        groups = block.reshape(len(block), -1, _GROUP).transpose(1, 0, 2)
        return packed_words(groups).ravel()

    def _stride(self, channels: int) -> int:
        return channels

    def _before_steps(self, channels: int) -> list[str]:
        return ["uint32_t " + ", ".join(f"v{c} = w[{c}]" for c in range(channels)) + ";"]

    def _weight(self, channels: int, channel: int, step: int) -> str:
        return nibble(f"v{channel}", step)


class Conv2DCode4(Conv2DCode):
    """C text of one layer."""

    gemm_type = Gemm4
    packed_types: ClassVar[dict[int, type[PackedGemm]]] = {2: PackedGemm4}
    group = _GROUP


_SMLAD = KnobSpace(
    "smlad", {"pixels": (1, 2, 3, 4), "channels": (1, 2, 3, 4), "unroll": (1, 2), "weights": (4,)}
)
_MAC = KnobSpace(
    "mac",
    {"pixels": (1, 2, 3, 4), "channels": (1, 2, 3, 4, 6), "unroll": (1,), "weights": (4,)},
)
_PACKED_WEIGHTS = KnobSpace("packed_weights", {"pairs": (1, 2, 3, 4, 5, 6), "weights": (4,)})
_PACKED = KnobSpace("packed", {"pairs": (1, 2, 3, 4), "channels": (1, 2, 3), "unroll": (8,)})


def conv2d_schedules4(request: KernelRequest) -> list[Schedule]:
    """Return the valid schedules, the default first."""
    problem = resolve(request.op)
    dsp = request.core.has("dsp") and problem.weights[0].size < _DEEPEST
    spaces = [_SMLAD] if dsp else [_PACKED, _PACKED_WEIGHTS, _MAC]
    default = next(s for s in _preferred_schedules(request.core, dsp) if _is_valid(problem, s))
    return valid_schedules(spaces, default, lambda s: _is_valid(problem, s))


def _preferred_schedules(core: Core, dsp: bool) -> list[Schedule]:
    """Return the schedules that searches found good, best first; the last one fits any layer."""
    if dsp:
        shapes = ((4, 1), (1, 3), (1, 1))
        return [
            Schedule("smlad", {"pixels": p, "channels": c, "unroll": 1, "weights": 4})
            for p, c in shapes
        ]
    channels = 2 if core.has("mull") else 1
    packed = [
        Schedule("packed", {"pairs": pairs, "channels": count, "unroll": 8})
        for count in dict.fromkeys((channels, 1))
        for pairs in (3, 2, 1)
    ]
    several = [
        Schedule("packed_weights", {"pairs": pairs, "weights": 4})
        for pairs in ((4, 1) if core.has("mull") else (1,))
    ]
    single = [
        Schedule("mac", {"pixels": 1, "channels": count, "unroll": 1, "weights": 4})
        for count in ((4, 1) if core.has("mull") else (2, 1))
    ]
    return [*packed, *several, *single]


def _is_valid(problem: QuantizedConv2D, schedule: Schedule) -> bool:
    if schedule.tile == "packed_weights":
        return PackedNibblesCode.fits(problem, schedule["pairs"])
    pixels = 2 * schedule["pairs"] if schedule.tile == "packed" else schedule["pixels"]
    fits = pixels <= problem.batch * problem.out_height * problem.out_width
    sums = pixels * schedule["channels"] <= _MOST_SUMS
    return fits and sums and schedule["channels"] <= problem.out_channels


@kernel("CONV_2D", "int8", weights="int4", schedules=conv2d_schedules4)
@kernel("FULLY_CONNECTED", "int8", weights="int4", schedules=conv2d_schedules4)
def emit_conv2d4(request: KernelRequest) -> LayerCode:
    """Emit the C of one convolution or fully connected layer."""
    schedule = request.choose(conv2d_schedules4)
    if schedule.tile == "packed_weights":
        code4 = PackedNibblesCode(request, resolve(request.op), schedule["pairs"])
        return code4.layer(str(schedule))
    code = Conv2DCode4(request, resolve(request.op), block_of(schedule))
    return code.layer(str(schedule))

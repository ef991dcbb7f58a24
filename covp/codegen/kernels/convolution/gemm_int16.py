"""The matrix kernel of layers with int16 activations and int8 weights.

Patches are int16 as they are: a word holds two, in their order. Weights of four k lie in a word as
0, 2, 1, 3, so that the widened bytes 0 and 2 are the weights of the first two.

Where the weights do not prove that sums fit 32 bits, sums over parts of k that do are added up in
64 bits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from covp.codegen.c_text import indent
from covp.codegen.kernels.convolution.gemm import Gemm


class Gemm16(Gemm):
    """C text of the tile of one int16 layer; arguments as `Gemm`."""

    element = "int16_t"
    byte_order = (0, 2, 1, 3)

    def _columns(self) -> list[NDArray[np.int32]]:
        columns = self.requantizer.columns()
        if not self.requantizer.wide:
            return [self.bias.astype(np.int32), *columns]
        low, high = (self.bias >> bits for bits in (0, 32))
        return [low.astype(np.int32), high.astype(np.int32), *columns]

    def _block(self, pixels: int, channels: int) -> list[str]:
        if not self.requantizer.wide:
            return super()._block(pixels, channels)
        columns = len(self._columns())
        sums = [f"{p}{c}" for c in range(channels) for p in range(pixels)]
        starts = []
        for c in range(channels):
            low, high = f"(uint32_t)q[{c * columns}]", f"(uint64_t)(uint32_t)q[{c * columns + 1}]"
            starts += [f"t{p}{c} = (int64_t)({high} << 32 | {low})" for p in range(pixels)]
        lines = [f"int64_t {', '.join(starts)};", self._patch_pointer()]
        part = self._safe_steps()
        full, rest = divmod(self.steps, part)
        head = f"for (int32_t part = 0; part < {full}; part++) {{"
        for opening, steps in ((head, part * (full > 0)), ("{", rest)):
            if steps:
                inner = [f"int32_t {', '.join(f's{s} = 0' for s in sums)};"]
                inner += self._loop(pixels, channels, steps)
                inner += [f"t{s} += s{s};" for s in sums]
                lines += [opening, indent(inner), "}"]
        for c in range(channels):
            constants = [f"q[{c * columns + i}]" for i in range(2, columns)]
            lines += [
                f"output[{p * self.channels + c}] = "
                f"(int16_t)requantize({', '.join([f't{p}{c}', *constants])});"
                for p in range(pixels)
            ]
        return lines

    def _safe_steps(self) -> int:
        """Steps whose sums fit 32 bits, wherever they begin; a multiple of the unrolled ones."""
        unroll = min(self.block.unroll, self.steps)
        magnitude = np.abs(self.weights.astype(np.int64))
        for parts in range(1, self.steps + 1):
            steps = -(-self.steps // parts)
            steps = -(-steps // unroll) * unroll
            starts = np.arange(0, self.depth, steps * self.block.dot.step)
            most = int(np.add.reduceat(magnitude, starts, axis=1).max())
            if most << 15 < 1 << 31:
                break
        return min(steps, self.steps)

"""The matrix kernel for cores without SIMD: three pixels in two registers.

Two multiplications and two additions serve three sums of 21 bits, see `shared_words.py`. Sums have
so many bits while the magnitudes of the weights add up to at most 8191 (8191 * 128 is below 2**20):
some 200 k, so unlike the runs of `packed_pixels.py`, which have about four k, the runs here are
mostly whole layers, and nothing is moved out before the end.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from covp.codegen.c_text import indent
from covp.codegen.kernels.compiler_barrier import opaque
from covp.codegen.kernels.convolution.packed_pixels import PackedGemm, safe_runs
from covp.codegen.kernels.convolution.shared_words import SharedWords

_THREE = SharedWords(3)
_LONGEST_SUM = _THREE.largest // 128
"""The largest sum of magnitudes of weights in a run."""


class PackedThrees(PackedGemm):
    """C text of the tile of one layer, on packed patches ``patch[k][words of three pixels]``."""

    word = "uint32_t"

    @property
    def has_runs(self) -> bool:
        """True if a sum, which starts with its bias, may leave 21 bits."""
        largest = 128 * np.abs(self.weights).sum(axis=1) + np.abs(self.bias.astype(np.int64))
        return int(largest.max()) > _THREE.largest

    @property
    def has_registers_for_two_words(self) -> bool:
        """True: see `_loads_before`."""
        return True

    def _loads_words(self, channels: int) -> bool:
        """Return whether four weights are loaded at once; small cores have to extend each byte.

        They are words where each block, the last one with fewer channels, too, begins with one.
        """
        whole = channels == self.block.channels or not self.padded_depth * self.block.channels % 4
        return self.is_small and whole and self.block.unroll * channels % 4 == 0

    def _before_steps(self, channels: int) -> list[str]:
        return ["uint32_t four;"] if self._loads_words(channels) else []

    def _weight(self, channels: int, channel: int, step: int) -> str:
        return f"(uint32_t){super()._weight(channels, channel, step)}"

    def _weight_loads(self, channels: int, step: int) -> list[str]:
        if not self._loads_words(channels):
            return super()._weight_loads(channels, step)
        lines = []
        for c in range(channels):
            place, byte = divmod(step * channels + c, 4)
            if byte == 0:
                lines.append(f"four = ((const word *)(const void *)w)[{place}];")
            lines.append(f"uint32_t w{c} = (uint32_t)(int8_t)four;")
            # opaque, or the compiler loads each byte after all
            lines += ["four >>= 8;", opaque("four")] if byte < 3 else []
        return lines

    def _next_weights(self, channels: int) -> list[str]:
        # opaque, or the compiler keeps a base and an index in two of the few registers
        hidden = [opaque("w")] if self._loads_words(channels) else []
        return [*super()._next_weights(channels), *hidden]

    def _loads_before(self, channels: int) -> int:
        return channels - 1  # two words at once only where the product takes one's register

    def packing(self, rows: list[str]) -> list[str]:
        """Return the words of one k, in C, of the activations in ``rows``, one for each pixel."""
        return _THREE.pack([f"(uint32_t){row}" for row in rows])

    def constants(self) -> str:
        """Emit weights in the order the tile reads them, lengths of runs, the channel table."""
        blocks, bias = self._blocks(), self.bias.astype(np.int64)
        common = _THREE.definitions() + self._weight_table(blocks)
        if not self.has_runs:
            names = "start of both words"
            starts = [bias + (bias << _THREE.shift(word)) for word in range(_THREE.words)]
            return common + self._channel_table(names, *starts)
        return (
            common
            + self._run_lengths([self._runs(block) for block in blocks])
            + self._channel_table("bias, nothing", bias, np.zeros_like(bias))
        )

    def _runs(self, block: NDArray[np.int64]) -> list[int]:
        runs = safe_runs(np.abs(block), self.block.unroll, _LONGEST_SUM)
        assert runs is not None, "eight k of 128 are no more than 8191"
        return [*runs, 0]

    def _block(self, channels: int) -> list[str]:
        columns = 2 + len(self.requantizer.columns())
        words = [(w, c) for c in range(channels) for w in self._words]
        sums = [(p, c) for c in range(channels) for p in range(self.block.pixels)]
        stores = [self._store(p, c, f"(int32_t)s{p}{c}") for p, c in sums]
        if not self.has_runs:
            starts = (f"p{w}{c} = (uint32_t)q[{c * columns + w % 2}]" for w, c in words)
            return [
                f"uint32_t {', '.join(starts)};",
                "const uint32_t *x = patch;",
                f"uint32_t rounds = {self.rounds};",
                *self._rounds(channels),
                f"uint32_t {', '.join(f's{p}{c}' for p, c in sums)};",
                *self._sums(channels, "="),
                *stores,
            ]
        # bias and sum may leave 32 bits, not their total
        starts = (f"s{p}{c} = (uint32_t)q[{c * columns}]" for p, c in sums)
        return [
            f"uint32_t {', '.join(starts)};",
            "const uint32_t *x = patch;",
            "uint32_t rounds = *run++;",
            "do {",
            f"    uint32_t {', '.join(f'p{w}{c} = 0' for w, c in words)};",
            indent([*self._rounds(channels), *self._sums(channels, "+=")]),
            "    rounds = *run++;",
            "} while (rounds);",
            *stores,
        ]

    def _sums(self, channels: int, assign: str) -> list[str]:
        """Emit how sums ``s`` get the three sums of each two words."""
        lines = []
        for c in range(channels):
            for group in range(self.block.groups):
                words = [f"p{2 * group + n}{c}" for n in range(2)]
                sums = [f"s{3 * group + n}{c} {assign}" for n in (0, 1, 2)]
                lines += _THREE.unpack(words, sums)
        return lines

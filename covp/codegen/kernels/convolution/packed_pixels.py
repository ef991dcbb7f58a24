"""The matrix kernel for cores without SIMD: two pixels in one register.

Two activations a, b share one word ``a + (b << 16)``. One multiplication by a weight and one
addition then serve two sums. The lower sum does not reach the upper one as long as it fits 16
bits signed, which holds while the magnitudes of the weights add up to at most 255 (255 * 128 is
below 32768). The weights are known, so every block of channels has a table with the lengths of its
longest safe runs (consecutive k without overflow); at the end of a run ``p`` is added to two sums
of full width::

    p = 0x8000 + products;         0x8000 rounds the upper half up where the lower is negative
    t += p;                        the word sum, modulo 2**32
    h += p >> 16;                  the upper sum, exact

The lower sum is ``t - (h << 16)`` in the end: exact modulo 2**32 too. The 0x8000 that each run adds
to ``t`` are subtracted from its start.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.chip.cores import Core
from covp.codegen.c_text import c_array, indent
from covp.codegen.kernels.compiler_barrier import LOADED, barrier_macros, compiler_barrier
from covp.codegen.kernels.requantize.finisher import layer_finisher
from covp.graph.typed_convolution import QuantizedConv2D

LONGEST_SUM = 255
"""The largest sum of magnitudes of weights in a run."""


@dataclass(frozen=True)
class PackedBlock:
    """The register block: pairs of pixels times output channels; ``unroll`` steps per iteration."""

    pairs: int
    channels: int
    unroll: int

    @property
    def pixels(self) -> int:
        """The number of output pixels of a block."""
        return 2 * self.pairs


class PackedGemm:
    """C text of the tile of one layer, on packed patches ``int32_t patch[k][pair]``.

    Attributes:
        pointer: C type of the pointer to weights.
    """

    pointer = "const int8_t *"

    def __init__(self, problem: QuantizedConv2D, core: Core, block: PackedBlock) -> None:
        self.block = block
        self._pairs = range(block.pairs)
        # a core in order waits for a word that it has just loaded; a third channel takes the
        # registers for two words
        self.ahead = core.architecture == "riscv" and block.pairs > 1 and block.channels < 3
        self.channels = problem.out_channels
        weights = problem.weights.reshape(problem.out_channels, -1).astype(np.int64)
        self.depth = weights.shape[1]
        self.rounds = -(-self.depth // block.unroll)
        self.weights = np.zeros((self.channels, self.rounds * block.unroll), np.int64)
        self.weights[:, : self.depth] = weights
        self.bias, self.requantizer = layer_finisher(core, problem)

    @property
    def padded_depth(self) -> int:
        """The number of steps of k, a multiple of the unroll factor."""
        return self.rounds * self.block.unroll

    @property
    def patch_bytes(self) -> int:
        """Size of the packed patches of a block."""
        return 4 * self.padded_depth * self.block.pairs

    @staticmethod
    def fits(problem: QuantizedConv2D, block: PackedBlock) -> bool:
        """Return whether one iteration of any channel fits a safe run."""
        return rounds_are_safe(problem, block.unroll)

    def constants(self) -> str:
        """Emit weights in the order the tile reads them, lengths of runs, the channel table."""
        starts = range(0, self.channels, self.block.channels)
        blocks = [self.weights[s : s + self.block.channels] for s in starts]
        packed = np.concatenate([self._pack(block) for block in blocks])
        block_runs = [self._runs(block) for block in blocks]
        runs = np.array([n for runs in block_runs for n in runs], np.uint8)
        # a run of each block but the closing zero adds 0x8000
        added = [0x8000 * (len(r) - 1) for r, b in zip(block_runs, blocks, strict=True) for _ in b]
        start = (self.bias.astype(np.int64) - np.array(added)).astype(np.int32)
        table = np.stack([start, self.bias, *self.requantizer.columns()], axis=1)
        return (
            barrier_macros(range(self.block.channels + 1))
            + (LOADED if self.ahead else "")
            + c_array("weights", packed, f"by block of {self.block.channels} channels, k, channel")
            + c_array(
                "runs", runs, f"rounds of {self.block.unroll} k that are safe, 0 ends a block"
            )
            + c_array("channel_table", table.astype(np.int32), "start, bias, requantization")
        )

    def _pack(self, block: NDArray[np.int64]) -> NDArray[Any]:
        """Return the weights of a block of channels as the tile reads them."""
        return np.asarray(block.T.ravel().astype(np.int8))

    def _runs(self, block: NDArray[np.int64]) -> list[int]:
        runs = safe_runs(np.abs(block), self.block.unroll)
        assert runs is not None, "fits() is true"
        return [*runs, 0]

    def function(self, name: str) -> str:
        """Return C text of ``static void name(const int32_t *patch, int8_t *output)``."""
        full, rest = divmod(self.channels, self.block.channels)
        lines = [
            f"static __attribute__((noinline)) void {name}(const int32_t *patch, int8_t *output)",
            "{",
            f"    {self.pointer}w = weights;",
            "    const uint8_t *run = runs;",
            "    const int32_t *q = channel_table;",
        ]
        if full:
            lines.append(f"    for (int32_t block = 0; block < {full}; block++) {{")
            inner = [*self._block(self.block.channels), *self._advance(self.block.channels)]
            lines += [indent(inner, 2), "    }"]
        if rest:
            lines += ["    {", indent(self._block(rest), 2), "    }"]
        return "\n".join([*lines, "}\n"])

    def _block(self, channels: int) -> list[str]:
        columns = 2 + len(self.requantizer.columns())
        pairs = range(self.block.pairs)
        every = [(p, c) for c in range(channels) for p in pairs]

        def names(prefix: str, value: str) -> str:
            return ", ".join(f"{prefix}{p}{c} = {value}" for p, c in every)

        lines = [
            "uint32_t "
            + ", ".join(f"t{p}{c} = (uint32_t)q[{c * columns}]" for p, c in every)
            + ";",
            f"int32_t {names('h', '0')};",
            "const int32_t *x = patch;",
            "uint32_t rounds = *run++;",
            "do {",
            f"    int32_t {names('p', '0x8000')};",
            "    do {",
        ]
        lines += [indent([line], 2) for line in self._before_steps(channels)]
        for step in range(self.block.unroll):
            lines += [indent(self._step(channels, step), 2)]
        lines += [
            f"        x += {self.block.unroll * self.block.pairs};",
            f"        w += {self._stride(channels)};",
            "    } while (--rounds);",
        ]
        lines += [f"    t{p}{c} += (uint32_t)p{p}{c}; h{p}{c} += p{p}{c} >> 16;" for p, c in every]
        lines += ["    rounds = *run++;", "} while (rounds);"]
        for c in range(channels):
            constants = ", ".join(f"q[{c * columns + i}]" for i in range(2, columns))
            for p in pairs:
                low = f"(int32_t)(t{p}{c} - ((uint32_t)h{p}{c} << 16))"
                high = f"(int32_t)((uint32_t)h{p}{c} + (uint32_t)q[{c * columns + 1}])"
                for pixel, value in ((2 * p, low), (2 * p + 1, high)):
                    target = f"output[{pixel * self.channels + c}]"
                    lines.append(f"{target} = (int8_t)requantize({value}, {constants});")
        return lines

    def _advance(self, channels: int) -> list[str]:
        """Emit the step to the next block of channels."""
        return [
            f"output += {channels};",
            f"q += {channels * (2 + len(self.requantizer.columns()))};",
        ]

    def _stride(self, channels: int) -> int:
        """Return how far a round advances in the weights, in units of their pointer."""
        return self.block.unroll * channels

    def _before_steps(self, channels: int) -> list[str]:
        """Return the statements at the beginning of a round."""
        return []

    def _weight(self, channels: int, channel: int, step: int) -> str:
        """Return the C expression of a weight of a round."""
        return f"w[{step * channels + channel}]"

    def _step(self, channels: int, step: int) -> list[str]:
        """Emit one k: each channel's weight times a word of each pair of pixels."""
        loads = ", ".join(f"w{c} = {self._weight(channels, c, step)}" for c in range(channels))
        words = [f"    int32_t x{p} = x[{step * self.block.pairs + p}];" for p in self._pairs]
        lines = ["{", f"    int32_t {loads};"]
        if self.ahead:  # each word before the products of the one before it
            lines[1:1] = words[:1]
        for p in self._pairs:
            if not self.ahead:
                lines.append(words[p])
            elif p + 1 < self.block.pairs:
                lines += [words[p + 1], f"    LOADED(x{p}, x{p + 1});"]
            lines += [f"    p{p}{c} += w{c} * x{p};" for c in range(channels)]
            lines.append("    " + compiler_barrier([f"p{p}{c}" for c in range(channels)]))
        return [*lines, "}"]


@lru_cache(maxsize=8)  # the schedules of a layer ask the same again and again
def rounds_are_safe(problem: QuantizedConv2D, step: int) -> bool:
    """Return whether `safe_runs` finds runs for all channels at once, with k padded to rounds.

    Args:
        problem: the layer.
        step: k of a round.
    """
    weights = np.abs(problem.weights.reshape(problem.out_channels, -1).astype(np.int64))
    starts = np.arange(0, weights.shape[1], step)
    return bool(np.add.reduceat(weights, starts, axis=1).max(initial=0) <= LONGEST_SUM)


def safe_runs(magnitudes: NDArray[np.int64], step: int) -> list[int] | None:
    """Return lengths of runs, in rounds of ``step`` k, that are safe for every channel.

    Greedy: a round is added to a run while every channel's magnitudes add up to at most
    `LONGEST_SUM`. None where a single round is too much.

    Args:
        magnitudes: (channels, k), k a multiple of ``step``.
    """
    rounds = magnitudes.reshape(len(magnitudes), -1, step).sum(axis=2)
    if rounds.max(initial=0) > LONGEST_SUM:
        return None
    runs: list[int] = []
    total, length = np.zeros(len(magnitudes), np.int64), 0
    for added in rounds.T:
        if length and ((total + added > LONGEST_SUM).any() or length == 255):
            runs.append(length)
            total, length = np.zeros_like(total), 0
        total, length = total + added, length + 1
    return [*runs, length]

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
    """The register block: groups of pixels times output channels; ``unroll`` steps per iteration.

    Attributes:
        groups: of pixels that are packed together.
        channels: of the output.
        unroll: k of an iteration.
        together: pixels of a group: two in one word, or three in two words.
    """

    groups: int
    channels: int
    unroll: int
    together: int = 2

    @property
    def pixels(self) -> int:
        """The number of output pixels of a block."""
        return self.together * self.groups

    @property
    def words(self) -> int:
        """The number of words that hold one k of all pixels."""
        return (self.together - 1) * self.groups

    @property
    def registers(self) -> int:
        """The number of registers of the sums: two for each pair, and for three pixels."""
        return 2 * self.groups * self.channels


class PackedGemm:
    """C text of the tile of one layer, on packed patches ``patch[k][pair]``.

    Attributes:
        pointer: C type of the pointer to weights.
        word: C type of packed activations and of products.
    """

    pointer = "const int8_t *"
    word = "int32_t"

    def __init__(self, problem: QuantizedConv2D, core: Core, block: PackedBlock) -> None:
        self.block = block
        self._words = range(block.words)
        # a core in order waits for a word that it has just loaded
        in_order = core.architecture == "riscv"
        self.ahead = in_order and block.words > 1 and self.has_registers_for_two_words
        self.is_small = not core.has("mull")
        self.channels = problem.out_channels
        weights = problem.weights.reshape(problem.out_channels, -1).astype(np.int64)
        self.depth = weights.shape[1]
        self.rounds = -(-self.depth // block.unroll)
        self.weights = np.zeros((self.channels, self.rounds * block.unroll), np.int64)
        self.weights[:, : self.depth] = weights
        self.bias, self.requantizer = layer_finisher(core, problem)

    @property
    def has_registers_for_two_words(self) -> bool:
        """True if the next word can be loaded while one is multiplied; not with more channels."""
        return self.block.channels < 3

    @property
    def has_runs(self) -> bool:
        """True if sums are moved out more often than at the end."""
        return True

    @property
    def padded_depth(self) -> int:
        """The number of steps of k, a multiple of the unroll factor."""
        return self.rounds * self.block.unroll

    @property
    def patch_bytes(self) -> int:
        """Size of the packed patches of a block."""
        return 4 * self.padded_depth * self.block.words

    @staticmethod
    def fits(problem: QuantizedConv2D, block: PackedBlock) -> bool:
        """Return whether one iteration of any channel fits a safe run."""
        return rounds_are_safe(problem, block.unroll)

    def packing(self, rows: list[str]) -> list[str]:
        """Return the words of one k, in C, of the activations in ``rows``, one for each pixel."""
        low, high = rows
        return [f"{low} + (int32_t)((uint32_t){high} << 16)"]

    def constants(self) -> str:
        """Emit weights in the order the tile reads them, lengths of runs, the channel table."""
        blocks = self._blocks()
        runs = [self._runs(block) for block in blocks]
        # a run of each block but the closing zero adds 0x8000
        added = [0x8000 * (len(r) - 1) for r, b in zip(runs, blocks, strict=True) for _ in b]
        start = self.bias.astype(np.int64) - np.array(added)
        return (
            self._weight_table(blocks)
            + self._run_lengths(runs)
            + self._channel_table("start, bias", start, self.bias)
        )

    def _blocks(self) -> list[NDArray[np.int64]]:
        """Return the weights of each block of channels."""
        starts = range(0, self.channels, self.block.channels)
        return [self.weights[start : start + self.block.channels] for start in starts]

    def _weight_table(self, blocks: list[NDArray[np.int64]]) -> str:
        """Emit the weights, and the barriers that the tile needs."""
        packed = np.concatenate([self._pack(block) for block in blocks])
        return (
            barrier_macros(range(self.block.channels + 1))
            + (LOADED if self.ahead else "")
            + c_array("weights", packed, f"by block of {self.block.channels} channels, k, channel")
        )

    def _run_lengths(self, runs: list[list[int]]) -> str:
        """Emit the lengths of runs of each block of channels."""
        lengths = np.array([length for block in runs for length in block], np.uint8)
        unroll = self.block.unroll
        return c_array("runs", lengths, f"rounds of {unroll} k that are safe, 0 ends a block")

    def _channel_table(self, names: str, *columns: NDArray[np.int64]) -> str:
        """Emit what a channel's sums start with, two numbers, and its requantization."""
        table = np.stack([*columns, *self.requantizer.columns()], axis=1)
        return c_array("channel_table", table.astype(np.int32), f"{names}, requantization")

    def _pack(self, block: NDArray[np.int64]) -> NDArray[Any]:
        """Return the weights of a block of channels as the tile reads them."""
        return np.asarray(block.T.ravel().astype(np.int8))

    def _runs(self, block: NDArray[np.int64]) -> list[int]:
        runs = safe_runs(np.abs(block), self.block.unroll)
        assert runs is not None, "fits() is true"
        return [*runs, 0]

    def function(self, name: str) -> str:
        """Return C text of ``static void name(const word *patch, int8_t *output)``."""
        full, rest = divmod(self.channels, self.block.channels)
        lines = [
            f"static __attribute__((noinline)) void {name}"
            f"(const {self.word} *patch, int8_t *output)",
            "{",
            f"    {self.pointer}w = weights;",
            *(["    const uint8_t *run = runs;"] if self.has_runs else []),
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
        pairs = range(self.block.groups)
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
            indent(self._rounds(channels)),
        ]
        lines += [f"    t{p}{c} += (uint32_t)p{p}{c}; h{p}{c} += p{p}{c} >> 16;" for p, c in every]
        lines += ["    rounds = *run++;", "} while (rounds);"]
        for c in range(channels):
            for p in pairs:
                low = f"(int32_t)(t{p}{c} - ((uint32_t)h{p}{c} << 16))"
                high = f"(int32_t)((uint32_t)h{p}{c} + (uint32_t)q[{c * columns + 1}])"
                lines += [self._store(2 * p, c, low), self._store(2 * p + 1, c, high)]
        return lines

    def _rounds(self, channels: int) -> list[str]:
        """Emit the loop over the rounds of a run."""
        steps = [line for k in range(self.block.unroll) for line in self._step(channels, k)]
        return [
            "do {",
            indent([*self._before_steps(channels), *steps]),
            f"    x += {self.block.unroll * self.block.words};",
            *(f"    {line}" for line in self._next_weights(channels)),
            "} while (--rounds);",
        ]

    def _next_weights(self, channels: int) -> list[str]:
        """Emit the step to the weights of the next round."""
        return [f"w += {self._stride(channels)};"]

    def _store(self, pixel: int, channel: int, value: str) -> str:
        """Emit the store of a pixel's sum in C, after its requantization."""
        columns = 2 + len(self.requantizer.columns())
        constants = ", ".join(f"q[{channel * columns + i}]" for i in range(2, columns))
        target = f"output[{pixel * self.channels + channel}]"
        return f"{target} = (int8_t)requantize({value}, {constants});"

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

    def _weight_loads(self, channels: int, step: int) -> list[str]:
        """Emit the weights ``w`` of one k."""
        loads = ", ".join(f"w{c} = {self._weight(channels, c, step)}" for c in range(channels))
        return [f"{self.word} {loads};"]

    def _loads_before(self, channels: int) -> int:
        """Return the channel before whose product the next word is loaded."""
        return 0

    def _step(self, channels: int, step: int) -> list[str]:
        """Emit one k: each channel's weight times a word of each pair of pixels."""
        words = [f"    {self.word} x{p} = x[{step * self.block.words + p}];" for p in self._words]
        lines = ["{", *(f"    {line}" for line in self._weight_loads(channels, step))]
        if self.ahead:  # each word before the products of the one before it
            lines[1:1] = words[:1]
        for p in self._words:
            if not self.ahead:
                lines.append(words[p])
            for c in range(channels):
                if self.ahead and c == self._loads_before(channels) and p + 1 < self.block.words:
                    lines += [words[p + 1], f"    LOADED(x{p}, x{p + 1});"]
                lines.append(f"    p{p}{c} += w{c} * x{p};")
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


def safe_runs(
    magnitudes: NDArray[np.int64], step: int, longest: int = LONGEST_SUM
) -> list[int] | None:
    """Return lengths of runs, in rounds of ``step`` k, that are safe for every channel.

    Greedy: a round is added to a run while every channel's magnitudes add up to at most
    ``longest``. None where a single round is too much.

    Args:
        magnitudes: (channels, k), k a multiple of ``step``.
        longest: the largest sum of magnitudes in a run.
    """
    rounds = magnitudes.reshape(len(magnitudes), -1, step).sum(axis=2)
    if rounds.max(initial=0) > longest:
        return None
    runs: list[int] = []
    total, length = np.zeros(len(magnitudes), np.int64), 0
    for added in rounds.T:
        if length and ((total + added > longest).any() or length == 255):
            runs.append(length)
            total, length = np.zeros_like(total), 0
        total, length = total + added, length + 1
    return [*runs, length]

"""Fully connected layers on cores without SIMD: two output channels in one word.

With one pixel there is no second activation to pack, but there are two weights: one word of flash
holds two k of two channels, as bytes with 128 added. A mask gives ``w0 + (w1 << 16)`` for one k, a
shift and a mask for the other; one multiplication by the activation serves both channels.

What the 128 add is ``128 * 65537`` times the sum of the activations so far, the same for all
channels: a table of these (one entry a round) is made once. All of it is modulo 2**32, so only the
true sums have to fit 16 bits, and only between the ends of two runs, as in ``packed.py``::

    t = p - prefix;                the word sum without the 128
    h += (t - before + 0x8000) >> 16;
"""

from __future__ import annotations

import numpy as np

from covp.codegen.c_text import c_array, indent
from covp.codegen.kernels.packed import safe_runs
from covp.codegen.kernels.pin import pin, pin_macros
from covp.codegen.kernels.requantize import Requantizer
from covp.codegen.layer import Argument, KernelRequest, LayerCode, Scratch, prototype
from covp.graph.resolved import QuantizedConv2D

_BIAS = 128
_LANES = 65537


class PackedWeightsCode:
    """C text of one layer: ``pairs`` of channels at once, ``unroll`` times 2 k a round."""

    def __init__(
        self, request: KernelRequest, problem: QuantizedConv2D, pairs: int, unroll: int
    ) -> None:
        self.request = request
        self.problem = problem
        self.pairs = min(pairs, -(-problem.out_channels // 2))
        self.step = 2 * unroll
        weights = problem.weights.reshape(problem.out_channels, -1).astype(np.int64)
        self.depth = weights.shape[1]
        self.weights = np.pad(weights, ((0, problem.out_channels % 2), (0, 0)))
        self.bias, self.requantizer = Requantizer.of(request.core, problem)

    @staticmethod
    def takes(problem: QuantizedConv2D, unroll: int) -> bool:
        """Whether k comes in whole rounds, each of which fits a run."""
        weights = np.abs(problem.weights.reshape(problem.out_channels, -1).astype(np.int64))
        if weights.shape[1] % (2 * unroll):
            return False
        return safe_runs(weights, 2 * unroll) is not None

    def layer(self) -> LayerCode:
        """The whole layer."""
        op, p = self.request.op, self.problem
        rounds = self.depth // self.step
        arguments: dict[str, Argument] = {
            "input": op.input(0),
            "output": op.output,
            "scratch": Scratch(4 * rounds),
        }
        body = [
            "uint32_t *prefix = scratch;",
            f"for (int32_t row = 0; row < {p.batch}; row++) {{",
            "    make_prefix(input, prefix);",
            "    multiply(input, prefix, output);",
            f"    input += {self.depth};",
            f"    output += {p.out_channels};",
            "}",
        ]
        parts = [
            self.request.headline,
            "#include <stdint.h>",
            self.requantizer.includes,
            pin_macros(range(1, 3)),
            self._constants(),
            self.requantizer.function(),
            self._prefix(rounds),
            self._multiply(),
            prototype(self.request.function, op, arguments),
            "{",
            indent(body),
            "}\n",
        ]
        source = "\n".join(part for part in parts if part)
        schedule = f"packed weights, {2 * self.pairs}ch, unroll {self.step}"
        return LayerCode(op, self.request.function, source, arguments, schedule=schedule)

    def _constants(self) -> str:
        words, runs = [], []
        for start in range(0, len(self.weights), 2 * self.pairs):
            block = self.weights[start : start + 2 * self.pairs]
            # (channel pair, channel, k pair, k) to (k pair, channel pair, channel, k)
            by_k = block.reshape(-1, 2, self.depth // 2, 2).transpose(2, 0, 1, 3)
            words.append((by_k + _BIAS).astype(np.uint8).ravel())
            found = safe_runs(np.abs(block), self.step)
            assert found is not None
            runs += [*found, 0]
        columns = [self.bias, *self.requantizer.columns()]
        return (
            c_array("weights", np.concatenate(words), "2 channels x 2 k a word, 128 added")
            + c_array("runs", np.array(runs, np.uint8), f"safe rounds of {self.step} k, 0 ends")
            + c_array(
                "channel_table",
                np.stack(columns, axis=1).astype(np.int32),
                "bias, then requantization",
            )
        )

    def _prefix(self, rounds: int) -> str:
        adds = "".join(f"        sum += (uint32_t)input[{i}];\n" for i in range(self.step))
        return (
            "static inline void make_prefix(const int8_t *input, uint32_t *prefix)\n{\n"
            "    uint32_t sum = 0;\n"
            f"    for (int32_t i = 0; i < {rounds}; i++) {{\n{adds}"
            f"        input += {self.step};\n"
            f"        prefix[i] = sum * {_BIAS * _LANES}u;\n    }}\n}}\n"
        )

    def _multiply(self) -> str:
        full, rest = divmod(len(self.weights), 2 * self.pairs)
        odd = self.problem.out_channels % 2
        lines = [
            "static __attribute__((noinline)) void multiply(const int8_t *input,"
            " const uint32_t *prefix, int8_t *output)",
            "{",
            "    const uint32_t *w = (const uint32_t *)weights;",
            "    const uint8_t *run = runs;",
            "    const int32_t *q = channel_table;",
        ]
        # an odd last channel is written by a block of its own
        whole = full - (1 if odd and not rest else 0)
        if whole:
            lines.append(f"    for (int32_t block = 0; block < {whole}; block++) {{")
            lines += [indent(self._block(self.pairs, 2 * self.pairs), 2), "    }"]
        left = len(self.weights) - whole * 2 * self.pairs
        if left:
            lines += ["    {", indent(self._block(left // 2, left - odd), 2), "    }"]
        return "\n".join([*lines, "}\n"])

    def _block(self, pairs: int, channels: int) -> list[str]:
        columns = 1 + len(self.requantizer.columns())
        every = range(pairs)
        lines = [
            "uint32_t " + ", ".join(f"p{i} = 0, before{i} = 0xffff8000u" for i in every) + ";",
            "int32_t " + ", ".join(f"h{i} = 0" for i in every) + ";",
            "const int8_t *x = input;",
            "const uint32_t *sums = prefix - 1;",
            "uint32_t rounds = *run++;",
            "do {",
            f"    const int8_t *end = x + rounds * {self.step};",
            "    sums += rounds;",
            "    do {",
        ]
        for step in range(0, self.step, 2):
            lines.append(indent(self._two(pairs, step), 2))
        lines += [
            f"        x += {self.step};",
            f"        w += {self.step // 2 * pairs};",
            "    } while (x != end);",
            "    uint32_t sum = *sums;",
        ]
        for i in every:
            lines.append(
                f"    {{ uint32_t t = p{i} - sum; h{i} += (int32_t)(t - before{i}) >> 16;"
                f" before{i} = t - 0x8000u; }}"
            )
        lines += ["    rounds = *run++;", "} while (rounds);"]
        for channel in range(channels):
            i = channel // 2
            low = f"(int32_t)(before{i} + 0x8000u - ((uint32_t)h{i} << 16))"
            value = f"h{i}" if channel % 2 else low
            q = [f"q[{channel * columns + j}]" for j in range(columns)]
            lines.append(
                f"output[{channel}] = (int8_t)requantize({value} + {q[0]}, {', '.join(q[1:])});"
            )
        return [*lines, f"output += {channels};", f"q += {channels * columns};"]

    def _two(self, pairs: int, step: int) -> list[str]:
        """Two k: a word of each pair of channels times two activations."""
        lines = ["{", f"    uint32_t x0 = (uint32_t)x[{step}], x1 = (uint32_t)x[{step + 1}];"]
        for i in range(pairs):
            at = step // 2 * pairs + i
            lines += [
                f"    uint32_t w{i} = w[{at}];",
                f"    p{i} += (w{i} & 0x00ff00ffu) * x0;",
                f"    p{i} += ((w{i} >> 8) & 0x00ff00ffu) * x1;",
                f"    {pin([f'p{i}'])}",
            ]
        return [*lines, "}"]

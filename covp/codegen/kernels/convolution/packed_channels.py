"""Fully connected layers on cores without SIMD: two output channels in one word.

With one pixel there is no second activation to pack, but there are two weights: ``w0 + (w1 << 16)``
for one k, times the activation, serves both channels with one multiplication. In flash the weights
lie in one of two forms:

16 bits
    This word: a load, a multiplication and an addition for two products.
8 bits
    One word holds two k of two channels, as bytes with 128 added. A mask gives the word of one k;
    that of the other is the rest, divided by 256: by a shift and a mask, or, on cores with the high
    word of a product (RISC-V M: MULHSU), by multiplying with the activation's ``x << 24``.
    The 128 add ``128 * 65537`` times the sum of the activations so far, the same for all channels:
    a table of these (one entry per iteration) is made once.

All of it is modulo 2**32, so only true sums have to fit 16 bits, and only from the start of a run
to its end, as in ``packed_pixels.py``::

    p = 0x8000 - (what the 128 will add) + products;
    t += p;  h += p >> 16;

In an in-order core the instruction behind a load that uses it waits. ``packed_ahead`` has words of
16 bits and loads each word, and each activation, before the product of the one before it.

With the first iteration of a run peeled, its first products are added to the run's start value,
which saves a move per sum and run where registers suffice for two copies of the code.

The lower sum is ``t - (h << 16)`` in the end, less the runs' 0x8000, which the bias subtracts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.codegen.c_text import c_array, indent
from covp.codegen.kernels.compiler_barrier import LOADED, barrier_macros, compiler_barrier
from covp.codegen.kernels.convolution.packed_pixels import rounds_are_safe, safe_runs
from covp.codegen.kernels.operands import Operands
from covp.codegen.kernels.requantize.finisher import layer_finisher
from covp.codegen.layer import Argument, KernelRequest, LayerCode, Scratch
from covp.codegen.schedule import Schedule
from covp.graph.typed_convolution import QuantizedConv2D

LOADS_AHEAD = "packed_ahead"
"""The tile that loads ahead; ``packed_weights`` is the other one."""
_BIAS = 128
_LANES = 65537
_ROUNDING = 0x8000
"""Rounds the upper half up where the lower one is negative."""


class PackedWeightsCode:
    """C text of one layer: ``pairs`` of channels at once, ``unroll`` times 2 k per iteration.

    Args:
        schedule: with these two knobs, ``weights`` (8 or 16 bits, per weight in flash) and
            ``peeled`` (the first iteration of a run is written out before the loop).
    """

    def __init__(
        self,
        request: KernelRequest,
        problem: QuantizedConv2D,
        schedule: Schedule,
    ) -> None:
        self.request = request
        self.problem = problem
        self.pairs = min(schedule["pairs"], -(-problem.out_channels // 2))
        self.step = 2 * schedule["unroll"]
        self.narrow = schedule.knobs.get("weights", 16) == 8
        self.peeled = bool(schedule["peeled"])
        self.ahead = schedule.tile == LOADS_AHEAD
        self.by_high_word = request.core.architecture == "riscv"
        weights = problem.weights.reshape(problem.out_channels, -1).astype(np.int64)
        self.depth = weights.shape[1]
        self.weights = np.pad(weights, ((0, problem.out_channels % 2), (0, 0)))
        self.bias, self.requantizer = layer_finisher(request.core, problem)

    @staticmethod
    def fits(problem: QuantizedConv2D, unroll: int) -> bool:
        """Return whether iterations divide k evenly, and each of them fits a safe run."""
        depth = problem.weights.size // problem.out_channels
        return depth % (2 * unroll) == 0 and rounds_are_safe(problem, 2 * unroll)

    def layer(self, schedule: str) -> LayerCode:
        """Return the whole layer; ``schedule`` is for reports."""
        op, p = self.request.op, self.problem
        rounds = self.depth // self.step
        arguments: dict[str, Argument] = {"input": op.input(0), "output": op.output}
        multiply = "multiply(input, output);"
        body = [f"for (int32_t row = 0; row < {p.batch}; row++) {{"]
        if self.narrow:
            arguments["scratch"] = Scratch(4 * (rounds + 1))
            body = ["uint32_t *prefix = scratch;", *body, "    make_prefix(input, prefix);"]
            multiply = "multiply(input, prefix, output);"
        body += [
            f"    {multiply}",
            f"    input += {self.depth};",
            f"    output += {p.out_channels};",
            "}",
        ]
        functions = [
            self.requantizer.function(),
            self._prefix(rounds) if self.narrow else "",
            self._multiply(),
        ]
        includes = [self.requantizer.includes, barrier_macros([1])]
        if self.ahead:
            includes.append(LOADED)
        operands = Operands(arguments, self._constants())
        return operands.layer(self.request, body, functions, includes, schedule=schedule)

    def _constants(self) -> str:
        words, runs = [], []
        bias = self.bias.astype(np.int64)
        for start in range(0, len(self.weights), 2 * self.pairs):
            block = self.weights[start : start + 2 * self.pairs]
            words.append(self._words(block))
            found = safe_runs(np.abs(block), self.step)
            assert found is not None
            runs += [*found, 0]
            bias[start : start + 2 * self.pairs : 2] -= _ROUNDING * len(found)
        columns = [bias.astype(np.int32), *self.requantizer.columns()]
        layout = "2 channels x 2 k a word, 128 added" if self.narrow else "2 channels a word"
        return (
            c_array("weights", np.concatenate(words), layout)
            + c_array("runs", np.array(runs, np.uint8), f"safe rounds of {self.step} k, 0 ends")
            + c_array(
                "channel_table",
                np.stack(columns, axis=1).astype(np.int32),
                "bias, then requantization",
            )
        )

    def _words(self, block: NDArray[np.int64]) -> NDArray[Any]:
        """Return the weights of some channels in the order in which they are read."""
        if self.narrow:
            # (channel pair, channel, k pair, k) to (k pair, channel pair, channel, k)
            by_k = block.reshape(-1, 2, self.depth // 2, 2).transpose(2, 0, 1, 3)
            return np.ravel(by_k + _BIAS).astype(np.uint8)
        return np.ravel((block[0::2] + (block[1::2] << 16)).T).astype(np.int32)

    def _prefix(self, rounds: int) -> str:
        adds = "".join(f"        sum += (uint32_t)input[{i}];\n" for i in range(self.step))
        return (
            "static inline void make_prefix(const int8_t *input, uint32_t *prefix)\n{\n"
            "    uint32_t sum = 0;\n    *prefix++ = 0;\n"
            f"    for (int32_t i = 0; i < {rounds}; i++) {{\n{adds}"
            f"        input += {self.step};\n"
            f"        prefix[i] = sum * {_BIAS * _LANES}u;\n    }}\n}}\n"
        )

    def _multiply(self) -> str:
        full, rest = divmod(len(self.weights), 2 * self.pairs)
        odd = self.problem.out_channels % 2
        prefix = " const uint32_t *prefix," if self.narrow else ""
        lines = [
            "static __attribute__((noinline)) void multiply(const int8_t *input,"
            f"{prefix} int8_t *output)",
            "{",
            "    const word *w = (const void *)weights;",
            "    const uint8_t *run = runs;",
            "    const int32_t *q = channel_table;",
        ]
        # an odd last channel is written by a block of its own
        whole = full - (1 if odd and not rest else 0)
        if whole:
            lines.append(f"    for (int32_t block = 0; block < {whole}; block++) {{")
            inner = [*self._block(self.pairs, 2 * self.pairs), *self._advance(2 * self.pairs)]
            lines += [indent(inner, 2), "    }"]
        left = len(self.weights) - whole * 2 * self.pairs
        if left:
            lines += ["    {", indent(self._block(left // 2, left - odd), 2), "    }"]
        return "\n".join([*lines, "}\n"])

    def _block(self, pairs: int, channels: int) -> list[str]:
        columns = 1 + len(self.requantizer.columns())
        every = range(pairs)
        lines = [
            "uint32_t " + ", ".join(f"t{i} = 0" for i in every) + ";",
            "int32_t " + ", ".join(f"h{i} = 0" for i in every) + ";",
            "const int8_t *x = input;",
            "uint32_t rounds = *run++;",
            *(["const uint32_t *sums = prefix;"] if self.narrow else []),
            "do {",
            f"    const int8_t *end = x + rounds * {self.step};",
            indent(self._start()),
            indent(self._run(pairs)),
        ]
        lines += [f"    t{i} += p{i}; h{i} += (int32_t)p{i} >> 16;" for i in every]
        lines += ["    rounds = *run++;", "} while (rounds);"]
        for channel in range(channels):
            i = channel // 2
            value = f"(uint32_t)h{i}" if channel % 2 else f"t{i} - ((uint32_t)h{i} << 16)"
            q = [f"q[{channel * columns + j}]" for j in range(columns)]
            total = f"(int32_t)({value} + (uint32_t){q[0]})"
            lines.append(f"output[{channel}] = (int8_t)requantize({total}, {', '.join(q[1:])});")
        return lines

    def _advance(self, channels: int) -> list[str]:
        """Emit the step to the next block of channels."""
        return [
            f"output += {channels};",
            f"q += {channels * (1 + len(self.requantizer.columns()))};",
        ]

    def _start(self) -> list[str]:
        """Return the start value of the sums of a run."""
        if not self.narrow:
            return [f"uint32_t start = {_ROUNDING}u;"]
        return [f"uint32_t start = *sums + {_ROUNDING}u;", "sums += rounds;", "start -= *sums;"]

    def _run(self, pairs: int) -> list[str]:
        names = [f"p{i}" for i in range(pairs)]
        again = indent(self._round(pairs, first=False))
        if self.peeled:
            first = self._round(pairs, first=True)
            return [f"uint32_t {', '.join(names)};", *first, "while (x != end) {", again, "}"]
        starts = ", ".join(f"{name} = start" for name in names)
        return [f"uint32_t {starts};", "do {", again, "} while (x != end);"]

    def _round(self, pairs: int, first: bool) -> list[str]:
        if self.ahead:
            steps = self._steps_ahead(pairs, first)
            return [*steps, f"x += {self.step};", f"w += {self.step * pairs};"]
        step = self._step_narrow if self.narrow else self._step_wide
        k = 2 if self.narrow else 1
        steps = [indent(step(pairs, i, first and i == 0)) for i in range(0, self.step, k)]
        return [*steps, f"x += {self.step};", f"w += {self.step // k * pairs};"]

    def _step_narrow(self, pairs: int, step: int, first: bool) -> list[str]:
        """Return C text of two k: a word of each pair of channels times two activations."""
        second = f"(uint32_t)x[{step + 1}]"
        if self.by_high_word:
            second = f"(int32_t)({second} << 24)"
        kind = "int32_t" if self.by_high_word else "uint32_t"
        lines = ["{", f"    uint32_t x0 = (uint32_t)x[{step}]; {kind} x1 = {second};"]
        for i in range(pairs):
            rest = f"((w{i} >> 8) & 0x00ff00ffu) * x1"
            if self.by_high_word:
                rest = f"(uint32_t)(((int64_t)x1 * (w{i} & 0xff00ff00u)) >> 32)"
            lines += [
                f"    uint32_t w{i} = w[{step // 2 * pairs + i}];",
                f"    p{i} {'= start +' if first else '+='} (w{i} & 0x00ff00ffu) * x0;",
                f"    p{i} += {rest};",
                f"    {compiler_barrier([f'p{i}'])}",
            ]
        return [*lines, "}"]

    def _step_wide(self, pairs: int, step: int, first: bool) -> list[str]:
        """Emit one k: a word of each pair of channels times one activation."""
        lines = ["{", f"    uint32_t x0 = (uint32_t)x[{step}];"]
        for i in range(pairs):
            total = "start" if first else f"p{i}"
            lines += [
                f"    p{i} = {total} + w[{step * pairs + i}] * x0;",
                f"    {compiler_barrier([f'p{i}'])}",
            ]
        return [*lines, "}"]

    def _steps_ahead(self, pairs: int, first: bool) -> list[str]:
        """Emit all k of an iteration, each word loaded before the product of the one before it."""
        words = [(step, i) for step in range(self.step) for i in range(pairs)]
        lines = ["{", "    uint32_t x0 = (uint32_t)x[0];", "    uint32_t w0 = w[0];"]
        for number, (step, i) in enumerate(words):
            following = words[number + 1 : number + 2]
            for after, other in following:
                if other == 0:
                    lines.append(f"    uint32_t x{after} = (uint32_t)x[{after}];")
                lines.append(f"    uint32_t w{number + 1} = w[{number + 1}];")
                lines.append(f"    LOADED(w{number}, w{number + 1});")
            total = "start" if first and step == 0 else f"p{i}"
            lines += [
                f"    p{i} = {total} + w{number} * x{step};",
                f"    {compiler_barrier([f'p{i}'])}",
            ]
        return [*lines, "}"]

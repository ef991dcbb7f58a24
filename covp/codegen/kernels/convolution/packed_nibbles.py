"""int4 weights of two channels in one register, for cores without SIMD and one pixel at a time.

A word holds four k of two channels as nibbles with 8 added: ``(word >> 4 * i) & 0x000f000f`` has
the weights of k i, one channel in each half. One multiplication and one addition then serve two
sums, as in `packed_pixels.py`: sixteen k are a run, whose lower sum fits 16 bits
signed (16 * 15 * 128 is below 32768). The 8 that are added count 8 times the sum of the row's
inputs, which is the same for all channels.
"""

from __future__ import annotations

import numpy as np

from covp.codegen.c_text import c_array, indent
from covp.codegen.kernels.compiler_barrier import barrier_macros, compiler_barrier
from covp.codegen.kernels.convolution.patches import rows_in_place
from covp.codegen.kernels.operands import Operands
from covp.codegen.kernels.requantize.finisher import layer_finisher
from covp.codegen.layer import Argument, KernelRequest, LayerCode
from covp.graph.typed_convolution import QuantizedConv2D

_GROUP = 4
_RUN = 16
_OFFSET = 8
_ROUND = 0x8000


class PackedNibblesCode:
    """C text of one layer.

    Args:
        request: that is answered.
        problem: whose patches are rows of the input, see `fits`.
        pairs: of channels that are computed at once.
    """

    def __init__(self, request: KernelRequest, problem: QuantizedConv2D, pairs: int) -> None:
        self.request = request
        self.problem = problem
        self.pairs = pairs
        self.weights = problem.weights.reshape(problem.out_channels, -1)
        self.depth = self.weights.shape[1]
        self.bias, self.requantizer = layer_finisher(request.core, problem)

    @staticmethod
    def fits(problem: QuantizedConv2D, pairs: int) -> bool:
        """Return whether patches are rows of the input, with enough channels for the pairs."""
        return rows_in_place(problem) and 2 * pairs <= problem.out_channels + 1

    @property
    def _columns(self) -> int:
        return 1 + len(self.requantizer.columns())

    def _constants(self) -> str:
        """Return the words by block of channels, then group of k, then pair; the channel table."""
        groups = -(-self.depth // _GROUP)
        words = []
        for start in range(0, len(self.weights), 2 * self.pairs):
            block = self.weights[start : start + 2 * self.pairs].astype(np.int64)
            stored = np.zeros((len(block) + len(block) % 2, groups * _GROUP), np.int64)
            stored[: len(block), : self.depth] = block + _OFFSET
            shifted = stored.reshape(-1, 2, groups, _GROUP) << (4 * np.arange(_GROUP))
            lower, upper = shifted[:, 0].sum(axis=-1), shifted[:, 1].sum(axis=-1)
            words.append((lower | (upper << 16)).T.ravel())
        runs = -(-self.depth // _RUN)
        # every run adds the rounding to the sum of both channels
        start_values = self.bias.astype(np.int64)
        start_values[0::2] -= _ROUND * runs
        table = [start_values.astype(np.int32), *self.requantizer.columns()]
        return c_array(
            "weights", np.concatenate(words).astype(np.uint32), "by block, group of 4 k, pair"
        ) + c_array("channel_table", np.stack(table, axis=1), "start or bias, requantization")

    def layer(self, schedule: str) -> LayerCode:
        """Return the whole layer; ``schedule`` is for reports."""
        op, p = self.request.op, self.problem
        arguments: dict[str, Argument] = {"input": op.input(0), "output": op.output}
        rows = p.batch * p.out_height * p.out_width
        body = [
            f"for (int32_t row = 0; row < {rows}; row++)",
            f"    rows(input + row * {self.depth}, output + row * {p.out_channels});",
        ]
        return Operands(arguments, self._constants()).layer(
            self.request,
            body,
            [self.requantizer.function(), self._row()],
            [self.requantizer.includes, barrier_macros([1])],
            schedule=schedule,
        )

    def _row(self) -> str:
        """Return C text of ``rows(input, output)``: all channels of one row."""
        full, rest = divmod(len(self.weights), 2 * self.pairs)
        lines = [
            "static __attribute__((noinline)) void rows(const int8_t *input, int8_t *output)",
            "{",
            "    const uint32_t *w = weights;",
            "    const int32_t *q = channel_table;",
            "    int32_t inputs = 0;",
            f"    for (int32_t k = 0; k < {self.depth}; k++)",
            "        inputs += input[k];",
            f"    const uint32_t offset = (uint32_t)inputs * {_OFFSET}u;",
        ]
        if full:
            lines.append(f"    for (int32_t block = 0; block < {full}; block++) {{")
            inner = [*self._block(2 * self.pairs), *self._advance(2 * self.pairs)]
            lines += [indent(inner, 2), "    }"]
        if rest:
            lines += ["    {", indent(self._block(rest), 2), "    }"]
        return "\n".join([*lines, "}\n"])

    def _block(self, channels: int) -> list[str]:
        pairs, columns = -(-channels // 2), self._columns
        runs, rest = divmod(self.depth, _RUN)
        starts = ", ".join(f"t{n} = (uint32_t)q[{2 * n * columns}]" for n in range(pairs))
        lines = [
            f"uint32_t {starts};",
            f"int32_t {', '.join(f'h{n} = 0' for n in range(pairs))};",
            "const int8_t *x = input;",
        ]
        first = f"int32_t {', '.join(f'p{n} = {_ROUND}' for n in range(pairs))};"
        last = [f"t{n} += (uint32_t)p{n}; h{n} += p{n} >> 16;" for n in range(pairs)]
        if runs:
            groups = [line for at in (0, 1) for line in self._emit_group(pairs, at, _GROUP)]
            lines += [
                f"for (int32_t run = 0; run < {runs}; run++) {{",
                f"    {first}",
                f"    for (int32_t i = 0; i < {_RUN // _GROUP // 2}; i++) {{",
                indent(groups, 2),
                f"        x += {2 * _GROUP};",
                f"        w += {2 * pairs};",
                "    }",
                indent(last),
                "}",
            ]
        if rest:
            whole, tail = divmod(rest, _GROUP)
            inner = [line for at in range(whole) for line in self._emit_group(pairs, at, _GROUP)]
            inner += self._emit_group(pairs, whole, tail) if tail else []
            lines += ["{", indent([first, *inner, *last]), "}"]
            lines.append(f"w += {(whole + (tail > 0)) * pairs};")
        return [*lines, *self._results(channels)]

    def _advance(self, channels: int) -> list[str]:
        """Emit the step to the next block of channels."""
        return [f"output += {channels};", f"q += {channels * self._columns};"]

    def _emit_group(self, pairs: int, at: int, count: int) -> list[str]:
        """Emit up to four k of all pairs of channels."""
        loads = ", ".join(f"x{i} = x[{at * _GROUP + i}]" for i in range(count))
        lines = ["{", f"    int32_t {loads};"]
        for n in range(pairs):
            lines.append(f"    uint32_t v{n} = w[{at * pairs + n}];")
            for i in range(count):
                shifted = f"(v{n} >> {4 * i})" if i else f"v{n}"
                lines.append(f"    p{n} += (int32_t)({shifted} & 0x000f000fu) * x{i};")
            lines.append("    " + compiler_barrier([f"p{n}"]))
        return [*lines, "}"]

    def _results(self, channels: int) -> list[str]:
        lines = []
        for c in range(channels):
            n, at = c // 2, c * self._columns
            constants = "".join(f", q[{at + i}]" for i in range(1, self._columns))
            total = f"t{n} - ((uint32_t)h{n} << 16)" if c % 2 == 0 else f"(uint32_t)h{n}"
            bias = "" if c % 2 == 0 else f" + (uint32_t)q[{at}]"
            value = f"(int32_t)({total}{bias} - offset)"
            lines.append(f"output[{c}] = (int8_t)requantize({value}{constants});")
        return lines

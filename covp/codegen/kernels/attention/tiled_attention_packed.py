"""Products of attention on cores without SIMD; of weights times values two to a word.

A weight is a byte, and the weights of a row add up to about 256. With values as unsigned bytes, two
of them 16 bits apart in a word, one multiplication adds to two sums, as long as no sum leaves 16
bits: that is certain while the weights added so far are at most 65535 / 255 = 257. Rounding may
take them further; then the halves are moved to sums of their own, and it begins anew.

`PlainProducts` multiply one by one: keys and values are read where they lie, their zero points are
taken from the sums.
"""

from __future__ import annotations

from dataclasses import dataclass

from covp.chip.cores import Core
from covp.codegen.c_text import indent
from covp.codegen.kernels.attention.tiled_attention_products import (
    Products,
    block,
    declare,
    in_order,
)
from covp.graph.ops.tiled_attention import TiledAttention


@dataclass(frozen=True)
class PlainProducts(Products):
    """Products of attention, computed one at a time."""

    score_arguments = "queries, k, codes_of"
    mix_arguments = "weights_of, v"

    def load_head(self) -> list[str]:
        return []

    def _blocks(self, extent: int) -> list[tuple[int, int, int]]:
        """Return (columns, first, end) of the blocks that make up all columns."""
        whole = extent - extent % self.columns
        parts = [(self.columns, 0, whole), (1, whole, extent)]
        return [part for part in parts if part[1] < part[2]]

    def _pass(
        self, rows: int, columns: int, count: int, x: tuple[str, int], y: tuple[str, int, int]
    ) -> list[str]:
        """Return the sums of a block.

        Args:
            rows, columns: of the block.
            count: products of a sum.
            x: C name and stride of rows.
            y: C name, strides of columns and of products.
        """
        adds = [f"int32_t x{r} = {x[0]}[i + {r * x[1]}];" for r in range(rows)]
        for c in range(columns):
            adds.append(f"int32_t y{c} = y[{c * y[1]}];")
            adds += [f"s{r}{c} += x{r} * y{c};" for r in range(rows)]
            adds.append(in_order([f"s{r}{c}" for r in range(rows)]))
        return [
            declare(block(rows, columns), "z{r}"),
            f"const int8_t *y = {y[0]} + column * {y[1]};",
            f"#pragma GCC unroll {next(n for n in (8, 7, 6, 5, 4, 3, 2, 1) if count % n == 0)}",
            f"for (int32_t i = 0; i < {count}; i++) {{",
            indent([*adds, f"y += {y[2]};"]),
            "}",
        ]

    def _starts(self, rows: int, zero: int, count: int, x: tuple[str, int]) -> list[str]:
        """Return the C that computes each row's correction for the second factor's zero point."""
        lines = ["int32_t " + ", ".join(f"z{r} = 0" for r in range(rows)) + ";"]
        if zero:
            lines += [f"for (int32_t i = 0; i < {count}; i++) {{"]
            lines += [f"    z{r} -= {x[0]}[i + {r * x[1]}];" for r in range(rows)]
            lines += ["}", *(f"z{r} *= {zero};" for r in range(rows))]
        return lines

    def scores(self, rows: int) -> str:
        s = self.shape
        key, depth = s.k[self.axes :]
        x = ("queries", self.query_stride)
        lines = self._starts(rows, self.zeros[1], s.depth, x)
        for columns, first, end in self._blocks(s.keys):
            body = self._pass(rows, columns, s.depth, x, ("k", key, depth))
            body += [
                f"codes_of[column + {r * self.code_stride + c}] = CODE(to_scores(s{r}{c}, factor));"
                for r, c in block(rows, columns)
            ]
            lines += _columns(columns, first, end, body)
        return (
            f"static __attribute__((noinline)) void scores{rows}(const int16_t *queries,"
            " const int8_t *k,\n    uint8_t *codes_of)\n{\n    START_scores;\n"
            f"{indent(lines)}\n}}\n"
        )

    def mix(self, rows: int) -> str:
        s = self.shape
        (value, width), (row, step) = s.v[self.axes :], s.output[self.axes :]
        x = ("weights_of", self.weight_stride)
        lines = self._starts(rows, self.zeros[2], s.keys, x)
        for columns, first, end in self._blocks(s.width):
            body = self._pass(rows, columns, s.keys, x, ("v", width, value))
            body += [
                f"output[column * {step} + {r * row + c * step}] = (int8_t)to_mix(s{r}{c}, factor);"
                for r, c in block(rows, columns)
            ]
            lines += _columns(columns, first, end, body)
        return (
            f"static __attribute__((noinline)) void mix{rows}(const int16_t *weights_of,"
            f" const int8_t *v,\n    int8_t *output)\n{{\n    START_mix;\n{indent(lines)}\n}}\n"
        )


def _columns(columns: int, first: int, end: int, body: list[str]) -> list[str]:
    head = f"for (int32_t column = {first}; column < {end}; column += {columns}) {{"
    return [head, indent(body), "}"]


_MOST = 257


@dataclass(frozen=True)
class PackedProducts(PlainProducts):
    """Products of attention: scores one at a time, weighted values two at a time.

    Attributes:
        words: of values at once.
        together: rows of weights at once.
    """

    words: int = 4
    together: int = 2

    mix_arguments = "weights_of, (const void *)values"

    @property
    def _parts(self) -> list[tuple[int, int]]:
        """Numbers of blocks, with the columns of each."""
        full, rest = divmod(self.shape.width, 2 * self.words)
        return [part for part in ((full, 2 * self.words), (1 if rest else 0, rest)) if part[0]]

    def head_bytes(self) -> dict[str, int]:
        """Return words of all values, an odd last one beside nothing."""
        return {"values": 4 * self.shape.keys * ((self.shape.width + 1) // 2)}

    def load_head(self) -> list[str]:
        """Emit the copy of V as unsigned bytes, by block of columns, key and pair of columns."""
        s = self.shape
        value, width = s.v[self.axes :]
        lines = [f"word *to_value = (void *)((uint8_t *)scratch + {self.places()['values']});"]
        first = 0
        for blocks, columns in self._parts:
            steps = []
            for c in range(0, columns, 2):
                low = f"(uint32_t)(from[{c * width}] + 128)"
                high = f" | (uint32_t)(from[{(c + 1) * width}] + 128) << 16"
                steps.append(f"*to_value++ = {low}{high if c + 1 < columns else ''};")
            lines += [
                f"for (int32_t block = 0; block < {blocks}; block++)",
                f"    for (int32_t t = 0; t < {s.keys}; t++) {{",
                f"        const int8_t *from = v_of + t * {value} + block * {columns * width}"
                f" + {first * width};",
                indent(steps, 2),
                "    }",
            ]
            first += blocks * columns
        return lines

    def pointers(self) -> list[str]:
        """Return the pointers; the values are in scratch."""
        return [*super().pointers(), "(void)v;"]

    def functions(self) -> list[str]:
        """Return the C functions, those for the products of one or two rows first."""
        rests = {rows % self.together for rows in self.tiles(self.shape.queries)} - {0}
        sizes = {self.together, *rests} if self._some_full else rests
        return [*(self._few_rows(n) for n in sorted(sizes)), *super().functions()]

    @property
    def _some_full(self) -> bool:
        return any(rows >= self.together for rows in self.tiles(self.shape.queries))

    def mix(self, rows: int) -> str:
        """Return a few rows at a time."""
        row = self.shape.output[self.axes]
        whole = rows - rows % self.together
        calls = []
        for n, first, end in ((self.together, 0, whole), (rows - whole, whole, rows)):
            if first < end:
                at = f"weights_of + r * {self.weight_stride}, values, output + r * {row}"
                calls += [f"for (int32_t r = {first}; r < {end}; r += {n})", f"    few{n}({at});"]
        return (
            f"static void mix{rows}(const int16_t *weights_of, const word *values,"
            f" int8_t *output)\n{{\n{indent(calls)}\n}}\n"
        )

    def _few_rows(self, n: int) -> str:
        step = self.shape.output[self.axes + 1]
        lines = []
        for blocks, columns in self._parts:
            lines += [
                f"for (int32_t block = 0; block < {blocks}; block++) {{",
                indent([*self._block(n, columns), f"output += {columns * step};"]),
                "}",
            ]
        return (
            f"static __attribute__((noinline)) void few{n}(const int16_t *weights_of,"
            " const word *values,\n    int8_t *output)\n{\n    START_mix;\n"
            f"{indent(lines)}\n}}\n"
        )

    def _block(self, n: int, columns: int) -> list[str]:
        """Return the sums of some rows and columns, and their output."""
        (row, step), words = self.shape.output[self.axes :], (columns + 1) // 2
        every = [(r, w) for r in range(n) for w in range(words)]
        move = [
            f"wide[{2 * (r * words + w) + half}] += (int32_t)({part.format(f'a{r}{w}')});"
            for r, w in every
            for half, part in ((0, "{} & 0xffffu"), (1, "{} >> 16"))
        ]
        anew = [f"a{r}{w} = 0;" for r, w in every]
        adds = [
            f"uint32_t x{r} = (uint32_t)weights_of[{r * self.weight_stride} + i];" for r in range(n)
        ]
        adds += [f"n{r} += x{r};" for r in range(n)]
        adds.append(f"if ({' || '.join(f'n{r} > {_MOST}' for r in range(n))}) {{")
        adds.append(indent([*move, *anew]))
        adds += [f"    all{r} += n{r} - x{r}; n{r} = x{r};" for r in range(n)]
        adds.append("}")
        for w in range(words):
            adds.append(f"uint32_t y{w} = values[{w}];")
            adds += [f"a{r}{w} += x{r} * y{w};" for r in range(n)]
        zero = 128 + self.zeros[2]
        totals = [
            f"output[{r * row + c * step}] = (int8_t)to_mix(wide[{2 * r * words + c}]"
            f" - {zero} * (int32_t)all{r}, factor);"
            for r in range(n)
            for c in range(columns)
        ]
        return [
            f"int32_t wide[{2 * n * words}] = {{0}};",
            "uint32_t " + ", ".join(f"a{r}{w} = 0" for r, w in every) + ";",
            "uint32_t " + ", ".join(f"n{r} = 0, all{r} = 0" for r in range(n)) + ";",
            f"#pragma GCC unroll {next(n for n in (4, 3, 2, 1) if self.shape.keys % n == 0)}",
            f"for (int32_t i = 0; i < {self.shape.keys}; i++) {{",
            indent([*adds, f"values += {words};"]),
            "}",
            *move,
            *(f"all{r} += n{r};" for r in range(n)),
            *totals,
        ]


def packed_products(core: Core, attention: TiledAttention) -> PackedProducts:
    """Return packed products with as many sums as the core has registers for."""
    if core.architecture == "riscv":
        return PackedProducts(core, attention, 4)
    return PackedProducts(core, attention, 2, 2, words=2, together=1)

"""Products of attention one by one: keys and values are read where they lie.

Their zero points are taken from the sums.
"""

from __future__ import annotations

from dataclasses import dataclass

from covp.codegen.c_text import indent
from covp.codegen.kernels.attention.tiled_attention_products import (
    Products,
    block,
    declare,
    in_order,
)


@dataclass(frozen=True)
class PlainProducts(Products):
    """One product at a time."""

    score_arguments = "queries, k, codes_of"
    mix_arguments = "weights_of, v"

    def load_head(self) -> list[str]:
        return []

    def _blocks(self, extent: int) -> list[tuple[int, int, int]]:
        """(columns, first, end)."""
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

"""Products of attention with SMLAD: keys and values widened to int16, two to a word.

Their zero points are taken off when a head begins.
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
    up,
)
from covp.graph.ops.tiled_attention import TiledAttention

# four bytes at once: SEL takes those of its second operand where USUB8 found them smaller
_LEAST_OF_FOUR = """\
    uint32_t four = 0xffffffffu;
    for (int32_t i = 0; i < $words; i++) {
        uint32_t next = word_at(codes + 4 * i);
        __usub8(next, four);
        four = __sel(four, next);
    }
    for (int32_t i = 0; i < 4; i++, four >>= 8)
        least = (four & 255u) < least ? four & 255u : least;
    for (int32_t i = 4 * $words; i < $keys; i++)
        least = codes[i] < least ? codes[i] : least;"""


@dataclass(frozen=True)
class _DspProducts(Products):
    """Pairs of int16: keys by blocks of four, then pairs along the depth; values by blocks of four
    elements, then pairs of keys."""

    includes = "#include <arm_acle.h>"
    least = _LEAST_OF_FOUR
    score_arguments = "(const void *)queries, (const void *)keys, codes_of"
    mix_arguments = "(const void *)weights_of, (const void *)values"

    def head_bytes(self) -> dict[str, int]:
        s = self.shape
        return {
            "keys": 2 * self.code_stride * self.query_stride,
            "values": 2 * self.weight_stride * up(s.width, 4),
        }

    def pointers(self) -> list[str]:
        return [*super().pointers(), "(void)k;", "(void)v;"]

    def load_head(self) -> list[str]:
        s, places = self.shape, self.places()
        (key, depth), (value, width) = s.k[self.axes :], s.v[self.axes :]
        zeros = [f" - ({zero})" if zero else "" for zero in self.zeros]
        pairs, halves = self.query_stride // 2, self.weight_stride // 2
        return [
            f"int16_t *keys = (void *)((uint8_t *)scratch + {places['keys']});",
            f"int16_t *values = (void *)((uint8_t *)scratch + {places['values']});",
            f"for (int32_t t = 0; t < {s.keys}; t++) {{",
            f"    int16_t *to_key = keys + (t / 4) * {8 * pairs} + t % 4 * 2;",
            f"    for (int32_t d = 0; d < {s.depth}; d++)",
            f"        to_key[d / 2 * 8 + d % 2] = "
            f"(int16_t)(k_of[t * {key} + d * {depth}]{zeros[1]});",
            "    int16_t *to_value = values + t / 2 * 8 + t % 2;",
            f"    for (int32_t w = 0; w < {s.width}; w++)",
            f"        to_value[w / 4 * {8 * halves} + w % 4 * 2] = "
            f"(int16_t)(v_of[t * {value} + w * {width}]{zeros[2]});",
            "}",
        ]

    def _pass(self, rows: int, stride: int, factor: str, words: int) -> list[str]:
        """Return the sums of a block: ``words`` pairs of each of some rows and four columns."""
        pairs = block(rows, 4)
        adds = [f"int32_t x{r} = (int32_t)x[{r * stride}];" for r in range(rows)]
        for c in range(4):
            adds.append(f"int32_t y{c} = (int32_t){factor}[{c}];")
            adds += [f"s{r}{c} = __smlad(x{r}, y{c}, s{r}{c});" for r in range(rows)]
            adds.append(in_order([f"s{r}{c}" for r in range(rows)]))
        unroll = next(n for n in (8, 7, 6, 5, 4, 3, 2, 1) if words % n == 0)
        return [
            declare(pairs),
            f"#pragma GCC unroll {unroll}",
            f"for (int32_t i = 0; i < {words}; i++) {{",
            indent([*adds, "x++;", f"{factor} += 4;"]),
            "}",
        ]

    def scores(self, rows: int) -> str:
        words = self.query_stride // 2
        body = ["const word *x = queries;", *self._pass(rows, words, "keys", words)]
        body += [
            f"codes_of[{r * self.code_stride + c}] = CODE(to_scores(s{r}{c}, factor));"
            for r, c in block(rows, 4)
        ]
        return (
            f"static __attribute__((noinline)) void scores{rows}(const word *queries,"
            " const word *keys,\n    uint8_t *codes_of)\n{\n    START_scores;\n"
            f"    for (int32_t block = 0; block < {self.code_stride // 4}; block++) {{\n"
            f"{indent([*body, 'codes_of += 4;'], 2)}\n    }}\n}}\n"
        )

    def mix(self, rows: int) -> str:
        s, words = self.shape, self.weight_stride // 2
        row, step = s.output[self.axes :]
        lines = []
        full, rest = divmod(s.width, 4)
        for blocks, columns in ((full, 4), (1, rest)):
            if not blocks or not columns:
                continue
            body = ["const word *x = weights_of;", *self._pass(rows, words, "values", words)]
            body += [
                f"output[{r * row + c * step}] = (int8_t)to_mix(s{r}{c}, factor);"
                for r, c in block(rows, columns)
            ]
            body += [f"(void)s{r}{c};" for r, c in block(rows, 4) if c >= columns]
            lines += [
                f"for (int32_t block = 0; block < {blocks}; block++) {{",
                indent([*body, f"output += {4 * step};"]),
                "}",
            ]
        return (
            f"static __attribute__((noinline)) void mix{rows}(const word *weights_of,"
            " const word *values,\n    int8_t *output)\n{\n    START_mix;\n"
            f"{indent(lines)}\n}}\n"
        )


def dsp_products(core: Core, attention: TiledAttention) -> Products:
    """Return the products for cores with SMLAD: 2 rows x 4 columns of sums in registers."""
    return _DspProducts(core, attention, 2)

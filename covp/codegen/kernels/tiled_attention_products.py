"""The two products of attention on a tile of query rows, by what the core multiplies with.

`dsp_products` widens keys and values to int16, less their zero points, two to a word, for SMLAD;
`plain_products` reads them where they lie and takes the zero points from the sums.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from covp.codegen.c_text import indent
from covp.cores import Core
from covp.graph.ops.tiled_attention import AttentionShape, TiledAttention

_TABLE_BYTES = 260  # 256 weights and their number


def _in_order(sums: Sequence[str]) -> str:
    """C text after which loads come later: ahead of their use they push sums out of registers."""
    operands = ", ".join(f'"+r"({name})' for name in sums)
    return f'__asm__ volatile("" : {operands} : : "memory");'


def _up(extent: int, multiple: int) -> int:
    return -(-extent // multiple) * multiple


@dataclass(frozen=True)
class Products(ABC):
    """C text of the products.

    Scratch holds, in this order: the table of a row's weights, the codes and weights of a tile's
    rows, its queries, then what `load_head` makes of keys and values.

    Attributes:
        core: that it is for.
        attention: the operator.
        rows: of a tile.
        columns: keys, or elements of values, at once.
    """

    core: Core
    attention: TiledAttention
    rows: int
    columns: int = 4

    weight_type = "int16_t"
    includes = ""
    least = ""
    score_arguments = ""
    mix_arguments = ""

    @property
    def shape(self) -> AttentionShape:
        """Of the operator."""
        return self.attention.shape

    @property
    def axes(self) -> int:
        """Axes of independent attentions: the strides before those of a matrix."""
        return len(self.shape.batches)

    @property
    def zeros(self) -> tuple[int, int, int]:
        """Zero points of queries, keys and values."""
        scores, mix = self.attention.scores, self.attention.mix
        return scores.input(0).zero_point, scores.input(1).zero_point, mix.input(1).zero_point

    @property
    def code_stride(self) -> int:
        """Bytes from a row of codes to the next; keys in whole blocks."""
        return _up(self.shape.keys, 4)

    @property
    def weight_stride(self) -> int:
        """Weights from a row to the next."""
        return _up(self.shape.keys, 4)

    @property
    def query_stride(self) -> int:
        """int16 from a row of queries to the next."""
        return _up(self.shape.depth, 2)

    def places(self) -> dict[str, int]:
        """Byte offsets in scratch; "end" is where it ends."""
        sizes = {
            "table_of": _TABLE_BYTES,
            "codes_of": self.rows * self.code_stride,
            "weights_of": 2 * self.rows * self.weight_stride,
            "queries": 2 * self.rows * self.query_stride,
            **self.head_bytes(),
        }
        found, at = {}, 0
        for name, size in sizes.items():
            found[name] = at
            at += _up(size, 4)
        return {**found, "end": at}

    def head_bytes(self) -> dict[str, int]:
        """Sizes of what `load_head` makes."""
        return {}

    @property
    def scratch_bytes(self) -> int:
        """Of the whole layer."""
        return self.places()["end"]

    def tiles(self, queries: int) -> list[int]:
        """The numbers of rows that tiles have."""
        rest = queries % self.rows
        return [*([self.rows] if queries >= self.rows else []), *([rest] if rest else [])]

    def start(self) -> list[str]:
        """C text before all heads: the table is empty, what padding stands for is 0."""
        words = self.places()["end"] // 4
        return [f"for (int32_t i = 0; i < {words}; i++)", "    ((uint32_t *)scratch)[i] = 0;"]

    def pointers(self) -> list[str]:
        """C declarations of the parts of scratch inside a tile."""
        places = self.places()
        kinds = {"table_of": "uint8_t", "codes_of": "uint8_t", "weights_of": self.weight_type}
        return [
            f"{kinds.get(name, 'int16_t')} *{name} = ({kinds.get(name, 'int16_t')} *)"
            f"(scratch + {at});"
            for name, at in places.items()
            if name != "end"
        ]

    def load_queries(self, rows: int) -> list[str]:
        """C text that copies the queries of a tile, less their zero point."""
        row, step = self.shape.q[self.axes :]
        zero = self.zeros[0]
        value = f"q[r * {row} + d * {step}]" + (f" - ({zero})" if zero else "")
        return [
            f"for (int32_t r = 0; r < {rows}; r++)",
            f"    for (int32_t d = 0; d < {self.shape.depth}; d++)",
            f"        queries[r * {self.query_stride} + d] = (int16_t)({value});",
        ]

    @abstractmethod
    def load_head(self) -> list[str]:
        """C text before the tiles of a head; q_of, k_of and v_of are its inputs."""

    def functions(self) -> list[str]:
        """C text of scores<rows>() and mix<rows>() for all tiles."""
        tiles = self.tiles(self.shape.queries)
        return [make(rows) for rows in tiles for make in (self.scores, self.mix)]

    @abstractmethod
    def scores(self, rows: int) -> str:
        """C text of scores<rows>(): queries times keys, as codes."""

    @abstractmethod
    def mix(self, rows: int) -> str:
        """C text of mix<rows>(): weights times values, to the output."""


def _block(rows: int, columns: int) -> list[tuple[int, int]]:
    return [(r, c) for r in range(rows) for c in range(columns)]


def _declare(pairs: Sequence[tuple[int, int]], value: str = "0") -> str:
    """Sums of a block; {r} of the value is the row."""
    return "int32_t " + ", ".join(f"s{r}{c} = {value.format(r=r)}" for r, c in pairs) + ";"


# four bytes at once: SEL takes those of its second operand where USUB8 found them smaller
_LEAST_OF_FOUR = """\
    uint32_t four = 0xffffffffu;
    for (int32_t i = 0; i < $words; i++) {
        uint32_t next = ((const uint32_t *)codes)[i];
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
    score_arguments = "(const uint32_t *)queries, (const uint32_t *)keys, codes_of"
    mix_arguments = "(const uint32_t *)weights_of, (const uint32_t *)values"

    def head_bytes(self) -> dict[str, int]:
        s = self.shape
        return {
            "keys": 2 * self.code_stride * self.query_stride,
            "values": 2 * self.weight_stride * _up(s.width, 4),
        }

    def pointers(self) -> list[str]:
        return [*super().pointers(), "(void)k;", "(void)v;"]

    def load_head(self) -> list[str]:
        s, places = self.shape, self.places()
        (key, depth), (value, width) = s.k[self.axes :], s.v[self.axes :]
        zeros = [f" - ({zero})" if zero else "" for zero in self.zeros]
        pairs, halves = self.query_stride // 2, self.weight_stride // 2
        return [
            f"int16_t *keys = (int16_t *)((uint8_t *)scratch + {places['keys']});",
            f"int16_t *values = (int16_t *)((uint8_t *)scratch + {places['values']});",
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
        """The sums of a block: ``words`` pairs of each of some rows and four columns."""
        pairs = _block(rows, 4)
        adds = [f"uint32_t x{r} = x[{r * stride}];" for r in range(rows)]
        for c in range(4):
            adds.append(f"uint32_t y{c} = {factor}[{c}];")
            adds += [f"s{r}{c} = __smlad(x{r}, y{c}, s{r}{c});" for r in range(rows)]
            adds.append(_in_order([f"s{r}{c}" for r in range(rows)]))
        unroll = next(n for n in (4, 2, 1) if words % n == 0)
        return [
            _declare(pairs),
            f"#pragma GCC unroll {unroll}",
            f"for (int32_t i = 0; i < {words}; i++) {{",
            indent([*adds, "x++;", f"{factor} += 4;"]),
            "}",
        ]

    def scores(self, rows: int) -> str:
        words = self.query_stride // 2
        body = ["const uint32_t *x = queries;", *self._pass(rows, words, "keys", words)]
        body += [
            f"codes_of[{r * self.code_stride + c}] = CODE(to_scores(s{r}{c}, factor));"
            for r, c in _block(rows, 4)
        ]
        return (
            f"static __attribute__((noinline)) void scores{rows}(const uint32_t *queries,"
            " const uint32_t *keys,\n    uint8_t *codes_of)\n{\n    START_scores;\n"
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
            body = ["const uint32_t *x = weights_of;", *self._pass(rows, words, "values", words)]
            body += [
                f"output[{r * row + c * step}] = (int8_t)to_mix(s{r}{c}, factor);"
                for r, c in _block(rows, columns)
            ]
            body += [f"(void)s{r}{c};" for r, c in _block(rows, 4) if c >= columns]
            lines += [
                f"for (int32_t block = 0; block < {blocks}; block++) {{",
                indent([*body, f"output += {4 * step};"]),
                "}",
            ]
        return (
            f"static __attribute__((noinline)) void mix{rows}(const uint32_t *weights_of,"
            " const uint32_t *values,\n    int8_t *output)\n{\n    START_mix;\n"
            f"{indent(lines)}\n}}\n"
        )


@dataclass(frozen=True)
class _PlainProducts(Products):
    """One product at a time."""

    score_arguments = "queries, k, codes_of"
    mix_arguments = "weights_of, v"

    def load_head(self) -> list[str]:
        return []

    def pointers(self) -> list[str]:
        return super().pointers()

    def _blocks(self, extent: int) -> list[tuple[int, int, int]]:
        """(columns, first, end)."""
        whole = extent - extent % self.columns
        parts = [(self.columns, 0, whole), (1, whole, extent)]
        return [part for part in parts if part[1] < part[2]]

    def _pass(
        self, rows: int, columns: int, count: int, x: tuple[str, int], y: tuple[str, int, int]
    ) -> list[str]:
        """The sums of a block.

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
            adds.append(_in_order([f"s{r}{c}" for r in range(rows)]))
        return [
            _declare(_block(rows, columns), "z{r}"),
            f"const int8_t *y = {y[0]} + column * {y[1]};",
            f"for (int32_t i = 0; i < {count}; i++) {{",
            indent([*adds, f"y += {y[2]};"]),
            "}",
        ]

    def _starts(self, rows: int, zero: int, count: int, x: tuple[str, int]) -> list[str]:
        """What the zero point of the second factor takes from the sums of each row."""
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
                for r, c in _block(rows, columns)
            ]
            lines += _columns(columns, first, end, body)
        return (
            f"static __attribute__((noinline)) void scores{rows}(const int16_t *queries,"
            f" const int8_t *k,\n    uint8_t *codes_of)\n{{\n    START_scores;\n{indent(lines)}\n}}\n"
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
                for r, c in _block(rows, columns)
            ]
            lines += _columns(columns, first, end, body)
        return (
            f"static __attribute__((noinline)) void mix{rows}(const int16_t *weights_of,"
            f" const int8_t *v,\n    int8_t *output)\n{{\n    START_mix;\n{indent(lines)}\n}}\n"
        )


def _columns(columns: int, first: int, end: int, body: list[str]) -> list[str]:
    head = f"for (int32_t column = {first}; column < {end}; column += {columns}) {{"
    return [head, indent(body), "}"]


def dsp_products(core: Core, attention: TiledAttention) -> Products:
    """For cores with SMLAD: 2 rows x 4 columns of sums in registers."""
    return _DspProducts(core, attention, 2)


def plain_products(core: Core, attention: TiledAttention) -> Products:
    """For the others: as many sums as there are registers for."""
    if core.architecture == "riscv":
        return _PlainProducts(core, attention, 4)
    return _PlainProducts(core, attention, 2, 2)

"""The two products of attention on a tile of query rows: what their forms have in common.

`tiled_attention_dsp` and `tiled_attention_plain` are the forms, by what the core multiplies with.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from covp.chip.cores import Core
from covp.graph.ops.tiled_attention import AttentionShape, TiledAttention

_TABLE_BYTES = 260  # 256 weights and their number


def in_order(sums: Sequence[str]) -> str:
    """Return a C barrier that keeps later loads from pushing sums out of registers."""
    operands = ", ".join(f'"+r"({name})' for name in sums)
    return f'__asm__ volatile("" : {operands} : : "memory");'


def up(extent: int, multiple: int) -> int:
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
        """The operator's shape."""
        return self.attention.shape

    @property
    def axes(self) -> int:
        """The number of leading axes, along which attentions are independent."""
        return len(self.shape.batches)

    @property
    def zeros(self) -> tuple[int, int, int]:
        """Zero points of queries, keys and values."""
        scores, mix = self.attention.scores, self.attention.mix
        return scores.input(0).zero_point, scores.input(1).zero_point, mix.input(1).zero_point

    @property
    def code_stride(self) -> int:
        """Bytes from one row of codes to the next, whose keys fill whole blocks."""
        return up(self.shape.keys, 4)

    @property
    def weight_stride(self) -> int:
        """The number of weights from one row to the next."""
        return up(self.shape.keys, 4)

    @property
    def query_stride(self) -> int:
        """The number of int16 values from one row of queries to the next."""
        return up(self.shape.depth, 2)

    def places(self) -> dict[str, int]:
        """Return the byte offset of each part of scratch; "end" is the total size."""
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
            at += up(size, 4)
        return {**found, "end": at}

    def head_bytes(self) -> dict[str, int]:
        """Return the bytes of each part of scratch that `load_head` fills."""
        return {}

    @property
    def scratch_bytes(self) -> int:
        """Bytes of scratch memory that the whole layer needs."""
        return self.places()["end"]

    def tiles(self, queries: int) -> list[int]:
        """Return the numbers of rows that tiles have."""
        rest = queries % self.rows
        return [*([self.rows] if queries >= self.rows else []), *([rest] if rest else [])]

    def start(self) -> list[str]:
        """Return C text before all heads: the table is empty, what padding stands for is 0."""
        words = self.places()["end"] // 4
        return [f"for (int32_t i = 0; i < {words}; i++)", "    ((word *)scratch)[i] = 0;"]

    def pointers(self) -> list[str]:
        """Return the C declarations of the parts of scratch inside a tile."""
        places = self.places()
        kinds = {"table_of": "uint8_t", "codes_of": "uint8_t", "weights_of": self.weight_type}
        return [
            f"{kinds.get(name, 'int16_t')} *{name} = (void *)(scratch + {at});"
            for name, at in places.items()
            if name != "end"
        ]

    def load_queries(self, rows: int) -> list[str]:
        """Return C text that copies the queries of a tile minus their zero point."""
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
        """Return C text before the tiles of a head; q_of, k_of and v_of are its inputs."""

    def functions(self) -> list[str]:
        """Return C text of scores<rows>() and mix<rows>() for all tiles."""
        tiles = self.tiles(self.shape.queries)
        return [make(rows) for rows in tiles for make in (self.scores, self.mix)]

    @abstractmethod
    def scores(self, rows: int) -> str:
        """Return C text of scores<rows>(): queries times keys, as codes."""

    @abstractmethod
    def mix(self, rows: int) -> str:
        """Return C text of mix<rows>(): weights times values, to the output."""


def block(rows: int, columns: int) -> list[tuple[int, int]]:
    return [(r, c) for r in range(rows) for c in range(columns)]


def declare(pairs: Sequence[tuple[int, int]], value: str = "0") -> str:
    """Return the sums of a block; {r} of the value is the row."""
    return "int32_t " + ", ".join(f"s{r}{c} = {value.format(r=r)}" for r, c in pairs) + ";"

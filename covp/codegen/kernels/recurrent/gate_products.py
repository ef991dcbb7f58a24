"""The products of an LSTM's four gates with the input and the hidden state, of int8 or int16.

Each value is read once for all gates. Where the core adds two products of halves at once, both
vectors are widened into a scratch buffer at the start of a time step, and weights lie in words of
four by gate, in the order in which SXTB16 splits them; vectors are filled up with zeros.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.chip.cores import Core
from covp.codegen.c_text import indent
from covp.hardware.intrinsics import DotProduct, dot_products

Array = NDArray[Any]
_WORD = 4


@dataclass(frozen=True)
class GateProducts:
    """The products that a core computes, and how it multiplies and adds.

    Attributes:
        lengths: of the input and of the hidden state of a step, by their C name.
        total: C type of the sums; of uint32_t they wrap.
        pairs: the instruction for two products; None: one product at a time.
    """

    lengths: dict[str, int]
    total: str
    pairs: DotProduct | None

    @staticmethod
    def of(core: Core, lengths: dict[str, int], total: str) -> GateProducts:
        """Return a core's best way; a total of int32_t says that all sums are proved to fit it."""
        found = [dot for dot in dot_products() if dot.lanes == 2 and dot.fits(core)]
        return GateProducts(lengths, total, found[0] if found and total == "int32_t" else None)

    @property
    def includes(self) -> list[str]:
        """C text that `lines` need."""
        return [self.pairs.definitions] if self.pairs is not None else []

    @property
    def name(self) -> str:
        """Name of the form, for reports."""
        return "one by one" if self.pairs is None else self.pairs.name

    @property
    def scratch(self) -> int:
        """Bytes of the buffer ``scratch``; 0: none."""
        if self.pairs is None:
            return 0
        return 2 * sum(_round_up(length) for length in self.lengths.values())

    def prepare(self) -> list[str]:
        """Return C statements at the start of a time step."""
        if self.pairs is None:
            return []
        lines, start = ["int16_t *row = scratch;"], 0
        for name, length in self.lengths.items():
            lines += [
                f"for (int32_t k = 0; k < {length}; k++)",
                f"    row[{start} + k] = {name}[k];",
                *(f"row[{start + k}] = 0;" for k in range(length, _round_up(length))),
            ]
            start += _round_up(length)
        return lines

    def pack(self, weights: Array) -> Array:
        """Pack (cells, values, gates) in the order in which they are read, one row per cell."""
        cells, count, gates = weights.shape
        if self.pairs is None:
            return weights.reshape(cells, -1)
        filled = np.zeros((cells, _round_up(count), gates), np.int8)
        filled[:, :count] = weights
        words = filled.reshape(cells, -1, _WORD, gates).transpose(0, 1, 3, 2)
        return np.asarray(words[..., [0, 2, 1, 3]].reshape(cells, -1))

    def stride(self) -> int:
        """Return the bytes of the weights of a cell."""
        lengths = self.lengths.values()
        return 4 * sum(length if self.pairs is None else _round_up(length) for length in lengths)

    def lines(self, sums: list[str], vector: str) -> list[str]:
        """Return C statements that add the products with a vector and move ``w``."""
        length = self.lengths[vector]
        if self.pairs is None:
            product = "(uint32_t)(value * w[{}])" if self.total == "uint32_t" else "value * w[{}]"
            return [
                f"for (int32_t k = 0; k < {length}; k++, w += {len(sums)}) {{",
                f"    int32_t value = {vector}[k];",
                indent([f"{name} += {product.format(i)};" for i, name in enumerate(sums)]),
                "}",
            ]
        names = list(self.lengths)
        start = sum(_round_up(self.lengths[name]) for name in names[: names.index(vector)]) // 2
        return [
            f"for (int32_t k = {start}; k < {start + _round_up(length) // 2}; k += 2, w += 16) {{",
            "    int32_t first = (int32_t)pairs[k], second = (int32_t)pairs[k + 1];",
            "    const word *v = (const void *)w;",
            *(indent(self._both(self.pairs, name, f"v[{i}]")) for i, name in enumerate(sums)),
            "}",
        ]

    @staticmethod
    def _both(pairs: DotProduct, name: str, word: str) -> list[str]:
        """Return C text of four products with one word of weights."""
        others = f"({word} >> 8) | ({word} << 24)"
        return [
            pairs.add(name, x="first", w=f"{pairs.widen}({word})"),
            pairs.add(name, x="second", w=f"{pairs.widen}({others})"),
        ]

    def start(self) -> list[str]:
        """Return C statements before the products of a cell."""
        return [] if self.pairs is None else ["const word *pairs = (const void *)row;"]


def _round_up(count: int) -> int:
    return -(-count // _WORD) * _WORD

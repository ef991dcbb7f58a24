"""LOOKUP_TABLE: any function of one byte, as its 256 results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from covp.errors import ModelError
from covp.graph.graph import Op
from covp.graph.index_map import elementwise
from covp.graph.ops.definition import OPS, Array, OpDefinition, Shape, given, of_one_type


@dataclass(frozen=True)
class LookupTable:
    """LOOKUP_TABLE of int8.

    Attributes:
        results: int8, one for each input from -128 to 127.
        function: what it stands for, for reports.
    """

    results: tuple[int, ...]
    function: str = ""


def _shape(op: Op) -> list[Shape]:
    if len(op.attributes.results) != 256:
        raise ModelError(f"a table of {len(op.attributes.results)} results; a byte has 256")
    return [op.input(0).shape]


def _reference(op: Op, values: Sequence[Array | None]) -> list[Array]:
    table = np.array(op.attributes.results, np.int8)
    return [table[given(values, 0).astype(np.int64) + 128]]


OPS["LOOKUP_TABLE"] = OpDefinition(_shape, _reference, types=of_one_type("int8"), reads=elementwise)

"""Bands of a layer compute what the layer computes there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from covp.codegen.bands import Band, can_be_cut, cut
from covp.graph.graph import Tensor
from tests.graph import every_kind, test_index_maps


def rows_of_band(band: Band, part: Tensor | None, value: NDArray[Any]) -> NDArray[Any]:
    if part is None or id(part) not in band.slices:
        return value
    tensor, place = band.slices[id(part)]
    start = place // (tensor.nbytes // tensor.shape[1])
    return value[:, start : start + part.shape[1]]


@pytest.mark.costly
def test_bands_of_every_kind_have_the_bits_of_the_layer() -> None:
    taken = set()
    for op in filter(can_be_cut, every_kind.layers()):
        values = test_index_maps.drawn(op, 3)
        (whole,) = test_index_maps.run(op, values)
        for band in (band for rows in (1, 2, 3) for band in cut(op, rows)):
            parts = zip(band.op.inputs, values, strict=True)
            arguments = [rows_of_band(band, part, value) for part, value in parts]
            (found,) = test_index_maps.run(band.op, arguments)
            wanted = rows_of_band(band, band.op.output, whole)
            np.testing.assert_array_equal(found, wanted, op.kind, strict=True)
            taken.add(op.kind)
    assert {"CONV_2D", "AVERAGE_POOL_2D", "MAX_POOL_2D", "SUB", "CAST"} <= taken

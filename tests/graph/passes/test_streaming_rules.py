"""Rules of streams, from index maps: where a window moves, so do the outputs of each operator."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from covp.graph.attributes import Conv2D, Elementwise, Padding, ResizeNearest
from covp.graph.graph import Op, Tensor
from covp.graph.index_map import elementwise, everything, rows_of
from covp.graph.ops.normalization import LayerNormalization
from covp.graph.passes.streaming.rows import Plan, Refused, Rows
from covp.graph.passes.streaming.rules import part, plan
from covp.graph.user_operators import UserOperator, register_operator, unregister_operator
from covp.graph.zoo.builder import GraphBuilder
from tests.graph.every_kind import layers
from tests.graph.test_index_maps import drawn, run

from .test_streaming import compare

Array = NDArray[Any]


def times(op: Op) -> Iterator[tuple[list[Rows | None], int]]:
    """Rows of the inputs, of one of them or of several along one axis, with the hop."""
    moving = [n for n, t in enumerate(op.inputs) if t is not None and t.data is None]
    chosen: list[tuple[int, ...]] = [(n,) for n in moving]
    chosen += [tuple(moving)] if len(moving) > 2 else []
    chosen += itertools.combinations(moving[:3], 2)
    for positions in chosen:
        for behind, hop in itertools.product(range(1, 6), (1, 2)):
            shapes = {n: op.input(n).shape for n in positions}
            if all(len(s) >= behind and s[-behind] > hop for s in shapes.values()):
                rows: list[Rows | None] = [None] * len(op.inputs)
                for n, shape in shapes.items():
                    rows[n] = Rows(len(shape) - behind, shape[-behind], 1, hop)
                yield rows, hop


def last(array: Array, axis: int, count: int) -> Array:
    return np.take(array, range(array.shape[axis] - count, array.shape[axis]), axis)


def same(op: Op, one: Array, other: Array) -> bool:
    """To the bit; floats whose sums may be made in another order nearly."""
    if one.shape == other.shape and one.dtype.kind == "f":
        return bool(np.allclose(one, other, rtol=1e-4, atol=1e-4, equal_nan=True))
    return np.array_equal(one, other)


def holds(op: Op, rows: Sequence[Rows | None], found: Plan) -> bool:
    """Whether new rows alone give the end of a window, and the rest is what it was."""
    before, fresh = drawn(op, 1), drawn(op, 2)
    after = [
        np.concatenate([last(b, own.axis, own.extent - own.new), last(f, own.axis, own.new)],
                       own.axis) if own else b
        for b, f, own in zip(before, fresh, rows, strict=True)
    ]  # fmt: skip
    newest = [
        last(value, own.axis, need) if own else value
        for value, own, need in zip(after, rows, found.needs, strict=True)
    ]
    changed, out = part(op, rows, found), found.rows
    assert changed is not None
    for got, now, old in zip(run(changed, newest), run(op, after), run(op, before), strict=True):
        if out is None:
            if not same(op, got, now):
                return False
            continue
        kept = np.take(now, range(out.extent - out.new), out.axis)
        if not same(op, got, last(now, out.axis, out.new)):
            return False
        if not same(op, kept, last(old, out.axis, out.extent - out.new)):
            return False
    return True


@pytest.mark.costly
def test_a_window_that_moves_moves_outputs() -> None:
    held: Counter[str] = Counter()
    broken = []
    for op in layers():
        for rows, hop in times(op):
            with suppress(Refused):
                found = plan(op, rows, hop)
                if found is not None and not holds(op, rows, found):
                    broken.append((op, rows, found))
                held[op.kind] += found is not None
    assert not broken, broken[0]
    assert len(+held) >= 140
    assert held.total() >= 3500


def test_normalized_rows_stream() -> None:
    """Convolution, LAYER_NORMALIZATION, HARDMAX beside it, convolution: as on whole windows."""
    rng = np.random.default_rng(2)
    builder = GraphBuilder("normalized")

    def floats(*shape: int) -> Tensor:
        return builder.constant(rng.normal(0, 0.5, shape).astype(np.float32))

    x = builder.input((1, 12, 1, 4), np.float32)
    x = builder.add("CONV_2D", x, floats(6, 3, 1, 4), attributes=Conv2D((1, 1), Padding()))
    y = builder.add("LAYER_NORMALIZATION", x, floats(6), floats(6),
                    attributes=LayerNormalization(3))  # fmt: skip
    y = builder.add("ADD", y, builder.add("HARDMAX", x), attributes=Elementwise())
    y = builder.add("CONV_2D", y, floats(2, 3, 1, 6), attributes=Conv2D((1, 1), Padding()))
    stream = compare(builder.graph(y), 1, 1, windows=60)
    assert stream.outputs[0].shape == (1, 1, 1, 2)
    assert sorted(state.before.shape[1] for state in stream.states) == [3, 3]


def test_what_slides_unevenly_is_computed_from_the_whole_window() -> None:
    """Rows between two convolutions are doubled: the first convolution has new rows alone."""
    builder = GraphBuilder("doubled")
    weights = builder.constant(np.ones((4, 3, 1, 4), np.int8), 0.01)
    x = builder.input((1, 12, 1, 4), scale=0.1)
    x = builder.add("CONV_2D", x, weights, scale=0.1, attributes=Conv2D((1, 1), Padding()))
    x = builder.add("RESIZE_NEAREST_NEIGHBOR", x, attributes=ResizeNearest((20, 1)))
    x = builder.add("CONV_2D", x, weights, scale=0.1, attributes=Conv2D((1, 1), Padding()))
    stream = compare(builder.graph(x), 1, 1)
    assert [op.output.shape[1] for op in stream.ops] == [3, 1, 10, 20, 18]


def test_a_users_map_says_whether_rows_are_enough() -> None:
    rows: list[Rows | None] = [Rows(1, 6, 1, 2)]
    x, y = (Tensor(name, (1, 6, 3), np.dtype(np.int32)) for name in "xy")
    op = Op("DOUBLED", "doubled", [x], [y])
    for reads, needs in ((elementwise, (2,)), (rows_of, (2,)), (everything, None)):
        register_operator(
            UserOperator("DOUBLED", lambda op, values: [np.asarray(values[0]) * 2], reads=reads)
        )
        try:
            found = plan(op, rows, 2)
        finally:
            unregister_operator("DOUBLED")
        assert (found and found.needs) == needs

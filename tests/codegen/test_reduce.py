"""Reductions, positions of the largest, running sums on the cores against numpy's functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from covp.graph.attributes import Mean
from covp.graph.equality import differences
from covp.graph.graph import Op, Tensor
from covp.graph.ops import definition
from covp.graph.ops.along_axis import ArgMax, Cumulative

PLATFORMS = ["cortex-m7", "riscv32"]
ORACLES: dict[str, Any] = {
    "MEAN": lambda x, a: np.mean(x, axis=a),
    "REDUCE_L1": lambda x, a: np.abs(x).sum(axis=a, dtype=x.dtype),
    "REDUCE_L2": lambda x, a: np.linalg.norm(np.moveaxis(x, a, range(-len(a), 0)).reshape(
        *(n for i, n in enumerate(x.shape) if i not in a), -1), axis=-1),
    "REDUCE_LOG_SUM": lambda x, a: np.log(x.sum(axis=a)),
    "REDUCE_LOG_SUM_EXP": lambda x, a: np.logaddexp.reduce(x, axis=a),
    "REDUCE_MAX": lambda x, a: x.max(axis=a),
    "REDUCE_MIN": lambda x, a: x.min(axis=a),
    "REDUCE_PROD": lambda x, a: x.prod(axis=a, dtype=x.dtype),
    "REDUCE_SUM_SQUARE": lambda x, a: (x * x).sum(axis=a, dtype=x.dtype),
    "SUM": lambda x, a: x.sum(axis=a, dtype=x.dtype),
}  # fmt: skip
FLOAT_ONLY = {"REDUCE_L2", "REDUCE_LOG_SUM", "REDUCE_LOG_SUM_EXP"}
AXES = [(0,), (1, 2), (2,), (0, 1, 2)]


def agree(found: Any, wanted: Any) -> None:
    assert not len(differences(found.reshape(wanted.shape), wanted)), (found, wanted)


def drawn(dtype: str, shape: tuple[int, ...], seed: int) -> Any:
    rng = np.random.default_rng(seed)
    if dtype == "float32":
        return rng.uniform(0.5, 2, shape).astype(dtype)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    low = 0 if dtype.startswith("u") else -100
    return rng.integers(low, 100, shape).astype(dtype)


def reduction(kind: str, x: Any, axes: Any, shape: Any = None) -> Op:
    op = Op(kind, "layer", [Tensor("x", x.shape, x.dtype)], [], Mean(axes, False))
    op.outputs = [Tensor("y", shape or (), x.dtype)]
    if axes is not None:
        op.output.shape = definition(kind).infer_shapes(op)[0]
    definition(kind).types(op)
    return op


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("kind", sorted(ORACLES))
def test_every_kind(run_layer: Any, kind: str, platform: str) -> None:
    """Also with axes that come at run time, where the kind has that."""
    number = sorted(ORACLES).index(kind)
    types = ["float32"] if kind in FLOAT_ONLY else ["float32", "int8", "uint16", "int64"]
    for dtype in (types[0], types[number % len(types)]):
        x = drawn(dtype, (3, 4, 6), number)
        axes = AXES[number % 4]
        wide = x.astype(np.float64) if dtype == "float32" else x
        wanted = np.asarray(ORACLES[kind](wide, axes)).astype(x.dtype)
        op = reduction(kind, x, axes)
        agree(definition(kind).reference(op, [x])[0], wanted)
        agree(run_layer(platform, op, x)[0], wanted)
        if kind == "REDUCE_LOG_SUM_EXP" or (kind == "MEAN" and dtype != "float32"):
            continue
        op = reduction(kind, x, None, wanted.shape)
        given = np.array([axis - 3 for axis in axes], np.int64)
        op.inputs.append(Tensor("axes", given.shape, given.dtype))
        agree(run_layer(platform, op, x, given)[0], wanted)


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        ("REDUCE_ANY", np.any),
        ("REDUCE_MAX", np.any),
        ("REDUCE_ALL", np.all),
        ("REDUCE_MIN", np.all),
    ],
)
def test_logic(run_layer: Any, kind: str, wanted: Any) -> None:
    x = drawn("bool", (5, 3, 2), 1)
    agree(run_layer("riscv32", reduction(kind, x, (1, 2)), x)[0], wanted(x, axis=(1, 2)))


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [("SUM", 0), ("REDUCE_PROD", 1), ("REDUCE_MAX", -np.inf), ("REDUCE_LOG_SUM_EXP", -np.inf)],
)
def test_nothing_to_reduce(run_layer: Any, kind: str, wanted: float) -> None:
    x = np.zeros((2, 0, 3), np.float32)
    agree(run_layer("riscv32", reduction(kind, x, (1,)), x)[0], np.full((2, 3), wanted, x.dtype))


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_positions(run_layer: Any, platform: str, axis: int, last: bool) -> None:
    """Few values, so that many are equal."""
    x = np.random.default_rng(axis).integers(0, 3, (3, 5, 4))
    for kind, find in (("ARG_MAX", np.argmax), ("ARG_MIN", np.argmin)):
        wanted = 4 - find(np.flip(x, axis), axis) if last else find(x, axis)
        wanted = wanted + x.shape[axis] - 5 if last else wanted
        dtype = "float32" if kind == "ARG_MAX" else "uint8"
        y = Tensor("y", wanted.shape, np.dtype(np.int64))
        source = Tensor("x", x.shape, np.dtype(dtype))
        op = Op(kind, "layer", [source], [y], ArgMax(axis, False, last))
        value = x.astype(dtype)
        agree(definition(kind).reference(op, [value])[0], wanted)
        agree(run_layer(platform, op, value)[0], wanted)


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums(run_layer: Any, platform: str, reverse: bool, exclusive: bool) -> None:
    x = drawn("int32", (2, 3, 4), 5)
    flipped = np.flip(x, 1) if reverse else x
    wanted = np.cumsum(flipped, 1, dtype=x.dtype) - (flipped if exclusive else 0)
    wanted = np.flip(wanted, 1) if reverse else wanted
    tensors = [Tensor(n, x.shape, x.dtype) for n in "xy"]
    axis = Tensor("axis", (), np.dtype(np.int32))
    for chosen in (1, None):
        inputs = tensors[:1] if chosen else [tensors[0], axis]
        how = Cumulative(chosen, exclusive, reverse)
        op = Op("CUMSUM", "layer", list(inputs), tensors[1:], how)
        values = [x] if chosen else [x, np.array([-2], np.int32)]
        agree(run_layer(platform, op, *values)[0], wanted)

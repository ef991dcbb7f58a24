"""Packed weights of fully connected layers at the ends of the ranges of weights and activations."""

from __future__ import annotations

import numpy as np
import pytest

from covp.building.tune.measure import ScheduleBench
from covp.chip.platform_file import load_platform
from covp.codegen.schedule import Schedule
from covp.graph.attributes import FullyConnected
from covp.graph.graph import Op
from covp.graph.ops import definition
from covp.testing.tensors import int8


def fully_connected(weights: np.ndarray) -> Op:
    """A layer whose output keeps the sign and size of the sums."""

    outputs, depth = weights.shape
    return Op(
        "FULLY_CONNECTED",
        "layer",
        [int8("x", (1, depth), 0.02), int8("w", weights.shape, 0.5, data=weights), None],
        [int8("y", (1, outputs), depth)],
        FullyConnected("none"),
    )


@pytest.mark.parametrize("toolchain", ["zig", "gcc"])
@pytest.mark.parametrize(
    ("platform", "tile", "bits"),
    [
        ("riscv32", "packed_weights", 8),
        ("riscv32", "packed_weights", 16),
        ("riscv32", "packed_ahead", 16),
        ("cortex-m0plus", "packed_weights", 8),
    ],
)
@pytest.mark.parametrize("peeled", [0, 1])
def test_extreme_weights_and_activations(run_layer, platform, tile, toolchain, bits, peeled):
    rng = np.random.default_rng(bits + peeled)
    # large weights end every run after one round, small ones let runs reach their longest
    large = rng.choice([-127, 127], (7, 32))
    mixed = rng.integers(-3, 4, (7, 32)) + (rng.random((7, 32)) < 0.1) * 120
    for weights in (large, mixed, np.zeros((7, 32))):
        op = fully_connected(np.clip(weights, -127, 127).astype(np.int8))
        for x in (
            np.full((1, 32), -128, np.int8),
            np.full((1, 32), 127, np.int8),
            rng.choice([-128, 127], (1, 32)).astype(np.int8),
        ):
            wanted = definition(op.kind).reference(op, [x, op.input(1).data, None])[0]

            def choose(points):
                found = [
                    p
                    for p in points
                    if p.tile == tile
                    and p["peeled"] == peeled
                    and p.knobs.get("weights", 16) == bits
                ]
                return found[len(found) // 2]

            (got,) = run_layer(platform, op, x, toolchain=toolchain, choose=choose)
            assert np.array_equal(got, wanted)


def test_loading_ahead_waits_for_no_load() -> None:
    """On a core in order with loads of two cycles, the same products take fewer of them."""
    rng = np.random.default_rng(1)
    op = fully_connected(rng.integers(-9, 10, (20, 160)).astype(np.int8))
    knobs = {"pairs": 5, "unroll": 1, "peeled": 0}
    with ScheduleBench(load_platform("cv32e40p"), "zig") as bench:
        plain = bench.measure(op, Schedule("packed_weights", {**knobs, "weights": 16}))
        ahead = bench.measure(op, Schedule("packed_ahead", knobs))
    assert plain is not None and ahead is not None and ahead.exact
    assert plain.instructions is not None and plain.cycles is not None
    assert ahead.instructions is not None and ahead.cycles is not None
    assert ahead.instructions <= 1.01 * plain.instructions and ahead.cycles < 0.9 * plain.cycles


def test_small_cores_keep_bytes(run_layer):
    def choose(points):
        assert {p["weights"] for p in points if p.tile == "packed_weights"} == {8}
        return points[0]

    op = fully_connected(np.ones((2, 8), np.int8))
    run_layer("cortex-m0plus", op, np.zeros((1, 8), np.int8), choose=choose)

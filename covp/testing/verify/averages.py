"""`averages`: average pools of all window sizes at ties of both signs, alone and in chains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from covp.graph.attributes import Activation, Pair
from covp.graph.graph import Graph
from covp.graph.reference import run_reference
from covp.testing import Case, ConvCase, PoolCase
from covp.testing.requantization import ties_of
from covp.testing.verify.chain import ChainCase, fit_part, refit

AVERAGE = "AVERAGE_POOL_2D"
_LONG = (32, 63, 64, 100, 127, 128, 255, 256, 300, 1031)
_SEEDS = 200
"""Seeds of a chain that are tried to find ties of both signs; 16x16 takes the most."""


def windows() -> Iterator[Pair]:
    """Yield windows that units are made for: all small ones, larger squares, rows and columns."""
    yield from ((4, 4), (2, 2), (3, 3), (8, 8), (7, 7))  # first what is most usual
    for height in range(1, 9):
        yield from ((height, width) for width in range(1, 9))
    for side in range(9, 17):
        yield from ((side, side), (1, side), (side, 1))


def averages(limits: Sequence[int]) -> Iterator[PoolCase]:
    """Yield average pools that stand alone.

    Args:
        limits: that the accelerator states, see `covp.testing.verify.stages`.
    """
    long = sorted({*_LONG, *(n for n in limits if 16 < n <= 4096)})
    shapes = [*windows(), *((1, n) for n in long), *((n, 1) for n in long)]
    for number, (height, width) in enumerate(shapes):
        rows, columns = (4, 3) if height * width <= 64 else (1, 2)
        for rest in (0, 1):  # windows that reach beyond the image have fewer elements
            yield PoolCase(
                AVERAGE,
                size=(rows * height + rest * (height // 2), columns * width + rest * (width // 2)),
                channels=(8, 5, 16, 3)[number % 4],
                filter=(height, width),
                stride=(height, width),
                same=bool(rest),
                batch=1 + (number % 5 == 4),
                zero_point=(0, -128, 127, 5)[number % 4],
                ties=True,
                seed=number,
            )


def averages_in(sample: ChainCase, number: int) -> Iterator[Case]:
    """Yield chains with average pools in the place of one.

    Args:
        sample: a chain that the accelerator accepts.
        number: of its average pool.
    """
    reads = any(reader == number for reader, _, _ in sample.wires)
    for seed, window in enumerate(windows()):
        height, width = window
        rows = 3 if height * width <= 16 else 2
        size = (rows * height, rows * width)
        pool = PoolCase(AVERAGE, size, 8, window, window, zero_point=0, ties=True, seed=seed)
        chain = fit_part(sample, number, pool)
        for variant in _variants(chain) if chain is not None and reads else [chain]:
            if variant is not None:
                yield from _at_ties(variant, number) if reads else [variant]


def _variants(chain: ChainCase) -> Iterator[ChainCase | None]:
    """Yield the chain with convolutions that have results of both signs.

    Without a clamp, and with their own one where they have one: some units want it.
    """
    clamps = {getattr(part, "activation", "none") for part in chain.parts[:-1]} - {"none"}
    yield refit(chain, [_spread(part, 0, "none") for part in chain.parts])
    if clamps:
        yield refit(chain, [_spread(part, -20) for part in chain.parts])


def _spread(part: Any, zero_point: int, activation: Activation | None = None) -> Any:
    if isinstance(part, PoolCase):
        return replace(part, activation="none") if activation else part
    if not isinstance(part, ConvCase):
        return part
    return replace(
        part,
        activation=part.activation if activation is None else activation,
        zero_points=(part.zero_points[0], zero_point),
        output_scale=1.0,
        extreme=False,
        largest=False,
        spread_multipliers=False,
    )


def _at_ties(chain: ChainCase, number: int) -> Iterator[ChainCase]:
    """Yield the chain with seeds of its inputs that together give all kinds of ties."""
    pool = chain.parts[number]
    assert isinstance(pool, PoolCase)
    count = pool.filter[0] * pool.filter[1]
    wanted = 2 if count % 2 == 0 else 4 if count > 1 else 0
    found: set[tuple[int, int]] = set()
    for seed in range(_SEEDS):
        candidate = replace(chain, seed=chain.seed + seed)
        kinds = ties_of(_read_by(candidate, number), pool.filter)
        if seed == 0 or not kinds <= found:
            yield candidate
        found |= kinds
        if len(found) >= wanted:
            break


def _read_by(chain: ChainCase, number: int) -> Any:
    """Return what the operator of a number reads."""
    graph = chain.graph()
    before = graph.ops[:number]
    read = Graph("before", graph.inputs, [graph.ops[number].input(0)], before)
    return run_reference(read, chain.inputs())[0]

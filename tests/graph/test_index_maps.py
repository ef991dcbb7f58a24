"""Index maps against brute force: one element of an input changes, and so do outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from numpy.typing import NDArray

from covp.graph.graph import Op, Tensor
from covp.graph.index_map import Index, IndexMap, Listed, Loop, Read, everything
from covp.graph.ops.definition import OPS, definition, ieee
from covp.graph.random_inputs import random_inputs
from tests.graph.every_kind import layers

Array = NDArray[Any]
PLACES = 6
"""Elements of each input that are changed."""


@dataclass(frozen=True, eq=False)
class Change:
    """What one changed element of an input did.

    Attributes:
        op: the operator, with the changed constant if it was one.
        position, place: of the input and of the element.
        outputs: for each, which elements are others now.
    """

    op: Op
    position: int
    place: tuple[int, ...]
    outputs: list[NDArray[np.bool_]]

    def missed(self, maps: Sequence[IndexMap]) -> bool:
        """Whether an output changed where the maps say that it does not depend on the element."""
        return any((a & ~b).any() for a, b in zip(self.outputs, self.readers(maps), strict=True))

    def readers(self, maps: Sequence[IndexMap]) -> list[NDArray[np.bool_]]:
        """What may have changed by the maps."""
        outputs = zip(maps, self.op.outputs, strict=True)
        return [m.readers(self.position, self.place, out.shape) for m, out in outputs]


@cache
def changes(draw: int = 0, kinds: frozenset[str] = frozenset(OPS)) -> list[tuple[Op, list[Change]]]:
    """Each layer has random numbers of its own: another layer more or less changes no other's."""
    met: Counter[str] = Counter()
    found = []
    for op in layers():
        met[op.kind] += 1
        if op.kind in kinds:
            rng = np.random.default_rng([draw, crc32(op.kind.encode()), met[op.kind]])
            found.append((op, list(_of(op, rng))))
    return found


def _of(op: Op, rng: np.random.Generator) -> Iterator[Change]:
    values = drawn(op, int(rng.integers(1 << 30)))
    before = run(op, values)
    maps = definition(op.kind).reads(op)
    for position, tensor in enumerate(op.inputs):
        if tensor is None or not tensor.size:
            continue
        for _ in range(PLACES):
            place = tuple(int(rng.integers(n)) for n in tensor.shape)
            given, changed = list(values), op
            given[position] = value = values[position].copy()
            value[place] = _other(op, position, value, place, rng)
            if tensor.data is not None:
                inputs = [replace(tensor, data=value) if t is tensor else t for t in op.inputs]
                changed = replace(op, inputs=inputs)
                if definition(op.kind).reads(changed) != maps:
                    continue  # a constant that says what is read
            after = run(changed, given)
            differ = [_differ(a, b) for a, b in zip(before, after, strict=True)]
            yield Change(changed, position, place, differ)


def drawn(op: Op, seed: int) -> list[Any]:
    """Values for the inputs, the constants' own."""
    tensors = [t for t in op.inputs if t is not None and t.data is None]
    found = dict(zip(map(id, tensors), random_inputs(tensors, seed, [op]), strict=True))
    return [None if t is None else found.get(id(t), t.data) for t in op.inputs]


def run(op: Op, values: Sequence[Array | None]) -> list[Array]:
    with ieee():
        return definition(op.kind).reference(op, values)


def _other(op: Op, position: int, values: Array, place: Any, rng: np.random.Generator) -> Any:
    """Another value that the element of the input may have."""
    value = values[place]
    if value.dtype == np.bool_:
        return ~value
    if value.dtype.kind == "f":
        return value + value.dtype.type(rng.choice([-7, -1, 1, 10]))
    info, domain = np.iinfo(value.dtype), dict(definition(op.kind).domains(op)).get(position)
    low, high = max(info.min, -100), min(info.max, 100)
    if domain is not None:
        low, high = (int(np.broadcast_to(end, values.shape)[place]) for end in domain)
    others = rng.integers(low, max(low, high), 8, endpoint=True)
    return next((value.dtype.type(n) for n in others if n != value), value)


def _differ(one: Array, other: Array) -> NDArray[np.bool_]:
    differ: NDArray[np.bool_] = (one != other) & ~((one != one) & (other != other))
    return differ


def test_each_kind_has_layers() -> None:
    assert {op.kind for op in layers()} == set(OPS)


@pytest.mark.costly
def test_what_changes_is_what_the_map_says() -> None:
    wrong = Counter(
        op.kind
        for op, found in changes()
        for change in found
        if change.missed(definition(change.op.kind).reads(change.op))
    )
    assert not wrong


LOOSE = 0.03
"""Of what a map says, what has to change at least: one element of many, where data decide."""
WRONG = 5
"""Wrong maps of each layer."""


def _reactions(found: list[tuple[Op, list[Change]]]) -> tuple[Counter[str], Counter[str]]:
    """Elements by kind: that changed, and that may have by the maps."""
    changed: Counter[str] = Counter()
    said: Counter[str] = Counter()
    for op, made in found:
        for change in made:
            maps = definition(op.kind).reads(change.op)
            changed[op.kind] += sum(int(array.sum()) for array in change.outputs)
            said[op.kind] += sum(int(array.sum()) for array in change.readers(maps))
    return changed, said


def _loose(changed: Counter[str], said: Counter[str]) -> frozenset[str]:
    return frozenset(kind for kind in said if changed[kind] < LOOSE * said[kind])


@pytest.mark.costly
def test_maps_are_tight() -> None:
    changed, said = _reactions(changes())
    for draw in range(1, 6):  # by chance no box was better than another
        more, of = _reactions(changes(draw, _loose(changed, said)))
        changed, said = changed + more, said + of
    reacting = [kind for kind in said if changed[kind]]
    assert len(reacting) >= 160
    assert _loose(changed, said) & set(reacting) <= {"EQUAL"}  # random numbers hardly ever are
    assert sum(changed[kind] >= 0.5 * said[kind] for kind in reacting) >= 95


@pytest.mark.costly
def test_wrong_maps_are_found() -> None:
    """One index beside, a window that is one shorter, one element of a row in the place of all."""
    planted, caught, rng = 0, 0, np.random.default_rng(1)
    for op, found in changes():
        live = [change for change in found if any(array.any() for array in change.outputs)]
        maps = definition(op.kind).reads(op)
        wrong_ones = list(wrong_maps(maps)) if live else []
        for number in rng.permutation(len(wrong_ones))[:WRONG]:
            wrong = wrong_ones[number]
            if any(_says_less(change, maps, wrong) for change in live):
                planted += 1
                caught += any(change.missed(wrong) for change in live)
    assert planted > 1500
    assert caught >= 0.95 * planted, f"{caught} of {planted}"


def _says_less(change: Change, maps: Sequence[IndexMap], wrong: Sequence[IndexMap]) -> bool:
    both = zip(change.readers(maps), change.readers(wrong), change.outputs, strict=True)
    return any((right & ~less).any() and changed.any() for right, less, changed in both)


def wrong_maps(maps: Sequence[IndexMap]) -> Iterator[list[IndexMap]]:
    for number, own in enumerate(maps):
        for wrong in _wrong(own):
            yield [*maps[:number], wrong, *maps[number + 1 :]]


def _wrong(own: IndexMap) -> Iterator[IndexMap]:
    for n, loop in enumerate(own.loops):
        if loop.extent > 1:
            shorter = Loop(loop.extent - 1, loop.order)
            yield replace(own, loops=(*own.loops[:n], shorter, *own.loops[n + 1 :]))
            single = Loop(1, loop.order)
            yield replace(own, loops=(*own.loops[:n], single, *own.loops[n + 1 :]))
    for position, reads in enumerate(own.inputs):
        for axis, read in enumerate(reads or ()):
            for beside in _beside(read):
                moved = (*(reads or ())[:axis], beside, *(reads or ())[axis + 1 :])
                inputs = (*own.inputs[:position], moved, *own.inputs[position + 1 :])
                yield replace(own, inputs=inputs)


def _beside(read: Read) -> Iterator[Read]:
    if isinstance(read, Index):
        yield from (read + 1, read - 1)
    elif isinstance(read, Listed):
        for step in (-1, 1):
            first, last = (tuple(n + step for n in ends) for ends in (read.first, read.last))
            yield replace(read, first=first, last=last)


@pytest.mark.costly
def test_boxes_hold_what_elements_read() -> None:
    """A box of an output reads what its elements read."""
    rng = np.random.default_rng(3)
    for op in layers():
        for own, output in zip(definition(op.kind).reads(op), op.outputs, strict=True):
            if not output.size:
                continue
            box = tuple(_interval(rng, n) for n in output.shape)
            inside = tuple(slice(*ends) for ends in box)
            for position, tensor in enumerate(op.inputs):
                if tensor is None or not tensor.size:
                    continue
                read = own.read(position, tensor.shape, box)
                for _ in range(4):
                    place = tuple(int(rng.integers(n)) for n in tensor.shape)
                    reaches = own.readers(position, place, output.shape)[inside].any()
                    assert not reaches or _contains(read, place), (op, position, box, place)


def _interval(rng: np.random.Generator, extent: int) -> tuple[int, int]:
    first = int(rng.integers(extent))
    return first, int(rng.integers(first, extent)) + 1


def _contains(box: Any, place: Sequence[int]) -> bool:
    return box is not None and all(a <= n < b for n, (a, b) in zip(place, box, strict=True))


def test_an_operator_without_a_map_depends_on_everything() -> None:
    x, y = (Tensor(name, (2, 3), np.dtype(np.int8)) for name in "xy")
    (own,) = everything(Op("OWN", "own", [x, None], [y]))
    assert own.read(0, x.shape, ((1, 2), (0, 1))) == ((0, 2), (0, 3))
    assert own.readers(0, (1, 2), y.shape).all()
    assert own.inputs[1] is None


def test_an_index_that_is_taken_apart_twice_is_refused() -> None:
    (own,) = everything(Op("OWN", "own", [], [Tensor("y", (4,), np.dtype(np.int8))]))
    assert own.inputs == ()
    with pytest.raises(ValueError, match="divided already"):
        Index() % 3 // 2

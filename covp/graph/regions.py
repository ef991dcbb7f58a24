"""Regions of a graph: what computes one tensor from others whose values are known.

Two graphs of one model are compared region by region: between tensors that both have, whatever the
operators are called that stand there. So a wrong rewrite, or an operator that another library
computes otherwise, is found where it is, and not by what follows from it.
"""

from __future__ import annotations

import zlib
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.graph.graph import Graph, Op, Quantization, Tensor
from covp.graph.ops.definition import definition, ieee
from covp.graph.reference import one_thread

Array = NDArray[Any]
_OFFSET = 128
"""Difference of a uint8 value and the int8 value that represents it."""


@dataclass(frozen=True, eq=False)
class OperatorRegion:
    """The operators between known tensors and one that they compute.

    Attributes:
        target: what they compute.
        ops: in the order in which they run.
        leaves: what they read, with the known tensor that holds the value: itself, or the uint8
            tensor that an int8 one stands for.
    """

    target: Tensor
    ops: tuple[Op, ...]
    leaves: tuple[tuple[Tensor, Tensor], ...]

    @property
    def macs(self) -> int:
        """Multiply-accumulates."""
        return sum(definition(op.kind).macs(op) for op in self.ops)

    @property
    def kinds(self) -> frozenset[str]:
        """Kinds of operators that compute; those that move or convert values are left out."""
        return frozenset(op.kind for op in self.ops) - _CARRIERS

    def run(self, values: Mapping[str, Array], wide: bool = False) -> dict[int, Array]:
        """Compute every tensor of the region; return them by id.

        Args:
            values: of the known tensors, by name.
            wide: let what follows a DEQUANTIZE have float64, as far as operators keep it.
        """
        found: dict[int, Array] = {}
        for leaf, known in self.leaves:
            value = values[known.name]
            found[id(leaf)] = value if leaf is known else shift_to_int8(value)
        for op in self.ops:
            given = [None if t is None else found.get(id(t), t.data) for t in op.inputs]
            if wide and op.kind == "QUANTIZE":  # it tells floats by their type
                given = [v if v is None or v.dtype.kind != "f" else v.astype("f4") for v in given]
            with ieee(), one_thread():
                results = definition(op.kind).reference(op, given)
            if wide and op.kind == "DEQUANTIZE":
                results = [result.astype(np.float64) for result in results]
            found |= {id(t): result for t, result in zip(op.outputs, results, strict=True)}
        return found


_CARRIERS = frozenset({"DEQUANTIZE", "QUANTIZE", "PAD", "RESHAPE", "TRANSPOSE", "IDENTITY"})


def shift_to_int8(value: Array) -> Array:
    """Return the int8 values that represent uint8 ones."""
    return np.asarray(value ^ np.uint8(_OFFSET)).view(np.int8)


class Regions:
    """The regions of a graph.

    Args:
        graph: whose operators they are.
        known: names of the tensors between which regions lie.
    """

    def __init__(self, graph: Graph, known: Container[str]) -> None:
        self._known = known
        self._position = {id(op): number for number, op in enumerate(graph.ops)}
        self._producer = {id(tensor): op for op in graph.ops for tensor in op.outputs}
        self._twins = dict(_twins(graph, known))

    def of(self, target: Tensor, unknown: Container[str] = ()) -> OperatorRegion:
        """Return the region that computes a tensor.

        Args:
            target: the tensor.
            unknown: names of known tensors at which the region does not end.
        """
        ops: dict[int, Op] = {}
        leaves: dict[int, tuple[Tensor, Tensor]] = {}
        wanted = [target]
        while wanted:
            tensor = wanted.pop()
            if tensor.data is not None or id(tensor) in leaves:
                continue
            producer = self._producer.get(id(tensor))
            twin = self._twins.get(id(tensor), tensor)
            ends = twin.name in self._known and twin.name not in unknown and twin is not target
            if producer is None or (ends and tensor is not target):
                leaves[id(tensor)] = tensor, twin if ends else tensor
            elif id(producer) not in ops:
                ops[id(producer)] = producer
                wanted += [read for read in producer.inputs if read is not None]
        ordered = sorted(ops.values(), key=lambda op: self._position[id(op)])
        return OperatorRegion(target, tuple(ordered), tuple(leaves.values()))


def _twins(graph: Graph, known: Container[str]) -> Iterator[tuple[int, Tensor]]:
    """Yield the ids of int8 tensors, each with the known uint8 tensor of the same values."""
    made = [op for op in graph.ops if op.kind == "QUANTIZE"]
    results: dict[int, list[Tensor]] = {}
    for op in made:
        results.setdefault(id(op.input(0)), []).append(op.output)
    for op in made:
        if op.output.dtype != np.uint8 or op.output.name not in known:
            continue
        source = op.input(0)
        for tensor in (source, *results[id(source)]):
            if tensor.dtype == np.int8 and _lacks_the_offset(tensor, op.output):
                yield id(tensor), op.output


def _lacks_the_offset(one: Tensor, other: Tensor) -> bool:
    if one.quantization is None or other.quantization is None:
        return False
    return one.scale == other.scale and one.zero_point + _OFFSET == other.zero_point


def align(
    one: Regions, first: Tensor, other: Regions, second: Tensor
) -> tuple[OperatorRegion, OperatorRegion]:
    """Return the regions of one tensor in two graphs that begin at the same known tensors.

    A known tensor that one of them does not read may be computed from those that it does: values
    of both would have to fit each other.
    """
    unknown: set[str] = set()
    while True:
        pair = one.of(first, unknown), other.of(second, unknown)
        ends = [{known.name for _, known in region.leaves} for region in pair]
        apart = (ends[0] ^ ends[1]) - unknown
        if not apart:
            return pair
        unknown |= apart


def same_work(one: OperatorRegion, other: OperatorRegion) -> bool:
    """Return whether regions have the same operators on the same known tensors and constants."""
    if len(one.ops) != len(other.ops):
        return False
    places = [
        {id(leaf): known.name for leaf, known in region.leaves}
        | {
            id(tensor): f"{number}:{position}"
            for number, op in enumerate(region.ops)
            for position, tensor in enumerate(op.outputs)
        }
        for region in (one, other)
    ]
    return all(
        (a.kind, a.rounding, len(a.inputs)) == (b.kind, b.rounding, len(b.inputs))
        and _equal(a.attributes, b.attributes)
        and [_form(t, places[0]) for t in (*a.inputs, *a.outputs)]
        == [_form(t, places[1]) for t in (*b.inputs, *b.outputs)]
        for a, b in zip(one.ops, other.ops, strict=True)
    )


def _equal(one: object, other: object) -> bool:
    try:
        return one is other or bool(one == other)
    except ValueError:  # arrays
        return False


def _form(tensor: Tensor | None, places: Mapping[int, str]) -> tuple[object, ...]:
    if tensor is None:
        return ()
    place: object = places.get(id(tensor))
    if tensor.data is not None:
        place = zlib.crc32(np.ascontiguousarray(tensor.data).tobytes())
    return place, tensor.shape, tensor.dtype, _scales(tensor.quantization)


def _scales(quantization: Quantization | None) -> tuple[object, ...]:
    """Return a key that is equal for equal quantizations."""
    if quantization is None:
        return ()
    of = quantization
    return of.scale.tobytes(), of.zero_point.tobytes(), of.axis if of.per_channel else 0

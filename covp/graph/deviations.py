"""Deviations of a graph from its source, region by region, and whether they are allowed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import compress, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.graph.equality import differences
from covp.graph.graph import Graph, Op, Tensor
from covp.graph.ops.definition import definition
from covp.graph.regions import OperatorRegion, Regions, shift_to_int8
from covp.graph.rounding_rules import CLAMPS, DYNAMIC, SUMS, Oracle, RoundingRule, rules_of

Array = NDArray[Any]
_MOST_AXES = 4  # of a Resize; more would take 32 runs and more


@dataclass(frozen=True)
class Deviation:
    """A tensor whose elements differ although the operators before it read the same values.

    Attributes:
        layer: name of the operator that computes it.
        op: its kind.
        tensor: its name.
        differ, elements: how many elements differ, of how many.
        steps: the largest difference: quantization steps, of floats the share of the largest
            magnitude.
        is_float: which of both it is.
        example: index, covp's value and the source's of the first element that differs.
        rule: the documented rule that allows all of it; None: there is none.
    """

    layer: str
    op: str
    tensor: str
    differ: int
    elements: int
    steps: float
    is_float: bool
    example: tuple[tuple[int, ...], float, float]
    rule: RoundingRule | None

    def __str__(self) -> str:
        index, got, wanted = self.example
        first = f"first {self.tensor}{list(index)}: {got:g}, not {wanted:g}"
        return f"{self.op} {self.layer} {self.amount}, {first}"

    @property
    def amount(self) -> str:
        """The extent in words, e.g. "by 1 step in 3 of 20 elements"."""
        much = f"{self.steps:.2g} of its largest magnitude"
        if not self.is_float:
            much = f"{self.steps:,.0f} step{'' if self.steps == 1 else 's'}"
        return f"by {much} in {self.differ:,} of {self.elements:,} elements"

    def and_other(self, other: Deviation) -> Deviation:
        """Merge two deviations: all elements, the largest difference, no rule if one has none."""
        first, _ = sorted((self, other), key=lambda found: (found.rule is not None, -found.steps))
        differ, elements = self.differ + other.differ, self.elements + other.elements
        return replace(first, differ=differ, elements=elements, steps=max(self.steps, other.steps))


def expected_values(graph: Graph, found: Mapping[str, Array]) -> dict[str, Array]:
    """Return the tensors of a graph that an oracle knows, by name, as the graph stores them.

    Args:
        graph: int8 may stand there for the source's uint8.
        found: what the oracle computed, by name.
    """
    known: dict[str, Array] = {}
    for tensor in graph.tensors():
        value = found.get(tensor.name)
        if value is None or tensor.data is not None or value.shape != tensor.shape:
            continue
        if (value.dtype.name, tensor.dtype.name) == ("uint8", "int8"):
            value = shift_to_int8(value)
        if value.dtype == tensor.dtype:
            known[tensor.name] = value
    return known


def deviations(
    graph: Graph, source: Graph, values: Mapping[str, Array], oracle: Oracle
) -> Iterator[Deviation]:
    """Compare what each operator computes from the oracle's values with what the oracle computes.

    Args:
        graph: as it is compiled.
        source: the same before any fusion; may be the same graph.
        values: of `expected_values`, the inputs and states of the inference included.
        oracle: whose they are.
    """
    rules = rules_of(oracle)
    ours, stated = Regions(graph, values), Regions(source, values)
    there = {tensor.name: tensor for tensor in source.tensors()}
    for op in graph.ops:
        for tensor in op.outputs:
            if tensor.name in values and tensor.name in there:
                pair = ours.of(tensor), stated.of(there[tensor.name])
                if all(known.name in values for region in pair for _, known in region.leaves):
                    wanted = values[tensor.name]
                    yield from compare(*pair, values, wanted, rules, graph.expanded_bytes > 0)


def compare(
    region: OperatorRegion,
    source: OperatorRegion,
    values: Mapping[str, Array],
    wanted: Array,
    rules: Iterable[RoundingRule],
    dynamic: bool = False,
) -> Iterator[Deviation]:
    """Yield the deviation of a region, if there is one.

    Args:
        region: that computes.
        source: the same tensor's in the source.
        values: of all leaves.
        wanted: what the tensor has to be.
        rules: that may allow a difference.
        dynamic: floats are of a model with int8 weights under them.
    """
    target = region.target
    found = region.run(values)
    got = found[id(target)]
    wrong = differences(got, wanted)
    if not wrong.size:
        return
    computing = [op for op in region.ops if op.kind in region.kinds] or list(region.ops)
    last = computing[-1]
    exact = _exact(source, values)
    dtype = last.output.dtype.name
    dtype = DYNAMIC if dynamic and dtype == "float32" else dtype
    kinds = _telling_kinds(source)
    own = (rule for rule in rules if rule.is_of(kinds, dtype))
    beside = ((rule, _theirs(rule, region, values, found)) for rule in own)
    rule = next((r for r, it in beside if r.allows(got, wanted, target, exact, it)), None)
    index = tuple(int(i) for i in np.unravel_index(wrong[0], wanted.shape))
    yield Deviation(
        last.name,
        last.kind,
        target.name,
        wrong.size,
        wanted.size,
        _distance(got, wanted),
        wanted.dtype.kind == "f",
        (index, got[index].item(), wanted[index].item()),
        rule,
    )


def _telling_kinds(source: OperatorRegion) -> frozenset[str]:
    """Return the kinds of a region's operators without clamps that the result's range implies.

    onnxruntime drops those before it looks for patterns: see `quantized_values.is_fused`.
    """
    target = source.ops[-1].output if source.ops else source.target
    if target.quantization is None or target.quantization.per_channel:
        return source.kinds
    info = np.iinfo(target.dtype)
    levels = np.array([info.min, info.max]) - target.zero_point
    ends = np.float32(target.scale) * levels.astype(np.float32)
    idle = {op.kind for op in source.ops if op.kind in CLAMPS and _keeps(op, ends)}
    telling = {op.kind for op in source.ops if op.kind in CLAMPS and not _keeps(op, ends)}
    return source.kinds - (idle - telling)


def _keeps(clamp: Op, values: Array) -> bool:
    """Return whether a clamp by constant limits, one for all, leaves the values as they are."""
    inputs = [t for t in clamp.inputs if t is not None]
    if sum(t.data is None for t in inputs) != 1 or any(t.constant and t.size != 1 for t in inputs):
        return False
    given = [t if t is None else values if t.data is None else t.data.reshape(1)
             for t in clamp.inputs]  # fmt: skip
    result = definition(clamp.kind).reference(clamp, given)[0]
    return bool((np.abs(result - values) <= np.finfo(np.float32).eps).all())


def _theirs(
    rule: RoundingRule,
    region: OperatorRegion,
    values: Mapping[str, Array],
    found: Mapping[int, Array],
) -> list[Array]:
    """Return the results that a rule allows the library, where the target is one operator's."""
    op = region.ops[-1]
    if rule.nearby:
        return list(_nearby(region, values))
    if rule.theirs is None or op.kind not in rule.kinds.split():
        return []
    given = (found.get(id(t), t.data) for t in op.inputs if t is not None)
    return [rule.theirs(op, [value for value in given if value is not None])]


def _nearby(region: OperatorRegion, values: Mapping[str, Array]) -> Iterator[Array]:
    """Yield the target with some GATHERs, one for each axis of a Resize, by their other indices."""
    resized = [op for op in region.ops if getattr(op.attributes, "nearby", ())]
    for chosen in product((False, True), repeat=min(len(resized), _MOST_AXES)):
        other: dict[int, Op] = {}
        for op in compress(resized, chosen):
            indices = np.array(op.attributes.nearby, np.int32)
            table = Tensor("nearby", indices.shape, indices.dtype, None, indices)
            other[id(op)] = replace(op, inputs=[op.input(0), table])
        ops = tuple(other.get(id(op), op) for op in region.ops)
        yield replace(region, ops=ops).run(values)[id(region.target)]


def _distance(got: Array, wanted: Array) -> float:
    """Return the largest difference, see `Deviation.steps`."""
    with np.errstate(all="ignore"):
        away = np.abs(got.astype(np.float64) - wanted.astype(np.float64))
    if wanted.dtype.kind != "f":
        return float(away.max())
    finite = np.abs(wanted[np.isfinite(wanted)]).max(initial=0)
    return float(away.max() / max(float(finite), 1e-30)) if np.isfinite(away).all() else math.inf


def _exact(source: OperatorRegion, values: Mapping[str, Array]) -> Array | None:
    """Return the values that a QUANTIZE rounds, with sums in double precision where known."""
    last = source.ops[-1]
    if last.kind != "QUANTIZE" or last.input(0).dtype != np.float32:
        return None
    return source.run(values, wide=source.kinds <= SUMS | CLAMPS).get(id(last.input(0)))

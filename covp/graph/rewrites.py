"""Rewrites of graphs are validated when they are made: before and after on random tensors.

What lies between two tensors that both graphs have is executed on random values of the tensors that
it reads. So every rewrite costs what it replaced, whatever surrounds it, and a wrong one is named
with the operator.
"""

from __future__ import annotations

import zlib
from collections.abc import Container, Iterable

import numpy as np

from covp.errors import ModelError
from covp.graph.deviations import Array, Deviation, compare
from covp.graph.graph import Graph, Tensor
from covp.graph.ops import OPS
from covp.graph.regions import OperatorRegion, Regions, align, same_work
from covp.graph.rounding_rules import RoundingRule

MOST_WORK = 60_000_000
"""Multiply-accumulates and elements that a validation executes; regions beyond are left out."""
FEWEST_DRAWS, MOST_DRAWS, WORK_OF_DRAWS = 2, 16, 100_000
"""Numbers of random draws; small regions get more, as most elements may be saturated."""

_FAILURES = (ArithmeticError, LookupError, ValueError)
DEFECT = "this is a defect of covp, please report it with the model"


def wrong_rewrite(
    before: Graph,
    after: Graph,
    rules: Iterable[RoundingRule] = (),
    names: Container[str] | None = None,
) -> Deviation | None:
    """Return the first tensor that two graphs of one model compute differently.

    Args:
        before: the graph that was rewritten.
        after: what it became. Tensors of one name, shape and type have the same content.
        rules: that may allow a difference; without any, integers are equal bit for bit.
        names: of the tensors that are the same in both, if not all of one name are.

    Raises:
        ModelError: the first graph can be executed on random tensors and the second one cannot.
    """
    shared = _shared_tensors(before, after, names)
    made = {id(tensor) for op in before.ops for tensor in op.outputs}
    old, new = Regions(before, shared), Regions(after, shared)
    work, draws = 0, _draws()
    for target in (tensor for op in after.ops for tensor in op.outputs):
        stated = shared.get(target.name)
        if stated is None or id(stated) not in made:
            continue
        pair = align(new, target, old, stated)
        if same_work(*pair) or not all(_can_run(region, shared) for region in pair):
            continue
        cost = sum(_work(region) for region in pair)
        if work + cost > MOST_WORK:
            continue
        work += cost
        found = _difference(*pair, draws, rules)
        if found is None:
            continue
        if len(pair[0].leaves) == 1 or _from_inputs(before, after, target, shared, rules):
            return found
    return None


def demand_same_results(
    before: Graph,
    after: Graph,
    what: str,
    rules: Iterable[RoundingRule] = (),
    names: Container[str] | None = None,
) -> None:
    """Raise ModelError: a rewrite changed results.

    Args:
        before, after, rules, names: as for `wrong_rewrite`.
        what: the rewrite, for the error.
    """
    found = wrong_rewrite(before, after, rules, names)
    if found is not None:
        raise ModelError(f"{what} changed what the model computes: {found}; {DEFECT}")


def _from_inputs(
    before: Graph,
    after: Graph,
    target: Tensor,
    shared: dict[str, Tensor],
    rules: Iterable[RoundingRule],
) -> bool:
    """Return whether a tensor also differs when it is computed from values of the inputs.

    What several tensors hold may depend on each other, as one is computed from the other. A rewrite
    that is right may need that, and random values of each do not have it.
    """
    made = {id(tensor) for op in before.ops for tensor in op.outputs}
    inputs = {name for name, tensor in shared.items() if id(tensor) not in made}
    stated = shared[target.name]
    pair = align(Regions(after, inputs), target, Regions(before, inputs), stated)
    if not all(_can_run(region, shared) for region in pair):
        return False
    return _difference(*pair, _draws(), rules) is not None


def _shared_tensors(before: Graph, after: Graph, names: Container[str] | None) -> dict[str, Tensor]:
    """Return the tensors of the first graph that the second one has as well, by name."""
    forms = {t.name: (t.shape, t.dtype) for t in after.tensors() if t.data is None}
    found = {
        tensor.name: tensor
        for tensor in before.tensors()
        if tensor.data is None and forms.get(tensor.name) == (tensor.shape, tensor.dtype)
    }
    return {name: t for name, t in found.items() if names is None or name in names}


def _can_run(region: OperatorRegion, shared: Container[str]) -> bool:
    """Return whether the reference knows a region's operators, and both graphs what it reads."""
    return all(op.kind in OPS for op in region.ops) and all(
        known.name in shared for _, known in region.leaves
    )


def _work(region: OperatorRegion) -> int:
    return region.macs + sum(op.output.size for op in region.ops)


def _draws() -> list[dict[str, Array]]:
    return [{} for _ in range(MOST_DRAWS)]


def _difference(
    region: OperatorRegion,
    stated: OperatorRegion,
    draws: list[dict[str, Array]],
    rules: Iterable[RoundingRule],
) -> Deviation | None:
    """Return the first deviation over the draws that no rounding rule explains, or None."""
    leaves = {tensor.name: tensor for each in (region, stated) for _, tensor in each.leaves}
    work = max(1, sum(map(_work, (region, stated))))
    count = max(FEWEST_DRAWS, WORK_OF_DRAWS // work)
    for number, values in enumerate(draws[:count]):
        for name in leaves.keys() - values.keys():
            values[name] = _draw(leaves[name], number)
        try:
            wanted = stated.run(values)[id(stated.target)]
        except _FAILURES:  # an index or a length that there is not
            continue
        try:
            found = next(compare(region, stated, values, wanted, rules), None)
        except _FAILURES as error:
            op, reason = region.ops[-1], " ".join(str(error).split())
            raise ModelError(
                f"{op.kind} {op.name} is rewritten and fails: {reason}; {DEFECT}"
            ) from None
        if found is not None and found.rule is None:
            return found
    return None


def _draw(tensor: Tensor, number: int) -> Array:
    """Draw quantized values from all or part of the range, normal floats, or 0 and 1 as indices."""
    rng = np.random.default_rng([number, zlib.crc32(tensor.name.encode())])
    if tensor.dtype.kind == "f":
        return rng.standard_normal(tensor.shape).astype(tensor.dtype)
    if tensor.quantization is None:
        return rng.integers(0, 2, tensor.shape).astype(tensor.dtype)
    info = np.iinfo(tensor.dtype)
    whole = rng.integers(info.min, info.max, tensor.shape, np.int64, endpoint=True)
    zero = int(tensor.quantization.zero_point.flat[0])
    values = zero + (whole - zero >> 3 * number % 5)  # near it, less is saturated
    return values.astype(tensor.dtype)

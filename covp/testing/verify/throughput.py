"""`impossible`: counts and times of a layer's jobs that no hardware as declared can have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.accelerator.backend import AcceleratorBackend
from covp.evaluation.estimates import most_macs
from covp.graph.graph import Op, Tensor
from covp.graph.ops import OPS, definition
from covp.hardware.job_unit import JobRecord
from covp.testing.tensors import plain

MOST_BYTES = 1024
"""A cycle, whatever the unit: the widest port that `bytes_per_cycle` can stand for."""
_OPERATIONS = 3
"""Operations per element of operators without multiply-accumulates; a softmax takes most."""

Values = Mapping[int, NDArray[Any]]
"""Arrays by the id of their tensor."""


def impossible(
    backend: AcceleratorBackend,
    ops: Sequence[Op],
    stated: Mapping[str, int],
    values: Values,
    jobs: Sequence[JobRecord],
) -> str:
    """Return in one line what is impossible about the jobs of a layer, or nothing.

    A unit may leave out products with a zero, padding among them, whether or not it counts these.

    Args:
        backend: of the unit.
        ops: of the layer.
        stated: MACs by the operators' names, for those that a pass of the backend has replaced.
        values: of what comes from outside of the layer.
        jobs: of the layer, with the times and counts of the unit's model.
    """
    cycles = max(1, sum(job.timing.cycles for job in jobs))
    macs = {op.name: _macs(op, stated) for op in ops}
    present, counted = sum(macs.values()), sum(job.macs or 0 for job in jobs)
    if present and counted > present + sum(_operations(op) for op in ops if not macs[op.name]):
        return (
            f"its jobs report {counted:,} MACs, and the layer has {present:,}; lanes that idle and "
            "what is computed twice take time, but are no MACs: see its macs()"
        )
    most, bound = most_macs(backend, is_declared=counted > 0)
    done = counted or (present if jobs else 0)
    if done > most * cycles and present and all(op.kind in OPS for op in ops):
        done = min(done, needed_macs(ops, values))
    if done > most * cycles:
        return (
            f"{done:,} MACs in {cycles:,} cycles are {done / cycles:,.1f} a cycle, {bound}: see "
            "its timing() and hardware_size()"
        )
    return _too_many_bytes(backend, jobs, cycles)


def _too_many_bytes(backend: AcceleratorBackend, jobs: Sequence[JobRecord], cycles: int) -> str:
    """Return what is impossible about the bytes; a model may leave the memory port out."""
    moved = sum(job.traffic.nbytes or job.stored for job in jobs)
    if moved > MOST_BYTES * cycles:
        return f"{moved:,} bytes in {cycles:,} cycles, and no port moves more than {MOST_BYTES}"
    stated = [job for job in jobs if job.timing.memory]
    moved, cycles = (
        sum(job.traffic.nbytes for job in stated),
        sum(job.timing.memory for job in stated),
    )
    width = backend.values.get("bytes_per_cycle")
    if not isinstance(width, int) or moved <= width * cycles:
        return ""
    return (
        f"{moved:,} bytes in {cycles:,} cycles of the memory port are {moved / cycles:,.1f} a "
        f"cycle, it declares bytes_per_cycle={width}: see its timing() and traffic()"
    )


def _macs(op: Op, stated: Mapping[str, int]) -> int:
    return definition(op.kind).macs(op) if op.kind in OPS else stated.get(op.name, 0)


def _operations(op: Op) -> int:
    """Return what a unit may count in place of MACs, of an operator that has none."""
    window = getattr(op.attributes, "filter", None)
    largest = max(tensor.size for tensor in (*op.inputs, *op.outputs) if tensor is not None)
    return _OPERATIONS * largest if window is None else op.output.size * int(np.prod(window))


def needed_macs(ops: Sequence[Op], values: Values) -> int:
    """Return the MACs of which no factor is zero."""
    known, total = dict(values), 0
    for op in ops:
        given = [None if tensor is None else known[id(tensor)] for tensor in op.inputs]
        total += _without_zeros(op, given)
        results = definition(op.kind).reference(op, given)
        known |= {id(t): result for t, result in zip(op.outputs, results, strict=True)}
    return total


def _without_zeros(op: Op, given: Sequence[NDArray[Any] | None]) -> int:
    """Return the sum of the same operator over ones, with zeros where its factors are."""
    if not definition(op.kind).is_product:
        return definition(op.kind).macs(op)
    ones = [
        (value != _zero(tensor)).astype(np.float32)
        for tensor, value in zip(op.inputs[:2], given[:2], strict=True)
        if tensor is not None and value is not None
    ]
    inputs = [plain(f"ones{i}", value.shape) for i, value in enumerate(ones)]
    attributes = op.attributes
    if hasattr(attributes, "activation"):
        attributes = replace(attributes, activation="none")
    twin = Op(op.kind, op.name, [*inputs], [plain("sum", op.output.shape)], attributes)
    (sums,) = definition(op.kind).reference(twin, ones)
    return int(sums.sum(dtype=np.float64))


def _zero(tensor: Tensor) -> int:
    return 0 if tensor.quantization is None else tensor.zero_point

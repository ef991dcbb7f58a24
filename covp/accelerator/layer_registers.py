"""The values of a layer's `registers`, checked against the declared job."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.graph.graph import Tensor
from covp.graph.typed import QuantizedMatMul
from covp.hardware.job import Job, JobValues, Number, Operand


def checked_registers(job: Job, given: object) -> Mapping[str, Any]:
    """Return the values of all numbers and tables of a job.

    Numbers become int or float; whether they are in their ranges is not looked at.

    Raises:
        ValueError: what is wrong with them.
    """
    if not isinstance(given, Mapping):
        raise ValueError(f"registers() gives {given!r:.80} instead of values by name")
    wanted = {part.name for part in (*job.image, *job.varying)}
    missing = sorted(wanted - set(given))
    unknown = sorted(map(str, set(given) - wanted))
    if missing:
        raise ValueError(
            f"registers() gives no value for {', '.join(missing)}; the layer states nothing of "
            "that name"
        )
    if unknown:
        raise ValueError(f"registers() gives {', '.join(unknown)}, which the job does not have")
    numbers = {number.name: _number(number, given[number.name]) for number in job.numbers}
    return {**given, **numbers}


def _number(declared: Number, value: Any) -> int | float:
    try:
        found = float(value) if declared.real else int(value)
        exact = not math.isnan(found) if declared.real else found == value
        if exact and np.ndim(value) == 0 and not isinstance(value, str):
            declared.word(found)
            return found
    except (TypeError, ValueError, OverflowError):
        pass
    kind = "a float32" if declared.real else "an integer"
    raise ValueError(f"registers() gives {value!r:.80} for {declared.name}, which is not {kind}")


def checked_table(operand: Operand, values: JobValues, given: Any) -> NDArray[Any] | None:
    """Return a constant operand as it lies in memory; None where there is none.

    Raises:
        ValueError: of another type than declared, too short, or missing.
    """
    if given is None:
        if operand.optional:
            return None
        raise ValueError(
            f"registers() gives None for {operand.name}, which is not declared as optional"
        )
    try:
        array = np.asarray(given)
    except ValueError as error:
        raise ValueError(f"registers() gives no array for {operand.name}: {error}") from error
    if array.dtype != operand.dtype and not np.can_cast(array.dtype, operand.dtype, "safe"):
        raise ValueError(
            f"registers() gives {array.dtype.name} for {operand.name}, which is declared as "
            f"{operand.dtype.name}"
        )
    wanted = operand.count(values)
    if array.size < wanted:
        raise ValueError(
            f"registers() gives {array.size} elements for {operand.name}, which is declared as "
            f"{wanted}"
        )
    return np.ascontiguousarray(array.astype(operand.dtype))


def product_values(layer: QuantizedMatMul) -> dict[str, Any]:
    """Return the registers of a product of two tensors that a convolution has as tables."""
    columns = np.ones(layer.out_channels, np.int32)
    return {
        "WEIGHTS": None,
        "BIAS": 0 * columns,
        "MULTIPLIER": layer.multiplier * columns,
        "SHIFT": layer.shift * columns,
    }


def check_tensors(
    operands: Iterable[Operand], values: JobValues, arguments: Sequence[object]
) -> None:
    """Check that jobs do not reach beyond the tensors they are given.

    Raises:
        ValueError: one does.
    """
    for operand, argument in zip(operands, arguments, strict=False):
        if not isinstance(argument, Tensor):
            continue
        needed = operand.nbytes(values)
        if needed > argument.nbytes:
            raise ValueError(
                f"{operand.name} is declared as {needed} bytes, but tensor {argument.name} has "
                f"{argument.nbytes}"
            )

"""`shrink_inputs`: set as many elements of a wrong layer's inputs to zero as possible."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.errors import AcceleratorError, DeviceFault
from covp.testing.bisect.tensors import content
from covp.testing.bisect.walk import WrongLayer

Array = NDArray[Any]
SECONDS = 10.0
"""The limit of host time; shrinking stops there."""


@dataclass(frozen=True, eq=False)
class Shrunk:
    """A wrong layer with few inputs.

    Attributes:
        trial: with them.
        used: elements of the inputs that are not zero.
        elements: of the inputs.
    """

    trial: WrongLayer
    used: int
    elements: int


def shrink_inputs(trial: WrongLayer, seconds: float = SECONDS) -> Shrunk:
    """Set elements of the layer's inputs to zero as long as the trial stays wrong.

    Zero is the real number: the zero point of a quantized tensor. It halves the parts that it sets
    to zero until they are single elements (delta debugging), or the time is over.

    Args:
        trial: a wrong layer.
        seconds: of host time.
    """
    deadline = time.monotonic() + seconds
    tensors = trial.bench.tensors
    names = tensors.reads[trial.position]
    zeros = {name: _zero(trial, name) for name in names}
    cleared = replace(trial, fill=b"\0")
    if _still_wrong(cleared) is not None:
        trial = cleared
    used = [
        (name, int(i)) for name in names for i in np.flatnonzero(trial.values[name] != zeros[name])
    ]
    elements = sum(trial.values[name].size for name in names)
    size = max(1, len(used))
    while used and time.monotonic() < deadline:
        before = len(used)
        for part in _parts(used, size):
            if time.monotonic() >= deadline:
                break
            smaller = _still_wrong(_without(trial, part, zeros))
            if smaller is not None:
                trial = smaller
                gone = set(part)
                used = [each for each in used if each not in gone]
        if size == 1 and len(used) == before:
            break
        size = max(1, size // 2)
    return Shrunk(trial, len(used), elements)


def _parts(used: list[tuple[str, int]], size: int) -> Iterator[list[tuple[str, int]]]:
    for start in range(0, len(used), size):
        yield used[start : start + size]


def _zero(trial: WrongLayer, name: str) -> Any:
    place = trial.bench.tensors.places[name]
    point = 0 if place.quantization is None else place.quantization.zero_point[0]
    return place.dtype.type(point)


def _without(
    trial: WrongLayer, part: list[tuple[str, int]], zeros: Mapping[str, Any]
) -> WrongLayer:
    values = dict(trial.values)
    for name in {name for name, _ in part}:
        changed = np.array(values[name])
        changed.reshape(-1)[[i for each, i in part if each == name]] = zeros[name]
        values[name] = changed
    return replace(trial, values=values)


def _still_wrong(trial: WrongLayer) -> WrongLayer | None:
    """Return the trial with what is expected now; None if it is right or nothing is expected."""
    try:
        if trial.kind == "fault":
            trial.bench.run(trial.position, trial.image)
            return None
        wanted = _find_target(trial)
        if wanted is None or not trial.law(trial.got(), wanted).size:
            return None
    except (DeviceFault, AcceleratorError) as error:
        same = isinstance(trial.error, type(error)) and trial.kind == "fault"
        return replace(trial, error=error) if same else None
    return replace(trial, wanted=wanted)


def _find_target(trial: WrongLayer) -> Array | None:
    """Return the tensor as the other build or the reference has it, if it is written."""
    if trial.kind == "overwritten tensor":
        return trial.values[trial.tensor]
    if trial.other is not None:
        bench, position = trial.other
        after = bench.run(position, bench.tensors.image(position, trial.values, trial.fill))
        return content(after, bench.tensors.places[trial.tensor])
    expected = trial.bench.tensors.expected(trial.position, trial.values)
    return None if expected is None else expected[trial.tensor]

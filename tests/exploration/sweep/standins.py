"""Points of a sweep whose evaluation is arithmetic, and what may go wrong with it."""

from __future__ import annotations

import hashlib
import os
import signal
import time
from collections.abc import Sequence

from covp.exploration.sweep.points import Point, Row


def points(count: int, binaries: int = 4) -> list[Point]:
    """Points of some binaries, the i-th with ``unit.value=i``."""
    return [point(number, f"model{number % binaries}") for number in range(count)]


def point(number: int, model: str = "model0") -> Point:
    """A point with ``unit.value=number``."""
    key = hashlib.sha256(f"{model} {number}".encode()).hexdigest()
    return Point(model, "riscv32", ("unit",), vary=(("unit.value", number),), key=key)


def row(given: Point, **figures: object) -> Row:
    """Of a point; a function of the point alone."""
    number = int(given.values["unit.value"])
    return Row(
        key=given.key,
        model=given.model,
        platform=given.platform,
        accelerators=given.accelerators,
        vary=given.values,
        how="retimed",
        cycles=1000 + number * number,
        area_um2=number / 3,
        **figures,  # type: ignore[arg-type]
    )


def arithmetic(batch: Sequence[Point]) -> list[Row]:
    """The rows at once."""
    return [row(each) for each in batch]


LOG = "COVP_TEST_LOG"
"""The variable with a file in which `slowly` writes a line per point that it has evaluated."""


def slowly(batch: Sequence[Point]) -> list[Row]:
    """A twentieth of a second per point."""
    time.sleep(0.05 * len(batch))
    if LOG in os.environ:
        with open(os.environ[LOG], "a") as log:
            log.write("".join(f"{each.key}\n" for each in batch))
    return arithmetic(batch)


def evaluated(batch: Sequence[Point]) -> list[Row]:
    """The rows at once; models named crash and bug do what they are named for at value 10."""
    for each in batch:
        if each.values["unit.value"] == 10:
            if each.model == "crash":
                os.kill(os.getpid(), signal.SIGSEGV)
            if each.model == "bug":
                raise ValueError("ten\nis no value")
    return arithmetic(batch)


def designs(batch: Sequence[Point]) -> list[Row]:
    """Of points with any parameters that are numbers."""
    return [
        Row(
            key=each.key,
            model=each.model,
            platform=each.platform,
            cycles=1000 + sum(int(value) ** 2 for value in each.values.values()),
            area_um2=1000.0 - sum(int(value) for value in each.values.values()),
        )
        for each in batch
    ]

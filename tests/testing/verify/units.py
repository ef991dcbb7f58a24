"""A unit of one class for tests, and twins of it whose driver runs further assembly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.accelerator import Accelerator, Job, Limit, number, result, table, tensor
from covp.hardware.arithmetic import requantize


class Dense(Accelerator):
    """Fully connected layers of one image at a time, on 16 multipliers."""

    name = "dense"
    operators = ("FULLY_CONNECTED",)
    job = Job(
        tensor("INPUT", "int8", lambda j: j.BATCH * j.IN_CHANNELS),
        table("WEIGHTS", "int8", lambda j: j.OUT_CHANNELS * j.IN_CHANNELS),
        table("BIAS", "int32", lambda j: j.OUT_CHANNELS),
        table("MULTIPLIER", "int32", lambda j: j.OUT_CHANNELS),
        table("SHIFT", "int32", lambda j: j.OUT_CHANNELS),
        result("OUTPUT", "int8", lambda j: j.BATCH * j.OUT_CHANNELS),
        number("BATCH", 1, 64),
        number("IN_CHANNELS", 1, 1024),
        number("OUT_CHANNELS", 1, 1024),
        number("INPUT_ZERO_POINT", -128, 127),
        number("OUTPUT_ZERO_POINT", -128, 127),
        number("LOW", -128, 127),
        number("HIGH", -128, 127),
    )

    def accepts(self, layer: Any) -> list[Limit]:
        """Not the float ones."""
        return [Limit("type", type(layer).__name__, one_of=("QuantizedConv2D",))]

    def compute(self, job: Any) -> NDArray[Any]:
        """Sums in int64, requantized."""
        rows = job.INPUT.reshape(job.BATCH, -1).astype(np.int64) - job.INPUT_ZERO_POINT
        sums = rows @ job.WEIGHTS.reshape(job.OUT_CHANNELS, -1).T.astype(np.int64) + job.BIAS
        return requantize(sums, job.MULTIPLIER, job.SHIFT, job.OUTPUT_ZERO_POINT, job.LOW, job.HIGH)

    def macs(self, job: Any) -> int:
        """All of them."""
        return int(job.BATCH * job.IN_CHANNELS * job.OUT_CHANNELS)


class Untidy(Dense):
    """Its driver runs a statement after the end of each job.

    Attributes:
        statement: of C.
    """

    statement = ""

    def driver(self, base: int) -> Mapping[str, str]:
        """With the statement."""
        files = dict(super().driver(base))
        line = "DENSE_IRQ" if self.values["wait"] == "sleep" else "COVP_POLL"
        wait = f"    covp_job_wait(&DENSE_CTRL, {line});\n"
        assert files["dense.c"].count(wait) == 1
        files["dense.c"] = files["dense.c"].replace(wait, f"{wait}    {self.statement}\n")
        return files


def untidy(text: str) -> Untidy:
    """A unit whose driver runs a statement of C after each job."""
    kind = type("Untidy", (Untidy,), {"statement": text, "__module__": __name__})
    made: Untidy = kind()
    return made


def assembly(text: str) -> str:
    """The statement of some assembly that says nothing of what it changes."""
    return f'__asm__ volatile("{text}");'

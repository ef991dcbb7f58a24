"""A copying unit: gathers rows from several places into one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.accelerator import (
    TECHNOLOGY,
    TIMING,
    WAIT,
    Accelerator,
    Job,
    Limit,
    number,
    result,
    tensor,
)
from covp.accelerator.call import Argument
from covp.errors import ModelError
from covp.graph.graph import Op
from covp.graph.pattern import Match
from covp.hardware.job import JobValues

SOURCES = 4
_LENGTH = (1 << 24) - 1


def _row(job: JobValues) -> int:
    return sum(int(getattr(job, f"BYTES_{i}")) for i in range(SOURCES))


class Dma(Accelerator):
    """Gathering copies: CONCATENATION of up to four tensors, row by row, without the core.

    Row r of the result is row r of source 0, then of source 1 and so on; a source of 0 bytes per
    row is left out. The time is that of the memory port.
    """

    name = "dma"
    operators = ("CONCATENATION",)
    parameters = (*TIMING[1:], WAIT, TECHNOLOGY)
    job = Job(
        tensor("SOURCE_0", "int8", lambda job: job.ROWS * job.BYTES_0),
        *(
            tensor(
                f"SOURCE_{i}",
                "int8",
                lambda job, i=i: job.ROWS * getattr(job, f"BYTES_{i}"),  # type: ignore[misc]
                optional=True,
            )
            for i in range(1, SOURCES)
        ),
        result("TARGET", "int8", lambda job: job.ROWS * _row(job)),
        number("ROWS", 1, _LENGTH),
        number("BYTES_0", 1, _LENGTH, "A row of the first source."),
        *(number(f"BYTES_{i}", 0, _LENGTH) for i in range(1, SOURCES)),
    )

    def layer(self, match: Match) -> Op:
        """The operator itself: there is no arithmetic to resolve."""
        op = match.op
        stored = {(t.scale, t.zero_point) for t in (op.input(0), op.output) if t.quantization}
        stored |= {(t.scale, t.zero_point) for t in op.inputs if t is not None and t.quantization}
        if len(stored) > 1:
            raise ModelError("inputs and output of different scales; a copy cannot rescale")
        return op

    def types(self, match: Match) -> Iterable[Limit]:
        """Bytes are moved whatever they mean."""
        return ()

    def accepts(self, layer: Op) -> Iterable[Limit]:
        """As many inputs as there are sources."""
        yield Limit("inputs", len(layer.inputs), at_most=SOURCES)

    def registers(self, layer: Op) -> Mapping[str, Any]:
        """Rows are all axes before the one that is joined."""
        axis = layer.attributes.axis
        rows = int(np.prod(layer.output.shape[:axis], dtype=np.int64))
        sizes = [tensor.nbytes // rows for tensor in layer.inputs if tensor is not None]
        sizes += [0] * (SOURCES - len(sizes))
        return {"ROWS": rows} | {f"BYTES_{i}": size for i, size in enumerate(sizes[:SOURCES])}

    def tensors(self, match: Match) -> list[Argument]:
        """Sources that a layer does not have are at address 0."""
        given: list[Argument] = [tensor for tensor in match.op.inputs if tensor is not None]
        return given + [0] * (SOURCES - len(given))

    def check(self, job: JobValues) -> str | None:
        """A copy is below 16 MB."""
        return "size" if job.ROWS * _row(job) > _LENGTH else None

    def compute(self, job: Any) -> NDArray[Any]:
        """The sources side by side."""
        parts = [getattr(job, f"SOURCE_{i}") for i in range(SOURCES)]
        rows = [part.reshape(job.ROWS, -1) for part in parts if part is not None]
        return np.concatenate(rows, axis=1)

"""The JSON document ``covp.calibrate/1``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from covp.base.document import Amount, Ratio, unit
from covp.evaluation.calibration.calibrate import Calibration, CalibrationRow


class ProgramRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A program, as measured and by the model.

    Attributes:
        off_a_word: its loop starts in the middle of a word
        measured: of a round of its loop
        model: likewise, by the model
        error: positive where the model takes too many cycles
    """

    program: str
    off_a_word: bool
    measured: Annotated[Amount, unit("core cycles")]
    model: Annotated[Amount, unit("core cycles")]
    error: Annotated[float, unit("ratio")]


class ErrorRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The error of a model over several programs."""

    mean: Ratio
    worst: Ratio


class Calibrated(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="covp.calibrate/1"
):
    """The output of ``covp calibrate --json``.

    Attributes:
        device: what measured
        model: the file that was written
        source: what it was fitted to
        start: the model whose figures the search began with
        kept: classes of instructions that no program executed: their figures are those of the start
        rejected: hazards that were not measured: the core does not have the instructions
        error: of the random programs that were left out
        by_memory: the worst one of these with other wait states, by the words for them
        hazards: programs with one hazard each, to which the model was fitted
        fitted: random programs to which the model was fitted
        left_out: random programs to which it was not
    """

    platform: str
    device: str
    model: str
    source: str
    start: str
    kept: tuple[str, ...]
    rejected: tuple[str, ...]
    error: ErrorRecord
    by_memory: dict[str, Ratio]
    hazards: list[ProgramRecord]
    fitted: list[ProgramRecord]
    left_out: list[ProgramRecord]

    @staticmethod
    def of(found: Calibration, platform: str, device: str, path: Path) -> Calibrated:
        """Return the document of a model that was written to a file."""
        return Calibrated(
            platform=platform,
            device=device,
            model=str(path),
            source=found.model.source,
            start=found.start,
            kept=found.kept,
            rejected=found.rejected,
            error=ErrorRecord(mean=found.mean_error, worst=found.worst_error),
            by_memory=dict(found.by_memory),
            hazards=_records(found.hazards),
            fitted=_records(found.fitted),
            left_out=_records(found.left_out),
        )


def _records(rows: Sequence[CalibrationRow]) -> list[ProgramRecord]:
    return [
        ProgramRecord(
            program=row.name,
            off_a_word=row.is_skewed,
            measured=row.measured,
            model=row.fitted,
            error=row.error,
        )
        for row in rows
    ]

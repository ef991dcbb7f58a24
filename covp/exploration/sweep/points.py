"""`Point`: one design of a sweep; `Row`: what was found out about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Annotated, Any, Literal

import msgspec

from covp.accelerator.parameters import Value
from covp.base.figure import FigureDescription, figures_in
from covp.base.request import EVERY_MATCH, BuildOptions
from covp.evaluation.data import Data
from covp.evaluation.figures import (
    ACCURACY,
    AREA,
    ARENA,
    CYCLES,
    ENERGY,
    FLASH,
    INSTRUCTIONS,
    MEAN_ERROR,
    OFFLOADED,
    RAM,
    TIME,
    WAITING,
)

_VERSION = version("covp")


@dataclass(frozen=True)
class Point:
    """One design. Points pickle, and mean the same on every machine that has their files.

    Attributes:
        model: a name of the zoo, or the absolute path of a model file.
        platform: a name of `covp platforms`, or the absolute path of its file.
        accelerators: as `covp run -a` takes them, with absolute paths.
        options: how it is compiled.
        vary: name and value of each parameter that differs from what the files say, by name; for
            the names see `covp.evaluation.varied`.
        seed: of the random inputs.
        data: that its accuracy is found on; None: it is not found.
        content: a hash of all but ``vary``, see `covp.exploration.sweep.content`.
        key: a hash of all; two points with one key are the same design.
    """

    model: str
    platform: str
    accelerators: tuple[str, ...] = ()
    options: BuildOptions = EVERY_MATCH
    vary: tuple[tuple[str, Value], ...] = ()
    seed: int = 0
    data: Data | None = None
    content: str = ""
    key: str = ""

    def like(self, vary: tuple[tuple[str, Value], ...]) -> Point:
        """Return the point with these values alone, without what has a row."""
        return replace(self, vary=vary, key="")

    @property
    def values(self) -> dict[str, Value]:
        """The varied parameters by name."""
        return dict(self.vary)

    def row(self, figures: Mapping[str, Any]) -> Row:
        """Return a row of the point.

        Args:
            figures: the columns of `Row` that do not follow from the point.
        """
        return Row(
            key=self.key,
            model=self.model,
            platform=self.platform,
            accelerators=self.accelerators,
            toolchain=self.options.toolchain,
            optimize=self.options.optimize,
            vary=self.values,
            seed=self.seed,
            covp_version=_VERSION,
            **figures,
        )

    def __str__(self) -> str:
        units = "".join(f" + {spec}" for spec in self.accelerators)
        values = ", ".join(f"{name}={value}" for name, value in self.vary)
        return f"{self.model} on {self.platform}{units}{f' with {values}' if values else ''}"


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a point, or why there are none. Rows pickle.

    Attributes:
        key, toolchain, optimize, seed: of the point.
        model: its name in the zoo, or the path of its file.
        model_source: "official", "custom", "synthetic" or "file", see
            `covp.graph.models.ModelFile`.
        platform: its name, or the path of its file.
        accelerators, vary: of the point.
        status: "ok", or "failed".
        reason: one line; None where nothing failed.
        how: "run" on the virtual device, or "retimed" from the trace of such a run.
        instructions: that the core retired, exact.
        cycles, seconds, energy_j: of one inference, estimated; None where it is not known.
        waiting: cycles in which the core waits for accelerators.
        area_um2: of the accelerators, square micrometres, estimated; 0 without any, None where it
            is not known of one of them.
        flash_bytes, ram_bytes, arena_bytes: of the firmware.
        mac_coverage: see `covp.evaluation.Evaluation.mac_coverage`.
        matches_reference: whether the outputs are the reference's.
        accuracy: over the samples of the sweep, see `covp.evaluation.data.Scores.accuracy`; None
            without any, or where their labels are floats.
        mean_error: the mean magnitude of the outputs' differences from such labels.
        cycles_model: the timing model.
        cycles_error: its relative error where it was compared with a real core; None: unchecked.
        covp_version: that found it out.
    """

    key: str
    model: str
    platform: str
    accelerators: tuple[str, ...] = ()
    toolchain: str = "zig"
    optimize: str = "speed"
    vary: dict[str, Value] = {}
    seed: int = 0
    status: Literal["ok", "failed"] = "ok"
    reason: str | None = None
    how: Literal["run", "retimed"] | None = None
    instructions: Annotated[int | None, INSTRUCTIONS] = None
    cycles: Annotated[int | None, CYCLES] = None
    seconds: Annotated[float | None, TIME] = None
    waiting: Annotated[int | None, WAITING] = None
    energy_j: Annotated[float | None, ENERGY] = None
    area_um2: Annotated[float | None, AREA] = None
    flash_bytes: Annotated[int | None, FLASH] = None
    ram_bytes: Annotated[int | None, RAM] = None
    arena_bytes: Annotated[int | None, ARENA] = None
    mac_coverage: Annotated[float | None, OFFLOADED] = None
    matches_reference: bool | None = None
    accuracy: Annotated[float | None, ACCURACY] = None
    mean_error: Annotated[float | None, MEAN_ERROR] = None
    cycles_model: str | None = None
    cycles_error: float | None = None
    model_source: str | None = None
    covp_version: str = ""

    @property
    def is_ok(self) -> bool:
        """True if there are figures."""
        return self.status == "ok"


FIGURES: Mapping[str, FigureDescription] = figures_in(Row)
"""The columns of a row that a search can improve and a constraint can limit."""

"""`Point`: one design of a sweep; `Row`: what was found out about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Annotated, Any, Literal

import msgspec

from covp.accelerator.parameters import Value
from covp.base.document import Amount, Bytes, Cycles, Instructions, Joules, Ratio, Seconds, unit
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
_Area = Annotated[Amount, unit("um2")]


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
        key: a hash of all that the figures depend on
        model: zoo name or path
        model_source: as in `covp.run/1`; null where it failed
        platform: name or path
        accelerators: of the set-up; empty: the core alone
        toolchain: `zig` or `gcc`
        optimize: `cycles`, `balanced` or `size`
        vary: the parameters that differ from what the files say
        seed: of the random inputs
        status: `ok` or `failed`
        reason: why it failed
        how: `run`, or `retimed` from the trace of a run
        instructions: exact
        cycles: estimated
        seconds: `cycles` at the platform's clock
        waiting: in which the core waits for accelerators; part of `cycles`
        energy_j: estimated (`energy.md`); null where a part of it is not known
        area_um2: of the accelerators, estimated (`energy.md`); null where one states none
        arena_bytes: part of `ram_bytes`
        mac_coverage: of the model's MACs, what accelerators did
        matches_reference: of the outputs of the inference
        accuracy: null without samples
        mean_error: of the samples whose labels are floats, mean magnitude
        cycles_model: the timing model
        cycles_error: its largest known relative error; null: never checked
        units_error: that of the cycles of its accelerators; null: of one of them it is not known
        covp_version: that found the figures
    """

    key: str
    model: str
    platform: str
    accelerators: tuple[str, ...] = ()
    toolchain: str = "zig"
    optimize: str = "cycles"
    vary: dict[str, Value] = {}
    seed: int = 0
    status: Literal["ok", "failed"] = "ok"
    reason: str | None = None
    how: Literal["run", "retimed"] | None = None
    instructions: Annotated[Instructions | None, INSTRUCTIONS] = None
    cycles: Annotated[Cycles | None, CYCLES] = None
    seconds: Annotated[Seconds | None, TIME] = None
    waiting: Annotated[Cycles | None, WAITING] = None
    energy_j: Annotated[Joules | None, ENERGY] = None
    area_um2: Annotated[_Area | None, AREA] = None
    flash_bytes: Annotated[Bytes | None, FLASH] = None
    ram_bytes: Annotated[Bytes | None, RAM] = None
    arena_bytes: Annotated[Bytes | None, ARENA] = None
    mac_coverage: Annotated[Ratio | None, OFFLOADED] = None
    matches_reference: bool | None = None
    accuracy: Annotated[Ratio | None, ACCURACY] = None
    mean_error: Annotated[Annotated[Amount, unit("of the outputs")] | None, MEAN_ERROR] = None
    cycles_model: str | None = None
    cycles_error: Ratio | None = None
    units_error: Ratio | None = None
    model_source: str | None = None
    covp_version: str = ""

    @property
    def is_ok(self) -> bool:
        """True if there are figures."""
        return self.status == "ok"


class SweepRow(Row, frozen=True, kw_only=True):
    """A row among those of a sweep.

    Attributes:
        feasible: it has figures, and they keep all constraints; null: it breaks none, and lacks a
            figure that has a limit
        on_front: it is not infeasible, and no other design of its model is as good in all
            objectives and better in one
    """

    feasible: bool | None = None
    on_front: bool = False


class SweepDocument(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="covp.sweep/1"
):
    """The output of ``covp sweep --json``.

    Attributes:
        objectives: what the front is of; `cycles` where the file names none
        constraints: as in the file
        points: the designs of the file, in its order
    """

    objectives: list[str]
    constraints: list[str]
    points: list[SweepRow]


FIGURES: Mapping[str, FigureDescription] = figures_in(Row)
"""The columns of a row that a search can improve and a constraint can limit."""

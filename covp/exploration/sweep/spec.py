"""`Spec`: the YAML file of a sweep, read into checked structures; its JSON Schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

from covp.accelerator.parameters import Value
from covp.base.request import Objective, Toolchain
from covp.evaluation.data import Data
from covp.evaluation.data.quality import Place
from covp.exploration.sweep.constraints import Constraint
from covp.exploration.sweep.points import FIGURES
from covp.exploration.sweep.ranges import Range, values_of

Kind = Literal["grid", "list", "random", "optuna"]
Sampler = Literal["nsga2", "nsga3", "tpe", "gp", "random"]
if TYPE_CHECKING:
    FigureName = str
else:
    FigureName = Literal[tuple(FIGURES)]
_Names = Annotated[tuple[str, ...], Meta(min_length=1)]


class Search(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Selection of the designs of the space that are evaluated."""

    kind: Annotated[
        Kind,
        Meta(
            description="grid: all. list: those of the key points. random: some of the grid. "
            "optuna: what one of Optuna's samplers asks for."
        ),
    ] = "grid"
    points: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Number of designs (random; optuna: of each model)."),
    ] = None
    seed: Annotated[int, Meta(ge=0, description="Seed of the choice (random, optuna).")] = 0
    objectives: Annotated[
        tuple[FigureName, ...],
        Meta(
            description="Columns to improve: mac_coverage and accuracy upwards, all others "
            "downwards. The Pareto front is of them."
        ),
    ] = ()
    sampler: Annotated[Sampler, Meta(description="Sampler of Optuna.")] = "nsga2"


class Samples(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Samples with labels, whose accuracy is found; see docs/data.md."""

    samples: Annotated[
        str | dict[str, str],
        Meta(description="A .npy or .npz file or a folder; or one for each model by its name."),
    ]
    labels: Annotated[
        str | dict[str, str] | None,
        Meta(
            description="Ground truth per sample; or one file for each model. Folders of "
            "MLPerf Tiny's runner have their own."
        ),
    ] = None
    on: Annotated[
        Place,
        Meta(
            description="What runs them: the device, or the bit-exact reference, which is faster "
            "and knows nothing of the accelerators."
        ),
    ] = "device"
    limit: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="The first samples only.")
    ] = None

    def of(self, model: str) -> Data | None:
        """Return the samples of a model; None: it has none."""
        samples, labels = (
            each.get(model) if isinstance(each, dict) else each
            for each in (self.samples, self.labels)
        )
        if samples is None or (labels is None and self.labels is not None):
            return None
        return Data(Path(samples), Path(labels) if labels else None, self.on, self.limit)


class Spec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A sweep: models x platforms x toolchains x accelerators x objectives x parameters."""

    models: Annotated[
        _Names, Meta(description="Names of `covp models`, or paths from this file's folder.")
    ]
    platforms: Annotated[
        _Names, Meta(description="Names of `covp platforms`, or paths from this file's folder.")
    ]
    toolchains: Annotated[tuple[Toolchain, ...], Meta(min_length=1)] = ("zig",)
    accelerators: Annotated[
        tuple[tuple[str, ...], ...],
        Meta(
            min_length=1,
            description="Set-ups, each a list of accelerators as `covp run -a` takes them; an "
            "empty one is the core alone.",
        ),
    ] = ((),)
    optimize: Annotated[
        tuple[Objective, ...], Meta(min_length=1, description="Which tuned schedules to take.")
    ] = ("cycles",)
    vary: Annotated[
        dict[str, Annotated[tuple[Value, ...], Meta(min_length=1)] | Range],
        Meta(
            description="Parameters with their values: INSTANCE.PARAMETER of an accelerator, or "
            "platform.clock_hz, platform.core, platform.timing, platform.REGION.size, "
            "platform.REGION.wait_states[.fetch|.data]. One that a set-up or platform does not "
            "have is left out there."
        ),
    ] = {}
    points: Annotated[
        tuple[dict[str, Value], ...],
        Meta(description="Values of parameters, one entry a design (kind list)."),
    ] = ()
    constraints: Annotated[
        tuple[str, ...],
        Meta(description="Limits such as `ram_bytes <= 256K`; designs beyond are infeasible."),
    ] = ()
    search: Search = Search()
    data: Annotated[
        Samples | None, Meta(description="Samples for the columns accuracy and mean_error.")
    ] = None
    seed: Annotated[int, Meta(ge=0, description="Seed of the random inputs.")] = 0

    @property
    def limits(self) -> tuple[Constraint, ...]:
        """The constraints, read."""
        return tuple(Constraint.read(text, FIGURES) for text in self.constraints)

    def axes(self) -> dict[str, tuple[Value, ...]]:
        """Return the values of each varied parameter, without repetition, by its name."""
        return {name: values_of(given) for name, given in sorted(self.vary.items())}


def schema() -> dict[str, Any]:
    """Return the JSON Schema of the file, for editors."""
    draft = "https://json-schema.org/draft/2020-12/schema"
    found: dict[str, Any] = json.loads(msgspec.json.encode(msgspec.json.schema(Spec)))
    return {"$schema": draft, "title": "covp sweep", **found}

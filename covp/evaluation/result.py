"""`Evaluation`: one inference and all its figures, as an object and as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from covp.base.html_table import html_table
from covp.building.builder import Build
from covp.chip.platform_file import Platform
from covp.codegen.program import Program
from covp.device.timeline import TimelineLog
from covp.device.wave import Recorded
from covp.evaluation.advice import Advice, advice
from covp.evaluation.check import Check
from covp.evaluation.data.quality import Quality
from covp.evaluation.documents import Run
from covp.evaluation.energy import Energy, estimate_energy
from covp.evaluation.estimates import doubtful_units
from covp.evaluation.memory_map import NO_MEMORY_MAP, MemoryMap
from covp.evaluation.run_record import run_record
from covp.evaluation.sample import Sample
from covp.graph.arithmetic import whose
from covp.graph.equality import FLOAT_TOLERANCE
from covp.runtime.profile import MemoryUse, Profile


@dataclass(frozen=True, eq=False)
class Evaluation:
    """One inference and all its figures.

    Attributes:
        build: what ran.
        device: what it ran on, as for `Session`.
        toolchain: name and version.
        profile: instructions, cycles and where they come from.
        memory: that the program and covp's runtime take.
        outputs: of the device, in the model's order.
        mismatches: output elements that do not equal the reference's, see
            `covp.graph.equality.differences`.
        simulation_seconds: host time of the inference.
        check: how much was compared with the reference, and the first difference.
        sample: the inputs, and what was expected.
        recorded: the waveform that was requested, and its cycles.
        memory_map: what lies where.
        data: how right the model is over samples, where there are some.
        timeline: when what happened, where it was requested and the device knows it.
    """

    build: Build
    device: str
    toolchain: str
    profile: Profile
    memory: MemoryUse
    outputs: tuple[NDArray[Any], ...]
    mismatches: int
    simulation_seconds: float
    check: Check
    sample: Sample
    recorded: Recorded | None = None
    memory_map: MemoryMap = NO_MEMORY_MAP
    data: Quality | None = None
    timeline: TimelineLog | None = None

    @property
    def program(self) -> Program:
        """What ran."""
        return self.build.program

    @property
    def platform(self) -> Platform:
        """What the program is for."""
        return self.build.platform

    @property
    def model(self) -> str:
        """The zoo name, or the file's stem as a C identifier."""
        return self.build.model

    @property
    def source(self) -> str:
        """Where the model comes from, see `covp.graph.graph.Graph`."""
        return self.build.source

    @property
    def matches_reference(self) -> bool:
        """Whether all that was compared is what the reference computes."""
        return self.mismatches == 0 and self.check.holds

    @property
    def oracle(self) -> str:
        """Whose arithmetic the reference follows, as `covp.graph.arithmetic.whose` says."""
        return whose(self.program.graph)

    @property
    def mac_coverage(self) -> float | None:
        """The share of the model's multiply-accumulates that accelerators report they did.

        More than 1 where they report too many. None where one of them has layers and reports
        nothing, as a `Peripheral` without jobs.
        """
        if any(entry.target != "cpu" and entry.work is None for entry in self.profile.layers):
            return None
        total = sum(layer.macs for layer in self.program.layers)
        done = sum(entry.offloaded_macs for entry in self.profile.layers)
        return done / total if total else 0.0

    @property
    def energy(self) -> Energy | str | None:
        """Of the inference, estimated; or why not, see `covp.evaluation.energy.estimate_energy`."""
        return estimate_energy(self.program, self.profile)

    @property
    def verdict(self) -> str:
        """Such as "bit-exact: 13 layers x 4 inputs"; for the first difference, see `check`."""
        if self.check.level == "none":
            return "not checked"
        if not self.matches_reference:
            return "NO"
        error = self.check.worst_error
        if error is None:
            return f"bit-exact: {self.check.amount}"
        return f"within {FLOAT_TOLERANCE:g}: {self.check.amount}, worst error {error:.1e}"

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user should know, one line each: of compiler, schedules and wrong estimates."""
        return (
            *self.program.warnings,
            *self.build.notes,
            *doubtful_units(self.program, self.profile),
        )

    @property
    def advice(self) -> tuple[Advice, ...]:
        """What the run shows that its user can change, the dearest first."""
        return advice(self.program, self.profile, self.memory, self.build.options.optimize)

    def record(self) -> Run:
        """Return the JSON document ``covp.run/1`` of docs/json.md."""
        return run_record(self)

    def _repr_html_(self) -> str:
        profile, memory = self.profile, self.memory
        rows = [
            ("platform", self.platform.name),
            ("device", self.device),
            ("compiler", self.toolchain),
            ("schedules", str(self.build.schedules)),
            ("accelerators", ", ".join(self.build.accelerators) or "none"),
            ("matches the reference", self.verdict),
            ("seconds", "-" if profile.seconds is None else f"{profile.seconds:.6f}"),
            ("flash, bytes", f"{memory.flash_bytes:,}"),
            ("RAM, bytes", f"{memory.ram_bytes:,}"),
        ]
        return html_table((self.model, self.source), rows) + profile._repr_html_()

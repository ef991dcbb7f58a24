"""Trials on disk: what each schedule of a layer costs, on a core, with a compiler.

One JSON object a line, only ever appended: a search that is interrupted keeps what it has, and
goes on where it stopped. Files can be shared; those in ``covp/tune/shipped`` come with covp.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Literal

import numpy as np

from covp.cache import cache_dir, content_key
from covp.codegen.schedule import Schedule
from covp.errors import CovpError
from covp.graph.graph import Op, Tensor

Objective = Literal["speed", "balanced", "size"]
Cost = Literal["instructions", "cycles"]
VERSION = 2
"""Of the kernels: a change of what a schedule means makes old trials worthless."""

_SIZE_WEIGHT: dict[Objective, float] = {"speed": 0.0, "balanced": 1.0, "size": 4.0}


@dataclass(frozen=True)
class Trial:
    """One schedule, measured.

    Attributes:
        layer: `layer_key` of the operator.
        core: name of the core.
        compiler: name and version.
        version: `VERSION` when it was measured.
        schedule: as text.
        instructions: retired, exact; the few that call the layer are among them.
        cycles: estimated, or measured on hardware; None without a timing model.
        flash_bytes: code and constants of the layer.
        scratch_bytes: working memory in the arena.
        exact: whether the output had the reference's bits; a trial without them never wins.
    """

    layer: str
    core: str
    compiler: str
    version: int
    schedule: str
    instructions: int
    cycles: int | None
    flash_bytes: int
    scratch_bytes: int
    exact: bool

    def score(self, objective: Objective, cost: Cost = "instructions") -> float:
        """What a search makes small: cost times flash to the power of the objective's weight."""
        spent = self.cycles if cost == "cycles" and self.cycles is not None else self.instructions
        return float(spent * self.flash_bytes ** _SIZE_WEIGHT[objective])


class Records:
    """The trials of some files, found by layer, core and compiler."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._trials: dict[tuple[str, str, str], dict[str, Trial]] = {}
        for path in paths:
            for trial in read_trials(path):
                self.add(trial)

    @staticmethod
    def available() -> Records:
        """What comes with covp and what `covp tune` found on this machine."""
        shipped = Path(str(files("covp.tune") / "shipped"))
        return Records([*sorted(shipped.glob("*.jsonl")), *sorted(own_folder().glob("*.jsonl"))])

    def add(self, trial: Trial) -> None:
        """Keep a trial; a later one of the same schedule replaces it."""
        if trial.version == VERSION:
            key = trial.layer, trial.core, trial.compiler
            self._trials.setdefault(key, {})[trial.schedule] = trial

    def layers(self) -> list[tuple[str, str, str]]:
        """(layer, core, compiler) of all that is known."""
        return list(self._trials)

    def trials(self, layer: str, core: str, compiler: str) -> list[Trial]:
        """All trials of a layer."""
        return list(self._trials.get((layer, core, compiler), {}).values())

    def best(
        self,
        layer: str,
        core: str,
        compiler: str,
        objective: Objective = "speed",
        cost: Cost = "instructions",
    ) -> Trial | None:
        """The exact trial with the smallest score; None where there is none."""
        exact = [trial for trial in self.trials(layer, core, compiler) if trial.exact]
        return min(exact, key=lambda trial: trial.score(objective, cost), default=None)

    def schedule(
        self, op: Op, core: str, compiler: str, objective: Objective = "speed"
    ) -> Schedule | None:
        """The best schedule of an operator, None where nothing is known of it."""
        if not self._trials:
            return None
        found = self.best(layer_key(op), core, compiler, objective)
        return Schedule.parse(found.schedule) if found is not None else None


def front(trials: Iterable[Trial]) -> list[Trial]:
    """The exact trials that no other beats in instructions and flash, fastest first."""
    best: list[Trial] = []
    exact = [trial for trial in trials if trial.exact]
    for trial in sorted(exact, key=lambda t: (t.instructions, t.flash_bytes)):
        if not best or trial.flash_bytes < best[-1].flash_bytes:
            best.append(trial)
    return best


def own_folder() -> Path:
    """Where `covp tune` keeps its trials."""
    return cache_dir("records")


def read_trials(path: Path) -> list[Trial]:
    """The trials of a file; a last line that was cut off is left out.

    Raises:
        CovpError: another line is damaged; the text names it.
    """
    lines = path.read_text().splitlines()
    trials = []
    for number, line in enumerate(lines, 1):
        try:
            trials.append(Trial(**json.loads(line)))
        except (ValueError, TypeError) as error:
            if number == len(lines):
                break
            raise CovpError(f"{path}:{number}: not a trial ({error}); remove the line") from None
    return trials


def append_trials(path: Path, trials: Iterable[Trial]) -> None:
    """Add trials to a file. A line that was cut off before is closed first."""
    text = "".join(json.dumps(asdict(trial)) + "\n" for trial in trials)
    with path.open("a+b") as stream:
        if stream.tell() > 0:
            stream.seek(-1, 2)
            if stream.read(1) != b"\n":
                text = "\n" + text
        stream.write(text.encode())


def layer_key(op: Op) -> str:
    """A hash of all that a kernel is generated from: kind, shapes, constants, quantization."""
    parts: list[str | bytes] = [op.kind, repr(op.attributes)]
    for tensor in (*op.inputs, *op.outputs):
        parts += _tensor_parts(tensor)
    return content_key(*parts)


def _tensor_parts(tensor: Tensor | None) -> list[str | bytes]:
    if tensor is None:
        return ["none"]
    parts: list[str | bytes] = [str(tensor.shape), tensor.dtype.name]
    if tensor.quantization is not None:
        parts.append(np.asarray(tensor.quantization.scale).tobytes())
        parts.append(np.asarray(tensor.quantization.zero_point).tobytes())
    if tensor.data is not None:
        parts.append(np.ascontiguousarray(tensor.data).tobytes())
    return parts

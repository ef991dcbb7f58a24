"""Trials on disk: what each schedule of a layer costs, on a core, with a compiler.

One JSON object per line, only ever appended: a search that is interrupted keeps what it has, and
continues where it stopped. Files can be shared; those in ``covp/tune/shipped`` come with covp.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from covp.cache import cache_dir, content_key
from covp.codegen.schedule import Schedule
from covp.cores import Core
from covp.errors import CovpError
from covp.graph.graph import Op, Tensor

Objective = Literal["speed", "balanced", "size"]
Cost = Literal["instructions", "cycles", "time"]
VERSION = 3
"""Of the kernels: a change of what a schedule means makes old trials invalid."""

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
        instructions: retired, exact, including the few that call the layer; None on devices that do
            not count.
        cycles: estimated, or measured on hardware; None where neither is possible.
        flash_bytes: code and constants of the layer.
        scratch_bytes: working memory in the arena.
        exact: whether the output matches the reference; a trial where it does not never wins.
        device: the kind of device it ran on: "virtual", "host", "gdb", "openocd".
        nanoseconds: run time, measured; None where the device cannot tell.
    """

    layer: str
    core: str
    compiler: str
    version: int
    schedule: str
    instructions: int | None
    cycles: int | None
    flash_bytes: int
    scratch_bytes: int
    exact: bool
    device: str = "virtual"
    nanoseconds: int | None = None

    def score(self, objective: Objective, cost: Cost = "instructions") -> float:
        """What a search makes small: cost times flash to the power of the objective's weight.

        Where that cost is not known, another one is; all trials of a device know the same.
        """
        costs = {
            "instructions": self.instructions, "cycles": self.cycles, "time": self.nanoseconds
        }  # fmt: skip
        known = [value for value in (costs[cost], *costs.values()) if value is not None]
        if not known:
            return float("inf")
        return float(known[0] * self.flash_bytes ** _SIZE_WEIGHT[objective])


_decoder = msgspec.json.Decoder(Trial)


class Records:
    """The trials of some files, found by layer, core, compiler and kind of device."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._trials: dict[tuple[str, str, str, str], dict[str, Trial]] = {}
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
            key = trial.layer, trial.core, trial.compiler, trial.device
            self._trials.setdefault(key, {})[trial.schedule] = trial

    def layers(self) -> list[tuple[str, str, str]]:
        """(layer, core, compiler) of all that is known."""
        return list(dict.fromkeys(key[:3] for key in self._trials))

    def trials(self, layer: str, core: str, compiler: str, device: str = "virtual") -> list[Trial]:
        """All trials of a layer."""
        return list(self._trials.get((layer, core, compiler, device), {}).values())

    def best(
        self,
        layer: str,
        core: str,
        compiler: str,
        objective: Objective = "speed",
        cost: Cost = "instructions",
        device: str = "virtual",
        max_scratch: int | None = None,
    ) -> Trial | None:
        """The best of a layer's trials, see `best_of`; None where there is none."""
        trials = self.trials(layer, core, compiler, device)
        return best_of(trials, objective, cost, max_scratch)

    def schedule(
        self,
        op: Op,
        core: Core,
        compiler: str,
        objective: Objective = "speed",
        device: str = "virtual",
        max_scratch: int | None = None,
    ) -> Schedule | None:
        """The best schedule of an operator, None where nothing is known of it.

        What was measured on that kind of device counts first, then what the virtual one says, then
        what is known of the core that this one is like.
        """
        if not self._trials:
            return None
        key = layer_key(op)
        for name, kind in ((core.name, device), (core.name, "virtual"), (core.like, "virtual")):
            found = self.best(key, name, compiler, objective, device=kind, max_scratch=max_scratch)
            if found is not None:
                return Schedule.parse(found.schedule)
        return None


def best_of(
    trials: Iterable[Trial],
    objective: Objective = "speed",
    cost: Cost = "instructions",
    max_scratch: int | None = None,
) -> Trial | None:
    """The exact trial with the smallest score, then flash, of those with no more scratch memory.

    None where there is none.
    """
    fitting = [
        trial
        for trial in trials
        if trial.exact and (max_scratch is None or trial.scratch_bytes <= max_scratch)
    ]
    return min(fitting, key=lambda t: (t.score(objective, cost), t.flash_bytes), default=None)


def pareto_front(trials: Iterable[Trial]) -> list[Trial]:
    """The exact trials that no other beats in speed and flash, fastest first."""
    best: list[Trial] = []
    exact = [trial for trial in trials if trial.exact]
    for trial in sorted(exact, key=lambda t: (t.score("speed"), t.flash_bytes)):
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
    content = path.read_bytes()
    try:
        return _decoder.decode_lines(content)
    except msgspec.DecodeError:
        return _read_one_by_one(path, content.splitlines())


def _read_one_by_one(path: Path, lines: list[bytes]) -> list[Trial]:
    """The trials of a file with a line that is damaged or cut off."""
    trials = []
    for number, line in enumerate(lines, 1):
        try:
            trials.append(_decoder.decode(line))
        except msgspec.DecodeError as error:
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

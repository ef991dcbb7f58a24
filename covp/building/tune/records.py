"""Trials on disk: what each schedule of a layer costs, on a core, with a compiler.

One JSON object per line, only ever appended: a search that is interrupted keeps what it has, and
continues where it stopped. Files can be shared; `covp.building.tune.records` has those that come
with covp.
"""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

import msgspec

import covp.codegen.kernels  # noqa: F401  (they register their schedules)
from covp.base.cache import cache_dir
from covp.base.request import DEFAULT_BUILD, BuildOptions
from covp.base.terminal import say
from covp.building.tune.keys import layer_key, structure_key
from covp.building.tune.trial import (
    UNKNOWN_MEMORY,
    VERSION,
    Cost,
    ScheduleTrial,
    best_of,
    pareto_front,
)
from covp.chip.cores import Core, core_names
from covp.codegen.layer import KernelRequest, schedules
from covp.errors import CovpError
from covp.graph.graph import Op

__all__ = [
    "VERSION",
    "Cost",
    "Records",
    "ScheduleTrial",
    "append_trials",
    "best_of",
    "layer_key",
    "own_folder",
    "pareto_front",
    "read_trials",
    "structure_key",
    "trial_file",
]


def by_distance(compiler: str, known: Iterable[str]) -> list[str]:
    """Return compilers, the most telling first: the same one, its nearest version, then the others.

    Args:
        compiler: name and version, e.g. "zig 0.17.0".
        known: compilers of the same form. Of two versions at the same distance, and of another
            compiler, the newer comes first.
    """
    name, version = _parse(compiler)

    def key(other: str) -> tuple[bool, int, int]:
        their_name, theirs = _parse(other)
        same = their_name == name
        return not same, abs(version - theirs) if same else 0, -theirs

    return sorted(known, key=key)


def _parse(compiler: str) -> tuple[str, int]:
    """Return the name, and the first three numbers of the version as one."""
    name, _, version = compiler.partition(" ")
    numbers = [int(number) for number in re.findall(r"\d+", version)[:3]]
    major, minor, patch = numbers + [0] * (3 - len(numbers))
    return name, (major * 1000 + minor) * 1000 + patch


FOLDER = Path(str(files("covp.building.tune") / "shipped"))


class _Head(msgspec.Struct):
    core: str
    compiler: str
    version: int
    memory: str = UNKNOWN_MEMORY


class _Layer(msgspec.Struct):
    layer: str
    structure: str
    trials: list[tuple[str, int | None, int | None, int, int]]


_head, _layer = msgspec.json.Decoder(_Head), msgspec.json.Decoder(_Layer)


def file_name(core: str, compiler: str, memory: str = "") -> str:
    """Return the name of the file of a core, a compiler and a `Platform.memory_timing`."""
    kind = f"-{memory}" if memory not in ("", UNKNOWN_MEMORY) else ""
    return f"{core}-{compiler.replace(' ', '-')}{kind}.jsonl"


def read_shipped_trials(path: Path) -> list[ScheduleTrial]:
    """Return the trials of one file.

    Raises:
        CovpError: the file is damaged.
    """
    head, *lines = path.read_bytes().splitlines()
    try:
        shared = _head.decode(head)
        layers = [_layer.decode(line) for line in lines]
    except msgspec.DecodeError as error:
        raise CovpError(f"{path}: not covp's trials ({error}); install covp again") from None
    return [
        ScheduleTrial(
            layer=one.layer,
            core=shared.core,
            compiler=shared.compiler,
            version=shared.version,
            schedule=schedule,
            instructions=instructions,
            cycles=cycles,
            flash_bytes=flash,
            scratch_bytes=scratch,
            exact=True,
            structure=one.structure,
            memory=shared.memory,
        )
        for one in layers
        for schedule, instructions, cycles, flash, scratch in one.trials
    ]


def write_shipped_trials(path: Path, trials: Iterable[ScheduleTrial]) -> None:
    """Write exact trials of the virtual device: of one core, compiler, memory and version."""
    layers: dict[str, list[ScheduleTrial]] = {}
    for trial in trials:
        layers.setdefault(trial.layer, []).append(trial)
    (first, *_), *_ = layers.values()
    head = {
        "core": first.core,
        "compiler": first.compiler,
        "version": first.version,
        "memory": first.memory,
    }
    lines = [_compact(head), *(_compact(_pack(found)) for found in layers.values())]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _pack(trials: list[ScheduleTrial]) -> dict[str, object]:
    rows = [(t.schedule, t.instructions, t.cycles, t.flash_bytes, t.scratch_bytes) for t in trials]
    return {"layer": trials[0].layer, "structure": trials[0].structure, "trials": rows}


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


_USER_CORE = re.compile(r"(.+-[0-9a-f]{8})-(?:zig|gcc)-[^-]*\.jsonl$")
"""The key of a user's core in the name of a file."""
_Group = dict[str, dict[tuple[str, str, str], ScheduleTrial]]
"""Trials by compiler, then by layer, schedule and memory."""


class Records:
    """The trials of some files, found by layer, core, compiler and kind of device.

    A file whose name begins with a core's, as those of covp do, is read when trials of that core
    are first looked for, and never again.

    Args:
        paths: files with one trial per line.
        shipped: files of `covp.building.tune.records`, which count less than trials of the same
            schedule in ``paths``.
    """

    def __init__(self, paths: Iterable[Path], shipped: Iterable[Path] = ()) -> None:
        self._unread = [(path, read_shipped_trials) for path in shipped]
        self._unread += [(path, read_trials) for path in paths]
        self._opened: set[str] = set()
        # by core, device and layer_key or structure_key
        self._groups: dict[tuple[str, str, str], _Group] = {}
        # what may have been changed by hand: the file of a layer, core and compiler
        self._own: dict[tuple[str, str, str], Path] = {}
        self._misfits: set[ScheduleTrial] = set()

    @staticmethod
    def available() -> Records:
        """Return the records that come with covp and those that `covp tune` made on this machine.

        Opened once per process, so that a search elsewhere does not change figures half-way.
        """
        return _open_records(own_folder())

    def open(self, *cores: str) -> None:
        """Read the files of these cores now; without arguments, all."""
        if cores and self._opened.issuperset(cores):
            return
        self._opened.update(cores)
        wanted = [e for e in self._unread if not cores or _core_of(e[0]) in {*cores, ""}]
        self._unread = [entry for entry in self._unread if entry not in wanted]
        for path, read in wanted:
            for trial in read(path):
                self.add(trial)
                if read is read_trials:
                    self._own[trial.layer, trial.core, trial.compiler] = path

    def add(self, trial: ScheduleTrial) -> None:
        """Keep a trial; a later one of the same schedule replaces it."""
        if trial.version != VERSION:
            return
        for key in filter(None, (trial.layer, trial.structure)):
            group = self._groups.setdefault((trial.core, trial.device, key), {})
            place = trial.layer, trial.schedule, trial.memory
            group.setdefault(trial.compiler, {})[place] = trial

    def layers(self) -> list[tuple[str, str, str]]:
        """Return (layer, core, compiler) of all known trials."""
        self.open()
        found = (t for group in self._groups.values() for of in group.values() for t in of.values())
        return list(dict.fromkeys((t.layer, t.core, t.compiler) for t in found))

    def trials(
        self,
        layer: str,
        core: str,
        compiler: str,
        device: str = "virtual",
        memory: str | None = None,
    ) -> list[ScheduleTrial]:
        """Return all trials of a layer; ``memory``: those of one `Platform.memory_timing` alone."""
        self.open(core)
        found = self._groups.get((core, device, layer), {}).get(compiler, {}).values()
        return [trial for trial in found if memory in (None, trial.memory)]

    def groups(
        self, op: Op, core: Core, compiler: str, device: str
    ) -> Iterator[list[ScheduleTrial]]:
        """Yield the trials that an operator's layer can use, the most telling group first.

        A schedule is a choice that stays valid; only its cost ages. What was measured on that kind
        of device counts first, then what the virtual one says, then what is known of the core that
        this one is like; of each, trials of this compiler, then of its nearest version, then of
        another compiler. Layers with other weights follow in the same order, as far as this layer
        can take their schedules.
        """
        yield from self._of_layer(op, core, compiler, device)
        yield from self._of_structure(op, core, compiler, device)

    def _of_layer(
        self, op: Op, core: Core, compiler: str, device: str
    ) -> Iterator[list[ScheduleTrial]]:
        self.open(core.key, *core.like)
        for name, kind in dict.fromkeys(_places(core, device)):
            yield from self._by_compiler(name, kind, layer_key(op), compiler)

    def _of_structure(
        self, op: Op, core: Core, compiler: str, device: str
    ) -> Iterator[list[ScheduleTrial]]:
        places = list(dict.fromkeys(_places(core, device)))
        known = structure_key(op)
        if any((*place, known) in self._groups for place in places):
            valid = set(map(str, schedules(KernelRequest(op, core, "layer"))))
            for name, kind in places:
                for trials in self._by_compiler(name, kind, known, compiler):
                    yield [trial for trial in trials if trial.schedule in valid]

    def _by_compiler(
        self, core: str, kind: str, key: str, compiler: str
    ) -> Iterator[list[ScheduleTrial]]:
        group = self._groups.get((core, kind, key), {})
        for known in by_distance(compiler, group):
            yield list(group[known].values())

    def find(
        self,
        op: Op,
        core: Core,
        compiler: str,
        options: BuildOptions = DEFAULT_BUILD,
        device: str = "virtual",
        memory: str = "",
    ) -> ScheduleTrial | None:
        """Return the best trial of the first of an operator's `groups` that has a usable one.

        Of a group those count whose cycles are of this memory; where there are none, those of
        memory without wait states, then all.

        Args:
            op, core: whose.
            compiler: name and version, e.g. "zig 0.17.0".
            options: of the build, as for `best_of`.
            device: the kind, such as "virtual" or "host".
            memory: `Platform.memory_timing` of the platform.

        Returns:
            The trial, whose schedule fits the layer; None where nothing is known of it.
        """
        groups = self.groups(op, core, compiler, device)
        if options.optimize == "instructions":
            groups = _counted(groups, core, compiler)
        for trials in groups:
            for some in _by_memory(trials, memory):
                best = best_of(some, options)
                if best is not None and self._file(best) is not None:
                    best = best_of(self.filter_usable(some, op, core), options)
                if best is not None:
                    return best
        return None

    def unmeasured(
        self, op: Op, core: Core, compiler: str, memory: str, most: int, again: bool = False
    ) -> list[ScheduleTrial]:
        """Return the trials whose schedules are worth being measured with a core and memory.

        Args:
            op, core, compiler: as for `groups`.
            memory: `Platform.memory_timing`.
            most: trials in all: half of them of the fewest cycles, half of the least flash.
            again: as if none had been measured.

        Returns:
            None where there is no choice, or where there are figures of this core and memory, of
            all that this machine's own trials name too.
        """
        groups = [*self._of_layer(op, core, compiler, "virtual")]
        is_own = bool(groups)  # costs under other weights are rough anyway: any compiler will do
        groups = groups or [*self._of_structure(op, core, compiler, "virtual")]
        exact = [trial for trials in groups for trial in trials if trial.exact]
        name, _ = _parse(compiler)
        here = {
            trial.schedule
            for trial in exact
            if (trial.core, trial.memory) == (core.key, memory)
            and (not is_own or _parse(trial.compiler)[0] == name)
        }
        own = {trial.schedule for trial in exact if self._file(trial) is not None}
        if not again and here and own <= here:
            return []
        known: dict[str, ScheduleTrial] = {}
        for trial in exact:
            known.setdefault(trial.schedule, trial)
        usable = self.filter_usable(known.values(), op, core)
        if len(usable) < 2:
            return []
        fastest = sorted(usable, key=lambda t: (t.spent(), t.flash_bytes))
        fastest.sort(key=lambda t: t.schedule not in here and t.schedule not in own)
        least = sorted(usable, key=lambda t: (t.flash_bytes, t.spent()))
        both = itertools.chain.from_iterable(zip(fastest, least, strict=True))
        return list(dict.fromkeys(both))[:most]

    def filter_usable(
        self, trials: Iterable[ScheduleTrial], op: Op, core: Core
    ) -> list[ScheduleTrial]:
        """Return the trials whose schedule an operator's layer can take on a core.

        One line on standard error says how many of a file cannot be of that layer, once.
        """
        valid = set(map(str, schedules(KernelRequest(op, core, "layer"))))
        trials, own = list(trials), core.key  # those of a like core may not fit, and rightly so
        misfits = {t for t in trials if t.schedule not in valid and t.core == own}
        wrong = misfits - self._misfits
        self._misfits |= misfits
        for path, count in Counter(map(self._file, wrong)).items():
            text = f"{count} schedules are" if count > 1 else "one schedule is"
            say(f"{path}: {text} not for the layer {op.name} and skipped; remove such lines")
        return [trial for trial in trials if trial.schedule in valid]

    def _file(self, trial: ScheduleTrial) -> Path | None:
        """Return the file of `covp tune` that a trial may come from."""
        return self._own.get((trial.layer, trial.core, trial.compiler))


def _counted(
    groups: Iterable[list[ScheduleTrial]], core: Core, compiler: str
) -> Iterator[list[ScheduleTrial]]:
    """Yield the trials whose instructions are known: of one core and compiler in one group.

    Instructions depend on no memory, and from version to version of a compiler by few per cent.
    """
    together: dict[tuple[bool, bool], list[ScheduleTrial]] = {}
    for trials in groups:
        for trial in trials:
            if trial.instructions is not None:
                place = trial.core != core.key, _parse(trial.compiler)[0] != _parse(compiler)[0]
                same = replace(trial, memory="")
                together.setdefault(place, []).append(same)
    yield from (together[place] for place in sorted(together))


def _by_memory(trials: Sequence[ScheduleTrial], memory: str) -> Iterator[list[ScheduleTrial]]:
    """Yield the trials whose costs can be compared, the most telling first."""
    for known in dict.fromkeys((memory, "", UNKNOWN_MEMORY)):
        yield [trial for trial in trials if trial.memory == known]
    yield list(trials)


def _places(core: Core, device: str) -> list[tuple[str, str]]:
    """Return core and kind of device of the trials that count, the most telling first."""
    return [(core.key, device), *((name, "virtual") for name in (core.key, *core.like))]


def _core_of(path: Path) -> str:
    """Return the core whose trials a file's name promises, "" where it promises nothing."""
    if found := _USER_CORE.match(path.name):
        return found[1]
    return max((n for n in core_names() if path.name.startswith(f"{n}-")), key=len, default="")


@lru_cache
def _open_records(own: Path) -> Records:
    return Records(sorted(own.glob("*.jsonl")), sorted(FOLDER.glob("*.jsonl")))


def own_folder() -> Path:
    """Return the folder in which `covp tune` keeps its trials."""
    return cache_dir("records")


def trial_file(core: Core, compiler: str) -> Path:
    """Return the file of this machine's trials of a core and a compiler, e.g. "zig 0.17.0"."""
    return own_folder() / file_name(core.key, compiler)


def read_trials(path: Path) -> list[ScheduleTrial]:
    """Return the trials of a file.

    A line that is none is skipped, and one line on standard error says how many were; a last line
    that was cut off is what an interrupted search leaves. So is a file that cannot be read.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        say(f"{path} cannot be read: {error.strerror}; its trials are missing")
        return []
    try:
        return _decoder.decode_lines(content)
    except msgspec.DecodeError:
        return _read_one_by_one(path, content.splitlines())


def _read_one_by_one(path: Path, lines: list[bytes]) -> list[ScheduleTrial]:
    """Return the trials of a file with a line that is damaged or cut off."""
    trials, damaged = [], []
    for number, line in enumerate(lines, 1):
        try:
            trials.append(_decoder.decode(line))
        except msgspec.DecodeError:
            damaged.append(number)
    if damaged not in ([], [len(lines)]):
        count = f"{len(damaged)} of {len(lines)} lines are" if len(damaged) > 1 else "one line is"
        say(f"{path}:{damaged[0]}: {count} damaged and skipped; remove lines that are not trials")
    return trials


def append_trials(path: Path, trials: Iterable[ScheduleTrial]) -> None:
    """Add trials to a file. A line that was cut off before is closed first."""
    text = "".join(json.dumps(asdict(trial)) + "\n" for trial in trials)
    with path.open("a+b") as stream:
        if stream.tell() > 0:
            stream.seek(-1, 2)
            if stream.read(1) != b"\n":
                text = "\n" + text
        stream.write(text.encode())


_decoder = msgspec.json.Decoder(ScheduleTrial)

"""`verify`: all that an accelerator is tried with, one kind of layers or misuse after another."""

from __future__ import annotations

import copy
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from hypothesis import strategies as st

from covp import zoo
from covp.accelerator.backend import AcceleratorBackend
from covp.accelerator.registry import find_backend
from covp.arguments import demand, demand_count, demand_seconds
from covp.errors import AcceleratorError, UsageError
from covp.frontend import Shapes
from covp.hardware.job_unit import JobUnit
from covp.platform_file import Platform
from covp.plugins import call_hook
from covp.testing import Case, Layer
from covp.verify.abuse import abuse
from covp.verify.bench import Bench
from covp.verify.borders import borders
from covp.verify.chain import ChainCase, refitted, with_room
from covp.verify.check import open_bench
from covp.verify.corners import corners
from covp.verify.driver_bench import DriverBench
from covp.verify.model_layers import model_layers
from covp.verify.pattern_layers import drawn, pattern_layers
from covp.verify.printed_test import printed_test, spec_of
from covp.verify.search import LayerSearch, Stopwatch
from covp.verify.stated_limits import stated_limits
from covp.verify.sweep import sweep
from covp.verify.waiting import waiting

_ROUNDS = (0.15, 0.4, 0.6)
"""Shares of the time in which small layers are drawn, as long as none is accepted."""


@dataclass(frozen=True)
class Verdict:
    """The layers that were tried, and the first failure.

    Attributes:
        accelerator: as the user named it.
        tried: layers drawn, by operator; those that the accelerator rejected are part of them.
        accepted: layers that ran on it, by operator.
        abuses: wrong uses of the registers that were tried; 0 where the model is no `JobUnit`.
        failure: the first wrong result, fault or uncaught misuse, or None.
        test: a test that shows it, ready to be run with pytest; empty without a failure.
        rejected: reasons for which layers were rejected, and how many they were.
        too_large: layers drawn that did not fit the bench's memory, by operator.
        models: layers of real models that ran on it, by model.
        seconds: of the whole search.
        rates: (MACs, bytes) per cycle of the fastest jobs by the models' own time and counts; 0
            where they do not say. That silicon could do as much is for its author to judge.
    """

    accelerator: str
    tried: dict[str, int]
    accepted: dict[str, int]
    abuses: int = 0
    failure: str | None = None
    test: str = ""
    rejected: dict[str, int] = field(default_factory=dict)
    too_large: dict[str, int] = field(default_factory=dict)
    models: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    rates: tuple[float, float] = (0.0, 0.0)


def verify(
    spec: str | AcceleratorBackend,
    platform: str | Platform = "riscv32",
    examples: int = 200,
    seed: int = 0,
    toolchain: str = "zig",
    progress: Callable[[str], None] = lambda text: None,
    models: Sequence[str] | None = None,
    seconds: float = 20.0,
    shapes: Shapes | None = None,
) -> Verdict:
    """Try random layers of every operator that an accelerator looks for, then misuse it.

    Args:
        spec: a name, ``path/to/file.py:Class``, or the backend itself.
        platform: a name, the path of a YAML file, or the platform itself.
        examples: layers of each operator, at least 1.
        seed: the same one draws the same layers.
        toolchain: "zig" or "gcc".
        progress: called with the operator that is tried next, with each model and "registers".
        models: whose layers are tried as well: paths or names; by default those of the zoo.
        seconds: by the clock, after which no further layer is tried. A failure that is found late
            is shrunk for one second more.
        shapes: of inputs by name, for those that the models leave open.

    Raises:
        UsageError: there is nothing to draw for the operators of its patterns.
        AcceleratorError: it accepted none of the layers, or a hook of it raised.
        ToolchainError: the driver does not compile, or warns.
    """
    demand("spec", spec, (str, AcceleratorBackend), "an accelerator's name or a backend")
    demand_count("examples", examples, 1)
    demand_count("seed", seed)
    demand_seconds("seconds", seconds)
    backend = find_backend(spec) if isinstance(spec, str) else spec
    named = spec if isinstance(spec, str) else spec_of(backend)
    strategies = _strategies(backend)
    stopwatch = Stopwatch()
    with open_bench(backend, platform, toolchain) as bench:
        search = LayerSearch(bench, examples, seed, stopwatch, seconds)
        models = _zoo() if models is None else models
        run = _Run(search, strategies, models, seconds, stopwatch.now(), shapes or {})
        found = run.layers(progress)
        abuses = 0
        if found is None:
            sample = _demand_sample(search, strategies)
            if stopwatch.now() < seconds:
                found = _sleeping(backend, platform, toolchain, search, progress)
            if found is None and isinstance(bench, DriverBench) and isinstance(bench.unit, JobUnit):
                progress("registers")
                abuses, wrong = abuse(bench, sample)
                found = None if wrong is None else _Failure(wrong)
    failure, test = None, ""
    if found is not None:
        failure = found.text
        if found.case is not None:
            test = printed_test(
                found.spec or named, found.case, bench.platform.name, found.before, found.cycles
            )
    return Verdict(
        named,
        dict(search.tried),
        dict(search.accepted),
        abuses,
        failure,
        test,
        dict(search.rejected.most_common()),
        {kind: search.too_large[kind] for kind in search.tried},
        dict(run.ran),
        stopwatch.now(),
        bench.rates,
    )


@dataclass(frozen=True)
class _Failure:
    """What was found.

    Attributes:
        text: of the message.
        case, before, cycles: see `check`; no case for misuse of registers.
        spec: of the accelerator, where it is not the one that the user named.
    """

    text: str
    case: Case | None = None
    before: tuple[Case, ...] = ()
    cycles: int | None = None
    spec: str = ""


def _of_search(search: LayerSearch) -> _Failure:
    return _Failure(str(search.error), search.failing, search.before)


def _waits(bench: Bench, case: Case | None) -> _Failure | None:
    """A layer with jobs of all times, where a unit on the bus has times."""
    if case is None or not isinstance(bench, DriverBench) or bench.watch is None:
        return None
    wrong = waiting(bench, case)
    return None if wrong is None else _Failure(wrong[1], case, cycles=wrong[0])


def _sleeping(
    backend: AcceleratorBackend,
    platform: str | Platform,
    toolchain: str,
    search: LayerSearch,
    progress: Callable[[str], None],
) -> _Failure | None:
    """The accelerator with its other way to wait, where it has the parameter for both."""
    other = {"poll": "sleep", "sleep": "poll"}.get(str(backend.values.get("wait")))
    slot = search.bench.platform.accelerators
    if other is None or slot is None or slot.irq is None:
        return None
    twin = copy.copy(backend)
    twin.values = {**backend.values, "wait": other}
    progress(f"wait={other}")
    with open_bench(twin, platform, toolchain) as bench:
        again = LayerSearch(bench, 1, 0, search.stopwatch, 0.0)
        right = again.run_all(search.small)
        found = _waits(bench, search.small[0]) if right and search.small else None
        found = found if right else _of_search(again)
    return None if found is None else replace(found, spec=spec_of(twin))


@dataclass(eq=False)
class _Run:
    """The stages of a search, each with a part of the time.

    Attributes:
        strategies: by operator.
        models: whose layers are tried.
        seconds: that it may take.
        opening: seconds that a bench needs to be opened; kept for another one at the end.
        shapes: of inputs that the models leave open.
        ran: layers of models that ran on the accelerator, by model.
    """

    search: LayerSearch
    strategies: dict[str, st.SearchStrategy[Any]]
    models: Sequence[str]
    seconds: float
    opening: float
    shapes: Shapes
    ran: Counter[str] = field(default_factory=Counter)

    def layers(self, progress: Callable[[str], None]) -> _Failure | None:
        """Small layers, jobs of all times, corner cases, borders, layers of models."""
        search = self.search
        if not self._drawn(progress):
            return _of_search(search)
        search.forms = sorted(number for number, count in search.helpful.items() if count)
        progress("the time of a job")
        for case in search.small[:1]:
            found = _waits(search.bench, case)
            if found is not None:
                return found
        stages = self._corners, self._sweep, self._borders, self._models
        return None if all(stage(progress) for stage in stages) else _of_search(search)

    def _drawn(self, progress: Callable[[str], None]) -> bool:
        """Small layers; whether all came out right. More of them until one is accepted."""
        count = len(self.strategies)
        for number, share in enumerate(_ROUNDS):
            for position, (kind, strategy) in enumerate(self.strategies.items()):
                progress(kind)
                until = self._at(share * (position + 1) / count)
                if not self.search.run(strategy, 0.5, until, number):
                    return False
            if self.search.sample is not None:
                break
        return True

    def _sweep(self, progress: Callable[[str], None]) -> bool:
        count = len(self.strategies)
        for position, kind in enumerate(self.strategies):
            progress(f"{kind}: all small extents")
            cases = map(self._of_its_type, sweep(kind))
            if not self.search.run_all(cases, self._at(0.45 + 0.2 * (position + 1) / count)):
                return False
        return self._chained(sweep, self._at(0.65))

    def _chained(self, layers: Callable[[str], Iterable[Case]], until: float) -> bool:
        """Layers at the beginning of chains that were accepted; whether all were right."""
        seen = set()
        for sample in self.search.small:
            wanted = isinstance(sample, ChainCase) and [part.kind for part in sample.parts]
            if not isinstance(sample, ChainCase) or repr(wanted) in seen:
                continue
            seen.add(repr(wanted))
            first, *rest = sample.parts
            made = (
                refitted(sample, [with_room(layer), *rest])
                for layer in layers(first.kind)
                if isinstance(layer, Layer)
            )
            if not self.search.run_all(filter(None, made), until):
                return False
        return True

    def _corners(self, progress: Callable[[str], None]) -> bool:
        count, limits = len(self.strategies), self._limits
        for position, kind in enumerate(self.strategies):
            progress(f"{kind}: corner cases")
            until = self._at(0.15 + 0.3 * (position + 1) / count)
            cases = map(self._of_its_type, corners(kind, limits))
            if not self.search.run_all(cases, until):
                return False
        return self._chained(lambda kind: corners(kind, limits), self._at(0.45))

    def _borders(self, progress: Callable[[str], None]) -> bool:
        backend = self.search.bench.backend
        edges = _by_kind([pattern_layers(each, self._border) for each in backend.patterns])
        for position, (kind, edge) in enumerate(edges.items()):
            progress(f"{kind} at its borders")
            until = self._at(0.65 + 0.15 * (position + 1) / len(edges))
            if not self.search.run(edge, 0.5, until):
                return False
        return True

    def _border(self, kind: str) -> st.SearchStrategy[Any]:
        """Layers of a kind at the borders of the accelerator."""
        edge = borders(kind, self.search.bench.backend, self._limits)
        return drawn(kind) if edge is None else edge.map(self._of_its_type)

    def _of_its_type(self, case: Any) -> Any:
        """The same of float32 for a unit that accepts nothing else."""
        if self.search.dtypes[case.kind] == {"float32"}:
            return replace(case, dtype="float32")
        return case

    @cached_property
    def _limits(self) -> list[int]:
        return stated_limits(self.search.bench.backend, self.search.small)

    def _at(self, part: float) -> float:
        return part * self.seconds

    def _models(self, progress: Callable[[str], None]) -> bool:
        """Layers of the models, one of each in turn."""
        backend = self.search.bench.backend
        turns = [(name, model_layers(name, backend, shapes=self.shapes)) for name in self.models]
        if turns:
            progress(f"layers of {', '.join(self.models)}")
        while turns and self.search.stopwatch.now() < self._at(0.95) - self.opening:
            name, cases = turns.pop(0)
            case = next(cases, None)
            if case is None:
                continue
            turns.append((name, cases))
            before = self.search.accepted.total()
            if not self.search.run_all([case]):
                return False
            self.ran[name] += self.search.accepted.total() - before
        return True


def _zoo() -> list[str]:
    return [*zoo.names("int8"), *zoo.names("float32")]


def _demand_sample(search: LayerSearch, kinds: dict[str, Any]) -> Case:
    if search.sample is None:
        raise AcceleratorError(
            f"accelerator {search.bench.backend.name} took none of {search.tried.total()} layers "
            f"of {', '.join(kinds)}{_reasons(search)}; give it a method cases() that returns "
            "operator names (for a pattern of several operators its last one) with strategies of "
            "layers that it accepts, or a bench on which they are not too large for the RAM"
        )
    return search.sample


def _reasons(search: LayerSearch) -> str:
    """The most frequent reasons for rejecting layers, for a message."""
    if search.too_large:
        return f" ({search.too_large.total()} were too large for the RAM)"
    first = [f"{reason} ({count})" for reason, count in search.rejected.most_common(3)]
    return f": {', '.join(first)}" if first else ""


def _strategies(backend: AcceleratorBackend) -> dict[str, st.SearchStrategy[Any]]:
    """Operator kind to the strategy of its layers: the backend's own, or those of `STRATEGIES`."""
    where = f"accelerator {backend.name}"
    own = call_hook(where, "cases", lambda: dict(backend.cases()))
    for kind, strategy in own.items():
        if not isinstance(strategy, st.SearchStrategy):
            raise AcceleratorError(
                f"{where}: cases() gave {strategy!r:.80} for {kind}, no strategy"
            )
    if own:
        return own
    found = _by_kind([pattern_layers(pattern) for pattern in backend.patterns])
    if not found:
        kinds = sorted(set().union(*(pattern.node.all_kinds() for pattern in backend.patterns)))
        raise UsageError(
            f"accelerator {backend.name}: nothing draws layers of {', '.join(kinds)}; give "
            "it a method cases() that returns operator names with Hypothesis strategies"
        )
    return found


def _by_kind(drawn: Iterable[dict[str, st.SearchStrategy[Any]]]) -> dict[str, Any]:
    """The strategies of several patterns, joined by the kind of the last operator."""
    joined: defaultdict[str, list[st.SearchStrategy[Any]]] = defaultdict(list)
    for strategies in drawn:
        for kind, strategy in strategies.items():
            joined[kind].append(strategy)
    return {kind: st.one_of(joined[kind]) for kind in sorted(joined)}

"""`verify`: random layers on an accelerator, and the smallest that it gets wrong."""

from __future__ import annotations

import math
import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as with_seed
from hypothesis import strategies as st

from covp import zoo
from covp.accelerator.backend import AcceleratorBackend
from covp.accelerator.registry import find_backend
from covp.arguments import demand, demand_count, demand_seconds
from covp.errors import AcceleratorError, CapacityError, CovpError, UsageError
from covp.hardware.job_unit import JobUnit
from covp.platform_file import Platform
from covp.plugins import call_hook
from covp.testing import Case
from covp.testing.layers import STRATEGIES
from covp.verify.abuse import abuse
from covp.verify.bench import Bench
from covp.verify.borders import borders
from covp.verify.check import open_bench, run_case
from covp.verify.corners import corners
from covp.verify.driver_bench import DriverBench
from covp.verify.model_layers import ModelLayer, model_layers
from covp.verify.printed_test import printed_test, spec_of
from covp.verify.shrink import smaller

_SHRINKING = 5.0
"""Seconds that a failing layer may be made smaller."""


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


class LayerSearch:
    """Runs layers on a bench until one comes out wrong, then shrinks it.

    Attributes:
        tried: layers that ran or were rejected before the first failure, by operator.
        accepted: those of them that ran on the accelerator, by operator.
        sample: the latest of those, or None.
        rejected: the reasons for the others, and how often each was given.
        too_large: layers that do not fit the bench, by operator.
        dtypes: of the accepted layers, by operator.
        stopwatch: started with the search.
        failing: the smallest failing layer, or None.
        before: the layer that has to run before it, or None.
        error: its failure.
    """

    def __init__(self, bench: Bench, examples: int, seed: int) -> None:
        self.bench = bench
        self.tried: Counter[str] = Counter()
        self.accepted: Counter[str] = Counter()
        self.rejected: Counter[str] = Counter()
        self.too_large: Counter[str] = Counter()
        self.sample: Case | None = None
        self.dtypes: defaultdict[str, set[str]] = defaultdict(set)
        self.failing: Case | None = None
        self.before: Case | None = None
        self.error: CovpError | None = None
        self.stopwatch = _Stopwatch()
        self._seed = seed
        self._until = math.inf
        self._shrink_until = math.inf
        self._examples = examples

    def run(
        self, strategy: st.SearchStrategy[Any], share: float = 1.0, until: float = math.inf
    ) -> bool:
        """Try layers of a strategy; whether all came out right.

        Args:
            strategy: of cases.
            share: of the number of examples.
            until: no further layer is tried after this time of the search.
        """
        self._until = until
        before = st.one_of(st.none(), st.none(), strategy)
        how = settings(
            max_examples=max(1, round(self._examples * share)),
            deadline=None,
            database=None,
            print_blob=False,
            report_multiple_bugs=False,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        )
        attempts = with_seed(self._seed)(how(given(strategy, before)(self._timed)))
        try:
            attempts()
        except _Enough:
            return True
        except CovpError:  # Hypothesis runs the smallest one last, so `failing` is that
            return False
        return True

    def run_all(self, cases: Iterable[Case], until: float = math.inf) -> bool:
        """Try layers one by one; the first that fails is shrunk.

        Args:
            cases: the layers.
            until: time of the stopwatch, in seconds, from which no further one is tried.

        Returns:
            Whether none failed.
        """
        for case in cases:
            if self.stopwatch.now() > until:
                return True
            try:
                self.attempt(case)
            except CovpError:
                self._shrink()
                return False
        return True

    def _shrink(self) -> None:
        """Simplify the failing case field by field, as long as it fails."""
        found = True
        while found:
            assert self.failing is not None
            found = False
            for case in smaller(self.failing):
                if self.stopwatch.now() > self._shrink_until:
                    return
                try:
                    self.attempt(case)
                except CovpError:
                    found = True
                    break
                except Exception:  # no such layer can be
                    continue

    def _timed(self, case: Case, before: Case | None) -> None:
        now = self.stopwatch.now()
        if self.error is None and now > self._until:
            raise _Enough
        if self.error is not None and now > self._shrink_until:
            # small enough: the smallest so far fails without being run, all others do not
            if (repr(case), repr(before)) == (repr(self.failing), repr(self.before)):
                raise self.error
            return
        self.attempt(case, before)

    def attempt(self, case: Case, before: Case | None = None) -> None:
        """Run one layer and count it.

        Args:
            case: the layer.
            before: a layer that runs first on the same device; its outcome does not count.

        Raises:
            CovpError: the layer fails.
        """
        try:
            outcome = run_case(self.bench, case, before)
        except CapacityError:
            if self.error is None:
                self.too_large[case.kind] += 1
            return
        except CovpError as error:
            if self.error is None:
                self._shrink_until = self.stopwatch.now() + _SHRINKING
            self.failing, self.before, self.error = case, before, error
            raise
        if self.error is None:
            self.tried[case.kind] += 1
            if outcome.outputs is None:
                self.rejected.update(map(_without_value, outcome.reasons[:1]))
            else:
                self.accepted[case.kind] += 1
                self.dtypes[case.kind].add(getattr(case, "dtype", ""))
                if isinstance(case, ModelLayer):
                    self.sample = self.sample or case  # drawn ones are small
                else:
                    self.sample = case


class _Stopwatch:
    """Seconds of processor time, those of compilers included; half of the clock's where more.

    On a busy machine a search takes longer instead of trying less.
    """

    def __init__(self) -> None:
        self.began = time.monotonic()
        self._used = sum(os.times()[:4])

    def now(self) -> float:
        """Since it was made."""
        return max(sum(os.times()[:4]) - self._used, (time.monotonic() - self.began) / 2)


class _Enough(BaseException):
    """The time is up: no `Exception`, so that Hypothesis takes it for no failure."""


def _without_value(reason: str) -> str:
    """The limit in a reason; `Limit` prints "name value; bound", the value differs by layer."""
    first, bound = reason.partition(", ")[0].partition("; ")[::2]
    return f"{first.rpartition(' ')[0]}: {bound}" if bound else first


def verify(
    spec: str | AcceleratorBackend,
    platform: str | Platform = "riscv32",
    examples: int = 200,
    seed: int = 0,
    toolchain: str = "zig",
    progress: Callable[[str], None] = lambda text: None,
    models: Sequence[str] | None = None,
    seconds: float = 20.0,
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
        seconds: after about that time no further layer is tried.

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
    with open_bench(backend, platform, toolchain) as bench:
        search = LayerSearch(bench, examples, seed)
        run = _Run(search, strategies, _zoo() if models is None else models, seconds)
        abuses, failure, test = 0, None, ""
        if not run.layers(progress):
            assert search.failing is not None
            failure = str(search.error)
            test = printed_test(named, search.failing, bench.platform.name, search.before)
        else:
            sample = _demand_sample(search, strategies)
            if isinstance(bench, DriverBench) and isinstance(bench.unit, JobUnit):
                progress("registers")
                abuses, failure = abuse(bench, sample)
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
        time.monotonic() - search.stopwatch.began,
    )


@dataclass(eq=False)
class _Run:
    """The stages of a search, each with a part of the time.

    Attributes:
        strategies: by operator.
        models: whose layers are tried.
        seconds: that it may take.
        ran: layers of models that ran on the accelerator, by model.
    """

    search: LayerSearch
    strategies: dict[str, st.SearchStrategy[Any]]
    models: Sequence[str]
    seconds: float
    ran: Counter[str] = field(default_factory=Counter)

    def layers(self, progress: Callable[[str], None]) -> bool:
        """Small layers, layers at the borders, layers of models; whether all came out right."""
        count = len(self.strategies)
        for position, (kind, strategy) in enumerate(self.strategies.items()):
            progress(kind)
            if not self.search.run(strategy, 0.5, self._at(0.2 * (position + 1) / count)):
                return False
        backend = self.search.bench.backend
        for position, kind in enumerate(self.strategies):
            progress(f"{kind}: corner cases")
            until = self._at(0.2 + 0.3 * (position + 1) / count)
            cases = map(self._of_its_type, corners(kind, backend))
            if not self.search.run_all(cases, until):
                return False
        for position, kind in enumerate(self.strategies):
            edge = borders(kind, backend)
            edge = None if edge is None else edge.map(self._of_its_type)
            progress(f"{kind} at its borders")
            until = self._at(0.5 + 0.2 * (position + 1) / count)
            if edge is not None and not self.search.run(edge, 0.5, until):
                return False
        return self._models(progress)

    def _of_its_type(self, case: Any) -> Any:
        """The same of float32 for a unit that accepts nothing else."""
        if self.search.dtypes[case.kind] == {"float32"}:
            return replace(case, dtype="float32")
        return case

    def _at(self, part: float) -> float:
        return part * self.seconds

    def _models(self, progress: Callable[[str], None]) -> bool:
        """Layers of the models, one of each in turn."""
        backend = self.search.bench.backend
        turns = [(name, model_layers(name, backend)) for name in self.models]
        if turns:
            progress(f"layers of {', '.join(self.models)}")
        while turns and self.search.stopwatch.now() < self._at(0.95):
            name, cases = turns.pop(0)
            case = next(cases, None)
            if case is None:
                continue
            turns.append((name, cases))
            before = self.search.accepted.total()
            try:
                self.search.attempt(case)
            except CovpError:
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
    kinds: set[str] = set().union(*(pattern.node.kinds() for pattern in backend.patterns))
    known = sorted(kinds & set(STRATEGIES))
    if not known:
        raise UsageError(
            f"accelerator {backend.name}: nothing draws layers of {', '.join(sorted(kinds))}; give "
            "it a method cases() that returns operator names with Hypothesis strategies"
        )
    return {kind: STRATEGIES[kind](kind) for kind in known}

"""`verify`: random layers on an accelerator, and the smallest that it gets wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as with_seed
from hypothesis import strategies as st

from covp.accelerator.backend import AcceleratorBackend
from covp.accelerator.registry import find_backend
from covp.errors import AcceleratorError, CapacityError, CovpError, UsageError
from covp.hardware.job_unit import JobUnit
from covp.platform_file import Platform
from covp.plugins import call_hook
from covp.testing import Case
from covp.testing.layers import STRATEGIES
from covp.verify.abuse import abuse
from covp.verify.bench import Bench
from covp.verify.check import open_bench, run_case
from covp.verify.driver_bench import DriverBench
from covp.verify.printed_test import printed_test, spec_of


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
    """

    accelerator: str
    tried: dict[str, int]
    accepted: dict[str, int]
    abuses: int = 0
    failure: str | None = None
    test: str = ""


class LayerSearch:
    """Runs layers on a bench until one comes out wrong, then shrinks it.

    Attributes:
        tried: layers that ran or were rejected before the first failure, by operator.
        accepted: those of them that ran on the accelerator, by operator.
        sample: the latest of those, or None.
        failing: the smallest failing layer, or None.
        error: its failure.
    """

    def __init__(self, bench: Bench, examples: int, seed: int) -> None:
        self.bench = bench
        self.tried: Counter[str] = Counter()
        self.accepted: Counter[str] = Counter()
        self.sample: Case | None = None
        self.failing: Case | None = None
        self.error: CovpError | None = None
        self._seed = seed
        self._settings = settings(
            max_examples=examples,
            deadline=None,
            database=None,
            print_blob=False,
            report_multiple_bugs=False,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        )

    def run(self, strategy: st.SearchStrategy[Any]) -> bool:
        """Try layers of a strategy; whether all came out right."""
        attempts = with_seed(self._seed)(self._settings(given(strategy)(self._attempt)))
        try:
            attempts()
        except CovpError:  # Hypothesis runs the smallest one last, so `failing` is that
            return False
        return True

    def _attempt(self, case: Case) -> None:
        try:
            accepted = run_case(self.bench, case)
        except CapacityError:
            accepted = False
        except CovpError as error:
            self.failing, self.error = case, error
            self.bench.reset()
            raise
        if self.failing is None:
            self.tried[case.kind] += 1
            if accepted:
                self.accepted[case.kind] += 1
                self.sample = case


def verify(
    spec: str | AcceleratorBackend,
    platform: str | Platform = "riscv32",
    examples: int = 200,
    seed: int = 0,
    toolchain: str = "zig",
    progress: Callable[[str], None] = lambda text: None,
) -> Verdict:
    """Try random layers of every operator that an accelerator looks for, then misuse it.

    Args:
        spec: a name, ``path/to/file.py:Class``, or the backend itself.
        platform: a name, the path of a YAML file, or the platform itself.
        examples: layers of each operator, at least 1.
        seed: the same one draws the same layers.
        toolchain: "zig" or "gcc".
        progress: called with the operator that is tried next, and with "registers".

    Raises:
        UsageError: there is nothing to draw for the operators of its patterns.
        AcceleratorError: it accepted none of the layers, or a hook of it raised.
        ToolchainError: the driver does not compile, or warns.
    """
    backend = find_backend(spec) if isinstance(spec, str) else spec
    named = spec if isinstance(spec, str) else spec_of(backend)
    strategies = _strategies(backend)
    with open_bench(backend, platform, toolchain) as bench:
        search = LayerSearch(bench, examples, seed)
        abuses, failure, test = 0, None, ""
        for kind, strategy in strategies.items():
            progress(kind)
            if not search.run(strategy):
                assert search.failing is not None
                failure = str(search.error)
                test = printed_test(named, search.failing, bench.platform.name)
                break
        else:
            sample = _demand_sample(search, strategies)
            if isinstance(bench, DriverBench) and isinstance(bench.unit, JobUnit):
                progress("registers")
                abuses, failure = abuse(bench, sample)
    return Verdict(named, dict(search.tried), dict(search.accepted), abuses, failure, test)


def _demand_sample(search: LayerSearch, kinds: dict[str, Any]) -> Case:
    if search.sample is None:
        raise AcceleratorError(
            f"accelerator {search.bench.backend.name} took none of {search.tried.total()} layers "
            f"of {', '.join(kinds)}; its limits are too narrow for what is drawn, or the layers "
            "too large for the RAM"
        )
    return search.sample


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

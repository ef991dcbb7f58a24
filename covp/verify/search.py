"""The search for a layer that an accelerator gets wrong, and its smallest form."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as with_seed
from hypothesis import strategies as st

from covp.accelerator.backend import AcceleratorBackend
from covp.accelerator.registry import find_backend
from covp.errors import AcceleratorError, CovpError, DeviceFault, UsageError
from covp.graph.reference import run_reference
from covp.hardware.job_unit import JobUnit
from covp.platform_file import Platform
from covp.testing import Case, Layer
from covp.testing.layers import STRATEGIES
from covp.verify.abuse import abuse
from covp.verify.bench import Bench, LayerTooLarge, ProgramBench, open_bench

_FLOAT_TOLERANCE = 1e-5


class WrongResult(CovpError):
    """A layer came out wrong."""


@dataclass(frozen=True)
class Verdict:
    """What was tried and found.

    Attributes:
        accelerator: as it was named.
        tried: layers drawn, by operator; those that the accelerator refused are part of them.
        accepted: layers that ran on it, by operator.
        abuses: wrong uses of the registers that were tried; 0 where the model is no `JobUnit`.
        failure: the first thing that is wrong, or None.
        test: a test that shows it, ready to be run with pytest; empty where nothing is wrong.
    """

    accelerator: str
    tried: dict[str, int]
    accepted: dict[str, int]
    abuses: int = 0
    failure: str | None = None
    test: str = ""


def check(spec: str, case: Case, platform: str = "riscv32", toolchain: str = "zig") -> None:
    """Run one layer on an accelerator: what the tests that `verify` prints do.

    Raises:
        WrongResult: its outputs or the memory around them are not as they have to be.
        CovpError: whatever else goes wrong, a fault of the driver included.
    """
    with open_bench(find_backend(spec), platform, toolchain) as bench:
        if not run_case(bench, case):
            raise UsageError(f"accelerator {spec} does not take this layer: {case!r}")


def run_case(bench: Bench | ProgramBench, case: Case) -> bool:
    """Run one layer and compare; whether the accelerator took it. Raises WrongResult."""
    graph, inputs = case.graph(), case.inputs()
    outcome = bench.run(graph, inputs, case.gap)
    if outcome.outputs is None:
        return False
    name = bench.backend.name
    for got, wanted in zip(outcome.outputs, run_reference(graph, inputs), strict=True):
        wrong = _differences(got, wanted)
        if wrong.size:
            at = np.unravel_index(int(wrong[0]), wanted.shape)
            raise WrongResult(
                f"{name}: {wrong.size} of {wanted.size} elements differ from the reference, first "
                f"at {tuple(map(int, at))}: {got[at]} instead of {wanted[at]}"
            )
    if outcome.damage:
        raise WrongResult(
            f"{name}: {len(outcome.damage)} bytes outside the output were written, first at "
            f"0x{outcome.damage[0]:08x}; buffers: "
            + ", ".join(f"0x{a:08x}+{n}" for a, n in outcome.places)
        )
    return True


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
        examples: layers of each operator.
        seed: the same one draws the same layers.
        progress: told what is being tried.

    Raises:
        UsageError: there is nothing to draw for the operators of its patterns.
        ToolchainError: the driver does not compile, or warns.
    """
    backend = find_backend(spec) if isinstance(spec, str) else spec
    named = spec if isinstance(spec, str) else _named(spec)
    cases = _strategies(backend)
    tried: Counter[str] = Counter()
    accepted: Counter[str] = Counter()
    sample: list[Case] = []
    with open_bench(backend, platform, toolchain) as bench:
        for kind, strategy in cases.items():
            progress(kind)
            failing, error = _search(bench, strategy, examples, seed, tried, accepted, sample)
            if error is not None:
                assert failing is not None
                text = _test_text(named, failing, bench.platform.name)
                return Verdict(named, dict(tried), dict(accepted), failure=str(error), test=text)
        if not sample:
            raise AcceleratorError(
                f"accelerator {backend.name} took none of {sum(tried.values())} layers of "
                f"{', '.join(cases)}; its limits are too narrow for what is drawn, or the "
                "layers too large for the RAM"
            )
        abuses = 0
        if isinstance(bench, Bench) and isinstance(bench.unit, JobUnit):
            progress("registers")
            abuses, failure = abuse(bench, sample[-1])
            if failure is not None:
                return Verdict(named, dict(tried), dict(accepted), abuses, failure)
    return Verdict(named, dict(tried), dict(accepted), abuses)


def _named(backend: AcceleratorBackend) -> str:
    """What `find_backend` takes for an instance: its name where that is known, else its file."""
    kind = type(backend)
    try:
        if type(find_backend(backend.name)) is kind:
            return backend.spec
    except CovpError:
        pass
    parameters = backend.spec.removeprefix(backend.name)
    return f"{inspect.getsourcefile(kind)}:{kind.__qualname__}{parameters}"


def _strategies(backend: AcceleratorBackend) -> dict[str, st.SearchStrategy[Any]]:
    """Operator kind to what draws layers of it: the backend's own, or those of `STRATEGIES`."""
    where = f"accelerator {backend.name}: cases()"
    try:
        own = dict(backend.cases())
    except Exception as error:
        raise AcceleratorError(f"{where} raised {type(error).__name__}: {error}") from error
    for kind, strategy in own.items():
        if not isinstance(strategy, st.SearchStrategy):
            raise AcceleratorError(f"{where} gave {strategy!r:.80} for {kind}, no strategy")
    if own:
        return own
    kinds: set[str] = set().union(*(pattern.node.kinds() for pattern in backend.patterns))
    known = sorted(kinds & set(STRATEGIES))
    if not known:
        raise UsageError(
            f"accelerator {backend.name}: nothing draws layers of {', '.join(sorted(kinds))}; give "
            "it a method cases() that returns operator names with hypothesis strategies"
        )
    return {kind: STRATEGIES[kind](kind) for kind in known}


def _search(
    bench: Bench | ProgramBench,
    strategy: st.SearchStrategy[Any],
    examples: int,
    seed: int,
    tried: Counter[str],
    accepted: Counter[str],
    sample: list[Case],
) -> tuple[Case | None, CovpError | None]:
    """The smallest failing layer with what is wrong, or (None, None)."""
    failing: list[tuple[Case, CovpError]] = []

    @with_seed(seed)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        print_blob=False,
        report_multiple_bugs=False,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def search(case: Case) -> None:
        try:
            took = run_case(bench, case)
        except LayerTooLarge:
            took = False
        except CovpError as error:
            failing.append((case, error))
            bench.reset()
            raise
        if not failing:
            tried[case.kind] += 1
            if took:
                accepted[case.kind] += 1
                sample[:] = [case]

    try:
        search()
    except (WrongResult, DeviceFault, AcceleratorError, CovpError):
        # the last one that was run is the smallest
        return failing[-1]
    return None, None


def _test_text(spec: str, case: Case, platform: str) -> str:
    """A pytest file that runs one case."""
    names = {"covp.verify": {"check"}}
    parts = [value for value in getattr(case, "__dict__", {}).values() if is_dataclass(value)]
    for value in (case, *parts):  # all that the case's text names
        home = "covp.testing" if isinstance(value, Layer) else type(value).__module__
        names.setdefault(home, set()).add(type(value).__name__)
    imports = "".join(
        f"from {home} import {', '.join(sorted(classes))}\n"
        for home, classes in sorted(names.items())
    )
    return (
        f"{imports}\n\n"
        "def test_the_smallest_failing_layer() -> None:\n"
        f"    case = {case!r}\n"
        f"    check({spec!r}, case, platform={platform!r})\n"
    )


def _differences(got: Any, wanted: Any) -> Any:
    """Flat indices of elements that are not what they have to be."""
    if wanted.dtype.kind != "f":
        return np.flatnonzero(got != wanted)
    tolerance = _FLOAT_TOLERANCE * max(float(np.abs(wanted).max(initial=0)), 1e-30)
    return np.flatnonzero(~(np.abs(got - wanted) <= tolerance))

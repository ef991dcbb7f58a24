"""`verify`: all that an accelerator is tried with, one kind of layers or misuse after another."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from covp.accelerator.backend import AcceleratorBackend
from covp.accelerator.core_unit import CoreUnit
from covp.accelerator.declared import Accelerator
from covp.accelerator.registry import find_backend
from covp.accelerator.rtl.unit import ComparedJob, RtlUnit
from covp.base.arguments import demand, demand_count, demand_seconds
from covp.base.request import Shapes
from covp.chip.platform_file import Platform
from covp.errors import AcceleratorError, CapacityError, CovpError, UsageError
from covp.graph import zoo
from covp.hardware.job_unit import JobUnit
from covp.testing import Case
from covp.testing.verify.abuse import abuse
from covp.testing.verify.bench import Conditions, LayerOutcome, VerifyBench
from covp.testing.verify.check import driver_of, open_bench, run_once
from covp.testing.verify.driver_bench import DriverBench
from covp.testing.verify.instruction_search import SEQUENCES, search_instructions
from covp.testing.verify.life import CALLS, life
from covp.testing.verify.printed_test import printed_test, spec_of
from covp.testing.verify.rtl_protocol import try_protocol
from covp.testing.verify.search import Budget, LayerSearch
from covp.testing.verify.stages import Stages, Strategies, strategies_of

_EACH = 48
"""Jobs of each time up to this are tried: an end may meet any instruction of the driver."""
_LONGEST = 10**9
_FEW = 20_000
"""Cycles of a driver that a longer job does not make longer: it sleeps, or fixed delays."""


def check_waiting_times(bench: DriverBench, case: Case) -> tuple[int, str] | None:
    """Run a layer with jobs of all times, in one call and, where there are such, in two.

    Args:
        bench: with a unit on the bus.
        case: a small layer that the accelerator accepts.

    Returns:
        The cycles of its jobs and what was wrong, for the first time that it was; None: nothing.
    """
    bench.begin()
    for cycles in _short():
        for halves in (False, True) if cycles < _EACH // 4 else (False,):
            wrong = _failure(bench, case, cycles, halves=halves)
            if isinstance(wrong, str):
                return cycles, wrong
    for halves in (False, True):
        usual = _failure(bench, case, 1, halves=halves)
        if isinstance(usual, LayerOutcome):
            # longer than all that the driver may do instead of waiting, with no help by `skips`
            cycles = max(2000, 4 * usual.spent)
            wrong = _failure(bench, case, cycles, skips=False, halves=halves)
            if isinstance(wrong, str):
                return cycles, wrong
    spent, cycles = 0, 1000
    while cycles < _LONGEST:
        outcome = _failure(bench, case, cycles)
        if isinstance(outcome, str):
            return cycles, outcome
        if outcome is not None:
            if spent and outcome.spent > 2 * spent and outcome.spent > _FEW:
                return None  # it polls for as long as the unit takes, which would take as long here
            spent = outcome.spent
        cycles *= 10
    return None


def _short() -> Iterator[int]:
    yield from range(1, _EACH)
    cycles = _EACH
    while cycles < 700:
        yield cycles
        cycles += cycles // 9


def _failure(
    bench: DriverBench, case: Case, cycles: int, skips: bool = True, halves: bool = False
) -> LayerOutcome | str | None:
    """Run and say what was wrong, or return the outcome; None where it does not fit."""
    try:
        conditions = Conditions(case.gap, cycles=cycles, skips=skips, halves=halves)
        return run_once(bench, case, conditions)
    except CapacityError:
        return None
    except CovpError as error:
        return str(error)


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
        seconds: of processor time that it took.
        finished: all layers were tried that were to be; else the budget was too small for them.
        rates: (MACs, bytes) per cycle of the fastest jobs by the models' own time and counts; 0
            where they do not say. What is impossible of a layer is a failure.
        times: of each job that was compared with its RTL.
        instructions: sequences of custom instructions that were tried.
        is_of_time: the failure is that of the class's own `timing` beside the cycles of its RTL;
            nothing else is wrong.
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
    finished: bool = True
    times: tuple[ComparedJob, ...] = ()
    instructions: int = 0
    is_of_time: bool = False


def verify(
    spec: str | AcceleratorBackend,
    platform: str | Platform = "riscv32",
    examples: int = 200,
    seed: int = 0,
    toolchain: str = "zig",
    progress: Callable[[str], None] = lambda text: None,
    models: Sequence[str] | None = None,
    seconds: float = 90.0,
    shapes: Shapes | None = None,
    against_rtl: bool = False,
) -> Verdict:
    """Try layers of every operator that an accelerator looks for, then misuse it.

    Args:
        spec: a name, ``path/to/file.py:Class``, or the backend itself.
        platform: a name, the path of a YAML file, or the platform itself.
        examples: layers of each operator that are drawn, at least 1.
        seed: the same one draws the same layers.
        toolchain: "zig" or "gcc".
        progress: called with what is tried next.
        models: whose layers are tried as well: paths or names; by default those of the zoo.
        seconds: of processor time of this process and its children, after which no further layer
            is tried, beyond the first 20 small ones of each kind, hundreds of calls and misuse,
            which a slow host tries as well; shrinking takes some more.
        shapes: of inputs by name, for those that the models leave open.
        against_rtl: the unit is its RTL, and each job is compared with its model in Python.

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
    if backend.values.get("rtl_mode") == "exact":
        raise UsageError(f"accelerator {backend.name}: verify runs job by job; leave out rtl_mode")
    if against_rtl:
        backend = _against_rtl(backend)
    named = spec if isinstance(spec, str) else spec_of(backend)
    strategies = strategies_of(backend)
    again = spec_of(backend) if against_rtl else named
    is_core_unit = isinstance(backend, CoreUnit)
    if isinstance(backend, CoreUnit):
        progress("instructions")
        text, test = search_instructions(backend, again, examples, seed)
        if text:
            return Verdict(named, {}, {}, 0, text, test, instructions=SEQUENCES * examples)
    with open_bench(backend, platform, toolchain) as bench:
        budget = Budget(seconds)
        search = LayerSearch(bench, budget)
        models = _zoo() if models is None else models
        stages = Stages(search, strategies, examples, seed, models, shapes or {}, {})
        found = _try_layers(stages, progress)
        finished, abuses, late = not budget.is_spent, 0, None
        if found is None:
            sample = _demand_sample(search, strategies)
            found = _try_sleep(backend, platform, toolchain, search, progress)
            if found is None and isinstance(bench, DriverBench) and isinstance(bench.unit, JobUnit):
                progress("registers")
                abuses, wrong = abuse(bench, sample)
                if wrong is None and isinstance(bench.unit, RtlUnit):
                    uses, wrong = try_protocol(bench, bench.unit, [*search.small, sample])
                    abuses += uses
                found = _Failure(wrong) if wrong else None
            late = _wrong_time(backend, _compared(bench)) if found is None else None
    return Verdict(
        named,
        dict(search.tried),
        dict(search.accepted),
        abuses,
        late if found is None else found.text,
        "" if found is None else found.test(again, bench.platform.name),
        dict(search.rejected.most_common()),
        {kind: search.too_large[kind] for kind in search.tried},
        {name: count for name, count in stages.ran.items() if count},
        budget.used(),
        bench.rates,
        finished,
        _compared(bench),
        SEQUENCES * examples if is_core_unit else 0,
        late is not None,
    )


def _compared(bench: VerifyBench) -> tuple[ComparedJob, ...]:
    """Return the jobs of a bench that were compared with their RTL."""
    unit = bench.unit if isinstance(bench, DriverBench) else None
    return tuple(unit.times) if isinstance(unit, RtlUnit) else ()


def _against_rtl(backend: AcceleratorBackend) -> AcceleratorBackend:
    if not isinstance(backend, (Accelerator, CoreUnit)):
        raise UsageError(f"accelerator {backend.name} has no declared job: no RTL to compare with")
    return backend.against_rtl()


_TIME_OFF = 0.2
"""Of all jobs together; `covp calibrate` fits most formulas to 1 or 2 %."""


def _wrong_time(backend: AcceleratorBackend, times: Sequence[ComparedJob]) -> str | None:
    """Return what is wrong about a class's own `timing`, beside the cycles of its RTL."""
    own = isinstance(backend, Accelerator) and type(backend).timing is not Accelerator.timing
    model, rtl = sum(job.model for job in times), sum(job.rtl for job in times)
    if not own or abs(model - rtl) <= _TIME_OFF * rtl:
        return None
    worst = max(times, key=lambda job: abs(job.model / max(job.rtl, 1) - 1))
    numbers = ", ".join(f"{name}={value}" for name, value in worst.numbers.items())
    return (
        f"{backend.name}: timing() is {model / max(rtl, 1) - 1:+.0%} off the cycles of the RTL in "
        f"all {len(times):,} jobs, as {worst.model:,} instead of {worst.rtl:,} with {numbers}; "
        "covp calibrate -a ACCEL --device rtl prints a formula that fits"
    )


@dataclass(frozen=True)
class _Failure:
    """A failure, as it was found.

    Attributes:
        text: of the message.
        case, before, cycles, calls: see `check`; no case for misuse of registers.
        spec: of the accelerator, where it is not the one that the user named.
    """

    text: str
    case: Case | None = None
    before: tuple[Case, ...] = ()
    cycles: int | None = None
    calls: int | None = None
    spec: str = ""

    def test(self, named: str, platform: str) -> str:
        """Write a pytest file that shows it; "" without a case.

        Args:
            named: the accelerator, as the user named it.
            platform: its name.
        """
        if self.case is None:
            return ""
        return printed_test(
            self.spec or named, self.case, platform, self.before, self.cycles, self.calls
        )


def _of_search(search: LayerSearch) -> _Failure:
    return _Failure(str(search.error), search.failing, search.before)


def _try_layers(stages: Stages, progress: Callable[[str], None]) -> _Failure | None:
    """Try small layers, jobs of all durations, hundreds of calls, then all other layers."""
    search = stages.search
    progress(", ".join(stages.strategies))
    if not stages.small():
        return _of_search(search)
    progress("the time of a job")
    found = _waits(search.bench, next(iter([*search.small, *search.forms.values()]), None))
    if found is None and search.small:
        progress(f"{CALLS} calls")
        found = _lives(search.bench, search.small)
    if found is not None:
        return found
    for what, stage in (
        ("averages at ties", stages.averages),
        ("corner cases", stages.special),
        ("all small extents", stages.extents),
        (f"layers of {', '.join(stages.models)}", stages.of_models),
    ):
        progress(what)
        if not stage():
            return _of_search(search)
    return None


def _waits(bench: VerifyBench, case: Case | None) -> _Failure | None:
    """Check a layer with jobs of all times, where a unit on the bus has times."""
    if case is None or not isinstance(bench, DriverBench) or bench.watch is None:
        return None
    wrong = check_waiting_times(bench, case)
    return None if wrong is None else _Failure(wrong[1], case, cycles=wrong[0])


def _lives(bench: VerifyBench, cases: Sequence[Case]) -> _Failure | None:
    """Check the smallest layers again and again, where they are calls of a driver."""
    driver = driver_of(bench)
    called = [case for case in cases if case.kind not in bench.compiled]
    if driver is None or not called:
        return None
    chosen = sorted(called, key=_elements)[:3]
    wrong = life(driver, chosen)
    if wrong is None:
        return None
    return _Failure(wrong, chosen[0], tuple(chosen[1:]), calls=CALLS)


def _elements(case: Case) -> int:
    return sum(tensor.size for tensor in case.graph().tensors())


def _try_sleep(
    backend: AcceleratorBackend,
    platform: str | Platform,
    toolchain: str,
    search: LayerSearch,
    progress: Callable[[str], None],
) -> _Failure | None:
    """Return the accelerator with its other way to wait, where it has the parameter for both."""
    other = {"poll": "sleep", "sleep": "poll"}.get(str(backend.values.get("wait")))
    slot = search.bench.platform.accelerators
    if other is None or slot is None or slot.irq is None:
        return None
    twin = copy.copy(backend)
    twin.values = {**backend.values, "wait": other}
    progress(f"wait={other}")
    with open_bench(twin, platform, toolchain) as bench:
        again = LayerSearch(bench)
        right = again.run_all(search.small)
        found = _waits(bench, search.small[0]) if right and search.small else None
        found = found if right else _of_search(again)
    return None if found is None else replace(found, spec=spec_of(twin))


def _zoo() -> list[str]:
    return [*zoo.names("int8"), *zoo.names("float32")]


def _demand_sample(search: LayerSearch, kinds: Strategies) -> Case:
    if search.sample is None:
        raise AcceleratorError(
            f"accelerator {search.bench.backend.name} took none of {search.tried.total()} layers "
            f"of {', '.join(kinds)}{_reasons(search)}; give it a method cases() that returns "
            "operator names (for a pattern of several operators its last one) with strategies of "
            "layers that it accepts, or a bench on which they are not too large for the RAM"
        )
    return search.sample


def _reasons(search: LayerSearch) -> str:
    """Return the most frequent reasons for rejecting layers, for a message."""
    if search.too_large:
        return f" ({search.too_large.total()} were too large for the RAM)"
    first = [f"{reason} ({count})" for reason, count in search.rejected.most_common(3)]
    return f": {', '.join(first)}" if first else ""

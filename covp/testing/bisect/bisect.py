"""`bisect`: a model's first wrong layer, the function and line that make it wrong, and a test."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Unpack, cast, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

from covp.accelerator.backend import AcceleratorBackend
from covp.base.plugins import call_hook, load_file
from covp.base.request import (
    DEFAULT_BUILD,
    DEFAULT_RUN,
    BuildOptions,
    Changes,
    RunOptions,
    change_options,
    request,
)
from covp.building.builder import build
from covp.building.schedules import Schedules
from covp.chip.platform_file import Platform
from covp.codegen.program import Program
from covp.errors import UsageError, near_misses
from covp.evaluation.sample import Sample
from covp.graph.equality import differences
from covp.graph.graph import Graph
from covp.testing.bisect.bench import BisectBench
from covp.testing.bisect.finding import Finding, Verdict
from covp.testing.bisect.narrowed import find_cause
from covp.testing.bisect.shrink import SECONDS, shrink_inputs
from covp.testing.bisect.walk import LayerReference, Walk, WrongLayer
from covp.testing.bisect.written_test import write_test

Kind = Literal["reference", "toolchain", "device", "platform", "build"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class Against:
    """The other side of a comparison.

    Attributes:
        kind: "reference": numpy; "toolchain", "device", "platform": the same model built by
            another compiler, on another device, for another platform; "build": a program that a
            Python file makes of the present one.
        value: of the kind: "gcc", "rtl", "stm32l4r5", "other.py"; empty for the reference.
    """

    kind: Kind = "reference"
    value: str = ""

    @staticmethod
    def parse(text: str) -> Against:
        """Return the comparison that a user's text names.

        Args:
            text: "reference", "toolchain gcc", "toolchain:gcc" and the like.

        Raises:
            UsageError: it names none.
        """
        kind, value = [*re.split(r"[:\s]\s*", text.strip(), maxsplit=1), ""][:2]
        if kind not in KINDS:
            raise UsageError(f"unknown comparison {text!r}:", hint=near_misses(kind, KINDS))
        if bool(value) != (kind != "reference"):
            raise UsageError(
                f"comparison {text.strip()!r}: write reference, toolchain gcc, device rtl, "
                "platform NAME or build FILE.py"
            )
        return Against(kind, value)

    def __str__(self) -> str:
        return f"{self.kind} {self.value}".strip()


def built_by_file(path: str, program: Program) -> Program:
    """Return the program that ``build(program)`` of a Python file makes of another one.

    Args:
        path: of the file.
        program: that the function is given.

    Raises:
        UsageError: there is no such file or function, or it returns something else.
    """
    if not Path(path).is_file():
        raise UsageError("no such file", where=path)
    module = load_file(path, UsageError)
    build = cast("Callable[[Program], Any] | None", getattr(module, "build", None))
    if build is None:
        raise UsageError("has no function build(program) that returns a program", where=path)
    made = call_hook(path, "build", build, program, error=UsageError)
    if not isinstance(made, Program):
        raise UsageError(f"build(program) must return a program, not {made!r:.80}", where=path)
    return made


Report = Callable[[str], None]


def bisect(
    model: Graph | str | Path | Program,
    platform: Platform | str | Path | None = None,
    accelerators: Sequence[str | AcceleratorBackend] = (),
    build_options: BuildOptions = DEFAULT_BUILD,
    run_options: RunOptions = DEFAULT_RUN,
    *,
    against: str | Against | Program = "reference",
    schedules: Schedules = "recorded",
    inputs: Sequence[NDArray[Any]] = (),
    ulps: int = 0,
    folder: str | Path | None = None,
    seconds: float = SECONDS,
    report: Report = lambda what: None,
    **changes: Unpack[Changes],
) -> Verdict:
    """Run each layer alone, from the reference's tensors, until one is not what it has to be.

    Args:
        model: as for `covp.compile`, or a program that it made, changed or not.
        platform, accelerators: as for `covp.compile`; not for a program.
        against: with what layers are compared: "reference" (numpy); "toolchain gcc", "device rtl",
            "platform NAME": another build of the model; "build FILE.py": the program that its
            function ``build(program)`` returns; or a program.
        build_options, schedules: as for `covp.evaluation.build`; of a program its compiler alone.
        run_options: the device, and the seed of random inputs.
        inputs: one array for each input; by default random ones and `probing_inputs`.
        ulps: floats of two builds may be so many representable numbers apart; 0: no bit differs.
        folder: where the test is written; None: in ``bisect_MODEL``; empty: nowhere.
        seconds: of host time at most for making the test's inputs small.
        report: called with what is under way.
        changes: other values of the options.

    Returns:
        the verdict; its `Finding` is None where nothing differs.

    Raises:
        CovpError: with one line: the call is wrong, a compiler or device is missing.
    """
    start = time.perf_counter()
    build_options, run_options = request(build_options, run_options, changes)
    device, toolchain = run_options.device, build_options.toolchain
    how: dict[str, Any] = {"accelerators": accelerators, "schedules": schedules}
    program = _program(model, platform, build_options, how)
    with ExitStack() as stack:
        bench = stack.enter_context(BisectBench(program, device, toolchain))
        if isinstance(against, str):
            against = Against.parse(against)
        other = _open_other_side(bench, against, (model, build_options, how))
        if other is not None:
            stack.enter_context(other)
        walk = Walk(bench, LayerReference(other, ulps))
        graph, seed = program.graph, run_options.seed
        sample = Sample.of(graph, inputs) if inputs else Sample.random(graph, seed)
        samples = [sample] if inputs else sample.and_probes(program.graph)
        finding, tried = None, 0
        for number, each in enumerate(samples, 1):
            report(f"input {number} of {len(samples)} ({each.name}): {len(program.layers)} layers")
            tried = number
            trial = walk.first_wrong(each)
            if trial is not None:
                finding = _describe_trial(trial, number, each)
                report(f"{finding.lines[0]}; looking for its origin")
                finding = msgspec.structs.replace(finding, cause=find_cause(trial))
                if folder != "":
                    report("making its inputs small")
                    where = platform or program.platform.name
                    name = where.name if isinstance(where, Platform) else where
                    target = Path(folder or f"bisect_{program.name}")
                    finding = msgspec.structs.replace(
                        finding, test=write_test(shrink_inputs(trial, seconds), target, name)
                    )
                break
        if finding is None and other is None:
            finding = _of_inference(bench, samples)
        return Verdict(
            program.name,
            program.platform.name,
            device,
            toolchain,
            tuple(accelerator.spec for accelerator in program.accelerators),
            "program" if isinstance(against, Program) else str(against),
            len(walk.layers),
            tried,
            time.perf_counter() - start,
            finding,
        )


def _program(
    model: Graph | str | Path | Program,
    platform: Platform | str | Path | None,
    options: BuildOptions,
    how: dict[str, Any],
) -> Program:
    if isinstance(model, Program):
        own = change_options(options, {"toolchain": DEFAULT_BUILD.toolchain}) != DEFAULT_BUILD
        if platform is not None or own or [*how.values()] != [(), "recorded"]:
            raise UsageError("a program is built already: give no platform, accelerators, options")
        return model
    if platform is None:
        raise UsageError("bisect needs a platform beside a model")
    return build(model, platform, options=options, **how).program


def _open_other_side(
    bench: BisectBench,
    against: Against | Program,
    built: tuple[Any, BuildOptions, dict[str, Any]],
) -> BisectBench | None:
    """Return the other side; None: the reference."""
    if isinstance(against, Program):
        return _add_to_name(
            BisectBench(against, bench.device, bench.toolchain), "the other program"
        )
    program, value = bench.program, against.value
    if against.kind == "reference":
        return None
    if against.kind == "toolchain":
        return BisectBench(program, bench.device, value)
    if against.kind == "device":
        return BisectBench(program, value, bench.toolchain)
    if against.kind == "build":
        made = BisectBench(built_by_file(value, program), bench.device, bench.toolchain)
        return _add_to_name(made, str(against))
    model, options, how = built
    if isinstance(model, Program):
        how = {"accelerators": [a.backend for a in program.accelerators]}
        model = program.graph
    how["schedules"] = None if how.get("schedules", "") is None else "recorded"
    elsewhere = build(model, value, options=options, **how).program
    return BisectBench(elsewhere, bench.device, bench.toolchain)


def _add_to_name(bench: BisectBench, what: str) -> BisectBench:
    bench.name += f" ({what})"
    return bench


def _describe_trial(trial: WrongLayer, number: int, sample: Sample) -> Finding:
    """Return the finding of a trial, as it was found."""
    layer = trial.bench.program.layers[trial.position]
    found = Finding(
        kind=trial.kind,
        where=trial.bench.name,
        input=number,
        input_name=sample.name,
        layer=layer.name,
        op=layer.op,
        target=layer.target,
        function=layer.function,
        index=layer.index,
    )
    if trial.wanted is None:
        return found
    return _with_difference(found, trial.tensor, trial.got(), trial.wanted, trial.law)


def _with_difference(
    found: Finding,
    tensor: str,
    got: NDArray[Any],
    wanted: NDArray[Any],
    law: Callable[[NDArray[Any], NDArray[Any]], NDArray[np.intp]],
) -> Finding:
    wrong = law(got, wanted)
    element = tuple(int(i) for i in np.unravel_index(wrong[0], wanted.shape))
    return msgspec.structs.replace(
        found,
        tensor=tensor,
        element=element,
        got=_plain(got[element].item()),
        wanted=_plain(wanted[element].item()),
        wrong=wrong.size,
        elements=wanted.size,
    )


def _plain(value: float) -> float | str:
    """Return what JSON has for a number: NaN and infinities are strings."""
    return value + 0 if math.isfinite(value) else str(value)


def _of_inference(bench: BisectBench, samples: Sequence[Sample]) -> Finding | None:
    """Check an inference as the program runs it, where each layer alone is right."""
    for number, sample in enumerate(samples, 1):
        if sample.states:
            continue
        outputs = bench.infer(sample.inputs)
        for got, wanted, tensor in zip(outputs, sample.outputs, bench.program.outputs, strict=True):
            if differences(got, wanted).size:
                found = Finding("inference", bench.name, number, sample.name)
                return _with_difference(found, tensor.name, got, wanted, differences)
    return None

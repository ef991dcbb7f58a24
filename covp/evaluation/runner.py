"""`Runner`: a build on a device; each run is one inference, checked and measured."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from covp.accelerator.backend import AcceleratorBackend
from covp.base.closing import Closing
from covp.base.request import (
    DEFAULT_BUILD,
    DEFAULT_RUN,
    BuildOptions,
    Changes,
    Level,
    RunChanges,
    RunOptions,
    change_options,
    request,
)
from covp.building.builder import Build, build
from covp.building.schedules import schedules_of
from covp.chip.platform_file import Platform, load_platform
from covp.codegen.program import Program
from covp.device.abilities import Abilities
from covp.device.wave import Wave
from covp.errors import AcceleratorError, UsageError
from covp.evaluation.check import (
    BY_LAYERS,
    Check,
    check_layers,
    checked_level,
    output_check,
)
from covp.evaluation.memory_map import memory_map
from covp.evaluation.renewed import renew_build
from covp.evaluation.result import Evaluation
from covp.evaluation.sample import Sample
from covp.evaluation.source import check_source, extreme_samples
from covp.graph.equality import differences
from covp.graph.graph import Graph
from covp.runtime.allocator import RegionUse
from covp.runtime.measurement import FIRST_LAYER
from covp.runtime.profile import Profile
from covp.runtime.session import Session


@dataclass(frozen=True)
class Wanted:
    """Figures that a run is to give beside the usual ones; the device has to know them.

    Attributes:
        functions: cycles by cause of each function; those of the layers are always there.
        traffic: bytes moved by memory; loads and stores are simulated more slowly with it.
        wave: a waveform of the inference.
        wave_layer: the waveform is of the layer with this index alone, and its window in the
            layer's cycles.
        timeline: when what happened, `Evaluation.timeline`; of a device that does not know it the
            cycles of layers alone.
        accesses: the same, of a device that knows each access to registers.
    """

    functions: bool = False
    traffic: bool = False
    wave: Wave | None = None
    wave_layer: int | None = None
    timeline: bool = False
    accesses: bool = False


NOTHING_MORE = Wanted()


class Runner(Closing):
    """A build, loaded onto a device of its own until `close`.

    Args:
        build: what runs.
        device: as for `Session`.
        by_layer: the cost of each layer is wanted. A device that only knows the cost of an
            execution then executes the layers one by one.
        wanted: more figures.

    Raises:
        UsageError: the device does not know what is wanted.
        CovpError: the device cannot be reached, or the program does not link or fit.
    """

    def __init__(
        self,
        build: Build,
        device: str = "virtual",
        *,
        by_layer: bool = False,
        wanted: Wanted = NOTHING_MORE,
    ) -> None:
        self.build, self.device, self.wanted = build, device, wanted
        self.session = Session(build.platform, device=device, toolchain=build.toolchain)
        try:
            _count(self.session.device.abilities, wanted, device)
            _phase_of(wanted.wave_layer, build.program)
            by_layer = by_layer or wanted.timeline
            singly = by_layer and self.session.device.abilities.phases is None
            self.session.strict = singly
            self._module = self.session.load(build.program, hosted=singly)
            self._first_cycles = self._load_constants()
        except BaseException:
            self.session.close()
            raise

    def _load_constants(self) -> int | None:
        """Run once where constants then stay in accelerators; return that inference's cycles."""
        if not any(layer.keeps_constants for layer in self.build.program.layers):
            return None
        inputs = self.build.program.graph.inputs
        self._module.run(*(np.zeros(tensor.shape, tensor.dtype) for tensor in inputs))
        return self.session.profile().cycles

    def close(self) -> None:
        """Let the device go."""
        self.session.close()

    def run(self, sample: Sample) -> Evaluation:
        """Return one inference, compared with the outputs that the sample expects.

        The states are what the sample has before it.

        Raises:
            DeviceFault: the program faulted.
            AcceleratorError: an accelerator received no job for its layers, or did not do all of a
                layer that has to be offloaded.
        """
        if self.build.program.states:
            self._module.reset(sample.states)
        start = time.perf_counter()
        with self._record_wave() as recording, self._timeline() as timeline:
            result = self._module.run(*sample.inputs)
        elapsed = time.perf_counter() - start
        outputs = tuple(result) if isinstance(result, list) else (result,)
        profile = self.session.profile()
        _demand_jobs(self.build.program, profile)
        _demand_work(self.build, profile)
        start = time.perf_counter()
        pairs = zip(outputs, sample.outputs, strict=True) if sample.outputs else ()
        mismatches = sum(differences(got, wanted).size for got, wanted in pairs)
        check = Check("none")
        if sample.outputs:
            check = output_check(self.build, sample, outputs, time.perf_counter() - start)
        return Evaluation(
            build=self.build,
            device=self.device,
            toolchain=self.session.toolchain.version,
            profile=profile,
            memory=self.session.memory(),
            outputs=outputs,
            mismatches=mismatches,
            simulation_seconds=elapsed,
            check=check,
            sample=sample,
            recorded=recording.recorded if recording else None,
            memory_map=memory_map(self.session, self.build.program),
            timeline=timeline.log if timeline else None,
            first_cycles=self._first_cycles,
        )

    def _record_wave(self) -> AbstractContextManager[Any]:
        """Record the waveform that is wanted."""
        waves, wave = self.session.device.abilities.waves, self.wanted.wave
        if wave is None or waves is None:
            return nullcontext()
        return waves.recording(wave, _phase_of(self.wanted.wave_layer, self.build.program))

    def _timeline(self) -> AbstractContextManager[Any]:
        """Record the timeline that is wanted."""
        timeline = self.session.device.abilities.timeline
        if timeline is None or not (self.wanted.timeline or self.wanted.accesses):
            return nullcontext()
        return timeline.record_timeline()


def run(
    build: Build,
    sample: Sample | None = None,
    options: RunOptions = DEFAULT_RUN,
    *,
    by_layer: bool = False,
    wanted: Wanted = NOTHING_MORE,
    probes: Sequence[Sample] | None = None,
    **changes: Unpack[RunChanges],
) -> Evaluation:
    """Load a build, run it once, and compare it with the reference.

    Args:
        build: what runs.
        sample: its inputs; by default the random ones of the options' seed.
        options: how it runs. Of ``check`` "layers" compares each layer's tensor over several
            inputs, in runs of their own after the one that is measured; "output" the outputs of
            that one; "none" nothing; "source" is "layers", and what the device computes beside the
            model's file as it is, see `covp.evaluation.source.check_source`. By default
            `covp.evaluation.check.default_level` of the device; with "layers" the file is judged
            as well where its library is installed and takes less than about a second.
        by_layer, wanted: as for `Runner`.
        probes: all inputs of the check by layers; `checked_inputs` by default.
        changes: other values of the options.

    Raises:
        CovpError: with one line, whatever goes wrong.
    """
    options = change_options(options, changes)
    level = level_of(options)
    sample = sample or Sample.random(build.graph, options.seed)
    measured_sample = sample.unchecked() if level == "none" else sample
    result, _ = measure_inference(build, measured_sample, options.device, by_layer, wanted)
    if level not in BY_LAYERS:
        return result
    samples = probes or checked_inputs(result.build.graph, sample, level)
    result = by_layers(result, samples, options.sanitize, options.ubsan)
    if options.check in (None, "source"):
        return beside_source(result, samples, level)
    return result


def level_of(options: RunOptions) -> Level:
    """Return how much a run checks. Raises UsageError where other options need layers."""
    strictly = options.sanitize or options.ubsan
    check = "layers" if strictly and options.check is None else options.check
    level = checked_level(check, options.device)
    if strictly and level not in BY_LAYERS:
        what = "memory is" if options.sanitize else "undefined behaviour is"
        raise UsageError(f"{what} checked layer by layer: without check={level}, or with layers")
    return level


def checked_inputs(graph: Graph, sample: Sample, level: Level) -> list[Sample]:
    """Return all inputs of a check by layers.

    Args:
        graph: of the network.
        sample: what is measured; `Sample.and_probes` of it are checked.
        level: of the check; with "source" ends of floats are checked, too.
    """
    extremes = extreme_samples(graph, sample.seed) if level == "source" else []
    return [*sample.and_probes(graph), *extremes]


def measure_inference(
    build: Build,
    sample: Sample,
    device: str = "virtual",
    by_layer: bool = False,
    wanted: Wanted = NOTHING_MORE,
) -> tuple[Evaluation, tuple[RegionUse, ...]]:
    """Return one inference, and how full the memory is, with schedules that hold for this compiler.

    Where recorded ones turn out to be slower than the kernels' own choice, the build is made anew
    and runs again, see `covp.evaluation.renewed`.

    Args:
        build: what runs.
        sample: its inputs.
        device, by_layer, wanted: as for `Runner`.

    Raises:
        CovpError: with one line, whatever goes wrong.
    """
    with Runner(build, device, by_layer=by_layer, wanted=wanted) as runner:
        result, regions = runner.run(sample), runner.session.regions()
    better = renew_build(result)
    if better is None:
        return result, regions
    with Runner(better, device, by_layer=by_layer, wanted=wanted) as runner:
        return runner.run(sample), runner.session.regions()


def by_layers(
    result: Evaluation,
    samples: Sequence[Sample],
    sanitize: bool = False,
    ubsan: bool = False,
) -> Evaluation:
    """Return the same inference, with the check of each layer over several inputs.

    Args:
        result: what was measured; the device it ran on is free again.
        samples: all inputs, as of `checked_inputs`.
        sanitize, ubsan: as for `check_layers`.

    Raises:
        CovpError: the device cannot be reached, or a layer faulted.
    """
    found = check_layers(result.build, samples, result.device, sanitize, ubsan)
    return replace(result, check=found)


def beside_source(result: Evaluation, samples: Sequence[Sample], level: Level) -> Evaluation:
    """Return the same inference, beside the model's file as it is.

    Args:
        result: of the first sample, checked by layers.
        samples: of that check.
        level: "source" where that was requested, see `check_source`.
    """
    if result.check.mismatch is not None:
        return result
    graph, wanted = result.build.graph, level == "source"
    found = check_source(graph, samples, result.outputs, wanted)
    return replace(result, check=replace(result.check, level=level, source=found))


def evaluate(
    model: str | Path,
    platform: Platform | str | Path,
    accelerators: Sequence[str | AcceleratorBackend] = (),
    build_options: BuildOptions = DEFAULT_BUILD,
    run_options: RunOptions = DEFAULT_RUN,
    **changes: Unpack[Changes],
) -> Evaluation:
    """`build` with the recorded schedules, and `run` on random inputs, in one call.

    Args:
        model, platform, accelerators: as for `covp.compile`.
        build_options, run_options: how it is compiled and run.
        changes: other values of the options.

    Raises:
        CovpError: with one line, whatever goes wrong.
    """
    build_options, run_options = request(build_options, run_options, changes)
    platform = load_platform(platform)
    schedules = schedules_of(platform, build_options, run_options.device)
    made = build(model, platform, accelerators, build_options, schedules=schedules)
    return run(made, options=run_options)


def _count(abilities: Abilities, wanted: Wanted, device: str) -> None:
    """Let a device count what is wanted. Raises UsageError: it cannot."""
    if wanted.functions:
        if abilities.causes is None:
            raise UsageError(
                f"device {device} cannot tell what its cycles passed with: leave out --causes, or "
                "use --device virtual"
            )
        abilities.causes.count_functions()
    if wanted.timeline or wanted.accesses:
        _demand_timeline(abilities, wanted, device)
        if abilities.timeline is not None and abilities.causes is not None:
            abilities.causes.count_functions()
    if wanted.traffic:
        if abilities.traffic is None:
            raise UsageError(
                f"device {device} does not count the bytes that are moved: leave out --traffic, or "
                "use --device virtual"
            )
        abilities.traffic.count_traffic()
    if wanted.wave is not None and abilities.waves is None:
        raise UsageError(
            f"device {device} has no signals to record: leave out --wave, or use --device rtl"
        )


def _demand_timeline(abilities: Abilities, wanted: Wanted, device: str) -> None:
    """Raises UsageError: the device does not know when what happens."""
    if abilities.timeline is not None:
        return
    if wanted.accesses:
        raise UsageError(
            f"device {device} does not record accesses to registers: leave out --vcd, or use "
            "--device virtual"
        )
    if abilities.time is None or abilities.time.sources.cycles is None:
        raise UsageError(
            f"device {device} does not know the cycles of a layer: leave out --trace, or use "
            "--device virtual"
        )


def _phase_of(layer: int | None, program: Program) -> int | None:
    """Return the phase of a layer, by its index. Raises UsageError: there is no such layer."""
    indices = [each.index for each in program.layers]
    if layer is None:
        return None
    if layer not in indices:
        there = ", ".join(map(str, indices))
        raise UsageError(f"layer {layer}: {program.name} has the layers {there}")
    return FIRST_LAYER + indices.index(layer)


def _demand_jobs(program: Program, profile: Profile) -> None:
    """Raises AcceleratorError: layers are on an accelerator whose hardware was never started."""
    for name, count in profile.jobs.items():
        layers = [layer.name for layer in program.layers if layer.target == name]
        if layers and count == 0:
            raise AcceleratorError(
                f"accelerator {name} received no job for its {len(layers)} layers, first "
                f"{layers[0]}: its driver does not start it"
            )


def _demand_work(build: Build, profile: Profile) -> None:
    """Raises AcceleratorError: a driver computes in software what has to be offloaded."""
    stated = {op.index: op.kind for op in build.graph.ops}
    for entry in profile.layers:
        layer, work = entry.layer, entry.work
        kinds = {layer.op, stated.get(layer.index)} & {*build.options.require_offload}
        share = work.share if work else 0.0
        if not kinds or layer.target == "cpu" or share > 1 - 1e-9:
            continue
        jobs = f" in {work.jobs:,} jobs" if work and work.jobs is not None else ""
        raise AcceleratorError(
            f"{layer.name} ({layer.op}) has to be offloaded: {layer.target} reports {share:.0%} of "
            f"it{jobs}; the rest was computed on the core by its driver, or is not reported"
        )

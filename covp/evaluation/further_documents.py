"""The JSON documents ``covp.fits/1``, ``covp.tune/1``, ``covp.verify/1`` and ``covp.mlperf/1``."""

from __future__ import annotations

from typing import Annotated

import msgspec

from covp.base.document import (
    Amount,
    Bytes,
    Count,
    Cycles,
    Instructions,
    Joules,
    Ratio,
    Seconds,
    unit,
)
from covp.device.stop import Source


class FitsRow(msgspec.Struct, frozen=True, kw_only=True):
    """A model on a platform.

    Attributes:
        fits: it runs there, within the budget
        reason: why not
        too_small: null where memory is not the reason
        optimize: as given, or `size` where the fastest schedules take too much flash
        cycles_source: as in covp.run/1
        energy_j: estimated; null where no figure of the chip is published
        battery_days: what a board takes between inferences is not known
        matches_reference: null where it cannot run
    """

    model: str
    platform: str
    fits: bool
    reason: str | None = None
    too_small: dict[str, Bytes] | None = None
    optimize: str
    instructions: Instructions | None = None
    cycles: Cycles | None = None
    cycles_source: Source | None = None
    seconds: Seconds | None = None
    flash_bytes: Bytes | None = None
    ram_bytes: Bytes | None = None
    energy_j: Joules | None = None
    battery_days: None = None
    matches_reference: bool | None = None


class Fitting(msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="covp.fits/1"):
    """The output of ``covp fits --json``.

    Attributes:
        budget: by `ms`, `mj`, `ram` or `flash`; empty without one
        rows: one row per model and platform
    """

    budget: dict[str, Amount] = {}
    rows: list[FitsRow] = []


class TunedTrial(msgspec.Struct, frozen=True, kw_only=True):
    """A trial that no other beats in every respect.

    Attributes:
        nanoseconds: on devices that measure time alone
    """

    schedule: str
    instructions: Instructions | None = None
    cycles: Cycles | None = None
    nanoseconds: Annotated[Count, unit("ns")] | None = None
    flash_bytes: Bytes
    scratch_bytes: Bytes


class TunedLayer(msgspec.Struct, frozen=True, kw_only=True):
    """A layer that has schedules.

    Attributes:
        default_instructions: of the kernel's own choice
        schedule: the best
        space: how many there are
        front: trials that no other beats in every respect
        inexact: schedules whose outputs were not bit-exact; never used
    """

    index: int
    op: str
    default_instructions: Instructions | None = None
    best_instructions: Instructions | None = None
    default_cycles: Cycles | None = None
    best_cycles: Cycles | None = None
    schedule: str | None
    tried: Annotated[Count, unit("trials")]
    space: Annotated[Count, unit("schedules")]
    front: list[TunedTrial] = []
    inexact: list[str] = []


class Tuned(msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="covp.tune/1"):
    """The output of ``covp tune --json``.

    Attributes:
        model_source: as in `covp.run/1`
        records: the file of the trials
        flash_trade: of flash that `cycles` pays at most for a thousand cycles
            saved
        layers: those that have schedules
    """

    model: str
    model_source: str
    platform: str
    records: str
    flash_trade: Bytes | None
    layers: list[TunedLayer] = []


class BesideRtl(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs of a unit's model that were compared with its RTL.

    Attributes:
        jobs: that have the same bits and registers
        cycles: of all, by the RTL
        error: of the model's formula of time in all of them
        least: error of one job
        most: likewise
    """

    jobs: Count
    cycles: Count
    error: Ratio
    least: Ratio
    most: Ratio


class Verified(msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="covp.verify/1"):
    """The output of ``covp verify --json``.

    Attributes:
        tried: layers drawn, by operator
        accepted: of those, layers that the accelerator accepted
        abuses: wrong uses of the registers that were tried
        failure: null: none
        test: the smallest failing layer as a test
        rejected: reasons for which layers were rejected
        too_large: layers drawn that did not fit the bench's memory, by operator
        models: layers of real models that ran on the accelerator, by model
        sources: how the reference of each `--model` compares with its file
            (accuracy (`accuracy.md#the-file-as-it-is`))
        seconds: of processor time that it took
        finished: false: `--seconds` were too few for all layers
        macs_per_cycle: of the fastest job by its model's own time; 0: the model does not say
        bytes_per_cycle: likewise
        rtl: with `--against rtl`
        instructions: sequences of custom instructions that were tried, of a `CoreUnit`
    """

    accelerator: str
    tried: dict[str, Annotated[Count, unit("layers")]] = {}
    accepted: dict[str, Annotated[Count, unit("layers")]] = {}
    abuses: Count
    failure: str | None = None
    test: str
    rejected: dict[str, Annotated[Count, unit("layers")]] = {}
    too_large: dict[str, Annotated[Count, unit("layers")]] = {}
    models: dict[str, Annotated[Count, unit("layers")]] = {}
    sources: dict[str, str] = {}
    seconds: Seconds
    finished: bool
    macs_per_cycle: Amount
    bytes_per_cycle: Amount
    rtl: BesideRtl | None = None
    instructions: Count = 0


class CalibratedUnit(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="covp.calibrate-unit/1"
):
    """The output of ``covp calibrate -a ACCEL --json``.

    Attributes:
        jobs: that the formula was fitted to
        left_out: jobs that its error is stated on
        mean: of the sizes of its errors
        worst: size of its largest error
        total: its error in all of these jobs together
        method: the method `timing` for the unit's class
    """

    accelerator: str
    jobs: Count
    left_out: Count
    mean: Ratio
    worst: Ratio
    total: Ratio
    method: str


class MlperfRow(msgspec.Struct, frozen=True, kw_only=True):
    """A model on a platform with a set-up of accelerators.

    Attributes:
        model: zoo name, or the file's stem
        model_source: as in `covp.run/1`
        benchmark: such as `ic01`; null: it is for none
        platform: the platform's name
        accelerators: of the set-up; empty: the core alone
        reason: why figures or the accuracy are missing; null: nothing that was wanted is
        per: `inference`, or `frame`: a new row of a stream
        latency_us: `cycles` at the platform's clock
        cycles_source: as in `covp.run/1`
        instructions: exact
        energy_uj: estimated (`energy.md`); null where a part of it is not known
        energy_reason: why there is no estimate, where something can be done
        arena_bytes: part of `ram_bytes`
        mac_coverage: of the model's MACs, what accelerators did
        matches_reference: of the outputs of the inference that was measured
        toolchain: compiler and version
        warnings: as in `covp.run/1`
        inferences_per_second: one after the other
        accuracy: null without samples
        metric: of the accuracy: `top-1` or `AUC`
        target: the closed division's least accuracy; null: there is none
        meets_target: null without accuracy or target
        samples: that the accuracy is over
        inferences: that were run for them
        computed_by: `device`: the emulated core; `reference`: numpy, with the same bits
        accuracy_seconds: host time for the accuracy, of all processes together
    """

    model: str
    model_source: str
    benchmark: str | None = None
    platform: str
    accelerators: list[str] = []
    reason: str | None = None
    per: str
    latency_us: Annotated[Annotated[Amount, unit("us")], unit("us")] | None = None
    cycles: Cycles | None = None
    cycles_source: Source | None = None
    instructions: Instructions | None = None
    energy_uj: Annotated[Amount, unit("uJ")] | None = None
    energy_reason: str | None = None
    flash_bytes: Bytes | None = None
    ram_bytes: Bytes | None = None
    arena_bytes: Bytes | None = None
    mac_coverage: Ratio | None = None
    matches_reference: bool | None = None
    toolchain: str | None = None
    warnings: list[str] = []
    inferences_per_second: Annotated[Amount, unit("1/s")] | None = None
    accuracy: Ratio | None = None
    metric: str | None = None
    target: Ratio | None = None
    meets_target: bool | None = None
    samples: Annotated[Count, unit("files")] | None = None
    inferences: Count | None = None
    computed_by: str | None = None
    accuracy_seconds: Seconds | None = None


class Mlperf(msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="covp.mlperf/1"):
    """The output of ``covp mlperf --json``.

    Attributes:
        label: what has to stand beside all figures
        data: as given to `--data`
        rows: by model, platform and set-up of accelerators
    """

    label: str
    data: str | None = None
    rows: list[MlperfRow] = []

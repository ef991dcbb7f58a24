"""The JSON documents of runs, comparisons and surveys, each key stated once.

The commands write these structures, reports and ``covp check`` read them back, and docs/json.md is
made of them. What documents of older versions do not have is None or empty.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Annotated, Any, Literal

import msgspec

from covp.accelerator.limits import Limit
from covp.accelerator.placement import Alternative as Placed
from covp.base.document import (
    Amount,
    Bytes,
    Count,
    Cycles,
    Instructions,
    Joules,
    Macs,
    Ratio,
    Seconds,
    unit,
)
from covp.base.figure import FigureDescription, figures_in
from covp.building.overlap import ConsideredSchedule as Schedule
from covp.building.schedules import ScheduleSource
from covp.codegen.lifetimes import ArenaTensor
from covp.device.phase_count import Traffic
from covp.device.stop import Source
from covp.evaluation.advice import Advice
from covp.evaluation.data.quality import DataRecord
from covp.evaluation.figures import ARENA, CYCLES, ENERGY, FLASH, INSTRUCTIONS, OFFLOADED, RAM, TIME
from covp.evaluation.memory_map import Place
from covp.evaluation.source.check import Floats
from covp.runtime.call import Work
from covp.runtime.devices import device_note
from covp.runtime.profile import Offload
from covp.runtime.transfers import Transfers


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes of one memory."""

    read: Bytes = 0
    write: Bytes = 0


class Fetched(Moved, frozen=True, kw_only=True):
    """Bytes of one memory that one bus master moved.

    Attributes:
        fetch: of the instructions that ran; not in `bytes`
    """

    fetch: Bytes = 0


def moved_by_master(traffic: Traffic | None) -> dict[str, dict[str, Fetched]] | None:
    """Return the bytes of each bus master, by memory; None: not counted."""
    if traffic is None:
        return None
    return {
        master: {
            memory: Fetched(read=moved.read, write=moved.written, fetch=moved.fetched)
            for memory, moved in memories.items()
        }
        for master, memories in traffic.items()
    }


class EnergyPartRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A product of the sum that is the energy.

    Attributes:
        what: `core`, `core asleep`, or an accelerator's name
        unit: `cycle`, `MAC` or `byte`
        pj: of each
        source: of the figure
        low: the least published figure
        high: the greatest
    """

    what: str
    count: Count
    unit: Literal["cycle", "MAC", "byte"]
    pj: Annotated[Amount, unit("pJ")]
    source: str
    low: Annotated[Amount, unit("pJ")] | None = None
    high: Annotated[Amount, unit("pJ")] | None = None
    joules: Joules


class EnergyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The origin of the energy.

    Attributes:
        kind: `estimated`, whatever the cycles are
        model: name of the table that the core's figure comes from, or `platform file`
        assumes: what the sum takes for granted
        low_j: with the least of the published figures; null where there is only one of each
        high_j: with the greatest
        parts: `energy_j` is the sum of their `joules`
    """

    kind: str = "estimated"
    model: str
    assumes: str
    low_j: Joules | None = None
    high_j: Joules | None = None
    parts: list[EnergyPartRecord] = []


class CoreRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The peak of a core in a cycle.

    Attributes:
        name: as in platform files
        macs_per_cycle: integers, without wait states, by the timing model; null: unknown, or it
            cannot multiply
        bytes_per_cycle: loads, likewise
        code: instructions that multiply and accumulate
    """

    name: str
    clock_hz: Annotated[Count, unit("Hz")]
    macs_per_cycle: Annotated[Amount, unit("MACs/cycle")] | None = None
    bytes_per_cycle: Annotated[Amount, unit("bytes/cycle")] | None = None
    code: str | None = None


class UnitRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The peak of an accelerator in a cycle.

    Attributes:
        name: of the instance
        spec: kind and changed parameters, as after `-a`
        macs_per_cycle: multipliers; null: it does not state them
        bytes_per_cycle: of its memory port; null: it does not state them
        um2: as in `accelerator_area`
        cycles_checked: what its cycles were compared with; null: with nothing
        cycles_error: the largest relative error that was found
        busy_cycles: in its jobs; null: it keeps no record of them
    """

    name: str
    spec: str = ""
    macs_per_cycle: Annotated[Count, unit("MACs/cycle")] | None = None
    bytes_per_cycle: Annotated[Count, unit("bytes/cycle")] | None = None
    um2: Annotated[Amount, unit("um2")] | None = None
    cycles_checked: str | None = None
    cycles_error: Ratio | None = None
    busy_cycles: Cycles | None = None


class AreaRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The estimated area of an accelerator.

    Attributes:
        kind: `estimated`
        name: of the accelerator
        um2: multipliers and memory; control is left out
        um2_per_mac: of each
        kilobytes: of memory
        um2_per_kb: of each
        source: of both figures
    """

    kind: str = "estimated"
    name: str
    um2: Annotated[Amount, unit("um2")]
    multipliers: Count = 0
    um2_per_mac: Annotated[Amount, unit("um2")] = 0
    kilobytes: Annotated[Amount, unit("1024 bytes")] = 0
    um2_per_kb: Annotated[Amount, unit("um2")] = 0
    source: str


class DeviationRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An operator that computes something else than the model file.

    Attributes:
        layer: its name
        op: its kind
        tensor: that it writes
        differ: that differ, in all inferences
        elements: of the tensor, in all inferences with a difference
        steps: the largest difference; null: floats
        rule: the documented rule that allows it; null: none does, `matches_reference` is false
    """

    layer: str
    op: str
    tensor: str
    differ: Annotated[Count, unit("elements")]
    elements: Annotated[Count, unit("elements")]
    steps: Annotated[Amount, unit("steps")] | None = None
    rule: str | None = None


class SourceRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The comparison of the reference with the model file as it is.

    Attributes:
        oracle: such as `onnxruntime 1.32`
        bytes: of all tensors of integers that both have, in all inferences
        differ: of their elements that are not equal
        floats: of all tensors of floats that both have; null: there are none
        unlike: outputs that have another shape or type there; `matches_reference` is false
        operators: operators that compute something else from the same values
    """

    oracle: str
    bytes: Bytes
    differ: Bytes
    floats: Floats | None = None
    unlike: list[str] = []
    inputs: Annotated[Count, unit("inferences")]
    operators: list[DeviationRecord] = []


class MismatchRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The first tensor that is not as expected.

    Attributes:
        input: number of the input, from 1
        input_name: `uniform` or `given`, `near the zero point`, `lowest, highest`, `alternating`
        layer: that wrote the tensor; null: an output of the model
        op: of the layer
        target: of the layer
        element: indices of the first wrong element
        got: on the device; a string for `nan`, `inf` and `-inf`
        elements: of the tensor
    """

    input: Count
    input_name: str
    layer: str | None = None
    op: str
    target: str
    tensor: str
    element: list[Count] = []
    got: float | str
    wanted: float | str
    wrong: Annotated[Count, unit("elements")]
    elements: Annotated[Count, unit("elements")]


class CheckRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The extent of the comparison with the reference.

    Attributes:
        level: `none`, `output` (of the measured inference), `layers`, or `source`: layers, and
            `check.source` was wanted
        layers: whose tensors were compared, each for every input; 0 for `output`
        seconds: host time of the check; not part of `simulation_seconds`
        worst_error: largest error of floats, to its tensor's largest magnitude; null: integers
            alone
        mismatch: the first difference, which ends the check; null: none
        sanitized: every load and store of the layers was checked, and allowed (`--sanitize`)
        ubsan: the layers had the compiler's checks for undefined behaviour, and none failed
            (`--ubsan`)
        source: the same beside the model's file as it is, executed by another library
            (accuracy (`accuracy.md#the-file-as-it-is`)); null: not compared
        tolerance: that `worst_error` may have
    """

    level: Literal["none", "output", "layers", "source"]
    layers: Annotated[Count, unit("layers")] = 0
    inputs: Annotated[Count, unit("inferences")] = 0
    seconds: Seconds = 0.0
    worst_error: Ratio | None = None
    mismatch: MismatchRecord | None = None
    sanitized: bool = False
    ubsan: bool = False
    source: SourceRecord | None = None
    tolerance: Ratio | None = None


class MemoryRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes that the program and the runtime take.

    Attributes:
        flash_bytes: code, constants, initial values
        ram_bytes: variables, arena and stack
        arena_bytes: activations and scratch
        stack_bytes: reserved for the stack
        state_bytes: kept between inferences; part of `arena_bytes`
    """

    flash_bytes: Annotated[Bytes, FLASH]
    ram_bytes: Annotated[Bytes, RAM]
    arena_bytes: Annotated[Bytes, ARENA]
    stack_bytes: Bytes = 0
    state_bytes: Bytes = 0


class RegionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A memory region of the platform.

    Attributes:
        name: of the region
        kind: `flash` or `ram`
        address: of its first byte
        used: by address; the rest is free
    """

    name: str
    kind: Literal["flash", "ram"]
    address: Count
    size_bytes: Bytes
    used: list[Place] = []


class OverlapRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The work of core and units at the same time.

    Attributes:
        alone_cycles: of the layers one after the other, each unit waited for at once
        promised_cycles: of the chosen schedule, before the run
        took_cycles: of the run
        hidden_cycles: `alone_cycles` less `promised_cycles`
        chosen: which of the alternatives
        bands: name of a layer that is cut into bands: the output rows of each
        alternatives: schedules that were considered
    """

    alone_cycles: Cycles
    promised_cycles: Cycles
    took_cycles: Cycles | None = None
    hidden_cycles: Cycles
    chosen: str
    bands: Annotated[dict[str, Count], unit("rows")] = {}
    alternatives: list[Schedule] = []


class StreamRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of an inference of a stream.

    Attributes:
        axis: of time in the input
        hop: new in each inference
        window: that the plain network takes
        warm_up: the first inference, from 1, whose outputs are those of a whole window
        macs: of an inference
        window_macs: of the plain network
    """

    axis: Count
    hop: Annotated[Count, unit("rows")]
    window: Annotated[Count, unit("rows")]
    warm_up: Count
    macs: Macs
    window_macs: Macs


class StateRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A tensor that the network keeps between inferences."""

    name: str
    dtype: str
    shape: list[Count] = []
    bytes: Bytes


class FunctionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of a function.

    Attributes:
        name: as the linker knows it; empty for code outside of functions
        instructions: without those of the functions that it calls
    """

    name: str
    instructions: Instructions
    cycles: Cycles
    cycles_by_cause: dict[str, Count] = {}


class CostRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of a layer, or of what lies between the layers.

    Attributes:
        instructions: layers and between add up to the total
        cycles_by_cause: as that of a layer
        functions: as those of a layer
        bytes: as those of the whole run
        bytes_by_master: as those of the whole run
    """

    instructions: Instructions | None = None
    cycles: Cycles | None = None
    cycles_by_cause: dict[str, Count] | None = None
    functions: list[FunctionRecord] | None = None
    bytes: dict[str, Moved] | None = None
    bytes_by_master: dict[str, dict[str, Fetched]] | None = None


class LeastRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The fewest cycles that the core could take for a layer.

    Attributes:
        cycles: all three below; where multiplications and loads issue together, the longer one of
            them and the last
        multiply: to issue the multiply-accumulates at the core's peak, zero weights too
        load: to load inputs and parameters once each
        memory: waiting for the memories of those
    """

    cycles: Cycles
    multiply: Annotated[Amount, unit("cycles")]
    load: Annotated[Amount, unit("cycles")]
    memory: Annotated[Amount, unit("cycles")]


class LayerRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A layer.

    Attributes:
        index: the operator's number in the model file
        op: operator kind, such as `CONV_2D`
        target: `cpu` or the accelerator
        units: the accelerators, where equal ones share the layer; else null
        macs: multiply-accumulates
        cycles_by_cause: as that of the whole run
        functions: with `--causes`: those that ran in the layer, the most expensive first; they add
            up to it
        bytes: as those of the whole run
        bytes_by_master: as those of the whole run
        least: a lower bound of `cycles`; null: not of integers, not on the core, or unknown
        estimated_cycles: by which the partitioner chose; null: unknown
        schedule: the kernel's form; empty on an accelerator
        offload: where an offloaded layer's cycles go; null on the core
        work: what the accelerator reports that it did of the layer; null on the core and where it
            reports nothing
        tensor: its (first) output's name in the model file; null: it has none
        inputs: names of the tensors that it takes from other layers or the model's inputs, without
            constants; of a reshape that is no layer what it reshapes
        shape: of that tensor
        dtype: of that tensor
        parameter_bytes: of its constants after all passes: weights, biases
        code_bytes: of its own function, without those that it calls
        live_bytes: of the arena that hold something while it runs
    """

    index: int
    name: str
    op: str
    target: str
    units: list[str] | None = None
    macs: Macs
    instructions: Instructions | None = None
    cycles: Cycles | None = None
    cycles_by_cause: dict[str, Count] | None = None
    functions: list[FunctionRecord] | None = None
    bytes: dict[str, Moved] | None = None
    bytes_by_master: dict[str, dict[str, Fetched]] | None = None
    least: LeastRecord | None = None
    estimated_cycles: Cycles | None = None
    schedule: str = ""
    offload: Offload | None = None
    work: Work | None = None
    tensor: str | None = None
    inputs: list[str] | None = None
    shape: list[Count] | None = None
    dtype: str | None = None
    parameter_bytes: Bytes | None = None
    code_bytes: Bytes | None = None
    live_bytes: Bytes | None = None


Costed = CostRecord | LayerRecord
"""What has a cost."""


class OutputRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An output of the model.

    Attributes:
        dtype: `int8`, `int32` or `float32`
        data: row-major
        scale: of what is stored; null: it is not quantized
        values: dequantized: (`data` - `zero_point`) * `scale` in float32; null: it is not quantized
    """

    name: str
    dtype: str
    shape: Annotated[list[Count], unit("elements")] = []
    data: list[int | float] = []
    scale: Amount | None = None
    zero_point: int | None = None
    values: list[int | float] | None = None


class OriginCovp(msgspec.Struct, frozen=True, kw_only=True):
    """The covp that ran.

    Attributes:
        commit: of covp's checkout, `-dirty` after changes; null where covp is installed
    """

    version: str
    commit: str | None = None


class OriginModel(msgspec.Struct, frozen=True, kw_only=True):
    """The model as it was found.

    Attributes:
        name: zoo name, or the path of the file
        sha256: of the file; null for a graph that was made in memory
        constants_sha256: of the constants in their order, wherever they are stored
        shapes: by input, as given to `--shape`
    """

    name: str
    sha256: str | None = None
    constants_sha256: str
    shapes: dict[str, list[Count]] = {}


class OriginPlatform(msgspec.Struct, frozen=True, kw_only=True):
    """The platform as it was found.

    Attributes:
        content_key: a hash of its values, its cores and timing model
        content: its values; null for one that comes with covp
    """

    name: str
    content_key: str
    content: dict[str, Any] | None = None


class OriginAccelerator(msgspec.Struct, frozen=True, kw_only=True):
    """An accelerator as it was found.

    Attributes:
        request: as given to `-a`, with the whole path of a file
        sha256: of its file; null for one by name
    """

    request: str
    sha256: str | None = None


class OriginInputs(msgspec.Struct, frozen=True, kw_only=True):
    """The inputs of the measured inference.

    Attributes:
        seed: null for given inputs
        sha256: of all their bytes
    """

    seed: int | None = None
    sha256: str


class OriginCompiler(msgspec.Struct, frozen=True, kw_only=True):
    """The compiler and its options."""

    version: str
    flags: list[str] = []


class OriginRun(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the run.

    Attributes:
        check: null: as by default
    """

    device: str
    check: str | None = None
    sanitize: bool
    ubsan: bool


class OriginRecord(msgspec.Struct, frozen=True, kw_only=True):
    """All that the figures depend on.

    Attributes:
        schedules_sha256: of each layer's place and schedule
        build: options of the build that are not the default
    """

    covp: OriginCovp
    model: OriginModel
    platform: OriginPlatform
    accelerators: list[OriginAccelerator] = []
    inputs: OriginInputs
    compiler: OriginCompiler
    schedules_sha256: str
    build: dict[str, Any] = {}
    run: OriginRun


class RefusalRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A layer that an accelerator rejected.

    Attributes:
        limits: the constraints that do not hold
        worth_cycles: what accepting the layer would save, estimated
    """

    layer: str
    accelerator: str
    reason: str
    limits: list[Limit] = []
    worth_cycles: Cycles | None = None


class Run(msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="covp.run/1"):
    """One inference and its figures: what ``covp run --json`` prints.

    Attributes:
        covp_version: that ran it
        model: zoo name, or the file's stem
        model_source: `official`, `custom` (a zoo model's name, another content), `synthetic`
            (random weights) or `file`
        platform: the platform's name
        device: as given to `--device`
        toolchain: compiler and version
        accelerators: as given to `-a`
        schedules: where the schedules of the core's layers come from, see the
            tuner (`kernels.md#the-tuner`)
        warnings: of the compiler, and of costs of layers that were counted wrongly
        advice: what the run shows that its user can change, the dearest first; `covp run` prints
            two
        instructions: of one inference, exact; null on a device that does not count
        cycles: of one inference; where they come from is `cycles_source`
        first_cycles: of the inference before it, in which accelerators load the weights that stay
            in their memories; null where none stay
        cycles_source: null where there are no cycles
        cycles_by_cause: what the cycles passed with, see
            timing (`timing.md#every-cycle-has-a-cause`); null where the device cannot tell
        bytes: with `--traffic`: loaded and stored by core and accelerators, by name of the memory;
            exact
        bytes_by_master: `bytes`, apart for `core` and each accelerator
        seconds: measured run time, else cycles at the platform's clock
        energy_j: estimated (`energy.md`); null where a part of it is not known
        energy_source: null without `energy_j`
        core: what it can do at most, see the roofline (`report.md#roofline`)
        units: the accelerators, by their parameters
        accelerator_area: of those whose size and figures are known
        simulation_seconds: host time of the inference
        matches_reference: of all that `check` says was compared, integers are bit-exact, floats
            within 1e-5 of the tensor's largest; null: `--check none`
        check: how much was compared with the reference
        transfers: traffic between host and device
        accelerator_jobs: jobs that each accelerator received; custom instructions of a unit in the
            core
        mac_coverage: share of the model's MACs that accelerators report they did; null: one has
            layers and reports nothing
        memory: of the session
        memory_map: the memory of the platform's core while the model is loaded
        arena: what lies in the arena, and when; by the first layer
        overlap: with `--overlap`, see
            accelerators (`accelerators.md#core-and-units-at-the-same-time`)
        streaming: with `--streaming`, see streaming (`streaming.md`)
        states: what the network keeps between inferences, in the arena
        layers: in the order in which they run
        between: what the run function spends between the layers
        outputs: in the model's order
        data: of `--data`, see Data (`data.md`); null: one inference
        origin: all that the figures depend on; `covp reproduce` (`ci.md#run-it-again`) runs it once
            more
        refusals: with `--explain`: layers that an accelerator rejected
        alternatives: with `--explain`: ways to compute what accelerators accept, with the cycles
            that placement counts
    """

    covp_version: str = ""
    model: str
    model_source: str = ""
    platform: str
    device: str
    toolchain: str
    accelerators: list[str] = []
    schedules: ScheduleSource = ScheduleSource()
    warnings: list[str] = []
    advice: list[Advice] = []
    instructions: Annotated[Instructions | None, INSTRUCTIONS] = None
    cycles: Annotated[Cycles | None, CYCLES] = None
    first_cycles: Cycles | None = None
    cycles_source: Source | None = None
    cycles_by_cause: dict[str, Count] | None = None
    bytes: dict[str, Moved] | None = None
    bytes_by_master: dict[str, dict[str, Fetched]] | None = None
    seconds: Annotated[Seconds | None, TIME] = None
    energy_j: Annotated[Joules | None, ENERGY] = None
    energy_source: EnergyRecord | None = None
    core: CoreRecord | None = None
    units: list[UnitRecord] = []
    accelerator_area: list[AreaRecord] = []
    simulation_seconds: Seconds = 0.0
    matches_reference: bool | None = None
    check: CheckRecord = CheckRecord(level="none")
    transfers: Transfers = Transfers()
    accelerator_jobs: dict[str, Count] = {}
    mac_coverage: Annotated[Ratio | msgspec.UnsetType | None, OFFLOADED] = msgspec.UNSET
    memory: MemoryRecord
    memory_map: list[RegionRecord] = []
    arena: list[ArenaTensor] = []
    overlap: OverlapRecord | None = None
    streaming: StreamRecord | None = None
    states: list[StateRecord] = []
    layers: list[LayerRecord] = []
    between: CostRecord = CostRecord()
    outputs: list[OutputRecord] = []
    data: DataRecord | None = None
    origin: OriginRecord | None = None
    refusals: list[RefusalRecord] | msgspec.UnsetType = msgspec.UNSET
    alternatives: list[Placed] | msgspec.UnsetType = msgspec.UNSET

    @property
    def coverage(self) -> float | None:
        """The share of the model's MACs that accelerators did; None: not reported."""
        if self.mac_coverage is not msgspec.UNSET:
            return self.mac_coverage
        total = sum(layer.macs for layer in self.layers)  # an older document: what they were to do
        done = sum(layer.macs for layer in self.layers if layer.target != "cpu")
        return done / total if total else 0.0

    def figure(self, which: FigureDescription) -> float | None:
        """Return one of the figures that this structure's fields are annotated with."""
        if which == OFFLOADED:
            return self.coverage if any(layer.macs for layer in self.layers) else None
        found: float | None = attrgetter(_PLACES[which])(self)
        return found

    @property
    def title(self) -> str:
        """Model, platform, accelerators and device, such as "kws on stm32l4r5 with gemm"."""
        units = f" with {' + '.join(self.accelerators)}" if self.accelerators else ""
        return f"{self.model} on {self.platform}{units}{device_note(self.device)}"


_PLACES = {one: name for name, one in figures_in(Run).items()}


class CompareRow(msgspec.Struct, frozen=True, kw_only=True):
    """A model on the core alone and with accelerators.

    Attributes:
        cpu: on the core alone
        accelerated: with the accelerators
        instructions_saved: of the instructions on the core alone
        speedup: cycles on the core alone to cycles with the accelerators
        mac_coverage: share of the MACs that accelerators report they did; null: not reported
    """

    model: str = ""
    cpu: Run
    accelerated: Run
    instructions_saved: Annotated[float, unit("ratio")] | None = None
    speedup: Ratio | None = None
    mac_coverage: Ratio | None = None


class Compare(msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="covp.compare/1"):
    """The output of ``covp compare --json`` for one platform.

    Attributes:
        rows: one row per model
    """

    platform: str = ""
    accelerators: list[str] = []
    rows: list[CompareRow]


class SurveyRegion(msgspec.Struct, frozen=True, kw_only=True):
    """A memory region with the program loaded.

    Attributes:
        name: of the region
        kind: `flash` or `ram`
    """

    name: str
    kind: Literal["flash", "ram"]
    size_bytes: Bytes
    used_bytes: Bytes
    free_bytes: Bytes


class SurveyRow(msgspec.Struct, frozen=True, kw_only=True):
    """A model on one of several platforms.

    Attributes:
        fits: the model can run there
        reason: why it cannot
        mac_coverage: share of the MACs that accelerators report they did
        regions: memory regions with the program loaded; empty where it does not fit
        run: null where it does not fit
    """

    model: str = ""
    platform: str = ""
    fits: bool = True
    reason: str | None = None
    mac_coverage: Ratio | None = None
    regions: list[SurveyRegion] = []
    run: Run | None


class Survey(msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="covp.survey/1"):
    """The output of ``covp compare --json`` for several platforms.

    Attributes:
        accelerators: as given to `-a`
        rows: one row per model and platform
    """

    platforms: list[str] = []
    accelerators: list[str] = []
    rows: list[SurveyRow]


class Compared(msgspec.Struct, frozen=True):
    """A figure before and now."""

    baseline: float | None
    now: float | None


class CheckedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run beside its baseline and its budgets.

    Attributes:
        device: kind of device
        verdict: `ok`, `new` (not in the baseline), `failed` or `missing` (in the baseline alone)
        problems: why the check fails
        toolchain: null where it is missing
        baseline_toolchain: null without a baseline
        figures: `instructions`, `cycles`, `ms`, `flash` and `ram` in bytes, `offload` as the share
            of the MACs
    """

    model: str
    platform: str
    device: str
    accelerators: list[str]
    verdict: Literal["ok", "new", "failed", "missing"]
    problems: list[str]
    toolchain: str | None
    baseline_toolchain: str | None
    figures: dict[str, Compared]


class Checked(msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="covp.check/1"):
    """The output of ``covp check --json``.

    Attributes:
        passed: the exit status is 0
        threshold: by how much a figure may be worse
        rows: one row per run; those that only the baseline has come last
    """

    passed: bool
    threshold: Ratio
    rows: list[CheckedRun]

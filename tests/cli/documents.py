"""The JSON documents of the interface contract as types; keys beyond them are allowed."""

from typing import Annotated, Literal

import msgspec

Count = Annotated[int, msgspec.Meta(ge=0)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]


Peak = Annotated[float, msgspec.Meta(gt=0)]


class Memory(msgspec.Struct):
    flash_bytes: Count
    ram_bytes: Count
    arena_bytes: Count
    state_bytes: Count


class State(msgspec.Struct):
    name: str
    dtype: str
    shape: list[Count]
    bytes: Count


class Core(msgspec.Struct):
    name: str
    clock_hz: Count
    macs_per_cycle: Peak | None
    bytes_per_cycle: Peak | None
    code: str | None


class Unit(msgspec.Struct):
    name: str
    spec: str
    macs_per_cycle: Peak | None
    bytes_per_cycle: Peak | None
    um2: Peak | None


class Place(msgspec.Struct):
    what: str
    address: Count
    bytes: Count


class Region(msgspec.Struct):
    name: str
    kind: Literal["flash", "ram"]
    address: Count
    size_bytes: Count
    used: list[Place]


class ArenaTensor(msgspec.Struct):
    name: str
    kind: Literal["input", "output", "tensor", "scratch", "state"]
    offset: Count
    bytes: Count
    first: Count
    last: Count


class Layer(msgspec.Struct):
    index: Count
    tensor: str | None
    inputs: list[str]
    shape: list[Count] | None
    dtype: str | None
    parameter_bytes: Count
    code_bytes: Count | None
    live_bytes: Count
    name: str
    op: str
    target: str
    macs: Count
    instructions: Count
    cycles: Count | None
    schedule: str


class Between(msgspec.Struct):
    instructions: Count
    cycles: Count | None


class Output(msgspec.Struct):
    name: str
    dtype: Literal["int8", "int32", "float32"]
    shape: list[Count]
    data: list[int | float]
    scale: float | None
    zero_point: int | None
    values: list[float] | None


Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class MeanError(msgspec.Struct):
    absolute: Seconds | None
    squared: Seconds | None


class Beside(msgspec.Struct):
    what: str
    top1: Share | None
    top5: Share | None
    auc: Share | None
    mean_error: MeanError | None
    other_classes: Count | None
    other_bytes: Count | None


class Spread(msgspec.Struct):
    min: Count
    mean: Seconds
    max: Count


class Data(msgspec.Struct):
    samples: Count
    steps: Count
    on: Literal["device", "reference"]
    top1: Share | None
    top5: Share | None
    auc: Share | None
    mean_error: MeanError | None
    saturated: Share
    cycles: Spread | None
    float: Beside | None
    litert: Beside | None
    litert_reason: str | None
    seconds: Seconds


class Schedules(msgspec.Struct):
    layers: Count
    compilers: list[str]
    cores: list[str]
    other_weights: Count


class Mismatch(msgspec.Struct):
    input: Annotated[int, msgspec.Meta(ge=1)]
    input_name: str
    layer: str | None
    op: str
    target: str
    tensor: str
    element: list[Count]
    got: float | int | str
    wanted: float | int | str
    wrong: Annotated[int, msgspec.Meta(ge=1)]
    elements: Count


class SourceOperator(msgspec.Struct):
    layer: str
    op: str
    tensor: str
    differ: Count
    elements: Count
    steps: float | None
    rule: str | None


class SourceFloats(msgspec.Struct):
    elements: Count
    unequal: Count
    beyond: Count
    worst: Annotated[float, msgspec.Meta(ge=0)]


class SourceCheck(msgspec.Struct):
    oracle: str
    bytes: Count
    differ: Count
    floats: SourceFloats | None
    unlike: list[str]
    inputs: Count
    operators: list[SourceOperator]


class Check(msgspec.Struct):
    level: Literal["none", "output", "layers", "source"]
    layers: Count
    inputs: Count
    seconds: Seconds
    worst_error: float | None
    tolerance: float | None
    mismatch: Mismatch | None
    sanitized: bool
    ubsan: bool
    source: SourceCheck | None


class EnergyPart(msgspec.Struct):
    what: str
    count: Count
    unit: Literal["cycle", "MAC", "byte"]
    pj: Annotated[float, msgspec.Meta(gt=0)]
    low: float | None
    high: float | None
    source: str
    joules: Seconds


class EnergySource(msgspec.Struct):
    kind: Literal["estimated"]
    model: str
    assumes: str
    low_j: Seconds | None
    high_j: Seconds | None
    parts: list[EnergyPart]


class Run(msgspec.Struct):
    schema: Literal["covp.run/1"]
    model: str
    platform: str
    device: str
    toolchain: str
    accelerators: list[str]
    schedules: Schedules
    instructions: Count
    cycles: Count | None
    seconds: Seconds | None
    energy_j: Seconds | None
    energy_source: EnergySource | None
    simulation_seconds: Seconds
    matches_reference: bool | None
    check: Check
    memory: Memory
    covp_version: str
    core: Core
    units: list[Unit]
    memory_map: list[Region]
    arena: list[ArenaTensor]
    states: list[State]
    layers: list[Layer]
    between: Between
    outputs: list[Output]
    data: Data | None

    def added_up(self) -> "Run":
        """The sums that the contract promises."""
        inside = sum(layer.instructions for layer in self.layers)
        assert inside + self.between.instructions == self.instructions
        if self.cycles is not None:
            cycles = sum(layer.cycles or 0 for layer in self.layers)
            assert cycles + (self.between.cycles or 0) == self.cycles
        return self


class Row(msgspec.Struct):
    model: str
    cpu: Run
    accelerated: Run
    instructions_saved: float | None
    speedup: float | None
    mac_coverage: Annotated[float, msgspec.Meta(ge=0, le=1)] | None


class Compare(msgspec.Struct):
    schema: Literal["covp.compare/1"]
    platform: str
    accelerators: list[str]
    rows: list[Row]

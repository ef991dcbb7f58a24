"""Retimed designs against runs with the same parameters, to the cycle."""

from __future__ import annotations

import functools
import pickle
import random
from collections.abc import Callable

import numpy as np
import pytest

from covp.accelerator.registry import find_backends
from covp.base.request import EVERY_MATCH
from covp.building.schedules import schedules_of
from covp.chip.platform_file import load_platform
from covp.errors import CovpError
from covp.evaluation import Sample, build, run
from covp.evaluation.energy import Energy
from covp.evaluation.runner import Runner
from covp.evaluation.varied import vary_design
from covp.exploration.retiming import RunTrace, record, retime
from covp.graph.graph import Graph
from covp.runtime.profile import Profile
from tests.accelerator.test_data_cache import uncoupled
from tests.exploration.retiming.network import small_network

ARM_MODELS = ("m0plus", "m3", "m4", "m7", "m33")
RISCV_MODELS = (
    "rv32",
    "cv32e40p",
    "ibex",
    "ibex-small",
    "picorv32",
    "vexriscv",
    "vexriscv-cfu",
    "e31",
)
UNITS = (
    (),
    ("gemm:scratchpad=2048,accumulators=2048",),
    ("gemm:size=4,wait=sleep,scratchpad=2048",),
    ("qconv2d:wait=sleep",),
    ("a=gemm:size=4,scratchpad=2048", "b=vector"),
    ("a=qconv2d:wait=sleep", "b=vector:wait=sleep"),
    ("cfu",),
)
PLATFORMS = ("riscv32", "cv32e40p", "cortex-m4", "cortex-m0plus")
CASES = [(p, u) for p in PLATFORMS for u in UNITS if u != ("cfu",) or p in ("riscv32", "cv32e40p")]


@functools.cache
def network() -> Graph:
    return small_network()


@functools.cache
def recorded(platform: str, units: tuple[str, ...]) -> RunTrace:
    return record(made(platform, units))


def made(platform, units):
    return build(network(), platform, units, allow_slower=True, allow_unused=True, name="small")


def drawn(chance: random.Random, trace: RunTrace) -> dict[str, int | float | str]:
    """Random values of some of the parameters."""
    is_arm = trace.platform.core.isa.architecture == "arm"
    kinds: dict[str, Callable[[], int | float | str]] = {
        "timing": lambda: chance.choice(ARM_MODELS if is_arm else RISCV_MODELS),
        "clock_hz": lambda: chance.randrange(1, 10**9),
        "contention": lambda: chance.choice([0, 0.5, 1, 5 * chance.random()]),
        "clock_ratio": lambda: chance.choice([0.25, 1, 1.5, 3 * chance.random() + 0.01]),
        "startup_cycles": lambda: chance.choice([0, 1, 100, 1000, chance.randrange(3000)]),
        "macs_per_cycle": lambda: chance.choice([1, 16, 1000, chance.randrange(1, 300)]),
        "bytes_per_cycle": lambda: chance.choice([1, 4, 64, chance.randrange(1, 100)]),
        "mac_cycles": lambda: chance.randrange(1, 20),
        "requantize_cycles": lambda: chance.randrange(1, 20),
    }
    waits = lambda: chance.choice([0, 0, 1, 2, 5, chance.randrange(20)])  # noqa: E731
    names = [name for name in sorted(trace.retimable) if name != "platform.core"]
    return {
        name: kinds.get(name.rpartition(".")[2], waits)() for name in names if chance.random() < 0.5
    }


def compare_with_run(platform: str, units: tuple[str, ...], seed: int) -> None:
    trace = recorded(platform, units)
    values = drawn(random.Random(seed), trace)
    found = retime(trace, values, layers=True)
    other, backends = vary_design(platform, units, values)
    result = run(made(other, tuple(backends)), check="output")
    assert result.matches_reference
    profile = result.profile
    assert (int(found.cycles[0]), int(found.instructions[0])) == (
        profile.cycles,
        profile.instructions,
    ), values
    by_layer = [entry.cycles for entry in profile.layers]
    assert found.layer_cycles is not None
    assert found.layer_cycles[0].tolist() == [*by_layer, profile.between.cycles], values
    assert found.waiting[0] == sum(
        entry.offload.waiting for entry in profile.layers if entry.offload
    )
    assert found.seconds[0] == profile.seconds
    energy = result.energy
    if found.energy_j is not None:
        assert isinstance(energy, Energy)
        assert found.energy_j[0] == pytest.approx(energy.joules, rel=1e-12)


@pytest.mark.costly
@pytest.mark.parametrize("number", range(8))
def test_a_retimed_design_is_its_run(number):
    platform, units = CASES[number * len(CASES) // 8]
    for seed in range(2):
        compare_with_run(platform, units, 100 * number + seed)


@pytest.mark.slow
@pytest.mark.parametrize(("platform", "units"), CASES)
def test_many_retimed_designs_are_their_runs(platform, units):
    for seed in range(300 // len(CASES) + 1):
        compare_with_run(platform, units, 10_000 + seed)


@pytest.mark.costly
def test_code_after_a_custom_instruction_is_timed_with_it():
    """Until it has run once it is illegal code; what was met before is another block."""
    values: dict[str, int | float | str] = {
        "cfu.requantize_cycles": 15,
        "platform.flash.wait_states": 1,
    }
    found = retime(record(build("kws", "cv32e40p", ["cfu"])), values)
    other, units = vary_design("cv32e40p", ["cfu"], values)
    assert found.cycles[0] == run(build("kws", other, units), check="none").profile.cycles


@pytest.mark.costly
def test_jumps_are_jumps_without_classes_of_instructions():
    """A jump to the very next instruction, and one word more that is fetched."""
    values: dict[str, int | float | str] = {
        "platform.timing": "unit",
        "platform.flash.wait_states": 3,
    }
    units = ["qconv2d:wait=poll"]
    found = retime(record(build("kws", "cv32e40p", units)), values)
    other, backends = vary_design("cv32e40p", units, values)
    assert found.cycles[0] == run(build("kws", other, backends), check="none").profile.cycles


@pytest.mark.costly
def test_many_designs_at_once_are_what_each_is_alone():
    trace = recorded("riscv32", UNITS[2])
    chance = np.random.default_rng(1)
    values = {
        "gemm.startup_cycles": chance.integers(0, 400, 200),
        "gemm.contention": chance.choice([0, 0.25, 3], 200),
        "platform.flash.wait_states": chance.integers(0, 3, 200),
        "platform.timing": chance.choice(["rv32", "ibex"], 200),
    }
    together = retime(trace, values, layers=True)
    for n in range(0, 200, 17):
        alone = retime(trace, {name: column[n] for name, column in values.items()}, layers=True)
        assert alone.cycles[0] == together.cycles[n]
        assert alone.waiting[0] == together.waiting[n]
        assert alone.layer_cycles is not None and together.layer_cycles is not None
        assert np.array_equal(alone.layer_cycles[0], together.layer_cycles[n])
    assert together.layer_cycles is not None
    assert np.array_equal(together.layer_cycles.sum(axis=1), together.cycles)


SIZES = (256, 1024, 16384)


@pytest.mark.costly
def test_lines_that_drivers_clean_are_counted_for_other_sizes() -> None:
    """How many go back, and how many are read again, depends on the size of the cache, too."""
    platform = uncoupled()
    traced = record(made(platform, ("gemm",)), sizes={"dcache": SIZES})
    for size in (4096, 1024, 16384):
        values: dict[str, int | float | str] = {"platform.dcache.size": size}
        other, backends = vary_design(platform, ("gemm",), values)
        result = run(made(other, tuple(backends)), check="output")
        assert retime(traced, values).cycles[0] == result.profile.cycles


@pytest.mark.costly
@pytest.mark.parametrize("unit", ["gemm:wait=poll", "gemm:wait=sleep"])
def test_emptying_a_cache_takes_as_long_as_it_is_large(unit):
    """VexRiscv's driver empties all of it, a set in a cycle."""
    traced = record(made("vexriscv-full", (unit,)), sizes={"dcache": SIZES})
    for size in (4096, *SIZES):
        values: dict[str, int | float | str] = {"platform.dcache.size": size}
        other, backends = vary_design("vexriscv-full", (unit,), values)
        result = run(made(other, tuple(backends)), check="output")
        assert retime(traced, values).cycles[0] == result.profile.cycles


@pytest.mark.costly
def test_caches_of_other_sizes_are_counted_in_one_run():
    traced = record(made("vexriscv-cfu", ("cfu",)), sizes={"icache": SIZES, "dcache": SIZES})
    for icache, dcache, timing in (
        (4096, 4096, "ibex"),
        (256, 16384, "vexriscv"),
        (1024, 256, "rv32"),
    ):
        values: dict[str, int | float | str] = {
            "platform.icache.size": icache,
            "platform.dcache.size": dcache,
            "platform.timing": timing,
        }
        platform, backends = vary_design("vexriscv-cfu", ("cfu",), values)
        result = run(made(platform, tuple(backends)), check="output")
        found = retime(traced, values)
        assert found.cycles[0] == result.profile.cycles
        assert "stores" in found.assumes
    with pytest.raises(CovpError, match="512/32/1 were not recorded, but 256/32/1, 1024/32/1"):
        retime(traced, {"platform.icache.size": 512})
    with pytest.raises(CovpError, match="icache"):
        record(made("vexriscv-cfu", ()), sizes={"lcache": SIZES})


def run_of(platform: str, units: tuple[str, ...], values: dict[str, int | float | str]) -> Profile:
    """What the program of a platform takes with other parameters: its schedules stay."""
    other, backends = vary_design(platform, units, values)
    schedules = schedules_of(load_platform(platform), EVERY_MATCH)
    made = build(network(), other, backends, EVERY_MATCH, name="small", schedules=schedules)
    with Runner(made) as runner:
        return runner.run(Sample.random(made.graph)).profile


@pytest.mark.costly
@pytest.mark.parametrize(
    ("platform", "units", "shapes", "waits"),
    [
        ("nucleo-u575zi", ("gemm",), {"icache": {"line": 32, "ways": 1}}, {"flash": 2}),
        ("nucleo-u575zi", (), {"icache": {"size": 2048, "line": 8, "ways": 4}}, {"ram": 1}),
        ("raspberry-pi-pico", ("qconv2d:wait=sleep",), {"xip": {"ways": 4}}, {"flash": 20}),
        ("esp32-c3", ("cfu",), {"cache": {"size": 4096, "line": 16}}, {"ram": 2}),
        # random replacement; a line of the data cache would be in the program
        ("nucleo-f746zg", ("gemm",), {"icache": {"line": 16}, "dcache": {"ways": 2}}, {"flash": 9}),
    ],
)
def test_caches_of_another_shape_and_their_memory(platform, units, shapes, waits):
    trace = record(made(platform, units), sizes={name: [each] for name, each in shapes.items()})
    values: dict[str, int | float | str] = {
        f"platform.{name}.{key}": value
        for name, shape in shapes.items()
        for key, value in shape.items()
    }
    values |= {f"platform.{name}.wait_states": count for name, count in waits.items()}
    found, profile = retime(trace, values), run_of(platform, units, values)
    assert (found.cycles[0], found.instructions[0]) == (profile.cycles, profile.instructions)
    assert found.is_exact.all() and not found.assumes and profile.cycles != trace.cycles


@pytest.mark.costly
def test_what_a_trace_cannot_tell_is_no_parameter_of_it():
    """The order of what runs decides what is read in advance; a line of RAM is in the program."""
    names = recorded("nucleo-l4r5zi", ()).retimable
    assert "platform.dcache.line" in names and "platform.ram.wait_states" in names
    rest = {"platform.icache.line", "platform.flash.wait_states", "platform.clock_hz"}
    assert not rest & names
    assert "platform.dcache.line" not in recorded("nucleo-f746zg", ()).retimable


def test_wait_states_follow_the_clock():
    trace, clocks = recorded("nucleo-u575zi", ()), [20_000_000, 64_000_000, 160_000_000]
    found = retime(trace, {"platform.clock_hz": clocks})
    for hertz, cycles in zip(clocks, found.cycles.tolist(), strict=True):
        assert cycles == run_of("nucleo-u575zi", (), {"platform.clock_hz": hertz}).cycles
    assert found.cycles[0] < found.cycles[1] < found.cycles[2] == trace.cycles
    assert found.seconds[0] > found.seconds[2] and found.is_exact.all()
    with pytest.raises(CovpError, match="works up to 160000000 Hz"):
        retime(trace, {"platform.clock_hz": 200_000_000})


@pytest.mark.costly
def test_layers_that_another_unit_would_get_are_said():
    units = ("a=gemm:size=4,scratchpad=2048", "b=qconv2d")
    trace = record(build(network(), "riscv32", units, EVERY_MATCH, name="small"))
    column = {"b.macs_per_cycle": [1, 16, 1000], "a.startup_cycles": [10_000, 32, 32]}
    found = retime(trace, column)
    runs = [
        run_of("riscv32", units, {name: each[n] for name, each in column.items()}).cycles
        for n in range(3)
    ]
    assert found.is_exact.tolist() == [a == b for a, b in zip(found.cycles, runs, strict=True)]
    assert not found.is_exact.all() and "elsewhere" in found.assumes
    # an accelerator that has no layer in the recorded run can still get some
    idle = record(build(network(), "riscv32", ("gemm", "b=gemm:startup_cycles=999"), EVERY_MATCH))
    assert not idle.units["b"].jobs
    assert retime(idle, {"b.startup_cycles": [999, 0]}).is_exact.tolist() == [True, False]


def test_an_accelerator_given_as_an_object_is_retimed():
    (gemm,) = find_backends(["gemm:size=4,scratchpad=2048"])
    own = type("Own", (type(gemm),), {"name": "own"})(gemm.values)
    trace = record(build(network(), "riscv32", (own,), EVERY_MATCH, name="small"))
    few, many = retime(trace, {"own.startup_cycles": [1, 1000]}).cycles
    assert few < trace.cycles < many


def test_layers_that_the_core_would_get_are_said():
    trace = record(build(network(), "riscv32", ("gemm:size=4",), name="small"))
    assert retime(trace, {"gemm.startup_cycles": [32, 10**6]}).is_exact.tolist() == [True, False]
    assert "elsewhere" in retime(trace, {"platform.timing": "ibex"}).assumes
    assert not retime(trace, {"platform.clock_hz": 10**6}).assumes


def test_a_trace_is_data_and_small():
    trace = recorded("cortex-m4", UNITS[1])
    stored = pickle.dumps(trace)
    again = pickle.loads(stored)
    assert len(stored) < 200_000
    assert retime(again, {}).cycles[0] == trace.cycles == again.cycles


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"gemm.size": 8}, "another run"),
        ({"gem.contention": 1}, "gemm.contention"),
        ({"gemm.contention": -1}, "at least 0"),
        ({"gemm.bytes_per_cycle": [1, 0]}, "at least 1"),
        ({"gemm.contention": [0, 1], "gemm.startup_cycles": [1, 2, 3]}, "same number"),
        ({"gemm.contention": []}, "same number"),
        ({"platform.core": "rv32imc"}, "another run"),
        ({"platform.timing": "ibex"}, "instruction set"),
        ({"platform.flash.wait_states": 256}, "255"),
        ({"platform.ram.size": 4096}, "another run"),
    ],
)
def test_what_cannot_be_retimed_is_one_line(values, says):
    with pytest.raises(CovpError) as caught:
        retime(recorded("cortex-m4", UNITS[1]), values)
    assert says in str(caught.value) and "\n" not in str(caught.value)

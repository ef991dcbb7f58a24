"""Weights that stay in a unit's memory: loaded once, known again, never beyond its room."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from covp.accelerator import Accelerator, Job, Limit, number, result, table, tensor
from covp.accelerator.declared import place_tables
from covp.accelerator.registry import find_backend
from covp.building.builder import build
from covp.chip.platform_file import load_platform
from covp.errors import AcceleratorError
from covp.evaluation import Sample, evaluate, run
from covp.graph.graph import Graph
from covp.graph.models import load_model
from covp.hardware.arithmetic import exact_matmul, requantize
from covp.hardware.kept_tables import KeptTables
from covp.runtime.session import Session
from covp.testing import ConvCase
from covp.testing.verify import check

TOYCAR_WEIGHTS = 264_192


class Keeper(Accelerator):
    """Fully connected layers of one row; weights may stay."""

    name = "keeper"
    operators = ("FULLY_CONNECTED",)
    keeps = "WEIGHTS"
    job = Job(
        tensor("INPUT", "int8", lambda job: job.IN_CHANNELS),
        table("WEIGHTS", "int8", lambda job: job.OUT_CHANNELS * job.IN_CHANNELS),
        table("BIAS", "int32", lambda job: job.OUT_CHANNELS),
        table("MULTIPLIER", "int32", lambda job: job.OUT_CHANNELS),
        table("SHIFT", "int32", lambda job: job.OUT_CHANNELS),
        result("OUTPUT", "int8", lambda job: job.OUT_CHANNELS),
        number("IN_CHANNELS", 1, 4096),
        number("OUT_CHANNELS", 1, 4096),
        number("INPUT_ZERO_POINT", -128, 127),
        number("OUTPUT_ZERO_POINT", -128, 127),
        number("LOW", -128, 127),
        number("HIGH", -128, 127),
    )

    def accepts(self, layer):
        yield Limit("rows", layer.batch, at_most=1)

    def compute(self, job):
        rows = job.INPUT[None].astype(np.int16) - job.INPUT_ZERO_POINT
        sums = exact_matmul(rows, job.WEIGHTS.reshape(job.OUT_CHANNELS, -1).T) + job.BIAS
        zero_point = job.OUTPUT_ZERO_POINT
        return requantize(sums, job.MULTIPLIER, job.SHIFT, zero_point, job.LOW, job.HIGH)

    def macs(self, job):
        return job.IN_CHANNELS * job.OUT_CHANNELS


def keeper(room: int) -> Keeper:
    return Keeper({"weight_memory": room, "macs_per_cycle": 4096})


# -- the memory --------------------------------------------------------------------------------


@pytest.mark.law
@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 5), st.integers(1, 60)), max_size=40))
def test_a_table_is_known_until_another_one_is_loaded_over_it(
    fetched: list[tuple[int, int, int]],
) -> None:
    """Beside a memory of bytes, each of which remembers whose it is."""
    memory, owner = KeptTables(1000), [-1] * 1000
    whole: dict[int, tuple[int, int, int]] = {}
    for count, (keep, address, nbytes) in enumerate(fetched):
        first = (keep - 1) * 4
        data, known = memory.fetch(keep, address, nbytes, partial(np.zeros, nbytes, np.int8))
        assert data.nbytes == nbytes
        last = owner[first]
        was_there = last >= 0 and whole[last] == (first, address, nbytes)
        was_there = was_there and owner[first : first + nbytes] == [last] * nbytes
        assert known == was_there
        if not known:
            owner[first : first + nbytes] = [count] * nbytes
            whole[count] = (first, address, nbytes)


@pytest.mark.law
@given(
    st.lists(st.tuples(st.floats(0.01, 9), st.integers(1, 500)), max_size=30), st.integers(0, 999)
)
def test_places_do_not_overlap_and_end_in_the_memory(
    offers: list[tuple[float, int]], room: int
) -> None:
    named = [(saved, nbytes, f"layer{n}") for n, (saved, nbytes) in enumerate(offers)]
    places = place_tables(named, room)
    sizes = {name: nbytes for _, nbytes, name in named}
    taken = sorted((4 * (place - 1), sizes[name]) for name, place in places.items())
    end = 0
    for first, nbytes in taken:
        assert first >= end
        end = first + nbytes
    assert end <= room
    if places and len(places) < len(named):  # what is left out has no room beside the better ones
        left = [(saved, sizes[name]) for saved, _, name in named if name not in places]
        saved, nbytes = max(left)
        better = [sizes[name] for worth, _, name in named if worth >= saved and name in places]
        assert sum(-(-size // 4) * 4 for size in better) + nbytes > room


# -- a declared unit ---------------------------------------------------------------------------


def inferences(room: int, count: int) -> list[tuple[int, int, bytes]]:
    """Bytes read by the unit, its cycles and the outputs of inferences one after the other."""
    made = build("toycar", load_platform("riscv32"), [keeper(room)])
    sample = Sample.random(made.graph, 0)
    found = []
    with Session(made.platform) as session:
        module = session.load(made.program)
        for _ in range(count):
            device: Any = session.device
            unit = device.board.peripherals["keeper"][1]
            unit.forget_jobs()
            output = module.run(*sample.inputs)
            read = sum(job.traffic.read for job in unit.jobs)
            busy = sum(job.timing.cycles for job in unit.jobs)
            found.append((read, busy, output.tobytes()))
    return found


@pytest.mark.costly
def test_weights_are_loaded_by_the_first_inference_alone() -> None:
    plain = inferences(0, 2)
    kept = inferences(1 << 20, 3)
    assert plain[0] == plain[1]
    assert kept[0][:2] == plain[0][:2], "the first inference is as without the memory"
    assert kept[1] == kept[2]
    assert kept[0][0] - kept[1][0] == TOYCAR_WEIGHTS
    # the port has 4 bytes a cycle, and the multipliers are never what is waited for
    assert kept[0][1] - kept[1][1] == pytest.approx(TOYCAR_WEIGHTS / 4, abs=10)
    assert len({output for *_, output in plain + kept}) == 1


@pytest.mark.costly
def test_a_memory_for_some_of_them() -> None:
    (cold, *_), (warm, *_) = inferences(100_000, 2)
    assert 80_000 < cold - warm <= 100_000


def test_the_memory_counts_as_hardware() -> None:
    assert keeper(1 << 20).hardware_size() == (4096, 1024.0)
    plain, larger = find_backend("systolic"), find_backend("systolic:weight_memory=1024")
    assert plain.hardware_size() == (256, 80.0) and larger.hardware_size() == (256, 81.0)


def test_parameters_that_decide_what_stays_need_a_run() -> None:
    assert "bytes_per_cycle" in {parameter.name for parameter in keeper(0).timing_parameters}
    assert keeper(1000).timing_parameters == ()


def test_layers_have_the_reference_s_bits() -> None:
    case = ConvCase("FULLY_CONNECTED", dtype="int8", batch=1, channels=(24, 10))
    for room in (1 << 16, 100):
        check(f"{__file__}:Keeper:weight_memory={room}", case)


def test_a_reset_forgets() -> None:
    made = build("toycar", load_platform("riscv32"), [keeper(1 << 20)])
    sample = Sample.random(made.graph, 0)
    with Session(made.platform) as session:
        module = session.load(made.program)
        cycles = []
        for _ in range(3):
            module.run(*sample.inputs)
            cycles.append(session.profile().cycles or 0)
            if len(cycles) == 2:
                session.device.reset()
    assert cycles[0] == cycles[2] > cycles[1]


def test_a_place_beyond_the_memory_is_rejected() -> None:
    memory = KeptTables(100)
    assert memory.has_room(1, 100) and not memory.has_room(1, 101)
    assert memory.has_room(25, 4) and not memory.has_room(26, 1)


@pytest.mark.costly
def test_a_run_is_measured_with_the_weights_in_place() -> None:
    cold = evaluate("toycar", "riscv32", [keeper(0)])
    warm = evaluate("toycar", "riscv32", [keeper(1 << 20)])
    assert cold.first_cycles is None and cold.matches_reference and warm.matches_reference
    assert warm.first_cycles == cold.profile.cycles
    assert warm.first_cycles and warm.profile.cycles
    assert warm.first_cycles > warm.profile.cycles
    assert warm.record().first_cycles == warm.first_cycles
    assert [layer.keeps_constants for layer in warm.program.layers] == [True] * 10


@pytest.mark.costly
def test_estimates_are_of_the_weights_in_place() -> None:
    made = build("toycar", load_platform("riscv32"), ["systolic:weight_memory=1048576"])
    result = run(made, Sample.random(made.graph, 0), check="output")
    for entry in result.profile.layers:
        assert entry.offload is not None and entry.layer.estimated_cycles is not None
        assert 0 < entry.layer.estimated_cycles - entry.offload.busy <= 65, "the driver's"
        assert "weights stay" in entry.layer.schedule


@pytest.mark.costly
def test_tiles_are_chosen_for_weights_that_stay() -> None:
    """Toycar is all weights: without their loads it takes what the array needs, and little more."""
    result = evaluate("toycar", "riscv32", ["systolic:weight_memory=1048576"])
    depths = [640, 128, 128, 128, 128, 8, 128, 128, 128, 128]
    channels = [128, 128, 128, 128, 8, 128, 128, 128, 128, 640]
    blocks = [-(-d // 16) * -(-c // 16) for d, c in zip(depths, channels, strict=True)]
    array = sum(16 * count + 31 for count in blocks)
    busy = sum(entry.offload.busy for entry in result.profile.layers if entry.offload)
    assert 0 < busy / array - 1 < 0.25, "commands, registers, stores"


# -- the hook ----------------------------------------------------------------------------------


class Forgetful(Keeper):
    """for_layers() returns nothing."""

    name = "forgetful"

    def for_layers(self, own: Iterable[object]) -> None:  # type: ignore[override]
        return None


def test_a_hook_that_gives_no_accelerator() -> None:
    with pytest.raises(AcceleratorError, match=r"forgetful: for_layers\(\) gave None"):
        build("toycar", load_platform("riscv32"), [Forgetful()])


def test_a_table_that_is_none() -> None:
    with pytest.raises(TypeError, match="'NOTHING', which is not a table of the job"):

        class Wrong(Keeper):
            keeps = "NOTHING"


def test_all_layers_are_seen_at_once() -> None:
    seen: list[list[str]] = []

    class Looking(Keeper):
        """Notes what it gets."""

        name = "looking"

        def for_layers(self, own):
            seen.append([match.op.name for match in own])
            return self

    graph: Graph = load_model("toycar")
    build(graph, load_platform("riscv32"), [Looking()])
    assert [len(names) for names in seen] == [10]

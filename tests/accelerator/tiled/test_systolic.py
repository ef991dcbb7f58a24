"""The systolic array: layers in tiles are the reference's bits, and its cycles SCALE-Sim's."""

from __future__ import annotations

import csv
import functools
import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from covp.accel_backends.systolic.backend import Systolic
from covp.accelerator import Tile
from covp.accelerator.partition import partition
from covp.accelerator.tiled.commands import COMPUTE, LOAD, STORE
from covp.errors import AcceleratorError, UsageError
from covp.evaluation import Wanted, build, evaluate, run
from covp.graph.models import load_model
from covp.graph.passes import run_passes
from covp.graph.pattern import Match
from covp.hardware.job import JobValues
from covp.report.timeline import timeline_of
from covp.testing import ConvCase
from covp.testing.layers import STRATEGIES
from covp.testing.verify import check

SCALE_SIM = Path(__file__).parents[3] / "benchmarks" / "scale_sim.csv"
FLOWS = {"ws": "weights", "os": "outputs", "is": "inputs"}
UNITS = [
    "systolic",
    "systolic:rows=4,columns=2,scratchpad=1024,accumulators=256",
    "systolic:scratchpad=512,accumulators=512,buffers=1,banks=0,dma_axes=1,dataflow=inputs",
    "systolic:stationary=outputs,tile_depth=5,tile_channels=3,tile_pixels=7,banks=2",
    "systolic:stationary=inputs,dma_axes=4,queue=1,preload=false",
    "systolic:arrays=3,rows=2,columns=2,tile_channels=4",
    "systolic:stationary=weights,accumulators=65536,contention=0.5,wait=sleep,dataflow=outputs",
]


@functools.cache
def matches(model: str) -> list[Match]:
    unit, graph = Systolic(), run_passes(load_model(model))
    found = partition(graph, [unit])
    return [one.match for one in found.placements if one.match is not None]


def job_of(unit: Systolic, match: Match) -> Any:
    given = unit.registers(unit.layer(match))
    return JobValues(
        **{part.name: given[part.name] for part in unit.job.image if part.name in given}
    )


def run_layer(unit: str, kind: str, data: st.DataObject) -> None:
    case = replace(data.draw(STRATEGIES[kind](kind)), dtype="int8")
    try:
        check(unit, case)
    except UsageError as error:
        assert "does not accept" in str(error)  # too large for the smallest memories
        hypothesis.reject()


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(
    "kind", ["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "BATCH_MATMUL"]
)
@hypothesis.given(data=st.data())
@hypothesis.settings(max_examples=8)
def test_layers_in_tiles_are_the_reference(unit: str, kind: str, data: st.DataObject) -> None:
    run_layer(unit, kind, data)


def test_the_cycles_of_a_block_are_those_of_scale_sim() -> None:
    """It counts from 0: a layer of n cycles ends in cycle n - 1."""
    with SCALE_SIM.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 132
    for row in rows:
        flow = FLOWS[row["dataflow"]]
        unit = Systolic(
            {"rows": row["rows"], "columns": row["columns"], "dataflow": flow, "preload": "no"}
        )
        tile = Tile(int(row["pixels"]), int(row["channels"]), int(row["depth"]), 1)
        assert unit.cycles(tile) == int(row["cycles"]) + 1, row


@pytest.mark.costly
@pytest.mark.parametrize("model", ["kws", "toycar"])
def test_an_estimate_is_the_time_of_the_job_that_runs(model: str) -> None:
    result = evaluate(model, "riscv32", ("systolic",))
    assert result.matches_reference
    unit = Systolic()
    estimated = [unit.estimate(match) for match in matches(model)]
    ran = [entry.offload for entry in result.profile.layers if entry.offload]
    assert len(ran) == len(estimated)
    for offload, cycles in zip(ran, estimated, strict=True):
        assert cycles is not None
        assert offload.busy == cycles and offload.gaps >= 0


@pytest.mark.costly
def test_tiles_are_as_small_as_wanted() -> None:
    unit = Systolic({"tile_channels": "16", "tile_depth": "16"})
    first = matches("toycar")[0]
    stream = unit.stream(job_of(unit, first))
    opcodes = stream.commands["opcode"]
    assert (opcodes == COMPUTE).sum() == 640 // 16 * 128 // 16
    assert (opcodes == STORE).sum() == 128 // 16
    assert (stream.commands["elements"][opcodes == COMPUTE] == 256).all()
    weights = (opcodes == LOAD) & (stream.commands["operand"] == 1)
    assert stream.commands["elements"][weights].sum() == 640 * 128  # each is loaded once


@pytest.mark.costly
@pytest.mark.parametrize("stationary", ["weights", "outputs", "inputs"])
def test_what_is_stationary_is_moved_once(stationary: str) -> None:
    unit = Systolic(
        {"stationary": stationary, "scratchpad": "2048", "accumulators": "65536", "banks": "0"}
    )
    for match in matches("resnet")[1:3]:
        stream, nest = unit.stream(job_of(unit, match)), unit.layer(match).nest
        assert not isinstance(nest, str)
        if stationary == "weights":
            assert stream.moved(1) == match.op.input(1).size
        if stationary == "outputs":
            begun = stream.commands[stream.commands["opcode"] == COMPUTE]
            places = [int(c["access"][2]["first"]) for c in begun if c["operand"] == 0]
            assert len(places) == (stream.commands["opcode"] == STORE).sum() or len(places) > 0
        assert stream.moved(2) == match.op.output.size


@pytest.mark.costly
def test_more_memory_and_buffers_never_cost_much() -> None:
    for match in matches("resnet")[:2]:
        small = Systolic({"scratchpad": "4096", "accumulators": "4096"}).estimate(match)
        large = Systolic({"scratchpad": "1048576", "accumulators": "1048576"}).estimate(match)
        single = Systolic({"buffers": "1"}).estimate(match)
        double = Systolic().estimate(match)
        assert small is not None and large is not None and single is not None
        assert double is not None and large <= small and double <= single


@pytest.mark.costly
@pytest.mark.parametrize(("nbytes", "banks"), [(200, 4), (333, 3), (1000, 7)])
def test_banks_of_any_size_hold_tiles(nbytes: int, banks: int) -> None:
    unit = Systolic({"scratchpad": nbytes, "accumulators": nbytes, "banks": banks})
    for match in matches("kws")[:2]:
        estimate = unit.estimate(match)
        assert estimate is None or estimate > 0


@pytest.mark.costly
def test_a_layer_without_room_is_not_accepted() -> None:
    unit = Systolic({"scratchpad": "64", "accumulators": "64"})
    found = partition(run_passes(load_model("resnet")), [unit])
    reasons = [str(one.reason) for one in found.reasons("systolic")]
    assert any("tiles for 64 B of scratchpad" in reason for reason in reasons), reasons


class TooFast(Systolic):
    """An array that claims more than its multipliers can do."""

    name = "too_fast"

    def cycles(self, tile: Tile) -> int:
        return 1


class NoCount(Systolic):
    """An array whose cycles are no number."""

    name = "no_count"

    def cycles(self, tile: Tile) -> int:
        return "many"  # type: ignore[return-value]


def test_more_work_than_possible_is_an_error_with_the_number() -> None:
    match = matches("toycar")[0]
    with pytest.raises(AcceleratorError, match=r"cycles\(\) gave 1 for .* 256 multipliers"):
        TooFast().estimate(match)
    with pytest.raises(AcceleratorError, match="cycles\\(\\) gave 'many', not a count"):
        NoCount().estimate(match)


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -1, True, None, "many"])
def test_cycles_that_are_no_count_are_an_error(wrong: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NoCount, "cycles", lambda self, tile: wrong)
    with pytest.raises(AcceleratorError, match="not a count"):
        NoCount().estimate(matches("toycar")[0])


@pytest.mark.parametrize("wrong", [0, -4, 2.5, float("nan"), "16"])
def test_multipliers_that_are_no_count_are_an_error(
    wrong: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TooFast, "multipliers", lambda self: wrong)
    with pytest.raises(AcceleratorError, match=r"multipliers\(\) gave .*, not a count"):
        TooFast().estimate(matches("toycar")[0])


class OtherMemories(Systolic):
    """An array whose operands have memories of their own, one of which has no size."""

    name = "other_memories"
    memories: ClassVar[dict[str, str]] = {**Systolic.memories, "WEIGHTS": "weight_buffer"}


def test_groups_are_channels_of_a_tile() -> None:
    depthwise = matches("kws")[1]
    text = Systolic({"tile_channels": 3}).schedule(depthwise)
    assert "of 3 groups" in text, text


def test_memories_of_other_operands_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OtherMemories, "memories", {"INPUT": "scratchpad", "weights": "scratchpad"})
    with pytest.raises(AcceleratorError, match="INPUT, WEIGHTS, OUTPUT are needed"):
        OtherMemories().estimate(matches("toycar")[0])


def test_a_memory_without_a_size_is_an_error() -> None:
    with pytest.raises(AcceleratorError, match="needs a parameter 'weight_buffer'"):
        OtherMemories().estimate(matches("toycar")[0])


@pytest.mark.parametrize(
    "layer",
    [
        {"size": (1, 80001), "kernel": (1, 1), "stride": (1, 2)},
        {"size": (1, 66100), "kernel": (1, 2), "dilation": (1, 66000)},
        {"size": (1, 65537), "kernel": (1, 3)},
    ],
)
def test_extents_beyond_16_bits_are_cut(layer: dict[str, Any]) -> None:
    large = "systolic:scratchpad=1048576,accumulators=1048576,rows=256"
    check(large, ConvCase("CONV_2D", dtype="int8", channels=(1, 1), **layer))


def test_a_result_that_is_not_stored_is_rejected() -> None:
    unit, match = Systolic(), matches("toycar")[0]
    job = job_of(unit, match)
    stores = unit.stream(job).commands
    last = int(stores[stores["opcode"] == STORE][-1]["word"])
    job.COMMANDS = job.COMMANDS[:last]
    job.INPUT, job.SECOND = np.zeros(job.INPUT_ELEMENTS, np.int8), None
    with pytest.raises(Exception, match="no command stores element"):
        unit.compute(job)


@pytest.mark.costly
def test_a_timeline_shows_what_each_engine_does() -> None:
    made = build("kws", "riscv32", ["systolic:arrays=2"])
    result = run(made, wanted=Wanted(timeline=True))
    timeline = timeline_of(result)
    jobs = timeline.track("systolic", "jobs").slices
    engines = ("load", "array", "array 2", "store")
    busy = {name: timeline.track("systolic", name).slices for name in engines}
    offloads = [entry.offload for entry in result.profile.layers if entry.offload]
    assert {one.name for one in busy["load"]} == {"LOAD", "FILL"}
    computed = sum(one.cycles for one in (*busy["array"], *busy["array 2"]))
    assert 0 <= 2 * sum(each.compute for each in offloads) - computed <= len(offloads)
    for slices in busy.values():
        for one, following in itertools.pairwise(slices):
            assert one.end <= following.start
        for one in slices:
            assert any(job.start <= one.start and one.end <= job.end for job in jobs)


def test_reports_say_how_layers_are_cut() -> None:
    unit = Systolic({"tile_channels": "16", "tile_depth": "16"})
    text = unit.schedule(matches("toycar")[0])
    assert text.startswith("320 tiles of 16 channels, 16 depth, "), text
    words = len(job_of(unit, matches("toycar")[0]).COMMANDS)
    assert text.endswith(f"commands of {4 * words:,} B")


@pytest.mark.costly
def test_several_arrays_share_a_layer() -> None:
    def total(arrays: int) -> int:
        unit = Systolic({"arrays": arrays, "rows": 8, "columns": 8, "bytes_per_cycle": 32})
        return sum(unit.estimate(match) or 0 for match in matches("resnet")[1:4])

    one, two, four = total(1), total(2), total(4)
    assert one / 2 < two < one * 0.6
    assert two / 2 < four < two * 0.75

"""Perfetto's own trace processor reads the files without a complaint; its sums are the run's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from tests.report.timeline.runs import RUNS, Traced, function_cycles, records_of
from tests.report.timeline.trace_processor import TraceProcessor

Make = Callable[..., Traced]


@pytest.fixture(scope="module", params=[RUNS[0], RUNS[1]], ids="-".join)
def loaded(request: pytest.FixtureRequest, traced: Make) -> Iterator[tuple[TraceProcessor, Traced]]:
    run = traced(*request.param)
    processor = TraceProcessor(run.path)
    processor.query("include perfetto module slices.with_context")
    yield processor, run
    processor.close()


@pytest.mark.costly
def test_no_event_is_wrong_or_dropped(loaded: tuple[TraceProcessor, Traced]) -> None:
    processor, run = loaded
    assert not processor.query(
        "select name, value from stats where value > 0 and severity in ('error', 'data_loss')"
    )
    slices = sum(len(track) for track in run.trace.tracks.values())
    points = sum(len(series) for series in run.trace.counters.values())
    assert processor.query("select count() as n from slice") == [{"n": slices}]
    assert processor.query("select count() as n from counter") == [{"n": points}]


@pytest.mark.costly
def test_layers_are_those_of_the_run(loaded: tuple[TraceProcessor, Traced]) -> None:
    processor, run = loaded
    profile = run.plain.profile
    (total,) = processor.query(
        """select sum(extract_arg(arg_set_id, 'args.cycles')) as cycles,
             sum(extract_arg(arg_set_id, 'args.instructions')) as instructions, sum(dur) as dur,
             min(ts) as first, max(depth) as depth
           from thread_slice where thread_name = 'layers' and process_name = 'core'"""
    )
    assert total["cycles"] == profile.cycles and total["instructions"] == profile.instructions
    assert (total["first"], total["depth"]) == (0, 0)
    assert profile.cycles is not None
    assert total["dur"] == profile.cycles * 10**9 // profile.clock_hz


@pytest.mark.costly
def test_functions_are_nested_and_spend_what_the_counter_says(
    loaded: tuple[TraceProcessor, Traced],
) -> None:
    """Perfetto's nesting, from nanoseconds, gives the cycles that each slice states as its own."""
    processor, run = loaded
    rows = processor.query(
        """select s.name as name, extract_arg(s.arg_set_id, 'args.self_cycles') as own,
             extract_arg(s.arg_set_id, 'args.cycles') - ifnull((
               select sum(extract_arg(c.arg_set_id, 'args.cycles')) from slice c
               where c.parent_id = s.id), 0) as computed
           from thread_slice s where s.thread_name = 'functions'"""
    )
    own: Counter[str] = Counter()
    for row in rows:
        assert row["own"] == row["computed"]
        own[row["name"]] += row["own"]
    assert +own == function_cycles(run.plain.profile)


@pytest.mark.costly
def test_jobs_are_the_records(loaded: tuple[TraceProcessor, Traced]) -> None:
    processor, run = loaded
    units = run.plain.build.accelerators
    rows = processor.query(
        """select extract_arg(arg_set_id, 'args.cycles') as cycles, depth,
             extract_arg(arg_set_id, 'args.macs') as macs,
             extract_arg(arg_set_id, 'args.compute') as compute
           from thread_slice where thread_name = 'jobs' and depth = 0 order by ts"""
    )
    records = records_of(RUNS[0]) if units else []
    assert [(row["cycles"], row["macs"], row["compute"]) for row in rows] == [
        (record.end - record.start, record.macs, record.timing.compute) for record in records
    ]
    if units:
        (last,) = processor.query(
            """select max(value) as macs from counter join process_counter_track t
               on t.id = counter.track_id where t.name = 'MACs done'"""
        )
        assert last["macs"] == sum(record.macs or 0 for record in records)

"""The options: what they write and say, what is refused before a run, what is left after Ctrl-C."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

import covp
from covp.cli import run as run_command
from covp.report.timeline import recording, write_trace
from tests.cli.conftest import Call, call  # noqa: F401  (a fixture)
from tests.report.timeline.chrome_reader import read_trace


@pytest.mark.costly
def test_run_writes_both_files(call: Call, tmp_path: Path) -> None:  # noqa: F811
    trace, vcd = tmp_path / "a.json", tmp_path / "a.vcd"
    command = ("run", "sww", "-p", "riscv32", "-a", "gemm", "--json", "--check", "none")
    plain = call(*command).document
    outcome = call(*command, "--trace", trace, "--vcd", vcd)
    assert outcome.status == 0
    assert outcome.document["cycles"] == plain["cycles"]
    assert outcome.err.count("\n") == 2 and "ui.perfetto.dev" in outcome.err
    read = read_trace(trace)
    assert read.about["cycles"] == plain["cycles"] and read.about["cycles_are"] == "estimated"
    slices = sum(len(track) for track in read.tracks.values())
    assert f"{slices:,} slices" in outcome.err
    assert vcd.read_text().startswith("$version covp $end")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "a.vcd"]


def test_compare_puts_runs_side_by_side(call: Call, tmp_path: Path) -> None:  # noqa: F811
    command = ("compare", "sww", "-p", "riscv32", "-a", "gemm", "--json", "--check", "none")
    outcome = call(*command, "--trace", tmp_path / "a.json")
    (row,) = outcome.document["rows"]
    read = read_trace(tmp_path / "a.json")
    for name, key in (("sww alone: core", "cpu"), ("sww accelerated: core", "accelerated")):
        layers = read.tracks[name, "layers"]
        assert sum(one.cycles for one in layers) == row[key]["cycles"]
    assert [each["run"] for each in read.about["runs"]] == ["sww alone:", "sww accelerated:"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--trace", "missing/a.json"), "missing/a.json: cannot be written: No such file"),
        (("--vcd", "missing/a.vcd"), "missing/a.vcd: cannot be written: No such file"),
        (("--trace", "."), "not a regular file"),
        (("--device", "host", "--trace", "a.json"), "device host does not know the cycles"),
        (("--device", "host", "--vcd", "a.vcd"), "device host does not record accesses"),
    ],
)
def test_what_is_refused(
    call: Call,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    platform = "host" if "host" in options else "riscv32"
    outcome = call("run", "sww", "-p", platform, *options)
    assert said in outcome.refusal
    assert not list(tmp_path.iterdir())


def test_compare_shows_one_platform(call: Call, tmp_path: Path) -> None:  # noqa: F811
    platforms = ("-p", "riscv32", "-p", "cortex-m4")
    outcome = call("compare", "sww", *platforms, "--trace", tmp_path / "a.json")
    assert "--trace" in outcome.refusal


def test_ctrl_c_leaves_nothing(
    call: Call,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While it is written, or while the program runs."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    kept = tmp_path / "a.json"
    kept.write_text("as before")
    command = ("run", "sww", "-p", "riscv32", "--check", "none", "--trace", kept)
    with monkeypatch.context() as patch:
        patch.setattr("covp.report.timeline.chrome.trace_events", interrupted)
        assert call(*command).status == 130
    with monkeypatch.context() as patch:
        patch.setattr(run_command, "evaluate", interrupted)
        assert call(*command).status == 130
    assert list(tmp_path.iterdir()) == [kept] and kept.read_text() == "as before"


def test_a_full_disk_leaves_nothing(
    call: Call,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    replace = os.replace

    def full(source: Path, target: Path) -> None:
        if Path(target).name == "a.json":
            raise OSError(errno.ENOSPC, "No space left on device")
        replace(source, target)

    command = ("run", "sww", "-p", "riscv32", "--check", "none", "--trace", tmp_path / "a.json")
    monkeypatch.setattr("covp.report.timeline.files.os.replace", full)
    outcome = call(*command)
    assert outcome.status == 1
    assert outcome.err.splitlines()[-1].endswith(
        "a.json: cannot be written: No space left on device"
    )
    assert not list(tmp_path.iterdir())


def test_calls_of_kernels_are_recorded(tmp_path: Path) -> None:
    source = "int twice(int a) { return 2 * a; } int four(int a) { return twice(twice(a)); }"
    with covp.Session("riscv32") as session:
        module = session.load_c(f"__attribute__((noinline)) {source}")
        with recording(session) as recorded:
            assert module["four"](3).result() == 12
            with pytest.raises(covp.UsageError):
                _ = recorded.timeline
        with pytest.raises(covp.UsageError), recording(session), recording(session):
            pass
        write_trace(tmp_path / "a.json", recorded.timeline)
    slices = read_trace(tmp_path / "a.json").tracks["core", "functions"]
    (four,) = [one for one in slices if one.name == "four"]
    called = [one for one in slices if one.name == "twice"]
    assert called and all(four.start <= one.start < one.end <= four.end for one in called)

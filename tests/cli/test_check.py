"""`covp check`: what is worse than a baseline, over a budget or missing fails; one line else."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covp.errors import UsageError
from covp.evaluation.regression import check_results, read_results

from .conftest import Call

Save = Callable[[str, Any], Path]
RUN: dict[str, Any] = {
    "schema": "covp.run/1",
    "model": "kws",
    "platform": "riscv32",
    "device": "virtual",
    "toolchain": "zig 0.17.0",
    "accelerators": [],
    "instructions": 1000,
    "cycles": 2000,
    "seconds": 0.002,
    "matches_reference": True,
    "memory": {"flash_bytes": 3000, "ram_bytes": 4000, "arena_bytes": 2000},
    "layers": [
        {"index": 0, "name": "a", "op": "ADD", "target": "cpu", "macs": 25},
        {"index": 1, "name": "b", "op": "CONV_2D", "target": "qconv2d", "macs": 75},
    ],
}


def changed(**keys: Any) -> dict[str, Any]:
    """RUN with other values; those of "memory" by their own names."""
    run = copy.deepcopy(RUN)
    for key, value in keys.items():
        (run["memory"] if key in run["memory"] else run)[key] = value
    return run


@pytest.fixture
def save(tmp_path: Path) -> Save:
    def write(name: str, document: Any) -> Path:
        path = tmp_path / name
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        return path

    return write


@pytest.mark.parametrize(
    ("key", "at", "above"),
    [("instructions", 1020, 1021), ("cycles", 2040, 2041), ("flash_bytes", 3060, 3061),
     ("ram_bytes", 4080, 4081)],
)  # fmt: skip
def test_a_figure_may_be_worse_by_the_threshold(
    call: Call, save: Save, key: str, at: int, above: int
) -> None:
    baseline = save("baseline.json", RUN)
    for value, status in ((at, 0), (above, 1), (1, 0)):
        results = save("results.json", changed(**{key: value}))
        done = call("check", results, "--baseline", baseline, "--threshold", 2)
        assert (done.status, done.err) == (status, ""), value
        assert (": worse by 2." in done.out) == bool(status)
        assert ("| FAILED |" in done.out) == bool(status)


def test_less_offload_is_worse(call: Call, save: Save) -> None:
    baseline = save("baseline.json", RUN)
    layers = [layer | {"macs": 50} for layer in RUN["layers"]]
    results = save("results.json", changed(layers=layers))
    assert call("check", results, "--baseline", baseline, "--threshold", 26).status == 0
    done = call("check", results, "--baseline", baseline)
    assert done.status == 1 and "offload: worse by 25.0%" in done.out


@pytest.mark.parametrize(
    ("option", "most"),
    [("--max-instructions", 1000), ("--max-ms", 2), ("--max-flash", 3000), ("--max-ram", 4000)],
)
def test_budgets(call: Call, save: Save, option: str, most: int) -> None:
    results = save("results.json", RUN)
    assert call("check", results, option, most).status == 0
    done = call("check", results, option, most - 1)
    assert done.status == 1 and "is over the budget of" in done.out


def test_sizes_may_have_units(call: Call, save: Save) -> None:
    results = save("results.json", RUN)
    assert call("check", results, "--max-ram", "4K", "--max-flash", "1M").status == 0
    done = call("check", results, "--max-ram", "3k")
    assert done.status == 1 and "is over the budget of 3,072" in done.out
    assert (
        "not a size; write bytes or such as 64K"
        in call("check", results, "--max-ram", "1T").refusal
    )


def test_a_figure_that_is_not_known_keeps_no_budget(call: Call, save: Save) -> None:
    results = save("results.json", changed(instructions=None))
    assert "is not known" in call("check", results, "--max-instructions", 9999).out
    done = call("check", results, "--baseline", save("baseline.json", RUN))
    assert done.status == 1 and "the baseline has it, the results do not" in done.out


def test_what_is_lost_fails_and_what_is_new_does_not(call: Call, save: Save) -> None:
    other = changed(model="vww")
    one, both = save("one.json", RUN), save("both.json", [RUN, other])
    done = call("check", one, "--baseline", both)
    assert done.status == 1 and "**vww on riscv32**: the results do not have it" in done.out
    done = call("check", both, "--baseline", one)
    assert done.status == 0 and "| new |" in done.out


def test_wrong_outputs_and_another_compiler(call: Call, save: Save) -> None:
    baseline = save("baseline.json", RUN)
    done = call("check", save("a", changed(matches_reference=False)), "--baseline", baseline)
    assert done.status == 1 and "outputs differ" in done.out
    done = call("check", save("b", changed(toolchain="zig 0.18.0")), "--baseline", baseline)
    assert done.status == 0 and "is of zig 0.17.0, the results are of zig 0.18.0" in done.out


@pytest.mark.costly
@pytest.mark.process
def test_documents_of_the_commands_and_lists_of_them(call: Call, save: Save, small: Path) -> None:
    run = call("run", small, "-p", "riscv32", "--json").document
    compare = call("compare", small, "-p", "riscv32", "-a", "qconv2d", "--json").document
    survey = call("compare", small, "-p", "riscv32", "-p", "nrf52840", "--json").document
    results = save("all.json", [run, compare, survey])
    done = call("check", results, save("one.json", run), "--baseline", results, "--json")
    assert done.status == 0 and done.document["passed"]
    rows = [(row["platform"], row["accelerators"]) for row in done.document["rows"]]
    assert rows == [("riscv32", []), ("riscv32", ["qconv2d"]), ("nrf52840", [])]
    figures = done.document["rows"][0]["figures"]
    assert figures["instructions"] == dict.fromkeys(("baseline", "now"), run["instructions"])
    assert figures["ms"]["now"] == pytest.approx(run["seconds"] * 1e3)


BAD = [
    "", "{", "[]", "null", "3", '{"schema": "covp.tune/1"}', '{"schema": "covp.run/1"}', "[[]]",
    "[" * 100_000, json.dumps(changed(instructions=-1)), json.dumps(changed(instructions="many")),
    json.dumps(changed(seconds=1)).replace('"seconds": 1', '"seconds": NaN'), "\x00", '"\\ud800"',
    json.dumps([RUN, changed(instructions=7)]), '{"schema": "covp.survey/1", "rows": []}',
]  # fmt: skip


@pytest.mark.parametrize("text", BAD, ids=range(len(BAD)))
def test_a_file_that_holds_no_results_is_one_line(call: Call, save: Save, text: str) -> None:
    good, bad = save("good.json", RUN), save("bad.json", text)
    assert "bad.json" in call("check", bad, "--baseline", good).refusal
    if text not in ("[]", BAD[-1]):  # an empty baseline is one
        assert "bad.json" in call("check", good, "--baseline", bad).refusal


def test_a_wrong_call_is_one_line(call: Call, save: Save, tmp_path: Path) -> None:
    good = save("good.json", RUN)
    assert "nothing to check against" in call("check", good).refusal
    assert "cannot be read" in call("check", tmp_path / "none", "--max-ram", 1).refusal
    assert "cannot be read" in call("check", tmp_path, "--max-ram", 1).refusal
    for value in ("nan", "inf", "-1"):
        assert "at least 0" in call("check", good, "--baseline", good, "--threshold", value).refusal
        assert "at least 0" in call("check", good, "--max-ms", value).refusal
    assert call("check").status == 2


def test_names_cannot_leave_their_line(call: Call, save: Save) -> None:
    evil = save("evil.json", changed(model="a|b\n# c"))
    (line,) = (
        line for line in call("check", evil, "--max-ram", 9999).out.splitlines() if "a\\|" in line
    )
    assert line.startswith("| a\\|b?# c on riscv32 |")


@settings(max_examples=50)
@given(st.integers(0, 10**12), st.integers(0, 10**12), st.floats(0, 2))
def test_the_threshold_is_a_share_of_the_baseline(
    tmp_path_factory: pytest.TempPathFactory, before: int, now: int, threshold: float
) -> None:
    path = tmp_path_factory.mktemp("runs") / "run.json"
    runs = []
    for value in (now, before):
        path.write_text(json.dumps(changed(instructions=value)))
        runs += read_results(path)
    (verdict,) = check_results(runs[:1], runs[1:], threshold=threshold)
    if abs(now - before * (1 + threshold)) > 1e-6 * before and before:
        assert bool(verdict.problems) == (now > before * (1 + threshold))


def test_reading_refuses_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_results(tmp_path / "none.json")


def test_verdicts_as_junit(call: Call, tmp_path: Path) -> None:
    """One case a run; a failure has the problem as its message, whatever letters are in it."""
    good, bad, out = (tmp_path / name for name in ("good.json", "bad.json", "out.xml"))
    good.write_text(json.dumps([RUN]))
    bad.write_text(json.dumps([changed(instructions=RUN["instructions"] * 2)]))
    for results, status in ((good, 0), (bad, 1)):
        done = call("check", results, "--baseline", good, "--junit", out)
        assert done.status == status
        root = ElementTree.parse(out).getroot()
        assert (root.tag, root.get("tests"), root.get("failures")) == (
            "testsuite",
            "1",
            str(status),
        )
        (case,) = root.iter("testcase")
        failures = [str(failure.get("message")) for failure in case.iter("failure")]
        assert len(failures) == status
        assert all("instructions" in message for message in failures)
    link = tmp_path / "link.xml"
    link.symlink_to(out)
    out.write_text("")
    assert call("check", good, "--baseline", good, "--junit", link).status == 0
    assert link.is_symlink() and out.stat().st_size > 100, "what it points to is written"
    for wrong in (tmp_path / "no" / "out.xml", tmp_path, "/dev/full"):
        told = call("check", good, "--baseline", good, "--junit", wrong).refusal
        assert f"{wrong}: cannot be written" in told

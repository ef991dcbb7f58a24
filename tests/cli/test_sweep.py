"""`covp sweep`: the rows, going on, the files, the status, and what is refused."""

from __future__ import annotations

import csv
import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest

import covp
from covp.evaluation import build, run
from covp.exploration.sweep.spec import schema
from tests.docs.test_json import check, described
from tests.plain import plain

from .conftest import Call

pytest.importorskip("distributed", reason="covp[sweep] is not installed")
pytest.importorskip("sqlalchemy", reason="covp[sweep] is not installed")

JSON_PAGE = Path(__file__).parents[2] / "docs" / "json.md"
SWEEP = """
models: [small.tflite]
platforms: [riscv32, cortex-m4]
accelerators: [[], ["gemm:technology=gemmini-22nm"]]
vary: {gemm.size: [4, 16], platform.ram.size: [128K, 5K]}
constraints: [flash_bytes <= 7K]
search: {kind: grid, objectives: [cycles, area_um2]}
"""


@pytest.fixture
def file(tmp_path: Path, small: Path) -> Path:
    (tmp_path / "small.tflite").write_bytes(small.read_bytes())
    path = tmp_path / "sweep.yaml"
    path.write_text(SWEEP)
    return path


@pytest.mark.costly
def test_rows_are_those_of_single_runs_and_kept(call: Call, file: Path) -> None:
    folder, table, frame = (file.with_name(name) for name in ("out", "rows.csv", "rows.parquet"))
    done = call(
        "sweep", file, "-o", folder, "--jobs", "2", "--json", "--csv", table, "--parquet", frame
    )
    document, points = done.document, done.document["points"]
    assert done.status == 0 and done.err == ""
    if JSON_PAGE.is_file():  # it is not in the wheel
        assert check("covp.sweep/1", document) == set(described("covp.sweep/1"))
    designs = [(p["platform"], p["accelerators"], p["vary"]) for p in points]
    assert len(designs) == 12 and designs[0] == ("riscv32", [], {"platform.ram.size": "128K"})
    for point in points:
        fits = point["vary"]["platform.ram.size"] == "128K"
        assert (point["status"], point["reason"] is None) == (("ok", True) if fits else
                                                              ("failed", False))  # fmt: skip
        assert not point["on_front"] or point["feasible"]
    unit = "gemm:technology=gemmini-22nm,size=16"
    made = build(file.with_name("small.tflite"), "riscv32", [unit], allow_slower=True)
    single = plain(run(made, check="output").record())
    row = next(p for p in points if p["vary"].get("gemm.size") == 16 and p["status"] == "ok")
    for name in ("instructions", "cycles", "seconds", "energy_j", "matches_reference"):
        assert row[name] == single[name], name
    assert row["flash_bytes"] == single["memory"]["flash_bytes"]
    assert row["area_um2"] == single["accelerator_area"][0]["um2"]

    with table.open() as stream:
        lines = list(csv.DictReader(stream))
    assert [line["gemm.size"] for line in lines] == [
        str(v.get("gemm.size", "")) for *_, v in designs
    ]
    pandas = pytest.importorskip("pandas")
    read = pandas.read_parquet(frame)
    assert read["cycles"].tolist() == [p["cycles"] or pandas.NA for p in points]
    assert read["feasible"].tolist() == [p["feasible"] for p in points]


@pytest.mark.costly
def test_it_goes_on_and_takes_further_designs(call: Call, file: Path) -> None:
    folder = file.with_name("out")
    file.write_text(SWEEP.replace("[4, 16]", "[4]").replace("[128K, 5K]", "[128K]"))
    first = call("sweep", file, "-o", folder, "--jobs", "1", "--json").document["points"]
    finished = times(folder)
    assert len(finished) == len(first) == 4
    assert call("sweep", file, "-o", folder).status == 0
    assert times(folder) == finished, "nothing was evaluated again"
    file.write_text(SWEEP.replace("[128K, 5K]", "[128K]"))
    more = call("sweep", file, "-o", folder, "--jobs", "1", "--json").document["points"]
    assert len(more) == 6 and {key: times(folder)[key] for key in finished} == finished
    status = call("sweep", "--status", "-o", folder, "--json").document
    assert (status["done"], status["failed"], status["left"], status["running"]) == (6, 0, 0, [])
    again = covp.sweep(folder / "sweep.yaml", folder)
    assert [row.key for row in again.rows] == [point["key"] for point in more]


def times(folder: Path) -> dict[str, float]:
    """When each row was found."""
    with sqlite3.connect(folder / "sweep.sqlite") as connection:
        return dict(connection.execute("select key, finished from rows").fetchall())


@pytest.mark.costly
def test_python_has_rows_tables_and_the_front(file: Path, tmp_path: Path) -> None:
    content = {
        "models": [str(file.with_name("small.tflite"))],
        "platforms": ["riscv32"],
        "accelerators": [["gemm:technology=gemmini-22nm"]],
        "vary": {"gemm.size": [2, 4, 32], "gemm.startup_cycles": [1, 500]},
        "search": {"objectives": ["cycles", "area_um2"]},
    }
    result = covp.sweep(content, tmp_path / "out", jobs=1)
    figures = np.array([(row.cycles, row.area_um2) for row in result.rows], float)
    beaten = [
        any((other <= one).all() and (other < one).any() for other in figures) for one in figures
    ]
    kept = [row for row, lost in zip(result.rows, beaten, strict=True) if not lost]
    assert result.front == kept and 1 < len(kept) < 6
    assert result._repr_html_().count("<tr>") == 1 + 6
    pandas = pytest.importorskip("pandas")
    frame = result.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame.groupby("gemm.size")["cycles"].min().to_dict() == {
        size: min(row.cycles or 0 for row in result.rows if row.vary["gemm.size"] == size)
        for size in (2, 4, 32)
    }


@pytest.mark.costly
def test_a_search_asks_for_some_designs_and_goes_on(call: Call, file: Path) -> None:
    pytest.importorskip("optuna", reason="covp[sweep] is not installed")
    folder = file.with_name("out")
    search = "search: {kind: optuna, points: %d, objectives: [cycles, area_um2], seed: 3}"
    lines = SWEEP.replace("[128K, 5K]", "[128K, 256K]").splitlines()[:-1]
    keys = []
    for count in (9, 9, 12):
        file.write_text("\n".join([*lines, search % count]))
        points = call("sweep", file, "-o", folder, "--jobs", "1", "--json").document["points"]
        keys.append([point["key"] for point in points])
    assert len(set(keys[0])) == 9 and keys[1] == keys[0]
    assert len(set(keys[2])) == 12, "the space has as many"


@pytest.mark.costly
def test_the_table_says_what_failed(call: Call, file: Path) -> None:
    file.write_text(SWEEP.replace("[128K, 5K]", "[5K]").replace("riscv32, ", ""))
    done = call("sweep", file, "-o", file.with_name("out"), "--jobs", "1")
    assert done.status == 1, "no design has figures"
    assert "0 designs with figures, 3 failed" in done.out and "failed (3 designs): " in done.out


def test_the_schema_is_printed(call: Call) -> None:
    assert call("sweep", "--schema").document == schema()


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        (("riscv32", "riscv33"), (), ("sweep.yaml: platforms[0]: ", "did you mean riscv32")),
        (("gemm.size", "gemm.siez"), (), ("sweep.yaml: vary.gemm.siez: ", "size")),
        ((), ("-o", "{}/sweep.yaml/rows"), ("sweep.yaml/rows: ",)),
        ((), ("-o", "/proc/rows"), ("/proc/rows: cannot be written: ",)),
        ((), ("-o", "{}/out", "--csv", "{}/no/rows.csv"), ("rows.csv: cannot be written",)),
        ((), ("-o", "{}/out", "--scheduler", "tcp://127.0.0.1:9"), ("127.0.0.1:9", "Dask")),
        ((), ("-o", "{}/out", "--store", "postgresql://127.0.0.1:9/x"), ("127.0.0.1",)),
        ((), ("-o", "{}/out", "--status"), ("{}/out",)),
        ((), (), ("-o DIR",)),
    ],
)
def test_refusals_are_one_line(call: Call, file: Path, change, options, words) -> None:
    file.write_text(SWEEP.replace(*change) if change else SWEEP)
    folder = str(file.parent)
    options = options or (() if not change else ("-o", "{}/out"))
    line = call("sweep", file, *(text.replace("{}", folder) for text in options)).refusal
    for word in words:
        assert word.replace("{}", folder) in line
    if change:
        assert not file.with_name("out").exists(), "no work has begun"


def test_the_error_of_a_wrong_file_names_it_in_json(call: Call, file: Path) -> None:
    file.write_text("modles: [kws]")
    done = call("sweep", file, "-o", file.with_name("out"), "--json")
    error = json.loads(done.out)["error"]
    assert done.status == 2 and error["where"] == str(file) and "modles" in error["message"]

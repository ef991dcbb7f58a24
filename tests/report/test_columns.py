"""The CSV: the columns of other tools by their names, and sums that are the run's."""

import csv
from pathlib import Path
from typing import Any

import msgspec
import pytest

from covp.base.table_text import csv_cell
from covp.evaluation.documents import Run
from covp.report.columns import CAUSES, write_csv

VELA = (
    "TFLite_operator,NNG Operator,SRAM Usage,Peak%,Op Cycles,Network%,NPU,SRAM AC,DRAM AC,"
    "OnFlash AC,OffFlash AC,MAC Count,Network%,Util%,Name"
)
CUBE = "c_id,m_id,type,oshape,param/size,macc,dur (ms),%,cumul,CPU cycles,cycles/MACC,name"
SCALE_SIM = (
    "LayerID,Total Cycles (incl. prefetch),Total Cycles,Stall Cycles,Overall Util %,"
    "Mapping Efficiency %,Compute Util %,Avg SRAM BW,Avg DRAM BW"
)


def read(path: Path) -> tuple[list[str], list[list[str]]]:
    with path.open(newline="") as file:
        head, *rows = csv.reader(file)
    return head, rows


@pytest.mark.costly
def test_columns_and_sums(tmp_path: Path, kws: Run, document: dict[str, Any]) -> None:
    write_csv(tmp_path / "r.csv", [("run", kws)])
    head, rows = read(tmp_path / "r.csv")
    assert ",".join(head[:15]) == VELA
    assert {*CUBE.split(","), *SCALE_SIM.split(",")} <= {*head}
    assert len(rows) == len(document["layers"]) + 1 and all(len(row) == len(head) for row in rows)

    def column(title: str) -> list[float]:
        return [float(row[head.index(title)] or 0) for row in rows]

    assert sum(column("Op Cycles")) == document["cycles"]
    assert sum(column("MAC Count")) == sum(layer["macs"] for layer in document["layers"])
    assert sum(column("instructions")) == document["instructions"]
    causes = [column(f"{cause} (cause)") for cause in CAUSES]
    assert len(causes) >= 7
    assert [sum(row) for row in zip(*causes, strict=True)] == column("Op Cycles")
    assert sum(column("energy (pJ)")) == pytest.approx(1e12 * document["energy_j"], rel=1e-5)
    assert column("cumul")[-1] == pytest.approx(100)
    assert sum(column("dur (ms)")) == pytest.approx(1e3 * document["seconds"], rel=1e-5)
    assert max(column("Peak%")) == 100
    read_bytes = sum(one["read"] for one in document["bytes"].values())
    assert sum(column("flash read bytes")) + sum(column("ram read bytes")) == read_bytes
    for i, layer in enumerate(document["layers"]):
        row = dict(zip(head[15:], rows[i][15:], strict=True))
        assert (row["m_id"], row["name"]) == (str(layer["index"]), layer["name"])
        assert row["error"].replace("\N{NO-BREAK SPACE}", " ") == "± 10.3 %"
        offload = layer["offload"]
        if offload:
            access = column("SRAM AC")[i] + column("OnFlash AC")[i]
            assert access == pytest.approx(offload["memory"], rel=1e-5)
            assert column("NPU")[i] == offload["startup"] + max(
                offload["compute"], offload["memory"]
            )
            assert 0 < column("Overall Util %")[i] <= column("Compute Util %")[i] <= 100
        else:
            assert row["LayerID"] == "" and column("NPU")[i] == 0


def test_several_runs_are_one_table(tmp_path: Path, kws: Run) -> None:
    write_csv(tmp_path / "r.csv", [("a", kws), ("b", kws)])
    head, rows = read(tmp_path / "r.csv")
    names = [row[head.index("run")] for row in rows]
    assert names == ["a"] * (len(rows) // 2) + ["b"] * (len(rows) // 2)


@pytest.mark.parametrize(
    "name", ["=HYPERLINK(1)", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "\n=1"]
)
def test_no_name_is_a_formula(name: str, tmp_path: Path, kws: Run) -> None:
    """A spreadsheet executes what begins so, and names come from a model's file."""
    first, *others = kws.layers
    named = msgspec.structs.replace(first, name=name, tensor=name)
    write_csv(tmp_path / "r.csv", [(name, msgspec.structs.replace(kws, layers=[named, *others]))])
    rows = csv.reader((tmp_path / "r.csv").open(newline=""))
    cells = [text for row in rows for text in row if name in text]
    assert cells and all(text == f"'{name}" for text in cells)


def test_numbers_stay_numbers() -> None:
    assert [csv_cell(value) for value in (-1, -1.5, "-1.5e-9", "+7", "a=b", "")] == [
        *(-1, -1.5, "-1.5e-9", "+7", "a=b", ""),
    ]

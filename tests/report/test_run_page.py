"""The page of runs: its bars are the run's figures, what is missing is said, runs are compared."""

import html
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from covp.cli.main import main
from covp.evaluation.documents import Run
from covp.exploration.sweep.api import sweep
from covp.report.figures.costs import causes_figure, energy_figure, traffic_figure
from covp.report.figures.layers import layers_figure
from covp.report.figures.roofline import roofline_figure
from covp.report.page import Figure, Table
from covp.report.run_labels import read_runs
from covp.report.run_page import run_sections, write_run_page
from tests.report.browser import needs_browser, open_page
from tests.report.conftest import Written


def report(*arguments: object) -> int:
    with pytest.raises(SystemExit) as done:
        main(["report", *map(str, arguments)])
    assert isinstance(done.value.code, int)
    return done.value.code


def values(figure: Figure, part: dict[str, Any]) -> list[dict[str, Any]]:
    """The data of a chart, or of one of its layers."""
    data = part.get("data") or figure.spec["data"]
    found: list[dict[str, Any]] = data.get("values") or figure.spec["datasets"][data["name"]]
    return found


def sums(figure: Figure | None, key: str, value: str) -> Counter[str]:
    """The lengths of a figure's bars, added up by a field of its data."""
    assert figure is not None
    layers = figure.spec.get("layer", [figure.spec])
    bars = next(one for one in layers if one["mark"].get("type") == "bar")
    total: Counter[str] = Counter()
    for row in values(figure, bars):
        total[row[key]] += row[value]
    return total


def test_bars_add_up_to_the_run(kws: Run, document: dict[str, Any]) -> None:
    by_layer = sums(layers_figure(kws), "row", "cycles")
    for layer in document["layers"]:
        assert by_layer[f"{layer['index']} {layer['op']}"] == layer["cycles"]
    assert by_layer.total() == document["cycles"]
    by_part = sums(layers_figure(kws), "part", "cycles")
    offloads = [layer["offload"] for layer in document["layers"] if layer["offload"]]
    assert by_part["set-up"] == sum(one["setup"] for one in offloads)
    assert by_part["compute"] == sum(one["compute"] for one in offloads)
    assert by_part["memory"] > 0  # two bytes a cycle are too few for some layers
    by_cause = sums(causes_figure(kws), "cause", "cycles")
    assert by_cause == Counter({c: n for c, n in document["cycles_by_cause"].items() if n})
    assert by_cause.total() == document["cycles"]
    moved = sums(traffic_figure(kws), "what", "bytes")
    for memory, one in document["bytes"].items():
        assert (moved[f"{memory}, read"], moved[f"{memory}, written"]) == (
            one["read"],
            one["write"],
        )
    energy = sums(energy_figure(kws), "row", "uj")
    assert energy.total() * 1e-6 == pytest.approx(document["energy_j"], rel=1e-12)


def test_no_layer_is_above_its_roof(kws: Run, document: dict[str, Any]) -> None:
    figure = roofline_figure(kws)
    assert figure is not None
    lines, reached, points, _ = (values(figure, layer) for layer in figure.spec["layer"])
    assert reached == [point for point in points if point["most"] is not None]
    assert len(points) == sum(layer["macs"] > 0 for layer in document["layers"])
    assert {line["on"] for line in lines} == {"cpu", "gemm"}
    for point in points:
        layer = next(one for one in document["layers"] if str(one["index"]) == point["number"])
        nbytes = sum(one["read"] + one["write"] for one in layer["bytes"].values())
        assert point["intensity"] == layer["macs"] / nbytes
        most, port = (64, 2) if point["on"] == "gemm" else (2, 4)  # 8 x 8 multipliers; SMLAD
        assert point["speed"] <= min(most, port * point["intensity"])
        least = layer["least"]
        assert point["most"] == (layer["macs"] / least["cycles"] if least else None)
        assert (least is None) == (point["on"] == "gemm")


@pytest.mark.costly
@needs_browser
def test_the_page_shows_the_run(tmp_path: Path, document: dict[str, Any], written: Written) -> None:
    page, table, figures = (tmp_path / name for name in ("r.html", "r.csv", "figures"))
    arguments = ("-o", page, "--csv", table, "--figures", figures, "--format", "svg")
    assert report(written(document), *arguments) == 0
    opened = open_page(page, tmp_path, width=400)
    assert opened.console == [] and opened.requests == []
    assert page.stat().st_size < 1_500_000 and table.exists()
    drawn = {path.stem for path in figures.iterdir()}
    assert drawn == {"layers", "causes", "roofline", "memory", "arena", "traffic", "energy"}
    for layer in document["layers"]:
        assert f"{layer['index']} {layer['op']}</td>" in opened.dom
        assert f"{layer['cycles']:,}</td>" in opened.dom
        assert html.escape(layer["tensor"]) in opened.dom
    # Vega writes the values of each bar beside it for screen readers
    parts = re.findall(r'aria-label="core cycles: (\d+); row: [^";]*; part:', opened.dom)
    assert sum(map(int, parts)) == document["cycles"]
    assert opened.dom.count("±&nbsp;10.3&nbsp;%</td>") > len(document["layers"])


@pytest.mark.costly
@needs_browser
def test_names_from_files_are_text(tmp_path: Path, document: dict[str, Any]) -> None:
    evil = "<script>document.title='owned'</script>"
    text = json.dumps(document).replace('"kws"', json.dumps(evil)).replace("CONV_2D", "<img src=x>")
    (tmp_path / "run.json").write_text(text)
    page = tmp_path / "r.html"
    assert report(tmp_path / "run.json", "-o", page) == 0
    opened = open_page(page, tmp_path, "document.body.id = `${document.images.length} images`")
    assert opened.console == [] and opened.requests == []
    assert '<body id="0 images">' in opened.dom and "<title>&lt;script&gt;" in opened.dom


@pytest.mark.costly
@needs_browser
def test_runs_are_compared(
    tmp_path: Path, document: dict[str, Any], plain: dict[str, Any], written: Written
) -> None:
    page = tmp_path / "r.html"
    arguments = ("--label", "1f0c9", "--label", "8d2b7", "-o", page)
    assert report(written(plain), written(document), *arguments) == 0
    opened = open_page(page, tmp_path)
    assert opened.console == [] and opened.requests == []
    faster = plain["cycles"] / document["cycles"]
    assert f"{faster:.2f}</td>" in opened.dom and f"{faster:.2f}x" in opened.dom
    assert 'href="#8d2b7">8d2b7</a>' in opened.dom and "unchecked</td>" in opened.dom
    for before, after in zip(plain["layers"], document["layers"], strict=True):
        assert f"{before['cycles'] / after['cycles']:.2f}</td>" in opened.dom


@pytest.mark.costly
def test_what_is_missing_is_said_with_the_way_to_get_it(
    tmp_path: Path, plain: dict[str, Any], written: Written
) -> None:
    def text(content: dict[str, Any]) -> str:
        path = tmp_path / "r.html"
        write_run_page(path, [("run", read_runs(written(content))[0])])
        return path.read_text().split("<main>")[1].split("</main>")[0]

    assert "run with --traffic" in text(plain) and "technology=horowitz-45nm" in text(plain)
    costs = ("instructions", "cycles", "cycles_by_cause")
    nothing = dict.fromkeys(costs)
    host = plain | nothing | {"device": "host", "seconds": 0.001, "cycles_source": None}
    host |= {"layers": [], "between": nothing}
    assert "Device host gives no cost by layer" in text(host) and "use --device virtual" in text(
        host
    )
    host["layers"] = [layer | nothing for layer in plain["layers"]]
    assert "gave no cycles by layer" in text(host)
    new = ("covp_version", "core", "units", "memory_map", "arena")
    old = {key: value for key, value in plain.items() if key not in new}
    of_layers = ("tensor", "shape", "dtype", "parameter_bytes", "code_bytes", "live_bytes")
    old["layers"] = [
        {key: value for key, value in layer.items() if key not in of_layers}
        for layer in plain["layers"]
    ]
    assert "this document is of an older covp; run it again" in text(old)


def test_accuracy_is_shown(plain: dict[str, Any], written: Written) -> None:
    data = {"samples": 1000, "on": "reference", "top1": 0.912, "saturated": 0.0}
    data["float"] = {"what": "f.tflite", "top1": 0.9205, "other_classes": 17, "other_bytes": None}
    run = read_runs(written(plain | {"data": data}))[0]
    section = run_sections([("run", run)])[1]
    (table,) = section.parts
    assert section.title == "Accuracy" and isinstance(table, Table)
    assert [row[1] for row in table.rows] == pytest.approx([91.2, 92.05])
    assert "this model, by the bit-exact reference</td>" in table.html()
    assert ">17</td>" in table.html() and "1,000 samples." in table.html()


def test_every_estimate_has_its_error(plain: dict[str, Any], written: Written) -> None:
    run = read_runs(written(plain))[0]
    assert plain["cycles_source"]["error"] is None
    figure, _, table, _ = run_sections([("run", run)])[1].parts
    assert isinstance(figure, Figure) and isinstance(table, Table)
    column = [c.title for c in table.columns].index("error")
    assert {row[column] for row in (*table.rows, table.total)} == {"unchecked"}
    for table in [part for s in run_sections([("run", run)]) for part in s.parts]:
        if isinstance(table, Table) and any(c.title == "cycles" for c in table.columns):
            assert "error" in [c.title for c in table.columns]
    assert "unchecked" in figure.caption


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"schema": "covp.tune/1"}, "not the JSON of covp run or covp compare"),
        ({"schema": "covp.run/1", "model": "kws"}, "missing required field `platform`"),
        ([], "no model ran there"),
    ],
)
def test_other_files_are_one_line(
    content: Any, message: str, written: Written, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(content)
    assert report(path, "-o", "r.html") == 2
    error = capsys.readouterr().err
    assert error.startswith(f"covp: {path}: ") and message in error and error.count("\n") == 1


@pytest.mark.costly
def test_calls_that_make_no_sense_are_one_line(
    tmp_path: Path, plain: dict[str, Any], written: Written, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(plain)
    for arguments, message in (
        (("-o", tmp_path / "no" / "r.html"), "cannot be written: No such file"),
        (("--csv", tmp_path / "no" / "r.csv"), "cannot be written: No such file"),
        (("--figures", path, "--label", "a"), "r"),
        (("-o", tmp_path / "r.html", "--label", "a", "--label", "b"), "2 names for 1 runs"),
    ):
        assert report(path, *arguments) == 2
        assert message in capsys.readouterr().err
    assert report(tmp_path / "none.json", "-o", tmp_path / "r.html") == 2
    assert "none.json: cannot be read: No such file" in capsys.readouterr().err


def test_the_page_is_beside_the_first_run(plain: dict[str, Any], written: Written) -> None:
    path = Path(written(plain))
    assert report(path) == 0
    assert path.with_suffix(".html").read_text(encoding="utf-8").startswith("<!")


@pytest.mark.costly
@needs_browser
def test_the_folder_of_a_sweep_is_an_input(
    tmp_path: Path, plain: dict[str, Any], written: Written, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("sqlalchemy")
    folder, page = tmp_path / "swept", tmp_path / "s.html"
    folder.mkdir()
    assert report(folder, "-o", page) == 2
    assert (
        "swept: there is no sweep; `covp sweep FILE.yaml -o` makes one" in capsys.readouterr().err
    )
    given = {"models": ["toycar"], "platforms": ["riscv32"], "accelerators": [[], ["gemm"]]}
    rows = sweep(given | {"search": {"kind": "grid", "objectives": ["cycles"]}}, folder).rows
    assert report(folder, "--label", "nightly", "-o", page) == 0
    opened = open_page(page, tmp_path)
    assert opened.console == [] and opened.requests == []
    assert "<title>Sweep nightly</title>" in opened.dom
    assert all(f"{row.flash_bytes:,}" in opened.dom for row in rows)
    assert report(folder, written(plain), "-o", page) == 2
    assert "files of runs or folders of sweeps, not both" in capsys.readouterr().err

"""covp calibrate: what it writes, and what it refuses before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from covp.chip.platform_file import platforms_dir
from covp.device.timing.model import TimingFile, load_file, load_timing
from covp.evaluation.calibration.calibrate import Calibration, CalibrationRow
from tests.device.rtl.conftest import need_rtl
from tests.docs.test_json import check, described


# a minute; tests/evaluation/calibration has the law, tests/docs/test_json.py the command
@pytest.mark.slow
def test_a_core_from_a_generic_start(call, tmp_path):
    need_rtl("cv32e40p")
    path = tmp_path / "mine.yaml"
    done = call(
        "calibrate", "cv32e40p", "--device", "rtl", "--programs", 6, "--output", path, "--json"
    )
    assert done.status == 0 and done.err == ""
    document = done.document
    assert check("covp.calibrate/1", document) == set(described("covp.calibrate/1"))
    assert document["error"]["worst"] <= 0.01
    assert len(document["left_out"]) == len(document["fitted"]) == 6
    model, shipped = load_timing(str(path)), load_file("cv32e40p")
    assert model.name == "mine"
    assert model.errors["zero wait states"] >= document["error"]["worst"]
    assert model.errors.keys() == {"zero wait states", *document["by_memory"]}
    assert max(document["by_memory"].values()) <= 0.01
    assert "RTL of cv32e40p with zero wait states" in model.source
    assert load_file(str(path)).taken == shipped.taken


def test_files_are_not_overwritten(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("ibex.yaml").write_text("mine")
    refusal = call("calibrate", "ibex", "--device", "rtl").refusal
    assert (
        refusal == "covp: ibex.yaml exists already; --force overwrites it, --output names another"
    )
    assert Path("ibex.yaml").read_text() == "mine"


def test_a_platform_file_is_not_overwritten(call, tmp_path):
    path = tmp_path / "ibex.yaml"
    path.write_text((platforms_dir() / "ibex.yaml").read_text())
    refusal = call("calibrate", path, "--device", "rtl", "--output", path, "--force").refusal
    assert "is the platform file itself" in refusal
    assert yaml.safe_load(path.read_text())["core"] == "ibex"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["ibex", "--device", "virtual"], "estimates cycles, so there is nothing to fit"),
        (["riscv32", "--device", "rtl"], "there is no RTL of core rv32imc"),
        (["ibex", "--device", "rtl", "--start", "m4"], "its instructions are thumb"),
        (["ibex", "--device", "rtl", "--start", "unit"], "its instructions are any"),
        (["ibex", "--device", "rtl", "--start", "rv23"], "did you mean rv32"),
        (["cortex-m4", "--device", "openocd:127.0.0.1:1"], "Connection refused"),
        (
            ["cortex-m0plus", "--device", "virtual"],
            "this device has no cycle counter: cortex-m0plus, so",
        ),
        (["ibex", "--device", "rtl", "--output", "none/mine.yaml"], "there is no folder none"),
        (["ibex", "--device", "rtl", "--output", "mine.txt"], "a timing model is a .yaml file"),
    ],
)
def test_what_is_refused(call, tmp_path, monkeypatch, arguments, text):
    monkeypatch.chdir(tmp_path)
    if "rtl" in arguments and arguments[0] == "ibex" and "--start" in arguments:
        need_rtl("ibex")
    assert text in call("calibrate", *arguments).refusal
    assert not list(tmp_path.iterdir())


def found(*arguments: object) -> Calibration:
    rows = (CalibrationRow("alu", False, 4.0, 4.5),)
    model = TimingFile(source="a test", error=0.125, instructions="rv32", taken={"branch": 2})
    return Calibration(model, "rv32", (), (), rows, rows, rows)


def test_what_is_printed(call, tmp_path, monkeypatch):
    monkeypatch.setattr("covp.cli.calibrate.fitted", found)
    path = tmp_path / "mine.yaml"
    for force in ([], ["--force"]):
        done = call("calibrate", "riscv32", "--device", "virtual", "--output", path, *force)
        assert (done.status, done.err) == (0, "")
        assert done.out.endswith(
            f"1 programs left out: mean error 12.50%, worst 12.50% (alu)\nwrote {path}\n"
        )
    assert load_file(str(path)) == found().model


def test_a_full_disk_leaves_nothing(call, tmp_path, monkeypatch):
    def full(source: object, path: Path) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("covp.cli.calibrate.fitted", found)
    monkeypatch.setattr("covp.base.cache.os.replace", full)
    path = tmp_path / "mine.yaml"
    refusal = call("calibrate", "riscv32", "--device", "virtual", "--output", path).refusal
    assert refusal.endswith("No space left on device")
    assert not list(tmp_path.iterdir())


def test_ctrl_c_leaves_nothing(call, tmp_path, monkeypatch):
    def interrupted(*arguments: object) -> Calibration:
        raise KeyboardInterrupt

    monkeypatch.setattr("covp.cli.calibrate.fitted", interrupted)
    path = tmp_path / "mine.yaml"
    done = call("calibrate", "riscv32", "--device", "virtual", "--output", path)
    assert (done.status, done.err) == (130, "covp: interrupted\n")
    assert not list(tmp_path.iterdir())

"""MLPerf Tiny's own runner, unmodified, on virtual boards; and what covp adds to its arguments.

COVP_MLPERF_RUNNER is benchmark/runner of a copy of mlcommons/tiny, COVP_MLPERF_PYTHON an
interpreter that has its requirements (by default the one of the tests).
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from covp.firmware.mlperf import runner_ports
from covp.firmware.mlperf.official import with_files
from covp.firmware.mlperf.runner_ports import main, shown

ROOT = Path(__file__).parents[3]
RUNNER = os.environ.get("COVP_MLPERF_RUNNER")


def benchmark() -> ModuleType:
    """The script that runs it and compares all results."""
    spec = importlib.util.spec_from_file_location(
        "official_runner", ROOT / "benchmarks" / "official_runner.py"
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.skipif(RUNNER is None, reason="COVP_MLPERF_RUNNER names no copy of the runner")
@pytest.mark.parametrize("accelerators", [[], ["qconv2d"]])
@pytest.mark.parametrize("mode", ["p", "a"])
@pytest.mark.parametrize("platform", ["riscv32", "cortex-m4"])
@pytest.mark.parametrize("model", ["resnet", "resnet_large", "kws", "vww", "toycar"])
def test_it_passes(model: str, platform: str, mode: str, accelerators: list[str]) -> None:
    """The runner's verdict, and each result vector is the reference's."""
    if model == "toycar" and accelerators:
        accelerators = ["gemm"]  # it has no convolutions
    python = os.environ.get("COVP_MLPERF_PYTHON")
    row = benchmark().measure(model, platform, accelerators, mode, Path(str(RUNNER)), python)
    assert row.passed and row.vectors >= 5
    assert row.largest_difference == 0


def test_the_documents_table_is_what_was_measured() -> None:
    results = json.loads((ROOT / "benchmarks" / "results" / "official_runner.json").read_text())
    page = (ROOT / "docs" / "board.md").read_text(encoding="utf-8")
    assert benchmark().table(results) in page
    assert len(results) == 40


def test_the_runners_files_are_added_where_none_are_named() -> None:
    folder = Path("/runner")
    assert with_files(folder, "kws01", ["--mode", "p"]) == [
        *("--mode", "p"),
        *("--device_list", "/runner/devices_kws_ic_vww.yaml"),
        *("--test_script", "/runner/tests_performance.yaml"),
    ]
    assert with_files(folder, "ad01", ["-m=e", "-t", "mine.yaml"]) == [
        *("-m=e", "-t", "mine.yaml", "--device_list", "/runner/devices_ad.yaml"),
    ]
    own = ["--device_list=d.yaml"]
    assert with_files(folder, "ic01", own)[1:] == ["--test_script", "/runner/tests_accuracy.yaml"]


def test_a_script_sees_the_ports_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a pyserial of the test's, as covp does not need the real one."""
    package = tmp_path / "serial" / "tools"
    package.mkdir(parents=True)
    for folder in (package.parent, package):
        (folder / "__init__.py").write_text("")
    (package / "list_ports.py").write_text("def comports(include_links=False):\n    return [1]\n")
    script = tmp_path / "main.py"
    script.write_text(
        "import sys\n"
        "from serial.tools import list_ports\n"
        "ports = [(p.device, hex(p.vid), hex(p.pid)) for p in list_ports.comports(True)]\n"
        "open(sys.argv[1], 'w').write(f'{ports} {sys.argv[2:]} {__name__}')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "argv", sys.argv)
    for name in [name for name in sys.modules if name.split(".")[0] in ("serial", "usb")]:
        monkeypatch.delitem(sys.modules, name)
    said = tmp_path / "said"
    main(["/dev/pts/7:0483:374b", str(script), str(said), "--mode", "p"])
    assert said.read_text() == "[('/dev/pts/7', '0x483', '0x374b')] ['--mode', 'p'] __main__"
    assert shown("/dev/a:b:1:2").device == "/dev/a:b"


def test_a_runner_that_fails_ends_with_its_threads(tmp_path: Path) -> None:
    (tmp_path / "serial" / "tools").mkdir(parents=True)
    for name in ("serial/__init__.py", "serial/tools/__init__.py", "serial/tools/list_ports.py"):
        (tmp_path / name).touch()
    script = tmp_path / "main.py"
    script.write_text(
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(3600,)).start()\n"
        "raise AttributeError('the runner\\'s own')\n"
    )
    done = subprocess.run(
        [sys.executable, runner_ports.__file__, "/dev/null:0483:374b", str(script)],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1 and "AttributeError: the runner's own" in done.stderr

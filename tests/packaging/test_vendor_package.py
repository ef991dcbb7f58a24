"""examples/vendor_package, installed: its board, core, unit, operator and layout are known."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "vendor_package"
COVP = [sys.executable, "-m", "covp"]

pytestmark = pytest.mark.skipif(not EXAMPLE.is_dir(), reason="not in a checkout")


def install(source: Path, target: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    command = [*pip, "--no-build-isolation", "--target", str(target), str(source)]
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the installed package."""
    folder = tmp_path_factory.mktemp("vendor")
    source = shutil.copytree(EXAMPLE, folder / "source")
    install(source, folder / "site")
    return folder / "site"


def covp(
    *arguments: object, site: Path | None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    paths = [*([str(site)] if site else []), os.environ.get("PYTHONPATH", "")]
    root = str(EXAMPLE.parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*filter(None, paths), root])}
    words = [*COVP, *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, env=environment, cwd=cwd)


def document(*arguments: object, site: Path) -> Any:
    done = covp(*arguments, "--json", site=site)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.costly
def test_doctor_says_what_came_from_where(package: Path) -> None:
    found = {one["tool"]: one for one in document("doctor", site=package)}
    for tool, value in (
        ("platform vendor-board", "covp_vendor.platforms"),
        ("core vendor-ibex", "covp_vendor.cores"),
        ("accelerator vendor_mac", "covp_vendor.unit:VendorMac"),
        ("operators vendor_flatten", "covp_vendor.operators:VENDOR_FLATTEN"),
        ("layout vendor-sdk", "covp_vendor.layouts:vendor_sdk"),
    ):
        assert found[tool]["version"] == "covp-vendor 1.0"
        assert found[tool]["enables"] == f"from {value}"


@pytest.mark.costly
def test_a_run_takes_board_core_and_accelerator_by_name(package: Path, tmp_path: Path) -> None:
    run = document("run", "toycar", "-p", "vendor-board", "-a", "vendor_mac", site=package)
    assert run["platform"] == "vendor-board" and run["core"]["name"] == "vendor-ibex"
    assert run["matches_reference"] and run["mac_coverage"] == 1
    assert run["cycles_source"]["assumes"].startswith("wait states of fetch/data: flash 1/1")
    for command, name in (("platforms", "vendor-board"), ("cores", "vendor-ibex")):
        assert name in [one["name"] for one in document(command, site=package)]
    file = tmp_path / "run.json"
    file.write_text(json.dumps(run))
    assert covp("reproduce", file, site=package).returncode == 0


@pytest.mark.costly
def test_the_layout_and_the_operator(package: Path, tmp_path: Path) -> None:
    folder = tmp_path / "sdk"
    where = ("-p", "vendor-board", "--layout", "vendor-sdk", "-o", folder)
    done = covp("export", "toycar", *where, site=package)
    assert done.returncode == 0, done.stderr
    listed = (folder / "sources.txt").read_text().split()
    assert listed and all((folder / name).is_file() for name in listed)
    text = (
        "from covp.graph.user_operators import find_user_operator as f; print(f('VendorFlatten'))"
    )
    found = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": f"{package}{os.pathsep}{EXAMPLE.parents[1]}"},
    )  # fmt: skip
    assert "UserOperator" in found.stdout, found.stderr


@pytest.mark.costly
def test_without_it_nothing_is_left_and_two_of_a_name_clash(package: Path, tmp_path: Path) -> None:
    gone = covp("run", "toycar", "-p", "vendor-board", site=None)
    assert gone.returncode == 2 and "unknown platform 'vendor-board'" in gone.stderr
    other = tmp_path / "other-2.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 2.0\n")
    entry = "[covp.platforms]\nvendor-board = other.platforms\nnone = nowhere.platforms\n"
    (other / "entry_points.txt").write_text(entry + "riscv32 = other.platforms\n")
    both = Path(f"{package}{os.pathsep}{tmp_path}")
    clash = covp("run", "toycar", "-p", "vendor-board", site=both)
    assert clash.returncode != 0 and clash.stderr.count("\n") == 1
    assert "covp-vendor 1.0" in clash.stderr and "other 2.0" in clash.stderr
    broken = covp("run", "toycar", "-p", "none", site=both)
    assert "other 2.0 names nowhere.platforms, which is not a package" in broken.stderr
    names = [one["name"] for one in document("platforms", site=both)]
    assert "riscv32" in names and not {"vendor-board", "none"} & {*names}
    tools = document("doctor", site=both)
    doubled = [one for one in tools if one["tool"] == "platform vendor-board"]
    assert len(doubled) == 2 and all("bring that name" in one["enables"] for one in doubled)
    own = covp("run", "toycar", "-p", "riscv32", "--check", "none", site=both)
    assert own.returncode == 0, "covp's own platforms cannot be replaced"

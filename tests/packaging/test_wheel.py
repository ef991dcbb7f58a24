"""The wheel: one name in site-packages, every data file, and it runs where there is nothing."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from .conftest import FOLDERS, build_wheel, copy_sources

DATA = {".py", ".yaml", ".txt", ".c", ".cpp", ".v", ".sv", ".svh", ".h", ".S", ".ld"} | {
    ".jsonl", ".typed", ".in", ".cfg", ".css", ".js",
}  # fmt: skip


def content(wheel: Path) -> set[str]:
    """The files in it, without its own metadata."""
    return {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}


def expected(checkout: Path) -> set[str]:
    """Every Python and data file under covp and the four folders, as it should be installed."""
    found = set()
    for top in ("covp", *FOLDERS):
        for path in (checkout / top).rglob("*"):
            inside = path.relative_to(checkout)
            if inside.parts[0] == "covp" and len(inside.parts) > 1 and inside.parts[1] in FOLDERS:
                continue  # the links
            if path.is_file() and (path.suffix in DATA or path.name == "LICENSE"):
                prefix = "" if top == "covp" else "covp/"
                found.add(prefix + inside.as_posix())
    return found


@pytest.mark.costly
def test_top_level_names(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert tops == {"covp", next(top for top in tops if top.endswith(".dist-info"))}


def test_the_runtime_has_the_licence(checkout: Path) -> None:
    """What is exported holds its text: it is that of the whole."""
    of_runtime = (checkout / "device_runtime" / "LICENSE").read_text(encoding="utf-8")
    assert of_runtime == (checkout / "LICENSE").read_text(encoding="utf-8")


@pytest.mark.costly
def test_every_file_is_in_it_and_nothing_else(wheel: Path, checkout: Path) -> None:
    files, wanted = content(wheel), expected(checkout)
    assert {Path(name).suffix for name in files} >= {".py", ".yaml", ".c", ".h", ".S", ".ld"}
    assert sorted(wanted - files) == []
    assert sorted(files - wanted) == []


@pytest.mark.costly
def test_a_checkout_without_links_builds_the_same(
    wheel: Path, checkout: Path, tmp_path: Path
) -> None:
    source = copy_sources(checkout, tmp_path / "source")
    for folder in FOLDERS:
        link = source / "covp" / folder
        target = os.readlink(link)
        link.unlink()
        link.write_text(target)  # what git leaves where it cannot make links
    assert content(build_wheel(source, tmp_path)) == content(wheel)


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of a fresh environment with the wheel, and our dependencies behind it."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, with_pip=False, symlinks=True)
    binaries = folder / "bin"
    command = [sys.executable, "-m", "pip", "--python", str(binaries / "python"), "install"]
    command += ["--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(command, check=True)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    dependencies = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (site / "dependencies.pth").write_text("\n".join(dependencies))
    return binaries


@pytest.mark.slow  # the tests against the built wheel, in CI, need it to run, too
def test_it_runs_in_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    drop = {"COVP_MODEL_DIR", "PYTHONPATH", "ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"}
    environment = {name: value for name, value in os.environ.items() if name not in drop}
    cache, folder = tmp_path / "cache", tmp_path / "empty"
    cache.mkdir()
    folder.mkdir()
    environment |= {"COVP_CACHE_DIR": str(cache), "HOME": str(folder)}

    def call(*command: str) -> str:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    where = call(str(installed / "python"), "-c", "import covp; print(covp.__file__)")
    assert Path(where.strip()).is_relative_to(installed.parent)
    run = json.loads(call(str(installed / "covp"), "run", "toycar", "-p", "riscv32", "--json"))
    assert run["model_source"] == "synthetic"
    assert run["matches_reference"] is True
    assert run["instructions"] > 100_000
    assert list(folder.iterdir()) == []

"""The source distribution: what a checkout has."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from .conftest import copy_sources

BESIDE = ("docs", "examples", "benchmarks", "tests", ".ci", ".github")
"""Folders that the wheel does not have."""
ALONE = ("mkdocs.yml", "CHANGELOG.md", "CITATION.cff", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md")
LEFT_BEHIND = (
    "tests/__pycache__/a.pyc", "tests/.pytest_cache/b", "examples/.hypothesis/c", ".ci/venv/d",
    "site/e.html", "examples/kws.tflite",
)  # fmt: skip
"""Files of earlier work in a checkout."""


@pytest.mark.costly
def test_it_has_all_that_a_checkout_has(checkout: Path, tmp_path: Path) -> None:
    sources = tmp_path / "sources"
    copy_sources(checkout, sources)
    for name in ("MANIFEST.in", "SECURITY.md", *ALONE):
        shutil.copy(checkout / name, sources)
    for top in BESIDE:
        ignored = shutil.ignore_patterns("__pycache__", "venv", "site", ".hypothesis")
        shutil.copytree(checkout / top, sources / top, ignore=ignored)
    for name in LEFT_BEHIND:
        (sources / name).parent.mkdir(parents=True, exist_ok=True)
        (sources / name).write_text("")
    build = "import setuptools.build_meta as b; print(b.build_sdist('dist'))"
    done = subprocess.run(
        [sys.executable, "-c", build], cwd=sources, capture_output=True, text=True, check=True
    )
    with tarfile.open(sources / "dist" / done.stdout.splitlines()[-1]) as archive:
        found = {name.partition("/")[2] for name in archive.getnames()}
    assert found >= {*ALONE, "SECURITY.md", "docs/getting-started.md", "examples/quickstart.py"}
    assert not found & set(LEFT_BEHIND)
    for top in (*BESIDE, "covp", "platforms"):
        wanted = {
            path.relative_to(sources).as_posix()
            for path in (sources / top).rglob("*")
            if path.is_file() and not path.is_symlink()
        } - set(LEFT_BEHIND)
        assert wanted, top
        links = [path for path in (sources / top).iterdir() if path.is_symlink()]
        inside = {n for n in wanted if not any(p in links for p in (sources / n).parents)}
        assert not inside - found, sorted(inside - found)[:5]

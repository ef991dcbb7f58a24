"""Manifests of layouts, read by the build systems' own tools, in an environment of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from covp.evaluation import build
from covp.firmware import Project, export_project

pytestmark = pytest.mark.slow

PLATFORMIO = """
import json, sys
from platformio.package.manifest.parser import ManifestParserFactory
from platformio.package.manifest.schema import ManifestSchema
fields = ManifestParserFactory.new_from_file(sys.argv[1]).as_dict()
fields.pop("license", None)  # its list of licences is on a server
print(json.dumps(ManifestSchema().load_manifest(fields)))
"""
ESP_IDF = """
import json, sys
from idf_component_tools.manager import ManifestManager
manifest = ManifestManager(sys.argv[1], "toycar").load()
print(json.dumps({"version": str(manifest.version), "description": manifest.description}))
"""


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with PlatformIO and the IDF component manager."""
    folder = tmp_path_factory.mktemp("tools")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    wanted = ("platformio", "idf-component-manager")
    done = subprocess.run(
        [python, "-m", "pip", "install", "-q", *wanted], capture_output=True, text=True
    )
    if done.returncode != 0:
        pytest.skip(f"no package index: {done.stderr.strip().splitlines()[-1]}")
    return python


@pytest.mark.parametrize(
    ("layout", "program", "file"),
    [
        ("platformio", PLATFORMIO, "library.json"),
        ("arduino", PLATFORMIO, "library.properties"),
        ("esp-idf", ESP_IDF, "."),
    ],
)
def test_the_tool_reads_the_manifest(
    tools: Path, tmp_path: Path, layout: str, program: str, file: str
) -> None:
    project = Project.of(build("toycar", "riscv32"))
    export_project(project, tmp_path / "toycar", layout)
    done = subprocess.run(
        [tools, "-c", program, tmp_path / "toycar" / file], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    fields = json.loads(done.stdout.splitlines()[-1])
    assert fields["version"].count(".") == 2 and "toycar" in fields["description"]

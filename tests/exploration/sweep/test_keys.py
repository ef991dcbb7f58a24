"""The key of a design: another one when any content changes that its figures depend on."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from covp.chip.cores import cores_dir
from covp.chip.platform_file import platforms_dir
from covp.exploration.sweep import content
from covp.exploration.sweep.reader import make_spec
from covp.exploration.sweep.space import expand
from covp.graph import zoo

UNIT = """
from covp.accel_backends.gemm.backend import Gemm
from {helper} import NUMBER

class Unit(Gemm):
    name = "unit"
    number = NUMBER
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "one")


def write(folder: Path) -> Path:
    """A model, a platform with a timing model, an accelerator of two files."""
    folder.mkdir()
    shutil.copy(zoo.find("toycar").path, folder / "m.tflite")
    board = (platforms_dir() / "riscv32.yaml").read_text()
    (folder / "p.yaml").write_text(f"{board}\ntiming: t.yaml\n")
    shutil.copy(cores_dir() / "cv32e40p" / "timing.yaml", folder / "t.yaml")
    (folder / "unit.py").write_text(UNIT.format(helper="unit_helper"))
    (folder / "unit_helper.py").write_text("NUMBER = 1\n")
    return folder


def key(folder: Path, **settings) -> str:
    (point,) = expand(
        make_spec(
            {
                "models": ["m.tflite"],
                "platforms": ["p.yaml"],
                "accelerators": [["unit.py:Unit"]],
                "vary": {"unit.startup_cycles": [3]},
                **settings,
            },
            folder=folder,
        )
    )
    return point.key


@pytest.mark.parametrize("file", ["m.tflite", "p.yaml", "t.yaml", "unit.py", "unit_helper.py"])
def test_another_content_of_a_file_is_another_key(folder, file):
    before = key(folder)
    path = folder / file
    change = {"p.yaml": b"\nstack: 8K\n", "t.yaml": b"\nassumes: another one\n"}
    data = path.read_bytes()
    path.write_bytes(data + change.get(file, b"\n#"))
    assert key(folder) != before
    path.write_bytes(data)
    assert key(folder) == before


def test_another_setting_or_version_is_another_key(folder, monkeypatch):
    keys = [
        key(folder),
        key(folder, vary={"unit.startup_cycles": [4]}),
        key(folder, vary={}),
        key(folder, seed=1),
        key(folder, optimize=["size"]),
        key(folder, accelerators=[["unit.py:Unit:size=4"]]),
        key(folder, accelerators=[["unit=unit.py:Unit", "unit.py:Unit"]]),
    ]
    monkeypatch.setattr(content, "covp_content", lambda: "another version")
    keys.append(key(folder))
    assert len(set(keys)) == len(keys)


def test_places_names_and_the_order_of_keys_do_not_matter(folder, tmp_path):
    other = write(tmp_path / "another place")
    (other / "m.tflite").rename(other / "renamed.tflite")
    one = {"unit.startup_cycles": [3], "platform.clock_hz": [10**6]}
    two = dict(reversed(one.items()))
    assert key(folder, vary=one) == key(other, vary=two, models=["renamed.tflite"])

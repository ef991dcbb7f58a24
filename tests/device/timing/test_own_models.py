"""Timing models from outside the tree: a platform file names a YAML file or a Python class."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from covp.chip.platform_file import load_platform, platforms_dir
from covp.device.virtual import VirtualDevice
from covp.errors import PlatformError
from tests.conftest import load

LOOP = "start: li a0, 10\nagain: mul a1, a1, a0\n addi a0, a0, -1\n bnez a0, again\nend: j end"
YAML = "source: a test\nerror: 0.02\ninstructions: rv32\ncycles: {mul: 5}\ntaken: {branch: 3}\n"
PYTHON = """
from dataclasses import replace
from covp.device.timing.model import TimingFile, load_timing, make_model

def slow():
    file = TimingFile(source="a test", instructions="rv32", cycles={"mul": 7})
    return make_model("slow", file)

FIXED = replace(load_timing("rv32"), name="fixed")
NUMBER = 5
"""


def platform_file(folder: Path, timing: str, base: str = "riscv32") -> Path:
    """A platform of its own in a folder with a YAML and a Python model."""
    (folder / "models").mkdir(exist_ok=True)
    (folder / "models" / "mine.yaml").write_text(YAML)
    (folder / "models" / "mine.py").write_text(PYTHON)
    content = yaml.safe_load((platforms_dir() / f"{base}.yaml").read_text())
    path = folder / "board.yaml"
    flash, *rest = content["memory"]
    memory = [{**flash, "wait_states": 0}, *rest]
    path.write_text(yaml.safe_dump({**content, "memory": memory, "timing": timing}))
    return path


@pytest.mark.parametrize(
    ("timing", "name", "cycles", "error"),
    [
        ("models/mine.yaml", "mine", 1 + 10 * (5 + 1 + 1) + 9 * 3, 0.02),
        ("models/mine.py:slow", "slow", 1 + 10 * (7 + 1 + 1), None),
        ("models/mine.py:FIXED", "fixed", 1 + 10 * 3 + 9 * 2, None),
        ("unit", "unit", 31, None),
    ],
)
def test_a_platform_names_its_model(tmp_path, monkeypatch, timing, name, cycles, error):
    monkeypatch.chdir("/")  # paths are those from the platform file
    platform = load_platform(platform_file(tmp_path, timing))
    loaded = load("riscv32", LOOP, device=VirtualDevice(platform))
    with loaded.device:
        stop = loaded.run()
    assert stop.cycles == cycles
    source = stop.sources.cycles
    assert source is not None and (source.model, source.error) == (name, error)


@pytest.mark.parametrize(
    ("timing", "text"),
    [
        ("mine.yaml", "mine.yaml: no such timing model file"),
        ("ibx", "unknown timing model 'ibx': did you mean ibex"),
        ("m4", "timing: m4: this model is of another instruction set than rv32imc"),
        ("models/none.py:slow", "none.py: no such timing model file"),
        ("models/mine.py:slo", "mine.py: there is no slo: did you mean slow?"),
        ("models/mine.py:NUMBER", "mine.py: NUMBER is a int, not a TimingModel"),
        ("models/mine.py:make_model", "make_model() raised TypeError"),
    ],
)
def test_what_is_wrong_with_it(tmp_path, timing, text):
    with pytest.raises(PlatformError) as caught:
        VirtualDevice(load_platform(platform_file(tmp_path, timing)))
    assert text in str(caught.value) and "\n" not in str(caught.value)

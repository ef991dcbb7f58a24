"""Energy and area from an Accelergy-style description: sums by hand, wrong files in one line."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from covp.accelerator.registry import find_backend
from covp.chip.energy.accelergy_files import value_of
from covp.chip.energy.technology import read_component_file
from covp.errors import AcceleratorError, UsageError
from covp.evaluation import build, run
from covp.evaluation.energy import Energy, estimate_areas

ARCHITECTURE = """
architecture:
  version: 0.4
  subtree:
    - name: system
      attributes: {technology: 40nm, lanes: 4}
      local:
        - {name: buffer, class: SRAM, attributes: {width: lanes * 16, depth: 8192}}
      subtree:
        - name: array
          local:
            - {name: "pe[0..lanes-1]", class: pe, attributes: {datawidth: 8}}
"""
COMPONENTS = """
compound_components:
  version: 0.4
  classes:
    - name: pe
      attributes: {datawidth: 16, sum: datawidth * 4}
      subcomponents:
        - {name: mult, class: intmultiplier, attributes: {datawidth: datawidth}}
        - {name: add, class: adder, attributes: {latency: 1ns}, area_share: sum / 32}
        - {name: "hold[0..1]", class: intregister, attributes: {width: sum}}
      actions:
        - name: compute
          arguments: {share: 0..1}
          subcomponents:
            - {name: mult, actions: [{name: multiply, arguments: {reused: 0}}]}
            - {name: add, actions: [{name: add}]}
            - {name: "hold[0..1]", actions: [{name: write, action_share: 0.5}]}
        - name: idle
          subcomponents: [{name: mult, actions: [{name: leak}]}]
"""
MULTIPLIER = """technology,datawidth,action,reused,energy,area
40nm,8,multiply,0,0.8,400
40nm,8,multiply,1,0.6,400
40nm,16,multiply,0,3.2,1600
"""
ADDER = """latency(ns),dynamic energy(pJ),leakage power(mW),idle energy(pJ),area(um^2),comment
1,0.21,0.0023,0.0023,278,one stage
5,0.0857,0.0024,0.0119,179,one stage
"""
REGISTER = "width,action,energy,area\n32,write,0.3,190\n64,write,0.6,380\n"
SRAM = "width,depth,action,energy,area\n64,8192,read,9.6,160000\n64,8192,write,12,160000\n"
FILE = {
    "source": "B. Author, A paper, DAC 2026, table 3",
    "files": ["architecture.yaml", "components.yaml"],
    "tables": "tables",
    "mac": {"component": "system.array.pe", "action": "compute"},
    "byte": {"component": "buffer", "action": "read", "bytes": 8},
    "memory": {"component": "buffer", "kilobytes": 64},
}
ENDLESS = COMPONENTS.replace("class: adder", "class: pe").replace(
    "{name: add}]", "{name: compute}]"
)
PJ = 0.8 + 0.21 + 2 * 0.5 * 0.3
UM2 = 400 + 278 * 32 / 32 + 2 * 190


def folder_with(folder: Path, file: dict[str, Any] | str = FILE, **others: str) -> Path:
    """The files; ``others`` by stem replace those above."""
    (folder / "tables").mkdir()
    texts = {"architecture": ARCHITECTURE, "components": COMPONENTS, **others}
    tables = {"intmultiplier": MULTIPLIER, "adder": ADDER, "intregister": REGISTER, "SRAM": SRAM}
    for name, text in {**tables, **texts}.items():
        place = folder / "tables" / f"{name}.csv" if name in tables else folder / f"{name}.yaml"
        place.write_text(text)
    path = folder / "unit.yaml"
    path.write_text(file if isinstance(file, str) else json.dumps(file))
    return path


def test_sums_by_hand(tmp_path: Path) -> None:
    found = read_component_file(folder_with(tmp_path))
    assert found.energy.pj_per_mac == pytest.approx(PJ)
    assert found.energy.pj_per_byte == pytest.approx(9.6 / 8)
    assert found.area is not None
    assert found.area.um2_per_mac == pytest.approx(UM2)
    assert found.area.um2_per_kb == pytest.approx(160000 / 64)
    assert found.energy.source == (
        "B. Author, A paper, DAC 2026, table 3; system.array.pe.compute at 40 nm: 1.31 pJ "
        "(mult 0.8 + add 0.21 + hold 0.3); buffer.read of 8 bytes at 40 nm: 9.6 pJ"
    )


def test_scales(tmp_path: Path) -> None:
    """Of a component in the architecture, of a subcomponent and of an action; old files' shares."""
    components = COMPONENTS.replace("area_share:", "energy_scale: 3, area_scale:").replace(
        "action_share: 0.5", "repeat: 0.25"
    )
    architecture = ARCHITECTURE.replace(
        "attributes: {datawidth: 8}", "area_scale: 2, attributes: {datawidth: 8, energy_share: 10}"
    )
    path = folder_with(tmp_path, components=components, architecture=architecture)
    found = read_component_file(path)
    assert found.energy.pj_per_mac == pytest.approx(10 * (0.8 + 3 * 0.21 + 2 * 0.25 * 0.3))
    assert found.area is not None and found.area.um2_per_mac == pytest.approx(2 * UM2)


def test_reference_tables_win(tmp_path: Path) -> None:
    """Accelergy's own outputs, of its versions 0.3 and later; its names have ranges."""
    ert = """
ERT:
  version: 0.4
  tables:
    - name: system.array.pe[0..3]
      actions:
        - {name: compute, arguments: {data_delta: 0}, energy: 0.5}
        - {name: compute, arguments: {data_delta: 1}, energy: 0.75}
        - {name: leak, arguments: {}, energy: 0}
"""
    art = "ART: {version: 0.4, tables: [{name: 'system.array.pe[0..3]', area: 999}]}"
    mac = {**FILE["mac"], "arguments": {"data_delta": 1}}  # type: ignore[dict-item]
    file = {"source": FILE["source"], "files": ["ert.yaml", "art.yaml"], "mac": mac}
    path = folder_with(tmp_path, file, ert=ert, art=art)
    found = read_component_file(path)
    assert (found.energy.pj_per_mac, found.energy.pj_per_byte) == (0.75, 0)
    assert found.area is not None and found.area.um2_per_mac == 999
    path.write_text(json.dumps({**file, "mac": FILE["mac"]}))
    with pytest.raises(AcceleratorError, match=r"pe\.compute has 2 energies: state its"):
        read_component_file(path)


def test_a_model_with_it(tmp_path: Path) -> None:
    """In energy and area of a run, with technology and citation beside each number."""
    path = folder_with(tmp_path)
    made = build("toycar", "stm32l4r5", [f"gemm:technology={path}"], allow_slower=True)
    energy = run(made, check="none").energy
    assert isinstance(energy, Energy)
    _, macs, moved = energy.parts
    assert macs.joules == pytest.approx(264_192 * PJ * 1e-12)
    assert moved.pj == pytest.approx(1.2)
    assert "at 40 nm" in macs.source and "DAC 2026, table 3" in moved.source
    (area,) = estimate_areas(made.program)
    assert area.um2_per_mac == pytest.approx(UM2) and "40 nm" in area.source


def test_relative_paths_are_of_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder_with(tmp_path)
    monkeypatch.chdir(tmp_path)
    unit = find_backend("gemm:technology=unit.yaml")
    assert unit.values["technology"] == str(path)
    assert find_backend(unit.spec).unit_energy() == unit.unit_energy()


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in FILE.items() if name != key}


@pytest.mark.parametrize(
    ("file", "others", "said"),
    [
        (without("source"), {}, "unit.yaml: the key source is missing"),
        ({**FILE, "source": "me"}, {}, "unit.yaml: source: Expected a text of length >= 10"),
        ({**FILE, "tabels": "x"}, {}, "unknown key 'tabels': did you mean tables"),
        ({**FILE, "files": ["missing.yaml"]}, {}, "missing.yaml: no such file"),
        ({**FILE, "files": ["tables/SRAM.csv"]}, {}, "SRAM.csv: Expected a mapping"),
        ({**FILE, "files": ["unit.yaml"]}, {}, "unit.yaml is not a file of Accelergy"),
        ("a: [", {}, "unit.yaml: not valid YAML"),
        ("- a", {}, "unit.yaml: Expected a mapping"),
        (
            FILE,
            {"components": "compound_components: 3"},
            "components.yaml: compound_components: Expected a mapping",
        ),
        (
            FILE,
            {"architecture": ARCHITECTURE.replace("array", "arr")},
            "there is no component 'sys",
        ),
        (FILE, {"components": COMPONENTS.replace("compute", "calc")}, "has no action 'compute'"),
        (
            FILE,
            {"components": COMPONENTS.replace("{name: mult,", "{name: m,", 1)},
            "no subcomponent",
        ),
        (
            FILE,
            {"components": COMPONENTS.replace("class: adder", "class: ader")},
            "did you mean adder",
        ),
        (
            FILE,
            {"components": ENDLESS},
            "is a part of itself",
        ),
        (
            FILE,
            {"components": COMPONENTS.replace("0.5", "half")},
            "'half' is not a number of at least 0",
        ),
        (
            FILE,
            {"intmultiplier": MULTIPLIER.replace("40nm", "65nm")},
            "no row is of action multiply",
        ),
        (
            FILE,
            {"intmultiplier": MULTIPLIER.replace(",1,0.6", ",0,0.6")},
            "2 rows that differ are of",
        ),
        (FILE, {"intmultiplier": MULTIPLIER.replace("0.8", "many")}, "'many' is not a number"),
        (FILE, {"adder": "a,b\n1\n"}, "adder.csv: has no rows, or no column of energy"),
        (
            FILE,
            {"adder": ADDER + "1,2\n"},
            "adder.csv: a row has a different number of cells than the header",
        ),
    ],
)
def test_wrong_files(
    tmp_path: Path, file: dict[str, Any] | str, others: dict[str, str], said: str
) -> None:
    path = folder_with(tmp_path, file, **others)
    with pytest.raises(UsageError) as caught:
        find_backend(f"gemm:technology={path}")
    text = str(caught.value)
    assert said in text and "\n" not in text and str(tmp_path) in text


def test_neither_technology_nor_file() -> None:
    with pytest.raises(UsageError, match=r"must be one of none, .*or the path of a component file"):
        find_backend("gemm:technology=horowitz")


def random_sum(draw: Random, depth: int = 3) -> str:
    if not depth or draw.random() < 0.25:
        return draw.choice(["a", "b", "0", str(draw.randrange(50))])
    left, right = (random_sum(draw, depth - 1) for _ in range(2))
    return f"({left} {draw.choice(['+', '-', '*', '/', '//', '%'])} {right})"


def test_expressions_are_arithmetic() -> None:
    """As Python's own evaluation has it; what has no value stays a text."""
    names, draw = {"a": 7, "b": 2.5}, Random(1)
    for text in (random_sum(draw) for _ in range(500)):
        try:
            expected = eval(text, {}, names)
        except ArithmeticError:
            expected = text
        assert value_of(text, names) == expected


@pytest.mark.parametrize(
    "text", ["40nm", "a b", "__import__('os')", "a.real", "[1]", "c + 1", "2**9"]
)
def test_other_texts_stay(text: str) -> None:
    assert value_of(text, {"a": 7}) == text

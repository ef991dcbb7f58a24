"""The file of a sweep: what it means, and that every mistake is one line with file, key, reason."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from covp.errors import UsageError
from covp.exploration.sweep.constraints import is_feasible
from covp.exploration.sweep.points import Row
from covp.exploration.sweep.reader import make_spec, read_spec
from covp.exploration.sweep.space import Space, expand
from covp.exploration.sweep.spec import schema

BASE = "models: [toycar]\nplatforms: [riscv32]\n"
GEMM = BASE + "accelerators: [[gemm]]\n"

WRONG = [
    ("[1, 2]", "a sweep is a mapping"),
    ("a: b: c", "not valid YAML"),
    ("platforms: [riscv32]", "the key models is missing"),
    (BASE + "modles: [kws]", "unknown key 'modles': did you mean models?"),
    ("models: []\nplatforms: [riscv32]", "models: Expected a list of length >= 1"),
    ("models: kws\nplatforms: [riscv32]", "models: Expected a list, got a text"),
    ("models: [toicar]\nplatforms: [riscv32]", "models[0]: unknown model 'toicar'"),
    ("models: [no.tflite]\nplatforms: [riscv32]", "models[0]: "),
    ("models: [toycar]\nplatforms: [riscv33]", "platforms[0]: unknown platform 'riscv33'"),
    (BASE + "accelerators: [[], [gem]]", "accelerators[1]: unknown accelerator 'gem'"),
    (BASE + "accelerators: [gemm]", "accelerators[0]: Expected a list, got a text"),
    (BASE + "accelerators: [['gemm:siez=1']]", "no parameter 'siez': did you mean size?"),
    (BASE + "vary: {gemm.size: [1]}", "vary.gemm.size: "),
    (GEMM + "vary: {gemm.siez: [1]}", "vary.gemm.siez: accelerator gemm has no parameter"),
    (GEMM + "vary: {gem.size: [1]}", "did you mean gemm?"),
    (GEMM + "vary: {gemm.size: [1, 999]}", "size=999 must be at most 256"),
    (GEMM + "vary: {gemm.size: []}", "vary.gemm.size: Expected a list of length >= 1"),
    (GEMM + "vary: {gemm.size: {from: 1}}", "vary.gemm.size: the key to is missing"),
    (GEMM + "vary: {gemm.size: {from: 0, to: 4, steps: 2, log: true}}", "must be above 0"),
    (BASE + "vary: {3: [4]}", "vary: Expected a text, got a whole number"),
    (BASE + "vary: {platform.clockhz: [1]}", "did you mean clock_hz?"),
    (BASE + "vary: {platform.flsh.size: [64K]}", "did you mean flash.size"),
    (BASE + "vary: {platform.clock_hz: [-1]}", "platform.clock_hz=-1"),
    (BASE + "vary: {platform.core: [cortex-m77]}", "unknown core 'cortex-m77'"),
    (BASE + "vary: {platform.timing: [no.yaml]}", "no such timing model"),
    ("models: [kws]\nplatforms: [disco-f746ng]\nvary: {platform.icache.size: [3]}", "icache"),
    (BASE + "vary: {platform.icache.size: [4K]}", "no such value of platform riscv32"),
    (BASE + "toolchains: [gc]", "toolchains[0]: 'gc': did you mean gcc?"),
    (BASE + "optimize: [cycle]", "optimize[0]: 'cycle': did you mean cycles"),
    (BASE + "search: {kind: gird}", "search.kind: 'gird': did you mean grid?"),
    (BASE + "search: {knid: grid}", "search: unknown key 'knid': did you mean kind?"),
    (BASE + "search: {kind: random}", "search.points: "),
    (BASE + "search: {kind: random, points: 0}", "search.points: Expected a whole number >= 1"),
    (BASE + "search: {kind: grid, points: 3}", "search.points: all designs"),
    (BASE + "search: {kind: optuna, points: 3}", "search.objectives: "),
    (BASE + "search: {objectives: [cylces]}", "search.objectives[0]: 'cylces': did you mean cycl"),
    (BASE + "search: {kind: list}", "points: "),
    (BASE + "points: [{platform.clock_hz: 1}]", "points: "),
    (GEMM + "points: [{gemm.size: 0}]\nsearch: {kind: list}", "points[0].gemm.size: "),
    (BASE + "constraints: [ram <= 3]", "constraints[0]: no column 'ram': did you mean ram_bytes?"),
    (BASE + "constraints: [ram_bytes = 3]", "constraints[0]: 'ram_bytes = 3' is not of the form"),
    (BASE + "data: {samples: x.npy}", "data: the key labels is missing"),
    (BASE + "data: {samples: x.npy, labels: y.npy}", "data: toycar: "),
    (BASE + "data: {samples: {kws: x.npy}, labels: y.npy}", "data.samples: no model 'kws'"),
    (BASE + "data: {samples: x.npy, labels: y.npy, on: chip}", "data.on: 'chip': known are"),
    (BASE + "seed: -1", "seed: Expected a whole number >= 0"),
]


@pytest.mark.parametrize(("text", "reason"), WRONG, ids=[text for text, _ in WRONG])
def test_a_mistake_is_one_line_with_the_file(tmp_path: Path, text, reason):
    file = tmp_path / "sweep.yaml"
    file.write_text(text)
    with pytest.raises(UsageError) as caught:
        expand(read_spec(file), f"{file}: ")
    message = str(caught.value)
    assert message.startswith(f"{file}: ") and reason in message and "\n" not in message


def test_the_grid_is_the_product_of_what_each_combination_has():
    content: dict[str, Any] = {
        "models": ["toycar", "kws"],
        "platforms": ["riscv32", "cortex-m4"],
        "accelerators": [[], ["gemm"], ["small=gemm", "qconv2d"]],
        "vary": {
            "gemm.size": [4, 8, 16],
            "qconv2d.macs_per_cycle": {"from": 1, "to": 64, "steps": 4, "log": True},
            "platform.clock_hz": ["100e6", 50_000_000],
        },
    }
    found = {
        (p.model, p.platform, p.accelerators, tuple(sorted(p.vary)))
        for p in expand(make_spec(content))
    }
    clocks, sizes, macs = (100_000_000, 50_000_000), (4, 8, 16), (1, 4, 16, 64)
    designs: list[tuple[Any, Any]] = [((), (("platform.clock_hz", c),)) for c in clocks]
    designs += [
        (("gemm",), (("gemm.size", s), ("platform.clock_hz", c)))
        for s, c in itertools.product(sizes, clocks)
    ]
    designs += [
        (("small=gemm", "qconv2d"), (("platform.clock_hz", c), ("qconv2d.macs_per_cycle", m)))
        for m, c in itertools.product(macs, clocks)
    ]
    expected = itertools.product(content["models"], content["platforms"], designs)
    assert found == {(model, platform, *design) for model, platform, design in expected}


def test_random_designs_are_some_of_the_grid_and_the_same_for_a_seed():
    content: dict[str, Any] = {
        "models": ["toycar"],
        "platforms": ["riscv32"],
        "accelerators": [["gemm"]],
        "vary": {"gemm.size": {"from": 1, "to": 200, "steps": 200}, "gemm.bytes_per_cycle": [1, 2]},
    }
    grid = {point.key for point in expand(make_spec(content))}
    keys = [
        [
            p.key
            for p in expand(
                make_spec({**content, "search": {"kind": "random", "points": 50, "seed": seed}})
            )
        ]
        for seed in (1, 1, 2)
    ]
    assert len(grid) == 400 and len(set(keys[0])) == 50 and set(keys[0]) < grid
    assert keys[0] == keys[1] != keys[2]


def test_listed_designs_and_choices_of_a_search_are_designs_of_the_grid():
    base = {"models": ["toycar"], "platforms": ["riscv32"], "accelerators": [[], ["gemm"]]}
    listed = [{"gemm.size": 4, "platform.clock_hz": 10**8}, {"platform.clock_hz": 10**7}]
    found = expand(make_spec({**base, "points": listed, "search": {"kind": "list"}}))
    assert [(p.accelerators, p.values) for p in found] == [
        ((), listed[1]), (("gemm",), listed[0]), (("gemm",), listed[1])
    ]  # fmt: skip
    vary = {"gemm.size": [4, 8], "platform.clock_hz": [10**7, 10**8]}
    space = Space(make_spec({**base, "vary": vary}))
    chosen = [
        space.choose(dict(zip(space.dimensions, values, strict=True))).key
        for values in itertools.product(*space.dimensions.values())
    ]
    assert {point.key for point in space} == set(chosen)
    assert len(space) == len(set(chosen)) == 6


def test_paths_are_those_from_the_folder_of_the_file(tmp_path: Path, monkeypatch):
    (tmp_path / "s.yaml").write_text(
        "models: [a/m.tflite, kws]\nplatforms: [./b.yaml, riscv32]\n"
        "accelerators: [[u.py:Unit, 'x=u.py:Unit:size=3', gemm]]\n"
        "vary: {platform.timing: [t.yaml, rv32]}\n"
    )
    monkeypatch.chdir(tmp_path.parent)
    spec = read_spec(Path(tmp_path.name) / "s.yaml")
    assert spec.models == (f"{tmp_path}/a/m.tflite", "kws")
    assert spec.platforms == (f"{tmp_path}/b.yaml", "riscv32")
    units = f"{tmp_path}/u.py:Unit", f"x={tmp_path}/u.py:Unit:size=3", "gemm"
    assert spec.accelerators == (units,)
    assert spec.axes() == {"platform.timing": (f"{tmp_path}/t.yaml", "rv32")}


def test_constraints_limit_columns():
    limits = make_spec(
        {
            "models": ["kws"],
            "platforms": ["riscv32"],
            "constraints": ["ram_bytes <= 256K", "seconds < 1e-3", "mac_coverage >= 0.5"],
        }
    ).limits
    row = Row(key="", model="", platform="", ram_bytes=256 * 1024, seconds=1e-3, mac_coverage=None)
    assert [limit.holds(row) for limit in limits] == [True, False, None]
    assert [limit.excess(row) <= 0 for limit in limits] == [True, False, True]
    assert is_feasible(row, limits) is False
    assert is_feasible(row, [limits[0], limits[2]]) is None
    assert is_feasible(row, limits[:1]) is True


def test_the_schema_has_each_key_with_a_description():
    found = schema()
    for struct in ("Spec", "Search", "Samples"):
        for key, value in found["$defs"][struct]["properties"].items():
            assert "description" in value or "$ref" in value or key in ("toolchains",), key
    json.dumps(found)

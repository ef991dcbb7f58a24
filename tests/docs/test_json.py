"""docs/json.md describes the documents that the commands print: every key, with its type."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from covp.cli.main import main
from tests.accelerator.rtl.unit_project import new_unit
from tests.device.rtl.conftest import need_rtl

PAGE = Path(__file__).parents[2] / "docs" / "json.md"
TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "object": (dict,),
    "any": (str, int, float, bool, type(None)),
}


def described(section: str) -> dict[str, str]:
    """Key to type of all tables under a heading."""
    text = PAGE.read_text(encoding="utf-8").split(f"\n## {section}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]+) \|", text, re.M)
    assert len({key for key, _ in rows}) == len(rows)
    return {key: kind.strip() for key, kind in rows}


def found(value: Any, key: str, known: dict[str, str]) -> Iterator[tuple[str, Any]]:
    """Every key of a document with its value; keys that are data as ``<name>``."""
    if isinstance(value, dict):
        free = f"{key}.<name>" in known
        for name, inner in value.items():
            path = f"{key}.<name>" if free else f"{key}.{name}".removeprefix(".")
            yield path, inner
            yield from found(inner, path, known)
    elif isinstance(value, list):
        for element in value:
            yield from found(element, f"{key}[]", known)


def fits(value: Any, kind: str) -> bool:
    if kind.startswith("list of "):
        element = kind.removeprefix("list of ")
        return isinstance(value, list) and all(fits(v, element) for v in value)
    if " or " in kind:
        return any(fits(value, one) for one in kind.split(" or "))
    if kind.startswith("covp."):
        check(kind, value)
        return True
    return isinstance(value, TYPES[kind]) and (kind in ("boolean", "any") or value is not True)


def check(section: str, document: Any, prefix: str = "") -> set[str]:
    """Every key of a document is described with its type; returns the keys that it has."""
    known = described(section)
    whole = {key for key, kind in known.items() if kind.startswith("covp.")}
    seen = set()
    for key, value in found(document, prefix, known):
        if any(key.startswith(outer + ".") for outer in whole):
            continue  # a document of its own, checked as one
        assert key in known, f"{section}: {key} is not described in docs/json.md"
        assert fits(value, known[key]), f"{section}: {key} is {value!r}, not {known[key]}"
        seen.add(key)
    return seen


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    with pytest.raises(SystemExit) as done:
        main([*arguments, "--json"])
    output = capsys.readouterr()
    assert done.value.code == 0, output.err
    return json.loads(output.out)


RESNET: tuple[str, ...] = ("resnet", "-p", "riscv32")
FLOAT = ("--float-model", "kws_float")
CALLS: dict[str, list[tuple[str, ...]]] = {
    "covp.run/1": [
        ("run", *RESNET, "-a", "qconv2d:max_stride=1", "--explain", "--causes"),
        ("run", "toycar", "-p", "riscv32", "-a", "gemm", "--traffic"),
        ("run", "toycar", "-p", "stm32l4r5"),
        ("run", "toycar_float", "-p", "riscv32f"),
        ("run", "sww", "-p", "stm32l4r5", "--streaming"),
        ("run", "toycar", "-p", "stm32l4r5", "-a", "gemm:technology=gemmini-22nm"),
        ("run", "toycar", "-p", "riscv32", "-a", "gemm", "--overlap"),
        ("run", "toycar", "-p", "riscv32", "--data", "x.npy", "--labels", "y.npy"),
        ("run", "kws", "-p", "riscv32", "--data", "k.npy", "--labels", "c.npy", *FLOAT),
    ],
    "covp.compare/1": [("compare", "kws", "-p", "riscv32", "-a", "qconv2d")],
    "covp.survey/1": [
        ("compare", "kws", "-p", "hifive1", "-p", "riscv32", "-p", "nrf52840", "-a", "qconv2d")
    ],
    "covp.fits/1": [
        ("fits", "kws", "-p", "hifive1", "-p", "riscv32", "-p", "nrf52840"),
        ("fits", "kws", "-p", "riscv32", "--budget", "ms=1,ram=64K"),
    ],
    "covp.reproduce/1": [],
    "covp.tune/1": [("tune", "toycar", "-p", "riscv32", "--trials", "1")],
    "covp.verify/1": [
        ("verify", "gemm", "--examples", "10", "--seconds", "300", "--model", "toycar"),
        ("verify", "mac8/mac8.py", "--examples", "10", "--model", "toycar", "--against", "rtl"),
    ],
    "covp.multicore/1": [
        (
            "multicore",
            "-p",
            "dual-riscv32",
            "main=main.c",
            "sensor=sensor.c",
            "--model",
            "main=toycar",
        )
    ],
    "covp.cache/1": [("cache",)],
    "covp.check/1": [("check", "results.json", "--baseline", "results.json")],
    "covp.core-check/1": [("core", "check", "cv32e40p", "--instructions", "200")],
    "covp.calibrate-unit/1": [("calibrate", "-a", "mac8/mac8.py", "--device", "rtl")],
    "covp.calibrate/1": [("calibrate", "cv32e40p", "--device", "rtl", "--programs", "1")],
    "covp.show/1": [
        ("show", "toycar", "--after", "all"),
        ("show", "toycar", "-p", "riscv32", "-a", "gemm", "--layer", "4", "--c"),
    ],
    "covp.export/1": [("export", "toycar", "-p", "riscv32", "-o", "exported")],
}
_EMPTY = (
    "data.float.mean_error.",
    "overlap.bands.",
    "origin.model.shapes.",
    "origin.platform.content.",
)
"""What these runs have nothing in; ``data.litert`` is of the same structure as ``data.float``."""
MAIN = """
#include "toycar.h"
static uint8_t arena[TOYCAR_ARENA_BYTES] __attribute__((aligned(16)));
int main(void)
{
    toycar_context model;
    return toycar_init(&model, arena, sizeof arena) + toycar_invoke(&model);
}
"""


@pytest.mark.parametrize("section", CALLS)
def test_a_schema_is_what_is_printed(
    section: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    if section == "covp.calibrate/1":
        need_rtl("cv32e40p")
    if section in ("covp.tune/1", "covp.cache/1"):  # one of its own, and a small one
        monkeypatch.setenv("COVP_CACHE_DIR", str(tmp_path / "cache"))
    if section == "covp.cache/1":
        call(capsys, "run", "toycar", "-p", "riscv32", "--check", "none")
    if section == "covp.multicore/1":
        Path("main.c").write_text(MAIN)
        Path("sensor.c").write_text("int main(void) { return 0; }")
    if section in ("covp.verify/1", "covp.calibrate-unit/1"):
        need_rtl("cv32e40p")
        new_unit(tmp_path)
        capsys.readouterr()
    if section == "covp.run/1":
        shapes = {"x": (2, 640), "y": (2, 640), "k": (2, 49, 10, 1)}
        for name, shape in shapes.items():
            np.save(f"{name}.npy", np.zeros(shape, np.float32))
        np.save("c.npy", np.zeros(2, np.int64))
    if section == "covp.check/1":
        run = call(capsys, "run", "toycar", "-p", "riscv32")
        Path("results.json").write_text(json.dumps(run))
    if section == "covp.reproduce/1":
        run = call(capsys, "run", "toycar", "-p", "riscv32")
        run["origin"]["covp"]["commit"], run["outputs"][0]["scale"] = "", 0.5
        Path("run.json").write_text(json.dumps(run))
        with pytest.raises(SystemExit):
            main(["reproduce", "run.json", "--json"])
        document = json.loads(capsys.readouterr().out)
        assert check(section, document) == set(described(section))
        return
    documents = [call(capsys, *arguments) for arguments in CALLS[section]]
    assert {document["schema"] for document in documents} == {section}
    seen = {key for document in documents for key in check(section, document)}
    # the keys of a difference: tests/cli/test_bit_exact.py
    apart = ("check.mismatch.", *_EMPTY)
    left = {key for key in described(section) if not key.startswith(apart)}
    assert left - seen == set(), "described, but not printed"


def test_the_page_is_what_the_structures_say() -> None:
    sys.path.insert(0, str(PAGE.parents[1] / "benchmarks"))
    import json_page

    text = PAGE.read_text(encoding="utf-8")
    assert json_page.page(text) == text, "run benchmarks/json_page.py"
    wrong = text.replace(
        "| `device` | string | | as given to `--device`", "| `device` | integer | |", 1
    )
    assert json_page.page(wrong) == text


def test_the_lists_are_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    seen = set()
    for command in ("models", "platforms", "cores", "accelerators", "doctor"):
        seen |= check("Lists", call(capsys, command), command)
    assert seen == set(described("Lists"))


def test_an_error_is_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", "none.tflite", "-p", "riscv32", "--json"])
    seen = check("covp.error/1", json.loads(capsys.readouterr().out))
    assert seen == set(described("covp.error/1"))


def test_what_is_not_described_is_noticed() -> None:
    with pytest.raises(AssertionError, match="is not described"):
        check("covp.export/1", {"schema": "covp.export/1", "colour": "red"})
    with pytest.raises(AssertionError, match="not list of string"):
        check("covp.export/1", {"files": [1]})

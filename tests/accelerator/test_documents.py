"""The documents of accelerators say what the code has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from covp.accelerator.backend import AcceleratorBackend
from covp.accelerator.registry import find_backend, list_backends
from covp.cli.main import main
from covp.hardware.peripheral import Peripheral

DOCS = Path(__file__).parents[2] / "docs"


def test_the_register_tables_are_those_of_the_models() -> None:
    text = (DOCS / "registers.md").read_text()
    for info in list_backends():
        if info.origin != "built in":
            continue
        model = find_backend(info.name).make_peripheral()
        if isinstance(model, Peripheral):
            assert f"## {info.name}\n\n{model.registers.markdown()}" in text, (
                "run `covp accelerators NAME --registers markdown`"
            )


def test_every_accelerator_and_hook_is_in_the_tables() -> None:
    text = (DOCS / "accelerators.md").read_text()
    for info in list_backends():
        if info.origin == "built in":
            assert f"| `{info.name}` |" in text
    hooks = {name for name in vars(AcceleratorBackend) if not name.startswith("_")}
    for hook in hooks - {"spec", "description", "peripheral_class", "with_name"}:
        assert f"`{hook}" in text, hook


def test_the_pattern_in_the_text_is_one() -> None:
    text = (DOCS / "accelerators.md").read_text()
    (code,) = re.findall(r"```python\n(from covp.graph.pattern .*?)```", text, re.DOTALL)
    exec(code, {})


@pytest.mark.parametrize(
    ("form", "begin"),
    [("markdown", "| offset"), ("header", "#ifndef GEMM_"), ("svd", "<?xml")],
)
def test_the_command_prints_a_register_map(
    form: str, begin: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as done:
        main(["accelerators", "gemm", "--registers", form])
    assert done.value.code == 0
    assert capsys.readouterr().out.startswith(begin)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--registers", "svd"], "needs the name of an accelerator"),
        (["cfu", "--registers", "svd"], "cfu has no registers"),
        (["gem"], "did you mean gemm"),
    ],
)
def test_what_cannot_be_shown(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as done:
        main(["accelerators", *arguments])
    assert done.value.code == 2
    assert message in capsys.readouterr().err

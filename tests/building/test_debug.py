"""`COVP_DEBUG`: each level adds what it says, on standard error; without it nothing is printed."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from covp.base.debug import LOGGERS, VARIABLE, follow_environment
from covp.building.builder import build
from covp.codegen.lifetimes import arena_tensors
from covp.errors import UsageError
from tests.cli.conftest import Call, call  # noqa: F401  (a fixture)
from tests.graph.passes.padded import padded


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    yield
    monkeypatch.delenv(VARIABLE, raising=False)
    follow_environment()


def printed(
    level: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> list[str]:
    monkeypatch.setenv(VARIABLE, level)
    capsys.readouterr()
    build(padded(), "riscv32", ["qconv2d"])
    output = capsys.readouterr()
    assert output.out == ""
    return output.err.splitlines()


@pytest.mark.costly
def test_each_level_adds_what_it_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = build(padded(), "riscv32", ["qconv2d"]).program
    assert printed("0", monkeypatch, capsys) == printed("", monkeypatch, capsys) == []
    passes = printed("1", monkeypatch, capsys)
    assert passes and all(line.startswith("padded: pass ") for line in passes)
    placement = printed("2", monkeypatch, capsys)[len(passes) :]
    for layer, line in zip(program.layers, placement, strict=True):
        start = f"padded: layer {layer.index} {layer.op} {layer.name}: on {layer.target}"
        assert line.startswith(start) and layer.schedule in line
    assert {layer.target for layer in program.layers} == {"cpu", "qconv2d"}
    before = len(passes) + len(placement)
    memory = printed("3", monkeypatch, capsys)[before:]
    for one, line in zip(arena_tensors(program), memory, strict=True):
        assert f"{one.kind} {one.name}: bytes {one.offset} to {one.offset + one.bytes}," in line
    code = "\n".join(printed("4", monkeypatch, capsys)[before + len(memory) :])
    assert all(text.rstrip("\n") in code for text in program.sources.values())
    assert printed("", monkeypatch, capsys) == []


def test_the_root_logger_does_not_print_it_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(VARIABLE, "2")
    with caplog.at_level(logging.INFO):
        build("toycar", "riscv32")
        printed = {"covp.passes", "covp.placement"}
        heard = {record.name for record in caplog.records}
        assert not heard & printed and "covp.code" not in heard
        monkeypatch.setenv(VARIABLE, "0")
        build("toycar", "riscv32")
    assert {record.name for record in caplog.records} >= {"covp.placement", "covp.memory"}


def test_levels_of_others_stay() -> None:
    logger = logging.getLogger(LOGGERS[1])
    logger.setLevel(logging.ERROR)
    try:
        follow_environment()
        assert logger.level == logging.ERROR and logger.propagate
    finally:
        logger.setLevel(logging.NOTSET)


@pytest.mark.parametrize("value", ["5", "-1", "x", "1.0", " ", "\u0661", "11"])
def test_a_wrong_value(value: str, monkeypatch: pytest.MonkeyPatch, call: Call) -> None:  # noqa: F811
    monkeypatch.setenv(VARIABLE, value)
    with pytest.raises(UsageError, match=r"COVP_DEBUG=.*: write 1"):
        build("toycar", "riscv32")
    assert "COVP_DEBUG" in call("show", "toycar").refusal
    assert "COVP_DEBUG" in call("run", "toycar").refusal

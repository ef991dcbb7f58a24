"""``covp bisect``: exit statuses, JSON and one-line errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.testing.bisect.conftest import passes

BUILD = """
from dataclasses import replace


def build(program):
    name = "small_03_softmax.c"
    text = program.sources[name].replace("35 - zeros", "36 - zeros")
    return replace(program, sources={**program.sources, name: text})
"""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """What is written goes to a folder of the test."""
    monkeypatch.chdir(tmp_path)


def test_nothing_differs(call, small):
    for against in ((), ("--against", "reference"), ("--against", "toolchain", "zig")):
        done = call("bisect", small, "-p", "riscv32", *against)
        assert (done.status, done.out.count("\n")) == (0, 1)
        what = " ".join(against[1:]) or "reference"
        assert done.out.startswith(f"nothing differs from {what}: 3 layers x 4 inputs, in ")
    assert call("bisect", small, "-p", "riscv32", "--json").document["found"] is None
    assert not Path("bisect_small").exists()


def test_a_difference(call, small):
    Path("other.py").write_text(BUILD)
    done = call("bisect", small, "-p", "riscv32", "--against=build other.py", "-o", "found")
    assert done.status == 1
    assert done.out.startswith("FIRST WRONG: layer softmax_3 (SOFTMAX on cpu), riscv32 zig (build")
    test = Path("found/test_small_03_softmax.py")
    assert f"a test that shows it: {test} (" in done.out
    assert not passes(test)
    done = call("bisect", small, "-p", "riscv32", "--against", "build", "other.py", "--json")
    assert done.status == 1 and done.err == ""
    found = done.document["found"]
    assert done.document["schema"] == "covp.bisect/1"
    assert (found["layer"], found["cause"]["spot"]["function"]) == ("softmax_3", "small_03_softmax")
    assert "36 - zeros" in found["cause"]["spot"]["text"]
    assert "35 - zeros" in found["cause"]["other"]["text"]


@pytest.mark.parametrize(
    "arguments, said",
    [
        (("--against", "numpy"), "unknown comparison 'numpy'"),
        (("--against", "toolchain"), "comparison 'toolchain': write reference, toolchain gcc"),
        (("--against", "toolchain", "tcc"), "unknown toolchain 'tcc'"),
        (("--against", "device", "nothing"), "unknown device 'nothing'"),
        (("--against", "platform", "z80"), "unknown platform 'z80'"),
        (("--against", "build", "none.py"), "none.py: no such file"),
        (("--ulps", "-1"), "-1 is not in the range"),
    ],
)
def test_wrong_calls(call, small, arguments, said):
    done = call("bisect", small, "-p", "riscv32", *arguments)
    assert done.status == 2
    assert said in done.refusal

"""`bisect` names the layer, the function and the line of a defect, and writes a test of it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from covp.chip.platform_file import load_platform, platforms_dir
from covp.codegen.program import Program
from covp.errors import UsageError
from covp.testing.bisect import bisect
from tests.testing.bisect.conftest import averaging, chain, line_of, many, memory, passes, planted

HEAD = "(const int8_t *input, int8_t *output, void *scratch)\n{"


def found(program: Program, tmp_path: Path, **how) -> Any:
    """The finding of a program that is wrong."""
    verdict = bisect(program, folder=tmp_path / "out", **how)
    assert verdict.finding is not None
    assert verdict.finding.test is not None and verdict.finding.test.path.is_file()
    return verdict.finding


@pytest.mark.parametrize("graph, layers, inputs", [(chain(), 5, 4), (memory(), 2, 5)])
def test_nothing_differs(platform, graph, layers, inputs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    verdict = bisect(graph, platform)
    assert verdict.finding is None
    assert (verdict.layers, verdict.inputs) == (layers, inputs)
    assert list(tmp_path.iterdir()) == []


def test_a_layer_of_many_inputs(platform, tmp_path):
    right, wrong = planted(
        many(), platform, "concatenation_0", "i + 31] = input10", "i + 31] = input11"
    )
    finding = found(wrong, tmp_path)
    assert finding.layer == "concatenation_0"
    assert not passes(finding.test.path)
    name = right.layers[0].function + ".c"
    (finding.test.path.parent / name).write_text(right.sources[name])
    assert passes(finding.test.path)


def test_wrong_rounding(platform, tmp_path):
    right, wrong = planted(chain(), platform, "add_2", "+ 4194303u", "+ 4194290u")
    finding = found(wrong, tmp_path)
    assert (finding.kind, finding.layer, finding.op) == ("wrong output", "add_2", "ADD")
    assert finding.got - finding.wanted == -1
    assert finding.cause.spot.function == "chain_02_add"
    assert finding.cause.spot.source in [
        line_of(wrong, finding, f"output[{i}] =") for i in ("i", "i + 1", "i + 2", "i + 3")
    ]
    steps = [step.spot.source for step in finding.cause.steps if step.spot.function == "combine"]
    assert line_of(wrong, finding, "4194290u") in steps
    assert finding.cause.made.function == "combine"
    # ties alone are rounded wrongly: few inputs make one
    assert 0 < finding.test.used <= 2 < finding.test.elements == 128
    test = finding.test.path
    assert not passes(test)
    (test.parent / "chain_02_add.c").write_text(right.sources["chain_02_add.c"])
    assert passes(test)


@pytest.mark.costly
def test_two_builds_part_at_a_line(platform, tmp_path):
    right, wrong = planted(chain(), platform, "add_2", "+ 4194303u", "+ 4194290u")
    for one, other in ((wrong, right), (right, wrong)):  # the reference says which one is wrong
        finding = found(one, tmp_path, against=other)
        cause = finding.cause
        assert finding.layer == "add_2" and finding.got - finding.wanted == -1
        assert cause.spot.function == cause.other.function == "combine"
        assert cause.spot.source == line_of(wrong, finding, "+ 4194290u")
        assert "4194290u" in cause.spot.text and "4194303u" in cause.other.text
        assert cause.call_stack[1].startswith("chain_02_add (")
        assert "4194290u" in (finding.test.path.parent / "chain_02_add.c").read_text()


def test_a_step_that_one_build_leaves_out(tmp_path):
    text = "most = input[i] > most ? input[i] : most;"
    right, wrong = planted(chain(), "riscv32", "softmax_5", text, ";")
    finding = found(wrong, tmp_path, against=right)
    assert finding.layer == "softmax_5"
    assert finding.cause.other.source == line_of(right, finding, text)


def test_elements_that_nothing_stores(platform, tmp_path):
    _, wrong = planted(chain(), platform, "add_2", "i < 64", "i < 60")
    finding = found(wrong, tmp_path)
    assert (finding.layer, finding.cause.kind) == ("add_2", "not written")
    assert finding.element == (0, 3, 3, 0)
    assert finding.cause.spot.source == line_of(wrong, finding, "output[i + 3] =")
    assert "never stored to; the last store" in "\n".join(finding.lines)
    assert finding.test.used <= 1


@pytest.mark.parametrize("layer", ["conv_2d_0", "add_2", "softmax_5"])
@pytest.mark.parametrize("against", ["reference", "the right one"])
def test_a_layer_that_stores_nothing(platform, layer, against, tmp_path):
    """What the runtime stores before and after the layer is not the layer's."""
    right, wrong = planted(chain(), platform, layer, "", "")
    (name,) = (f"{each.function}.c" for each in right.layers if each.name == layer)
    head, brace, _ = wrong.sources[name].rpartition("\n{\n")
    unused = ("-Wno-unused-parameter", "-Wno-unused-function", "-Wno-unused-const-variable")
    sources = {**wrong.sources, name: f"{head}{brace}}}\n"}
    wrong = replace(wrong, sources=sources, flags=(*wrong.flags, *unused))
    finding = found(wrong, tmp_path, against=right if against != "reference" else against)
    assert (finding.layer, finding.cause.kind, finding.cause.spot) == (layer, "not written", None)
    assert "  never stored to" in finding.lines


def test_a_layer_that_ends_early_beside_another_build(platform, tmp_path):
    right, wrong = planted(chain(), platform, "add_2", "i < 64", "i < 60")
    cause = found(wrong, tmp_path, against=right).cause
    assert cause.kind == "not written" and "output[i + 3] =" in cause.spot.text


def test_another_tensor_is_overwritten(platform, tmp_path):
    store = "((int8_t *)(intptr_t)input)[5] ^= 1;"
    _, wrong = planted(chain(), platform, "conv_2d_1", "", f"    {store}\n")
    finding = found(wrong, tmp_path)
    assert (finding.kind, finding.layer) == ("overwritten tensor", "conv_2d_1")
    assert (finding.tensor, finding.element) == ("conv_2d_0_out", (0, 0, 1, 1))
    assert finding.cause.spot.source == line_of(wrong, finding, store)
    assert not passes(finding.test.path)


def test_a_fault(platform, tmp_path):
    store = "*(volatile uint8_t *)0xfffffff0u = 1;"
    _, wrong = planted(chain(), platform, "conv_2d_1", HEAD, f"{HEAD}\n{store}")
    finding = found(wrong, tmp_path)
    assert (finding.kind, finding.layer, finding.cause.kind) == ("fault", "conv_2d_1", "fault")
    assert finding.cause.spot.source == line_of(wrong, finding, store)
    assert not passes(finding.test.path)


def test_undefined_behaviour_shows_between_levels_of_optimization(platform, tmp_path):
    wrong_sum = "if (x + 200 + INT32_MAX >= x + 200) result++;"
    text = "return (int8_t)result;"
    _, wrong = planted(chain(), platform, "add_2", text, f"{wrong_sum}\n    {text}")
    finding = found(wrong, tmp_path)
    assert finding.layer == "add_2"
    assert "right with -O0: undefined behaviour" in finding.cause.note
    assert finding.cause.spot.source.startswith("chain_02_add.c:")


@pytest.mark.costly
def test_a_compiler_option_that_changes_floats(tmp_path):
    program, _ = planted(averaging(), "riscv32", "average_pool_2d_0", "9.0f", "9.0f")
    fast = replace(program, flags=(*program.flags, "-ffast-math"))
    assert bisect(fast).finding is None  # as near to the reference as any order of sums
    finding = found(fast, tmp_path, against=program)
    assert finding.layer == "average_pool_2d_0" and finding.got != finding.wanted
    assert abs(finding.got - finding.wanted) <= abs(np.spacing(np.float32(finding.wanted)))
    assert finding.cause.spot.text.startswith("output[c + ")
    assert finding.cause.other.source == finding.cause.spot.source
    assert bisect(fast, against=program, ulps=1).finding is None
    test = finding.test.path
    assert not passes(test)
    test.write_text(test.read_text().replace(", '-ffast-math'", ""))
    assert passes(test)


@pytest.mark.costly
@pytest.mark.parametrize("toolchain, other", [("zig", "gcc"), ("gcc", "zig")])
def test_two_compilers(toolchain, other, tmp_path):
    if shutil.which("riscv64-unknown-elf-gcc") is None:
        pytest.skip("GCC is not installed")
    graph = chain()
    assert (
        bisect(graph, "riscv32", against=f"toolchain {other}", toolchain=toolchain).finding is None
    )
    half = "(4194303u - CLANG)"
    _, wrong = planted(graph, "riscv32", "add_2", "4194303u", half)
    text = "#ifdef __clang__\n#define CLANG 13\n#else\n#define CLANG 0\n#endif\n"
    file = "chain_02_add.c"
    wrong = replace(wrong, sources={**wrong.sources, file: text + wrong.sources[file]})
    finding = found(wrong, tmp_path, toolchain=toolchain, against=f"toolchain {other}")
    assert (finding.layer, finding.where) == ("add_2", "riscv32 zig")
    assert finding.cause.made.function == "combine"
    assert line_of(wrong, finding, half) in [step.spot.source for step in finding.cause.steps]
    assert finding.cause.other.source.startswith(f"{file}:")
    assert not passes(finding.test.path)


@pytest.mark.costly
def test_another_emulator(tmp_path):
    if shutil.which("qemu-system-riscv32") is None:
        pytest.skip("QEMU is not installed")
    right, wrong = planted(chain(), "qemu-riscv32", "add_2", "+ 4194303u", "+ 4194290u")
    assert bisect(right, against="device gdb:qemu").finding is None
    for against, function in (("reference", "chain_02_add"), (right, "combine")):
        finding = found(wrong, tmp_path, device="gdb:qemu", against=against)
        assert finding.layer == "add_2" and "qemu-riscv32:gdb:qemu zig" in finding.where
        assert finding.cause.spot.function == function
    assert line_of(wrong, finding, "4194290u") == finding.cause.spot.source
    assert not passes(finding.test.path)


def test_a_platform_of_ones_own_comes_with_the_test(tmp_path):
    text = (platforms_dir() / "riscv32.yaml").read_text()
    path = tmp_path / "mine.yaml"
    path.write_text(text.replace("clock_hz", "stack: 8K\nclock_hz"))
    _, wrong = planted(chain(), str(path), "add_2", "+ 4194303u", "+ 4194290u")
    path.unlink()
    test = found(wrong, tmp_path).test.path
    (file,) = test.parent.glob("*.yaml")
    assert f"Session(HERE / {file.name!r}, " in test.read_text()
    assert load_platform(file) == wrong.platform
    assert not passes(test)


def test_states_of_the_second_inference(platform, tmp_path):
    _, wrong = planted(memory(), platform, "add_0", "x + y", "x - y")
    finding = found(wrong, tmp_path)
    assert (finding.layer, finding.input_name) == ("add_0", "uniform, again")
    assert finding.cause.spot.function == "memory_00_add"
    assert not passes(finding.test.path)


def test_layers_are_right_and_the_inference_is_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    right, _ = planted(memory(), "riscv32", "add_0", "x + y", "x + y")
    text = right.sources["memory_infer.c"]
    call = "memory_01_logistic((void *)(arena + 32)"
    assert call in text
    sources = {**right.sources, "memory_infer.c": text.replace(call, call.replace("32", "4"))}
    finding = bisect(replace(right, sources=sources)).finding
    assert finding is not None
    assert (finding.kind, finding.layer, finding.test) == ("inference", "", None)


def test_wrong_calls(tmp_path):
    program, _ = planted(memory(), "riscv32", "add_0", "x + y", "x + y")
    with pytest.raises(UsageError, match="needs a platform"):
        bisect("kws")
    with pytest.raises(UsageError, match="a program is built already"):
        bisect(program, "riscv32")
    for text in ("", "elsewhere", "toolchain", "reference numpy"):
        with pytest.raises(UsageError, match="comparison"):
            bisect(program, against=text)
    file = tmp_path / "other.py"
    with pytest.raises(UsageError, match="no such file"):
        bisect(program, against=f"build {file}")
    file.write_text("def build(program):\n    return 1\n")
    with pytest.raises(UsageError, match="must return a program, not 1"):
        bisect(program, against=f"build {file}")
    file.write_text("x = 1\n")
    with pytest.raises(UsageError, match="has no function build"):
        bisect(program, against=f"build {file}")
    with pytest.raises(UsageError, match="was not made by"):
        bisect(replace(program, lowered=None))

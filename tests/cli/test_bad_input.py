"""Everything that is wrong is one line on standard error, status 1 or 2, and no traceback."""

import re
from pathlib import Path

import numpy as np
import pytest

from covp.graph.attributes import Elementwise
from covp.graph.graph import Graph, Op, Tensor
from covp.graph.zoo.builder import GraphBuilder
from covp.graph.zoo.tflite_writer import write_tflite

from .conftest import Call, small_model

BOARD = """\
name: board
core: {core}
clock_hz: 100_000_000
stack: 1K
memory:
  - {{name: flash, kind: flash, start: {flash_start}, size: {flash}}}
  - {{name: ram, kind: ram, start: {ram_start}, size: {ram}}}
"""


@pytest.fixture
def board(tmp_path: Path) -> "Board":
    return Board(tmp_path / "board.yaml")


class Board:
    """A platform file to spoil."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, **changes: str) -> Path:
        values = {"core": "rv32imc", "flash_start": "0x20000000", "flash": "1M"}
        values |= {"ram_start": "0x80000000", "ram": "64K"} | changes
        self.path.write_text(BOARD.format(**values))
        return self.path


def test_a_good_board_of_ones_own(call: Call, small: Path, board: Board) -> None:
    """The files below are wrong for what they change alone."""
    assert call("run", small, "-p", board.write()).status == 0


def test_directory(call: Call, tmp_path: Path) -> None:
    refusal = call("run", tmp_path, "-p", "riscv32").refusal
    assert str(tmp_path) in refusal and "directory" in refusal


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"This is prose, and no model at all.\n" * 9, "not a TFLite model"),
        (small_model()[:1000], "damaged or truncated"),
        (small_model()[:-400], "damaged or truncated"),
        (b"\x1c\0\0\0TFL3", "damaged or truncated"),
    ],
    ids=["empty", "text", "cut", "cut at the end", "head alone"],
)
def test_damaged_file(call: Call, tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "bad.tflite"
    path.write_bytes(content)
    for command in (["run"], ["compare", "-a", "qconv2d"]):
        refusal = call(*command, path, "-p", "riscv32").refusal
        assert str(path) in refusal and reason in refusal


def test_a_text_file_of_another_name(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("prose")
    assert "not a TFLite model" in call("run", path, "-p", "riscv32").refusal


def test_missing_file(call: Call, tmp_path: Path) -> None:
    refusal = call("run", tmp_path / "none.tflite", "-p", "riscv32").refusal
    assert "no such file" in refusal and "none.tflite" in refusal


def test_onnx(call: Call, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"x")
    refusal = call("run", tmp_path / "m.onnx", "-p", "riscv32").refusal
    assert "m.onnx" in refusal and "export the model again" in refusal


def test_float16(call: Call, tmp_path: Path) -> None:
    builder = GraphBuilder("half")
    x = builder.input((1, 8), np.float16)
    path = tmp_path / "half.tflite"
    path.write_bytes(write_tflite(builder.graph(builder.add("RESHAPE", x, shape=(8, 1)))))
    refusal = call("run", path, "-p", "riscv32").refusal
    assert "float16" in refusal and "input_0" in refusal and "int8" in refusal


@pytest.mark.costly
def test_float16_weights(call: Call, tmp_path: Path) -> None:
    """What TFLite's float16 quantization writes: half weights before a DEQUANTIZE."""
    builder = GraphBuilder("half")
    x = builder.input((1, 8), np.float32)
    weights = builder.constant(np.ones((1, 8), np.float16))
    wide = builder.add("DEQUANTIZE", weights, dtype=np.float32)
    path = tmp_path / "half.tflite"
    path.write_bytes(
        write_tflite(builder.graph(builder.add("ADD", x, wide, attributes=Elementwise())))
    )
    done = call("run", path, "-p", "riscv32", "--json")
    assert done.status == 0 and done.document["matches_reference"]


def test_unknown_operator(call: Call, tmp_path: Path) -> None:
    builder = GraphBuilder()
    x = builder.input((4,), np.float32)
    relu = builder.add("RELU", x)
    spectrum = Tensor("spectrum", (4,), np.dtype(np.float32))
    op = Op("RFFT2D", "fft_1", [relu], [spectrum])
    path = tmp_path / "spectrum.tflite"
    path.write_bytes(write_tflite(Graph("m", [x], [spectrum], [*builder.ops, op])))
    refusal = call("run", path, "-p", "riscv32").refusal
    assert "operator 1 is RFFT2D" in refusal
    assert "can add it" in refusal and "CONV_2D" in refusal


@pytest.mark.costly
@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("run", "resnett", "-p", "riscv32"), "did you mean resnet"),
        (("run", "nothing-like-it", "-p", "riscv32"), "kws"),
        (("run", "kws", "-p", "stm32f764"), "did you mean stm32f746"),
        (("run", "kws", "-p", "zzz"), "covp new platform zzz"),
        (("run", "kws", "-p", "riscv32", "-a", "qconv"), "did you mean qconv2d"),
        (("run", "kws", "-p", "riscv32", "-a", "qconv2d:requantise=no"), "requantize"),
        (("run", "kws", "-p", "riscv32", "-a", "qconv2d:requantize=perhaps"), "perhaps"),
        (("run", "kws", "-p", "riscv32", "-a", "qconv2d:requantize"), "requantize"),
        (("run", "kws", "-p", "riscv32", "-a", "missing.py:Class"), "missing.py"),
        (("run", "kws", "-p", "riscv32", "--device", "virtua"), "virtual"),
        (("run", "kws", "-p", "riscv32", "--toolchain", "icc"), "zig"),
        (("run", "kws", "-p", "riscv32", "--seed", "three"), "three"),
        (("run", "kws", "-p", "none.yaml"), "no such platform file"),
        (("compare", "kws"), "--platform"),
        (("run", "-p", "riscv32"), "MODEL"),
        (("compare", "-p", "riscv32", "-a", "qconv2d"), "MODELS"),
        (("compare", "kws", "kwz", "-p", "riscv32", "-a", "qconv2d"), "did you mean kws"),
        (("rum", "kws"), "did you mean run"),
        (("run", "kws", "-p", "riscv32", "--jsn"), "--json"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_wrong_name(call: Call, arguments: tuple[str, ...], hint: str) -> None:
    assert hint in call(*arguments).refusal


def test_a_wrong_call_is_status_2(call: Call, small: Path) -> None:
    for arguments in (("rum",), ("run",), ("export", small), ("run", "kwss", "-p", "riscv32")):
        assert call(*arguments).status == 2


@pytest.mark.parametrize(
    ("changes", "key", "reason"),
    [
        ({"ram_start": "0x20080000"}, "memory[1]", "overlaps flash"),
        ({"ram": "64Q"}, "memory[1].size", "64Q"),
        ({"ram": "0"}, "memory[1]", "above 0"),
        ({"ram_start": "0xffff8000"}, "memory[1]", "address space"),
        ({"ram_start": "-4096"}, "memory[1].start", ">= 0"),
        ({"core": "rv32imz"}, "core", "rv32imc"),
        ({"core": "[1]"}, "core", "a text"),
        ({"flash": "1M, colour: red"}, "memory[0]", "colour"),
        ({"core": "rv32imc\nmemroy: []"}, "memroy", "unknown key"),
        ({"ram": "512"}, "memory[1]", "1024"),
        ({"ram": "1K"}, "stack", "below the ram"),
        ({"core": "'"}, "YAML", ""),
    ],
)
def test_wrong_platform(
    call: Call, small: Path, board: Board, changes: dict[str, str], key: str, reason: str
) -> None:
    path = board.write(**changes)
    refusal = call("run", small, "-p", path).refusal
    assert str(path) in refusal
    assert key in refusal and reason in refusal


@pytest.mark.parametrize("text", ["", "[1, 2]", "just text", "\x00\x01", "a: &a [*a]"])
def test_no_platform_at_all(call: Call, small: Path, tmp_path: Path, text: str) -> None:
    path = tmp_path / "odd.yaml"
    path.write_text(text)
    assert str(path) in call("run", small, "-p", path).refusal


def test_a_platform_that_is_a_directory(call: Call, small: Path, tmp_path: Path) -> None:
    assert str(tmp_path) in call("run", small, "-p", f"{tmp_path}/").refusal


def bytes_too_much(refusal: str) -> int:
    found = re.search(r"(\d+) bytes too much", refusal)
    assert found, refusal
    return int(found[1])


@pytest.mark.costly
@pytest.mark.parametrize(("region", "sizes"), [("flash", (32, 48)), ("ram", (4, 8))])
def test_too_big(
    call: Call, tmp_path: Path, board: Board, region: str, sizes: tuple[int, int]
) -> None:
    """The line says by how much, and what is missing shrinks by what the memory grows."""
    path = tmp_path / "wide.tflite"
    path.write_bytes(small_model(features=8000))
    missing = []
    for size in sizes:
        done = call("run", path, "-p", board.write(**{region: f"{size}K"}))
        assert done.status == 1
        assert f" {region} " in done.refusal
        missing.append(bytes_too_much(done.refusal))
    assert missing[0] - missing[1] == (sizes[1] - sizes[0]) * 1024


@pytest.mark.parametrize(
    ("value", "reasons"),
    [
        (np.zeros((1, 6, 6, 3), np.int8), ("(1, 6, 6, 3)", "(1, 6, 6, 2)")),
        (np.zeros((6, 6, 2), np.int8), ("(6, 6, 2)", "(1, 6, 6, 2)")),
        (np.zeros((), np.int8), ("()", "(1, 6, 6, 2)")),
        (np.zeros((1, 6, 6, 2), np.float32), ("float32", "int8")),
        (np.zeros((1, 6, 6, 2), np.uint8), ("uint8", "int8")),
        (np.zeros((1, 6, 6, 2), "U3"), ("int8",)),
        (np.zeros((1, 6, 6, 2), np.complex64), ("complex64", "int8")),
    ],
    ids=lambda value: f"{value.dtype}{value.shape}" if isinstance(value, np.ndarray) else "",
)
def test_wrong_input(
    call: Call, small: Path, tmp_path: Path, value: np.ndarray, reasons: tuple[str, ...]
) -> None:
    np.save(tmp_path / "x.npy", value)
    done = call("run", small, "-p", "riscv32", "--input", tmp_path / "x.npy")
    assert done.status == 2
    assert all(reason in done.refusal for reason in reasons)


def test_wrong_number_of_inputs(call: Call, small: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((1, 6, 6, 2), np.int8))
    twice = ("--input", tmp_path / "x.npy") * 2
    refusal = call("run", small, "-p", "riscv32", *twice).refusal
    assert "1" in refusal and "2" in refusal


@pytest.mark.parametrize("content", [b"", b"text", b"\x93NUMPY", b"\x93NUMPY\x01\x00v\x00{'des"])
def test_unreadable_input(call: Call, small: Path, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(content)
    assert str(path) in call("run", small, "-p", "riscv32", "--input", path).refusal


def test_inputs_that_are_no_array(call: Call, small: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "several.npz", a=np.zeros(1), b=np.zeros(1))
    np.save(tmp_path / "object.npy", np.array([{}], object), allow_pickle=True)
    for path in (tmp_path, tmp_path / "none.npy", *tmp_path.glob("*.np?")):
        refusal = call("run", small, "-p", "riscv32", "--input", path).refusal
        assert str(path) in refusal


def test_debug_shows_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    from covp.cli.main import main
    from covp.errors import PlatformError

    with pytest.raises(PlatformError):
        main(["run", "kws", "-p", "zzz", "--debug"])

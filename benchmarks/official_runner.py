"""MLPerf Tiny's own runner, unmodified, against virtual boards: does it pass, with right results?

    python benchmarks/official_runner.py RUNNER --python PYTHON --models kws --platforms riscv32

RUNNER is benchmark/runner of a copy of mlcommons/tiny, PYTHON an interpreter with its requirements.
The data sets are synthetic, as the official ones are not public files of that repository: results
are compared, vector by vector, with the reference (TFLM's arithmetic); accuracies mean nothing.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.evaluation import Build, build
from covp.firmware.mlperf.benchmarks import BENCHMARKS, Benchmark
from covp.firmware.mlperf.board import BenchmarkBoard
from covp.firmware.mlperf.firmware import build_firmware
from covp.firmware.mlperf.official import run_official

WINDOW, STRIDE = 2560, 512
"""Bytes of ad01's windows, and from one to the next."""


@dataclass(frozen=True)
class Row:
    """One run of the runner.

    Attributes:
        mode: "p" or "a".
        passed: it ended without an error and with its verdict.
        vectors: results that were compared, and the largest difference to the reference.
        throughput: inferences per second of virtual time, median; of mode "p".
        seconds: of the host.
    """

    benchmark: str
    platform: str
    accelerators: tuple[str, ...]
    mode: str
    passed: bool
    vectors: int
    largest_difference: float
    throughput: float | None
    seconds: float


def image(rng: np.random.Generator, extent: int) -> NDArray[np.uint8]:
    """Waves and noise: neighbouring pixels are alike, as in photographs."""
    place = np.linspace(0, 1, extent)
    waves = np.zeros((extent, extent, 3))
    for channel in range(3):
        for _ in range(6):
            x, y, phase = rng.normal(0, 3), rng.normal(0, 3), rng.uniform(0, 2 * np.pi)
            angle = 2 * np.pi * (x * place[None, :] + y * place[:, None]) + phase
            waves[..., channel] += rng.normal() * np.cos(angle)
    waves = (waves - waves.min()) / np.ptp(waves) * 255
    noisy: NDArray[np.float64] = waves + rng.normal(0, 8, waves.shape)
    return noisy.clip(0, 255).astype(np.uint8)


def features(rng: np.random.Generator) -> NDArray[np.int8]:
    """Of a word: each coefficient wanders."""
    walk: NDArray[np.float64] = rng.normal(0, 8, (49, 10)).cumsum(0) + 40
    coefficients: NDArray[np.int8] = walk.round().clip(-128, 127).astype(np.int8)
    return coefficients


def samples(benchmark: str, rng: np.random.Generator) -> tuple[int, Iterator[bytes]]:
    """The number of classes, and files, in the form that the host sends."""

    def forever(one: Callable[[], NDArray[Any]]) -> Iterator[bytes]:
        while True:
            yield one().tobytes()

    if benchmark in ("ic01", "ic02"):
        return 10, forever(lambda: image(rng, 32))
    if benchmark == "vww01":
        return 2, forever(lambda: image(rng, 96))
    if benchmark == "kws01":
        return 12, forever(lambda: features(rng))
    frames = WINDOW // 4 + 3 * (STRIDE // 4)
    return 2, forever(lambda: rng.normal(-20, 8, frames).astype("<f4"))


def write_data(folder: Path, benchmark: str, seed: int = 7) -> None:
    """Files and ``y_labels.csv``: one of each class, and at least five."""
    folder.mkdir(parents=True)
    classes, files = samples(benchmark, np.random.default_rng(seed))
    rows = []
    count = {2: 6}.get(classes, classes)
    if benchmark == "ic02":
        count = 10
    for number in range(count):
        name = f"synthetic_{number:02}.bin"
        (folder / name).write_bytes(next(files))
        windows = f",{WINDOW},{STRIDE}" if benchmark == "ad01" else ""
        rows.append(f"{name},{classes},{number % classes}{windows}\n")
    (folder / "y_labels.csv").write_text("".join(rows))


def expected(made: Build, benchmark: Benchmark, data: bytes) -> list[float]:
    """The results of one download by the reference, rounded as they are printed."""
    (source,), (target,) = made.program.inputs, made.program.outputs
    assert source.quantization is not None and target.quantization is not None
    scale, zero = (float(v[0]) for v in (source.quantization.scale, source.quantization.zero_point))
    if benchmark.name == "kws01":
        x = np.frombuffer(data, np.int8).astype(float)
    elif benchmark.name == "ad01":
        steps = np.frombuffer(data, "<f4") / np.float32(scale)
        x = np.trunc(steps + np.copysign(np.float32(0.5), steps)) + zero
    else:
        x = np.frombuffer(data, np.uint8).astype(float) - 128
    given = x.clip(-128, 127).astype(np.int8).reshape(source.shape)
    (output,) = made.program.reference([given])
    step, origin = (
        np.float32(v[0]) for v in (target.quantization.scale, target.quantization.zero_point)
    )
    values = step * (output.ravel().astype(np.float32) - origin)
    if benchmark.name == "ad01":
        values = np.mean((values.astype(float) - np.frombuffer(data, "<f4")) ** 2, keepdims=True)
    return [float(f"{value:.3f}") for value in values]


def compared(
    made: Build, benchmark: Benchmark, results: Sequence[dict[str, Any]], folder: Path
) -> list[float]:
    """The largest difference of each result of the runner."""
    seen: dict[str, int] = {}
    found = []
    for result in results:
        if "infer" not in result:
            continue
        data = (folder / result["file"]).read_bytes()
        if benchmark.name == "ad01":
            window = 0 if result["mode"] == "p" else seen.get(result["file"], 0)
            seen[result["file"]] = window + 1
            data = data[STRIDE * window :][:WINDOW]
        want, got = expected(made, benchmark, data), result["infer"]["results"]
        found.append(max(abs(a - b) for a, b in zip(want, got, strict=True)))
    return found


def measure(
    model: str,
    platform: str,
    accelerators: Sequence[str],
    mode: str,
    runner: Path,
    python: str | None,
) -> Row:
    """Run the runner once."""
    made = build(model, platform, accelerators)
    firmware = build_firmware(made)
    benchmark = firmware.benchmark
    # the runner's own test file says ic01 for ic02; its performance mode takes all files of it
    folder = "ic01" if benchmark.name == "ic02" else benchmark.name
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        data = root / "data" / folder
        write_data(data, benchmark.name)
        if benchmark.name == "ic02" and mode == "p":
            labels = (data / "y_labels.csv").read_text().splitlines(keepends=True)
            (data / "y_labels.csv").write_text("".join(labels[:5]))
        start = time.monotonic()
        with BenchmarkBoard(firmware) as board:
            arguments = ["--mode", mode, "--dataset_path", str(root / "data")]
            status = run_official(board, runner, arguments, python, cwd=root)
            windows = board.windows
        seconds = time.monotonic() - start
        (session,) = (root / "sessions").iterdir()
        said = (session / "results.txt").read_text() if status == 0 else ""
        results = json.loads((session / "results.json").read_text()) if status == 0 else []
        differences = compared(made, benchmark, results, data)
    verdict = "Median throughput is" if mode == "p" else "AUC ="
    return Row(
        benchmark.name,
        platform,
        tuple(accelerators),
        mode,
        status == 0 and verdict in said and "ERROR" not in said,
        len(differences),
        max(differences, default=float("nan")),
        windows.inferences / windows.microseconds * 1e6 if mode == "p" else None,
        seconds,
    )


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Markdown of what was measured, a line for each board."""
    lines = [
        "| platform | accelerator | benchmark | performance mode | inferences a second, virtual | "
        "accuracy mode | result vectors | of them as the reference |",
        "|---|---|---|---|---|---|---|---|",
    ]
    boards: dict[tuple[str, str, str], dict[str, dict[str, Any]]] = {}
    for row in rows:
        key = (row["platform"], ", ".join(row["accelerators"]) or "none", row["benchmark"])
        boards.setdefault(key, {})[row["mode"]] = row
    for key, modes in boards.items():
        said = {mode: "passes" if row["passed"] else "fails" for mode, row in modes.items()}
        vectors = sum(row["vectors"] for row in modes.values())
        right = "all" if all(r["largest_difference"] == 0 for r in modes.values()) else "not all"
        speed = modes["p"]["throughput"]
        cells = [
            *key,
            said["p"],
            f"{speed:,.2f}",
            said["a"],
            vectors,
            "all" if right else "not all",
        ]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure what the arguments name, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runner", type=Path)
    parser.add_argument("--python")
    parser.add_argument("--models", nargs="+", default=[b.model for b in BENCHMARKS.values()])
    parser.add_argument("--platforms", nargs="+", default=["cortex-m4", "riscv32"])
    parser.add_argument("--accelerators", nargs="*", default=["", "qconv2d"])
    parser.add_argument("--modes", nargs="+", default=["p", "a"])
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rows = []
    for platform in given.platforms:
        for model in given.models:
            for accelerator in given.accelerators:
                for mode in given.modes:
                    names = [accelerator] if accelerator else []
                    if names == ["qconv2d"] and model == "toycar":
                        names = ["gemm"]  # it has no convolutions
                    row = measure(model, platform, names, mode, given.runner, given.python)
                    rows.append(row)
                    print(json.dumps(asdict(row)), flush=True)
                    if given.json:
                        text = json.dumps([asdict(r) for r in rows], indent=1)
                        given.json.write_text(text + "\n")
    print(table([asdict(row) for row in rows]) if len(given.modes) == 2 else "")


if __name__ == "__main__":
    main()

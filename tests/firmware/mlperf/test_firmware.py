"""The firmware's C: numbers as text, ad01's arithmetic, warnings, and the exported project."""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from covp.cli.main import main
from covp.compilers.toolchain import get_toolchain, runtime_dir, split_sources
from covp.evaluation import build
from covp.firmware import Library
from covp.firmware.firmware import board_config
from covp.firmware.mlperf.benchmarks import BENCHMARKS, find_benchmark
from covp.firmware.mlperf.firmware import tiny_application
from covp.graph.reference import run_reference
from covp.runtime.session import Session

from .firmware_bench import FirmwareBench, small_network

SIZE = 12
AUTOENCODER = small_network(SIZE, SIZE)
SETTINGS = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

PRINTER = """
static char text[64];
static uint32_t bytes;

void board_write(const char *from, size_t count)
{
    while (count--)
        text[bytes++] = *from++;
}

uint64_t board_microseconds(void) { return 0; }

uint32_t print_float(uint32_t bits, char *to)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    bytes = 0;
    reply_float(value);
    memcpy(to, text, bytes);
    return bytes;
}
"""


@pytest.fixture(scope="module")
def printer() -> Iterator[Session]:
    with Session("riscv32") as session:
        folder = runtime_dir()
        files = ("boards/board.h", "mlperf_tiny/protocol.h", "mlperf_tiny/reply.c")
        texts = [(folder / file).read_text().replace('#include "', '//"') for file in files]
        session.module = session.load_c("\n".join([*texts, PRINTER]))  # type: ignore[attr-defined]
        yield session


@SETTINGS
@given(st.floats(-(2.0**42), 2.0**42, width=32) | st.integers(-4096, 4096).map(lambda n: n / 256))
def test_numbers_are_printed_as_printf_does(printer: Session, value: float) -> None:
    """Ties go to even, as the C standard's recommended practice (F.5) has it."""
    bits = int(np.float32(value).view(np.uint32))
    to = printer.tensor(np.zeros(64, np.uint8))
    count = printer.module["print_float"](bits, to).result()  # type: ignore[attr-defined]
    assert to.numpy()[:count].tobytes().decode() == f"{float(np.float32(value)):.3f}"


@pytest.fixture(scope="module", params=["cortex-m4", "riscv32"])
def autoencoder(request: pytest.FixtureRequest) -> Iterator[FirmwareBench]:
    bench = FirmwareBench(request.param, "ad01", graph=AUTOENCODER)
    yield bench
    bench.close()


@SETTINGS
@given(st.lists(st.floats(-300, 300, width=32), min_size=SIZE, max_size=SIZE))
def test_distance_of_an_autoencoder(autoencoder: FirmwareBench, values: list[float]) -> None:
    """Within 0.001 of the computation in double precision."""
    x = np.array(values, "<f4")
    steps = x / np.float32(0.5)
    given = (np.trunc(steps + np.copysign(np.float32(0.5), steps)) + 3).clip(-128, 127)
    (output,) = run_reference(AUTOENCODER, [given.astype(np.int8).reshape(1, SIZE)])
    wanted = np.mean((0.25 * (output.ravel().astype(float) + 5) - x.astype(float)) ** 2)
    autoencoder.restart()
    data = x.tobytes()
    for i in range(0, len(data), 16):
        head = f"db load {len(data)}%" if i == 0 else ""
        autoencoder.say(f"{head}db {data[i : i + 16].hex()}%".encode())
    line = autoencoder.say(b"infer 1 0%")[-2]
    assert abs(float(line[len("m-results-[") : -1]) - wanted) <= 0.001


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 3e38])
def test_no_number_is_no_trouble(autoencoder: FirmwareBench, value: float) -> None:
    autoencoder.restart()
    data = np.full(SIZE, value, "<f4").tobytes()
    autoencoder.say(f"db load {len(data)}%db {data[:24].hex()}%db {data[24:].hex()}%".encode())
    line = autoencoder.say(b"infer 1 0%")[-2]
    assert re.fullmatch(r"m-results-\[\d+\.\d{3}\]", line)


STRICT = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wcast-align", "-Werror")


@pytest.mark.costly
@pytest.mark.parametrize("toolchain", ["zig", "gcc"])
@pytest.mark.parametrize("platform", ["cortex-m0plus", "riscv32"])
def test_no_warnings(platform: str, toolchain: str) -> None:
    made = build(AUTOENCODER, platform)
    prefix = made.platform.core.gcc_prefix
    if toolchain == "gcc" and shutil.which(f"{prefix}gcc") is None:
        pytest.skip(f"no gcc for {platform}")
    library = Library.of(made.program)
    for name in BENCHMARKS:
        application = tiny_application(library, find_benchmark(made.program, name))
        texts = dict(application.files)
        texts["dense.h"] = library.files["include/dense.h"]
        texts["board.h"] = (runtime_dir() / "boards" / "board.h").read_text()
        texts["board_config.h"] = board_config(made.platform)
        compiler = get_toolchain(toolchain, made.platform.core)
        assert compiler.compile(*split_sources(texts), flags=STRICT)


@pytest.mark.costly
def test_the_exported_project_is_the_board(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Built by make, it answers like the board of `covp board`, in the same time."""
    folder = tmp_path / "project"
    options = ["-p", "riscv32", "--firmware", "mlperf-tiny", "-o", str(folder)]
    with pytest.raises(SystemExit) as done:
        main(["export", "toycar", *options])
    assert done.value.code == 0, capsys.readouterr().err
    assert "covp_exit_status" not in (folder / "README.md").read_text()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    made = subprocess.run(
        ["make", "-C", folder, "-j2"],
        env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    exported = FirmwareBench("riscv32", "ad01", elf=folder / "firmware.elf")
    own = FirmwareBench("riscv32", "ad01", graph=build("toycar", "riscv32").graph)
    data = np.random.default_rng(4).normal(-20, 5, 640).astype("<f4").tobytes()
    lines = [f"db {data[i : i + 31].hex()}%" for i in range(0, len(data), 31)]
    download = f"db load {len(data)}%{''.join(lines)}"
    for bench in (exported, own):
        bench.say(download.encode())
    answers = [bench.boot + bench.say(b"profile%infer 3 1%") for bench in (exported, own)]
    assert answers[0][5] == "m-model-[ad01]" and answers[0][-1] == "m-ready"
    laps = [
        [int(line.removeprefix("m-lap-us-")) for line in lines if line.startswith("m-lap-us-")]
        for lines in answers
    ]
    for lines in answers:
        lines[:] = [line for line in lines if not line.startswith("m-lap-us-")]
    assert answers[0] == answers[1]
    assert laps[0][2] - laps[0][1] == pytest.approx(laps[1][2] - laps[1][1], abs=1)
    exported.close()
    own.close()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--layout", "zephyr"], "take make or cmake"),
        (["--sample", "x.npy"], "from the host"),
        (["--benchmark", "kws01"], "no benchmark|comp|takes"),
    ],
)
def test_options_that_do_not_fit(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    firmware = [] if "--benchmark" in arguments else ["--firmware", "mlperf-tiny"]
    with pytest.raises(SystemExit) as done:
        main(
            ["export", "toycar", "-p", "riscv32", "-o", str(tmp_path / "x"), *firmware, *arguments]
        )
    assert done.value.code == 2
    assert re.search(said if firmware else "belongs to --firmware", capsys.readouterr().err)

"""kill -9 at random moments: no process and no temporary file is left, the next run is right."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

COVP = [sys.executable, "-c", "from covp.cli.main import main; main()"]
COMMANDS = [
    ["run", "toycar", "-p", "riscv32"],
    ["run", "toycar", "-p", "cortex-m4"],
    ["tune", "toycar", "-p", "riscv32", "--trials", "20", "--jobs", "2"],
    ["compare", "toycar", "-p", "riscv32", "-a", "gemm"],
    ["verify", "gemm", "--examples", "5"],
    ["export", "toycar", "-p", "riscv32", "-o", "exported"],
]


def leftover(marker: str) -> list[str]:
    """Processes that carry the marker in their environment."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if marker.encode() in Path(f"/proc/{name}/environ").read_bytes():
                state = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[0]
                found += [name] if state != "Z" else []
        except OSError:
            continue
    return found


def attack(folder: Path, seeds: range, longest: float) -> None:
    (folder / "tmp").mkdir()
    marker = f"covp-kill-test={folder}"
    environment = {**os.environ, "COVP_CACHE_DIR": str(folder / "cache"), "MARKER": marker}
    environment |= {"TMPDIR": str(folder / "tmp"), "COVP_MODEL_DIR": ""}
    zig = Path(os.environ.get("COVP_CACHE_DIR", Path.home() / ".cache" / "covp")) / "zig"
    environment["ZIG_GLOBAL_CACHE_DIR"] = str(zig)
    whole = [*COVP, "run", "toycar", "-p", "riscv32", "--json"]

    def result() -> object:
        done = subprocess.run(
            whole, env=environment, capture_output=True, text=True, cwd=folder, timeout=300
        )
        assert done.returncode == 0 and done.stderr == "", done.stderr
        document = json.loads(done.stdout)
        return document["outputs"], document["matches_reference"]

    for seed in seeds:
        rng = random.Random(seed)
        process = subprocess.Popen(
            [*COVP, *rng.choice(COMMANDS)],
            env=environment,
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(rng.uniform(0.05, longest))
        process.send_signal(signal.SIGKILL)
        process.wait()
    # a compiler that was running ends by itself
    deadline = time.monotonic() + 60
    while leftover(marker) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not leftover(marker)
    first = result()
    assert first == result()
    assert not list((folder / "tmp").glob("covp-*"))
    assert not list((folder / "cache" / "partial").iterdir())


@pytest.mark.costly
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_killed_at_random_moments(tmp_path: Path) -> None:
    attack(tmp_path, range(3), 2.0)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_hundred_killed_at_random_moments(tmp_path: Path) -> None:
    attack(tmp_path, range(100, 200), 6.0)

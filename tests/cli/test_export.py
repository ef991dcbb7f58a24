"""``covp export``: the project builds with make alone, and runs bit-exactly from reset."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from covp.chip.platform_file import load_platform
from covp.compilers.elf import ElfImage
from covp.device.virtual import VirtualDevice

from .conftest import Call

if shutil.which("make") is None:
    pytest.skip("make is not installed (apt install make)", allow_module_level=True)


def build(folder: Path) -> bytes:
    python = Path(sys.executable).parent
    path = f"{python}{os.pathsep}{os.environ['PATH']}"
    # no covp there: only what is in the folder may be used
    done = subprocess.run(
        ["make", "-C", str(folder), "-j2"],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr, done.stderr
    return (folder / "firmware.elf").read_bytes()


def run(platform: str, elf: bytes) -> tuple[int, str]:
    """Exit status and what was printed."""
    with VirtualDevice(load_platform(platform)) as device:
        for segment in ELFFile(io.BytesIO(elf)).iter_segments():
            if segment["p_type"] == "PT_LOAD" and segment["p_filesz"]:
                device.write(segment["p_paddr"], segment.data())
        symbols = ElfImage(elf).symbols
        device.execute(symbols["covp_reset"].address, symbols["covp_exit"].address)
        status = int.from_bytes(device.read(symbols["covp_exit_status"].address, 4), "little")
        uart: Any = device.peripherals["uart0"][1]
        return status, uart.text


@pytest.mark.slow
@pytest.mark.parametrize("platform", ["riscv32", "riscv32f", "cortex-m0plus"])
@pytest.mark.parametrize("toolchain", ["zig", "gcc"])
def test_firmware_gives_the_right_bits(call: Call, tmp_path: Path, platform: str, toolchain: str):
    prefix = load_platform(platform).core.gcc_prefix
    if toolchain == "gcc" and shutil.which(f"{prefix}gcc") is None:
        pytest.skip(f"no gcc for {platform}")
    folder = tmp_path / "project"
    done = call("export", "toycar", "-p", platform, "--toolchain", toolchain, "-o", str(folder),
                "--json")  # fmt: skip
    assert done.status == 0, done.err
    document = json.loads(done.out)
    assert sorted(document["files"]) == sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )
    elf = build(folder)
    status, text = run(platform, elf)
    assert status == 0
    first, *_, verdict = text.splitlines()
    assert first.startswith(f"toycar on {platform}") and verdict == "pass"
    # the check in main can fail
    main = folder / "selftest" / "toycar_io.h"
    text = main.read_text()
    start = text.index("expected_0[")
    digit = text.index("{", start) + 1
    main.write_text(text[:digit] + " 1 ^ " + text[digit:].lstrip())
    status, text = run(platform, build(folder))
    assert status == 1 and text.endswith("fail: 1 bytes differ\n")


def test_a_folder_with_something_in_it_is_left_alone(call: Call, tmp_path: Path):
    (tmp_path / "mine.txt").write_text("mine")
    done = call("export", "toycar", "-p", "riscv32", "-o", str(tmp_path))
    assert done.status == 2 and "exists already" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.costly
def test_what_the_drivers_expect_is_told(call: Call, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    done = call("export", "toycar", "-p", "riscv32", "-a", "gemm:wait=sleep", "-o", folder)
    assert (done.status, done.err) == (0, "")
    text = (folder / "README.md").read_text()
    assert "- gemm:wait=sleep at bus address 0x70000000, interrupt line 1\n" in text
    other = tmp_path / "other"
    done = call("export", "toycar", "-p", "riscv32", "-a", "cfu", "-o", other)
    assert (done.status, done.err) == (0, "")
    assert "- cfu in the core: its custom instructions\n" in (other / "README.md").read_text()


@pytest.mark.costly
def test_a_sample_a_prefix_and_a_static_arena(call: Call, tmp_path: Path) -> None:
    sample = np.full((1, 640), 3, np.int8)
    np.save(tmp_path / "x.npy", sample)
    done = call("export", "toycar", "-p", "riscv32", "--sample", tmp_path / "x.npy", "--prefix",
                "ears", "--arena", "static", "-o", tmp_path / "out")  # fmt: skip
    assert (done.status, done.err) == (0, "")
    text = (tmp_path / "out/selftest/ears_io.h").read_text()
    assert "ears_input_0[] = {\n    3, 3, 3," in text
    assert "uint8_t ears_arena[768]" in (tmp_path / "out/model/src/ears_arena.c").read_text()
    wrong: list[tuple[list[str | Path], str]] = [
        (["--sample", tmp_path / "none.npy"], "none.npy: cannot be read"),
        (["--prefix", "2 x"], "'2 x' is not a lower-case C identifier, such as '_2_x'"),
        (["--layout", "makke"], "makke"),
    ]
    for options, said in wrong:
        done = call("export", "toycar", "-p", "riscv32", "-o", tmp_path / "no", *options)
        assert done.status == 2 and said in done.err, done.err
        assert not (tmp_path / "no").exists()
    np.save(tmp_path / "y.npy", sample[:, 1:])
    done = call("export", "toycar", "-p", "riscv32", "--sample", tmp_path / "y.npy", "-o",
                tmp_path / "no")  # fmt: skip
    assert done.status == 2 and "640" in done.err and not (tmp_path / "no").exists()

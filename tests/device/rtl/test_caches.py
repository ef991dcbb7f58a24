"""Caches of a platform between a core's RTL and its memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml

import covp
from covp.chip.platform_file import Platform, platforms_dir, read_platform
from covp.device.rtl.device import RtlDevice
from tests.device.rtl.conftest import need_rtl

WORDS, LINE, WAITS = 64, 16, 5
MISS = LINE // 4 * (1 + WAITS)


def load_word(offset: int) -> int:
    """lw a1, offset(a0)."""
    return offset << 20 | 10 << 15 | 2 << 12 | 11 << 7 | 0x03


def code_of(platform: Platform) -> bytes:
    """lui a0, %hi(RAM); loads of WORDS words in a row; j ."""
    words = platform.ram.start | 0x537, *(load_word(4 * n) for n in range(WORDS)), 0x0000006F
    return b"".join(word.to_bytes(4, "little") for word in words)


def with_caches(
    folder: Path,
    core: str,
    flash: dict[str, object],
    ram: dict[str, object],
    *caches: dict[str, object],
) -> Platform:
    content = yaml.safe_load((platforms_dir() / f"{core}.yaml").read_text())
    for region, more in zip(content["memory"], (flash, ram), strict=True):
        region |= more
    content |= {"caches": list(caches), "name": "cached"}
    content.pop("aliases", None)
    path = folder / "cached.yaml"
    path.write_text(yaml.safe_dump(content))
    return read_platform(path)


def cache(holds: str, **more: object) -> dict[str, object]:
    return {"name": holds, "holds": holds, "size": "1K", "line": LINE, **more}


def run(device: RtlDevice) -> int:
    start, code = device.platform.flash.start, code_of(device.platform)
    device.write(start, code)
    stop = device.execute(start, start + len(code) - 4)
    assert stop.instructions == WORDS + 1
    assert stop.cycles is not None
    return stop.cycles


@pytest.mark.costly
@pytest.mark.parametrize("core", ["cv32e40p", "vexriscv-lite"])
def test_a_miss_takes_what_a_line_does(core, tmp_path):
    """Words of RAM in a row: the first one of each line misses, and none when they are held."""
    need_rtl(core)
    inner = ["icache"] if core == "vexriscv-lite" else []  # its own, whatever the file has beside
    own = [{"name": name, "holds": "fetch", "size": "2K", "line": 32} for name in inner]
    ram = {"wait_states": WAITS, "caches": ["data"]}
    platform = with_caches(tmp_path, core, {"caches": inner}, ram, cache("data"), *own)
    with RtlDevice(platform) as device:
        cold, warm = run(device), run(device)
        state = device.save_state()
        assert run(device) == warm
        device.reset()
        assert run(device) == cold
        device.load_state(state)
        assert run(device) == warm
    assert cold - warm == 4 * WORDS // LINE * MISS


@pytest.mark.costly
def test_fetches_are_cached_as_well(cv32e40p, tmp_path):
    flash = {"wait_states": WAITS, "caches": ["fetch"]}
    with RtlDevice(with_caches(tmp_path, cv32e40p, flash, {}, cache("fetch"))) as device:
        cold, warm = run(device), run(device)
    lines = 4 * WORDS // LINE
    assert warm < 1.1 * WORDS
    assert (lines - 2) * MISS <= cold - warm <= (lines + 2) * MISS


@pytest.mark.costly
@pytest.mark.parametrize(
    "caches",
    [
        (cache("both", size="4K", ways=2, burst=True),),
        (cache("fetch", prefetch=True), cache("data", ways=2, replacement="fifo")),
        (cache("fetch"), cache("data", write="back", replacement="random", ways=4)),
    ],
    ids=["both", "prefetch", "back"],
)
def test_the_virtual_device_agrees(cv32e40p, tmp_path, caches):
    """Within 2 %: the virtual core stands still during a miss, the RTL goes on with what it has."""
    names = [one["name"] for one in caches]
    data = [name for name in names if name != "fetch"]
    flash = {"wait_states": WAITS, "caches": names}
    platform = with_caches(tmp_path, cv32e40p, flash, {"wait_states": 1, "caches": data}, *caches)
    program = covp.compile("toycar", platform, schedules=None)
    x = [np.zeros(t.shape, t.dtype) for t in program.inputs]
    cycles = {}
    for device in ("virtual", "rtl"):
        with covp.Session(platform, device=device) as session:
            graph = session.load(program)
            graph.run(*x)
            cycles[device] = graph.profile().cycles
    assert cycles["virtual"] == pytest.approx(cycles["rtl"], rel=0.02)

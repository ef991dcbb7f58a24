"""Wait states of memory: a core's own stalls, of sequences whose accesses can be counted."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from covp.chip.platform_file import Platform, platforms_dir, read_platform
from covp.device.rtl.device import RtlDevice
from covp.errors import PlatformError

RAM = 0x80000000
LOADS = 50
# lui a0, %hi(RAM); 50 times lw a1, 0(a0), 4 bytes each; j .
CODE = b"".join(
    word.to_bytes(4, "little") for word in (0x80000537, *[0x00052583] * LOADS, 0x0000006F)
)


def with_waits(folder: Path, core: str, wait_states: object) -> Platform:
    """The platform of a core, with the key in each of its memories."""
    content = yaml.safe_load((platforms_dir() / f"{core}.yaml").read_text())
    for region in content["memory"]:
        region["wait_states"] = wait_states
    path = folder / "waits.yaml"
    path.write_text(yaml.safe_dump(content))
    return read_platform(path)


@pytest.mark.parametrize("fetch", [0, 1, 3])
@pytest.mark.parametrize("data", [0, 1, 3])
def test_a_row_of_loads(cv32e40p, tmp_path, fetch, data):
    """The slower of both ports sets the pace: words of code, and words of data."""
    platform = with_waits(tmp_path, cv32e40p, {"fetch": fetch, "data": data})
    with RtlDevice(platform) as device:
        start = platform.flash.start
        device.write(start, CODE)
        stop = device.execute(start, start + len(CODE) - 4)
    assert stop.instructions == LOADS + 1
    assert stop.cycles is not None
    each = 1 + max(fetch, data)
    assert (LOADS - 1) * each <= stop.cycles <= (LOADS + 2) * each
    assert stop.sources.cycles is not None
    assert stop.sources.cycles.assumes == platform.wait_states


def test_what_figures_say(tmp_path):
    waits = with_waits(tmp_path, "cv32e40p", 2)
    assert waits.wait_states == "wait states of fetch/data: flash 2/2, ram 2/2"
    assert with_waits(tmp_path, "cv32e40p", 0).wait_states == "zero wait states"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (-1, "memory[0].wait_states"),
        (256, "memory[0].wait_states"),
        ({"fetch": 1, "dta": 1}, "unknown key 'dta': did you mean data?"),
    ],
)
def test_what_is_rejected(tmp_path, value, text):
    with pytest.raises(PlatformError) as caught:
        with_waits(tmp_path, "cv32e40p", value)
    assert text in str(caught.value)


def test_memories_of_unlike_speed_stay_apart(tmp_path):
    content = yaml.safe_load((platforms_dir() / "cv32e40p.yaml").read_text())
    more = {"name": "more", "kind": "flash", "start": 0x20400000, "size": "4M"}
    for waits, regions in ((0, ["flash_more", "ram"]), (1, ["flash", "ram", "more"])):
        path = tmp_path / "two.yaml"
        memory = [*content["memory"], {**more, "wait_states": waits}]
        path.write_text(yaml.safe_dump({**content, "memory": memory}))
        assert [region.name for region in read_platform(path).memory] == regions

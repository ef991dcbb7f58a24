"""Platforms with several cores: what belongs to whom, and what is rejected."""

from __future__ import annotations

from pathlib import Path

import pytest

from covp.chip.platform_file import Platform, load_platform
from covp.errors import PlatformError
from covp.runtime.linking import ImageMemory

GOOD = """
name: two
core: cortex-m4f
clock_hz: 1000000
memory:
  - {name: flash, kind: flash, start: 0x08000000, size: 16K}
  - {name: flash2, kind: flash, start: 0x08004000, size: 16K}
  - {name: low, kind: ram, start: 0x20000000, size: 8K}
  - {name: ram, kind: ram, start: 0x20010000, size: 8K}
  - {name: extra, kind: ram, start: 0x20012000, size: 8K}
  - {name: common, kind: ram, start: 0x20020000, size: 8K}
further_cores:
  - {name: sensor, core: cortex-m0plus, memory: [flash2, low], clock_divider: 4, stack: 1K}
shared_memory: [common]
peripherals:
  - {name: box, model: mailbox, base: 0x40000000, irq: 3, core: sensor}
"""


def read(folder: Path, text: str = GOOD) -> Platform:
    file = folder / "two.yaml"
    file.write_text(text)
    return load_platform(file)


def names(platform: Platform) -> list[str]:
    return [region.name for region in platform.memory]


def test_each_core_has_its_own_memory_and_sees_all(tmp_path: Path) -> None:
    platform = read(tmp_path)
    assert platform.core_names == ("main", "sensor")
    main, sensor = (platform.for_core(name) for name in platform.core_names)
    # ram and extra are one; the flashes, of different cores, are not
    assert (names(main), names(sensor)) == (["flash", "ram_extra"], ["flash2", "low"])
    assert (main.core.name, main.clock_hz) == ("cortex-m4f", 1_000_000)
    assert (sensor.core.name, sensor.clock_hz) == ("cortex-m0plus", 250_000)
    assert (main.peripherals[0].irq, sensor.peripherals[0].irq) == (None, 3)
    for name, own in (("main", main), ("sensor", sensor)):
        seen = platform.seen_by(name)
        assert names(seen)[:2] == names(own) and sorted(names(seen)) == sorted(names(platform))
    # what does not fit the first core's memory is not put into another's
    memory = ImageMemory(platform)
    assert [use.name for use in memory.ram.use()] == ["ram_extra"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("name: sensor", "name: main", r"further_cores\[0\]\.name: 'main' is used twice"),
        ("name: sensor", "name: A-B", r"further_cores\[0\]\.name: 'A-B' must be a C identifier"),
        ("core: cortex-m0plus", "core: z80", r"further_cores\[0\]\.core: .*z80"),
        ("[flash2, low]", "[flash2]", r"further_cores\[0\]\.memory: .* no region of kind ram"),
        ("[flash2, low]", "[flash2, lo]", r"no memory 'lo': did you mean low"),
        ("[flash2, low]", "[flash2, flash2, low]", r"flash2 belongs to core sensor already"),
        ("shared_memory: [common]", "shared_memory: [low]", r"low belongs to core sensor already"),
        ("[flash2, low]", "[flash, flash2, low]", r"no region of kind flash that is left to the"),
        (
            "clock_divider: 4",
            "clock_divider: 3",
            r"clock_divider: clock_hz 1000000 is not a multiple",
        ),
        ("clock_divider: 4", "clock_divider: 0", r"clock_divider: .*>= 1"),
        ("stack: 1K", "stack: 9K", r"further_cores\[0\]\.stack: 9216 bytes"),
        ("0x20010000", "0x20002000", r"memory: low lies directly below ram_?"),
        ("irq: 3, core: sensor", "irq: 3, core: sensr", r"core: .*'sensr': did you mean sensor"),
        ("stack: 1K", "stak: 1K", r"further_cores\[0\]: unknown key 'stak': did you mean stack"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in GOOD
    with pytest.raises(PlatformError, match=said) as caught:
        read(tmp_path, GOOD.replace(old, new, 1))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("name", "holds", "is_right"), [
    ("ram", "data", True), ("low", "fetch", True), ("flash2", "both", True),
    ("low", "data", False), ("common", "data", False), ("common", "both", False),
])  # fmt: skip
def test_a_data_cache_holds_ram_of_the_first_core_alone(
    tmp_path: Path, name: str, holds: str, is_right: bool
) -> None:
    """What another core has in a cache of its own, or reads past this one, nothing models."""
    cached = GOOD.replace(f"name: {name}, kind", f"caches: [one], name: {name}, kind", 1)
    text = f"{cached}caches:\n  - {{name: one, holds: {holds}, size: 1K, write: back}}\n"
    if is_right:
        assert read(tmp_path, text).caches
        return
    said = rf"memory\[\d\]\.caches: {name} is RAM of further cores; the first core's data cache"
    with pytest.raises(PlatformError, match=said):
        read(tmp_path, text)


def test_a_core_that_there_is_not(tmp_path: Path) -> None:
    with pytest.raises(PlatformError, match="two has no core 'sensr': did you mean sensor"):
        read(tmp_path).for_core("sensr")
    with pytest.raises(PlatformError, match="shared_memory: there are no further cores"):
        read(tmp_path, GOOD.split("further_cores")[0] + "shared_memory: [common]\n")

"""What a memory adds to the core's own time: its instruction fetch, and loads of another one."""

from __future__ import annotations

import msgspec
import pytest

from covp.chip.platform_file import Platform, load_platform
from covp.chip.platform_file.caches import Cache
from covp.chip.platform_file.memory import FetchInterface
from covp.device.virtual import VirtualDevice
from covp.errors import PlatformError
from tests.conftest import load

WIDE = "add.w r1, r2, r3"


def with_interface(interface: FetchInterface) -> Platform:
    platform = load_platform("cortex-m4")
    flash, *rest = platform.memory
    flash = msgspec.structs.replace(flash, interface=interface)
    return msgspec.structs.replace(platform, memory=(flash, *rest))


def cycles(platform: Platform, body: str) -> int:
    text = f"start: .balign 16\n{body}\nend: b end\n.balign 4\nconstants: .word 1, 2, 3, 4"
    loaded = load("cortex-m4", text, device=VirtualDevice(platform))
    with loaded.device:
        stop = loaded.run()
        assert stop.cycles is not None
        return stop.cycles


@pytest.mark.parametrize(("wide", "later"), [(2, 0), (3, 1), (4, 1), (8, 1)])
def test_a_run_of_wide_instructions_across_words_is_late_once(wide: int, later: int) -> None:
    """compendium.i-0.nl, instruction-alignment, STM32L4: three or more cost one cycle."""
    body = "\n".join(["nop", *[WIDE] * wide, "nop"])
    plain = cycles(load_platform("cortex-m4"), body)
    assert cycles(with_interface(FetchInterface(crossing=3)), body) - plain == later


def test_wide_instructions_at_words_are_never_late() -> None:
    body = "\n".join([WIDE] * 8)
    plain = cycles(load_platform("cortex-m4"), body)
    assert cycles(with_interface(FetchInterface(crossing=3)), body) == plain


def test_one_fetch_ahead_is_one_for_each_cycle_of_two() -> None:
    """A fetch is requested when the one before it has left, so it comes in the cycle after next."""
    few, many = ("\n".join([WIDE] * count) for count in (8, 18))
    slow = with_interface(FetchInterface(ahead=1))
    assert cycles(load_platform("cortex-m4"), many) - cycles(load_platform("cortex-m4"), few) == 10
    assert cycles(slow, many) - cycles(slow, few) == 20


def test_loads_pipeline_within_one_memory() -> None:
    """github.com/jnk0le/random, cortex_m3m4.md: only when targeting the same memory block."""
    platform = load_platform("cortex-m4")
    flash, *rest = platform.memory
    flash = msgspec.structs.replace(flash, caches=("data",))
    cache = Cache("data", "data", 1024, line=512, bus=512)
    platform = msgspec.structs.replace(platform, memory=(flash, *rest), caches=(cache,))
    begin = "adr r5, constants\nmovw r4, #0x1000\nmovt r4, #0x2000\nldr r0, [r5]\nldr r0, [r4]\n"
    one = cycles(platform, begin)
    assert cycles(platform, begin + "ldr r1, [r4, #4]\nldr r2, [r4, #8]") - one == 2
    assert cycles(platform, begin + "ldr r1, [r5, #4]\nldr r2, [r4, #8]") - one == 4
    assert cycles(platform, begin + "ldr r1, [r5, #4]\nldr r2, [r5, #8]") - one == 3
    assert cycles(platform, begin + "str r5, [r4, #4]\nldr r2, [r5, #8]") - one == 3


@pytest.mark.parametrize("interface", ["{ahead: -1}", "{ahead: 9}", "{crossing: -1}", "{deep: 2}"])
def test_what_is_no_interface(tmp_path, interface: str) -> None:
    path = tmp_path / "board.yaml"
    path.write_text(
        "name: board\ncore: cortex-m4f\nclock_hz: 1_000_000\nmemory:\n"
        f"  - {{name: flash, kind: flash, start: 0, size: 64K, interface: {interface}}}\n"
        "  - {name: ram, kind: ram, start: 0x20000000, size: 64K}\n"
    )
    with pytest.raises(PlatformError, match="interface"):
        load_platform(path)

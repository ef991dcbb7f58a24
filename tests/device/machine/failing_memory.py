"""``python failing_memory.py PLATFORM WAY STEP``: from each allocation of the counter on, all fail.

WAY: what is asked of a device that runs a program. Prints how many runs were refused;
the last one is right.
"""

from __future__ import annotations

import ctypes
import sys
import tempfile
from pathlib import Path

import covp
from covp.chip.platform_file import load_platform
from covp.compilers.toolchain import SourceText, get_toolchain
from covp.device.debug.program_file import run_firmware
from covp.device.machine import native_counter
from covp.device.virtual import VirtualDevice
from covp.runtime.standalone import link_standalone

FAILING = """
#define _GNU_SOURCE
#include "{folder}/reserve.h"
static long to_give = 1L << 40;
static void *none(void *items) {{
    (void)items;
    return NULL;
}}
#define zeroed(m, count, size) (to_give-- > 0 ? zeroed(m, count, size) : kept(m, NULL))
#define grown(m, items, bytes) (to_give-- > 0 ? grown(m, items, bytes) : kept(m, none(items)))
EXPORT void fail_after(long count) {{ to_give = count; }}
#include "{folder}/counter.c"
#include "{folder}/tracks.c"
"""
CODE = """
#include <stdint.h>
#include <string.h>
static uint32_t words[300], more[70];
static uint32_t add(uint32_t a, uint32_t b) { return a + b; }
static uint32_t divide(uint32_t a, uint32_t b) { return a / (b | 1); }
static uint32_t shift(uint32_t a, uint32_t b) { return a << (b & 31); }
static uint32_t (*volatile all[])(uint32_t, uint32_t) = {add, divide, shift, add, divide, add};
int main(void) {
    uint32_t sum = 1;
    for (uint32_t n = 0; n < 200; n++) {
        volatile uint8_t *bytes = n & 1 ? (uint8_t *)words : (uint8_t *)more;
        words[n] = all[n % 6](sum, n);
        bytes[n & 255] = (uint8_t)sum;
        uint32_t loaded;
        memcpy(&loaded, (const uint8_t *)words + n, sizeof loaded);
        sum ^= loaded + more[n % 70];
    }
    return (int)(sum & 0x7fffffff);
}
"""


def asked(device: VirtualDevice, way: str) -> None:
    """Let more be counted or checked."""
    if way == "traced":
        device.core.counter.trace_edges()
    elif way == "segments":
        device.counts.keep_segments(lambda cycles: 0, ())


def main(name: str, way: str, step: str) -> None:
    platform = load_platform(name)
    toolchain = get_toolchain("zig", platform.core)
    elf = link_standalone(toolchain, platform, [SourceText("run.c", CODE)], ("-O1",))
    right = run_firmware(VirtualDevice(platform), elf)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "failing.c"
        source.write_text(FAILING.format(folder=native_counter._FOLDER))
        native_counter._SOURCES = (source,)
        native_counter.counter_library.cache_clear()
        library = native_counter.counter_library()
    fail_after = library.fail_after
    fail_after.argtypes = (ctypes.c_long,)
    done, refused, count = 0, 0, 0
    while not done:
        with VirtualDevice(platform) as device:
            asked(device, way)
            fail_after(count)
            try:
                assert run_firmware(device, elf) == right
                done += 1
            except covp.DeviceError as error:
                assert str(error).startswith("counts of this device were lost"), error
                refused += 1
                fail_after(1 << 40)
                try:
                    run_firmware(device, elf)
                    raise AssertionError("a device that has lost counts ran")
                except covp.DeviceError as error:
                    assert str(error).startswith("counts of this device were lost"), error
            fail_after(1 << 40)
        count += int(step)
    print(refused)


if __name__ == "__main__":
    main(*sys.argv[1:])

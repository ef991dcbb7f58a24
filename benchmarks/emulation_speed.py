"""What exact counting costs: covp's virtual device beside plain Unicorn, and QEMU where installed.

    python benchmarks/emulation_speed.py [--rounds 7] [--models-only] [--json FILE]

Prints million instructions a second of CPU time, and the ratio of times counting / no counting, for
a loop-heavy program (an int8 matrix product, blocked in registers), a branch-heavy one (a heap
sort) and the worst case (a binary search and a bitwise checksum: three instructions a block, no
stores). Runs are interleaved and the best of each kind counts. "plain" is Unicorn without any hook
in its default mode, where each store takes a slow path; the virtual device's TLB mode takes that
away, so that counting can be the faster of the two. Targets: at most 1.25 for the loop and 1.4 for
the branches. After that real models on every core, see emulation_models.py; they are what
``--json`` writes.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

from document import write_document
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from emulation_models import models

from covp.chip.cores import Core
from covp.chip.platform_file import Platform, load_platform
from covp.compilers.toolchain import SourceText, get_toolchain
from covp.device.machine.engine import open_engine, register_ids
from covp.device.virtual import VirtualDevice
from covp.hardware.bus import Memory

ROUNDS = 7
TARGETS = {"loop": 1.25, "branch": 1.4, "bits": None}
PLATFORMS = {"Cortex-M4": "cortex-m4", "RV32IMC": "riscv32"}

PROGRAMS = {
    "loop": """
#include <stdint.h>
static int8_t a[32 * 64], b[32 * 64];
volatile int32_t result;
void bench(int repeat) {
    for (int i = 0; i < 32 * 64; i++) { a[i] = (int8_t)(i * 7); b[i] = (int8_t)(i * 13); }
    int32_t total = 0;
    while (repeat--)
        for (int i = 0; i < 32; i += 2)
            for (int j = 0; j < 32; j += 2) {
                int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
                const int8_t *p = a + i * 64, *q = b + j * 64;
#pragma GCC unroll 2
                for (int k = 0; k < 64; k++, p++, q++) {
                    s0 += p[0] * q[0];
                    s1 += p[0] * q[64];
                    s2 += p[64] * q[0];
                    s3 += p[64] * q[64];
                }
                total += s0 + s1 + s2 + s3;
            }
    result = total;
}
""",
    "branch": """
#include <stdint.h>
static uint16_t heap[512];
volatile uint32_t result;
static __attribute__((noinline)) void sink(int root, int count) {
    uint16_t value = heap[root];
    for (int child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && heap[child + 1] > heap[child]) child++;
        if (heap[child] <= value) break;
        heap[root] = heap[child];
    }
    heap[root] = value;
}
void bench(int repeat) {
    uint32_t seed = 1, total = 0;
    while (repeat--) {
        for (int i = 0; i < 512; i++) {
            seed = seed * 1664525u + 1013904223u;
            heap[i] = (uint16_t)(seed >> 16);
        }
        for (int i = 255; i >= 0; i--) sink(i, 512);
        for (int count = 511; count > 0; count--) {
            uint16_t top = heap[0];
            heap[0] = heap[count];
            heap[count] = top;
            sink(0, count);
        }
        total += heap[7];
    }
    result = total;
}
""",
    "bits": """
#include <stdint.h>
static uint16_t table[256];
volatile uint32_t result;
static __attribute__((noinline)) int find(uint16_t key) {
    int low = 0, high = 255;
    while (low <= high) {
        int middle = (low + high) / 2;
        if (table[middle] == key) return middle;
        if (table[middle] < key) low = middle + 1;
        else high = middle - 1;
    }
    return -1;
}
void bench(int repeat) {
    for (int i = 0; i < 256; i++) table[i] = (uint16_t)(i * 251);
    uint32_t crc = ~0u, seed = 1;
    while (repeat--)
        for (int i = 0; i < 256; i++) {
            seed = seed * 1664525u + 1013904223u;
            crc ^= (uint32_t)find((uint16_t)(seed >> 16));
            for (int bit = 0; bit < 8; bit++) {
                if (crc & 1) crc = crc >> 1 ^ 0xedb88320u;
                else crc >>= 1;
            }
        }
    result = crc;
}
""",
}
REPEATS = {"loop": 200, "branch": 400, "bits": 1500}

START = {
    "arm": """
    .syntax unified
    .section .start, "ax"
    .global start
    .word {top}
    .word start
    .space 56
    .thumb
    .type start, %function
start:
    ldr r0, ={top}
    mov sp, r0
    ldr r0, ={repeat}
    bl bench
    .global end
end:
    {leave}
    b end
    .ltorg
""",
    "riscv": """
    .section .start, "ax"
    .global start
start:
    li sp, {top}
    li a0, {repeat}
    call bench
    .global end
end:
    {leave}
    j end
""",
}
SCRIPT = """
ENTRY(start)
SECTIONS {{
    . = {flash:#x};
    .text : {{ KEEP(*(.start)) *(.text*) *(.rodata*) }}
    . = {ram:#x};
    .data : {{ *(.data*) *(.bss*) *(.sbss*) *(.sdata*) *(COMMON) }}
    /DISCARD/ : {{ *(.ARM.*) }}
}}
"""


@dataclass(frozen=True)
class Binary:
    path: Path
    text: bytes
    base: int
    start: int
    end: int


def build(core: Core, program: str, flash: int, ram: int, leave: str = "") -> Binary:
    start = START[core.architecture].format(top=hex(ram), repeat=REPEATS[program], leave=leave)
    toolchain = get_toolchain("zig", core)
    objects = toolchain.compile(
        [SourceText("start.S", start), SourceText("bench.c", PROGRAMS[program])]
    )
    path = toolchain.link(objects, SCRIPT.format(flash=flash, ram=ram))
    with path.open("rb") as stream:
        elf = ELFFile(stream)
        table, code = (elf.get_section_by_name(name) for name in (".symtab", ".text"))
        assert isinstance(table, SymbolTableSection) and code is not None
        symbols = {symbol.name: symbol["st_value"] for symbol in table.iter_symbols()}
        text = code.data()
    return Binary(path, text, flash, symbols["start"] & ~1, symbols["end"] & ~1)


def counted(platform: Platform, binary: Binary) -> tuple[float, int]:
    with VirtualDevice(platform) as device:
        device.write(binary.base, binary.text)
        device.execute(binary.start, binary.end)  # translated now
        begin = time.process_time()
        stop = device.execute(binary.start, binary.end)
        return time.process_time() - begin, stop.instructions or 0


def plain(platform: Platform, binary: Binary) -> float:
    engine = open_engine(platform.core, virtual_tlb=False)
    memories = [Memory.of(region) for region in platform.memory]
    for memory in memories:
        engine.mem_map_ptr(memory.region.start, memory.region.bytes, 7, memory.pointer)
    engine.mem_write(binary.base, binary.text)
    thumb = int(platform.core.architecture == "arm")
    engine.reg_write(register_ids(platform.core.architecture)["sp"], platform.ram.start + 4096)
    engine.emu_start(binary.start | thumb, binary.end)
    begin = time.process_time()
    engine.emu_start(binary.start | thumb, binary.end)
    return time.process_time() - begin


# Machine, flash, ram and how the program ends the emulator.
QEMU = {
    "Cortex-M4": ("qemu-system-arm", "mps2-an386", 0x00000000, 0x20010000,
                  "movs r0, #0x18; ldr r1, =0x20026; bkpt #0xab"),
    "RV32IMC": ("qemu-system-riscv32", "virt", 0x80000000, 0x80100000,
                "li t0, 0x100000; li t1, 0x5555; sw t1, 0(t0)"),
}  # fmt: skip


def qemu(name: str, core: Core, program: str) -> float | None:
    """CPU seconds of a QEMU run less those of one with a program that ends at once."""
    tool, machine, flash, ram, leave = QEMU[name]
    if shutil.which(tool) is None:
        return None
    times = []
    for repeat in (REPEATS[program], 0):
        start = START[core.architecture].format(top=hex(ram), repeat=repeat, leave=leave)
        toolchain = get_toolchain("zig", core)
        objects = toolchain.compile(
            [SourceText("start.S", start), SourceText("bench.c", PROGRAMS[program])]
        )
        elf = toolchain.link(objects, SCRIPT.format(flash=flash, ram=ram))
        command = [tool, "-M", machine, "-nographic", "-bios", "none", "-kernel", str(elf)]
        command += ["-semihosting"] if core.architecture == "arm" else []
        times.append(min(_child_seconds(command) for _ in range(3)))
    return times[0] - times[1]


def _child_seconds(command: list[str]) -> float:
    import resource

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryFile() as out:
        subprocess.run(
            command, check=True, timeout=60, stdin=subprocess.DEVNULL, stdout=out, stderr=out
        )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def synthetic() -> int:
    """How many targets were missed."""
    missed = 0
    print(f"{'core':10} {'program':8} {'plain':>7} {'counted':>8} {'QEMU':>6}   Minstr/s   ratio")
    for name, platform_name in PLATFORMS.items():
        platform = load_platform(platform_name)
        for program, target in TARGETS.items():
            binary = build(platform.core, program, platform.flash.start, platform.ram.start + 4096)
            bare, ours, instructions = [], [], 0
            for _ in range(ROUNDS):
                bare.append(plain(platform, binary))
                seconds, instructions = counted(platform, binary)
                ours.append(seconds)
            ratio = min(ours) / min(bare)
            missed += target is not None and ratio > target
            other = qemu(name, replace(platform.core), program)
            speed = [instructions / best / 1e6 for best in (min(bare), min(ours))]
            third = f"{instructions / other / 1e6:6.0f}" if other else "     -"
            print(
                f"{name:10} {program:8} {speed[0]:7.0f} {speed[1]:8.0f} {third}"
                f"              {ratio:5.2f} {f'(target {target})' if target else ''}"
            )
    return missed


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N")
    parser.add_argument("--models-only", action="store_true")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    missed = 0 if options.models_only else synthetic()
    rows = models(options.rounds)
    if options.json:
        write_document(options.json, rows)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())

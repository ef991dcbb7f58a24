"""What a custom instruction costs on the virtual device, beside the plain instructions it replaces.

    python benchmarks/custom_instructions.py

Prints nanoseconds of CPU time of an int8 dot product of 16 KB: by a custom instruction that takes
four lanes at once, and by loads, multiplications and additions alone. Both are compiled by the same
compiler, unrolled alike, run interleaved, and have to give the same sum; the best run counts.
"""

from __future__ import annotations

import io
import time

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from covp.chip.platform_file import load_platform
from covp.compilers.toolchain import SourceText, get_toolchain
from covp.device.virtual import VirtualDevice
from covp.hardware.custom_instruction import CustomInstruction

ROUNDS = 7
REPEAT = 400

PROGRAM = """
#include <stdint.h>
#define BYTES 16384
static int8_t x[BYTES] __attribute__((aligned(4))), y[BYTES] __attribute__((aligned(4)));
volatile int32_t result;
void fill(void) {
    for (int i = 0; i < BYTES; i++) { x[i] = (int8_t)(i * 7); y[i] = (int8_t)(i * 13 + 5); }
}
void custom(int repeat) {
    int32_t sum = 0;
    while (repeat--) {
        const uint32_t *a = (const uint32_t *)x, *b = (const uint32_t *)y;
#pragma GCC unroll 8
        for (int i = 0; i < BYTES / 4; i++) {
            int32_t part;
            __asm__ volatile(".insn r 0x0b, 0, 0, %0, %1, %2" : "=r"(part) : "r"(*a++), "r"(*b++));
            sum += part;
        }
    }
    result = sum;
}
void plain(int repeat) {
    int32_t sum = 0;
    while (repeat--) {
        __asm__ volatile("" ::: "memory");
#pragma GCC unroll 32
        for (int i = 0; i < BYTES; i++) sum += x[i] * y[i];
    }
    result = sum;
}
"""

DOT = CustomInstruction(
    "dot",
    funct3=0,
    funct7=0,
    compute=lambda a, b: 0,
    native="""
    int32_t sum = 0;
    for (int lane = 0; lane < 4; lane++)
        sum += (int8_t)(a >> 8 * lane) * (int8_t)(b >> 8 * lane);
    return (uint32_t)sum;
    """,
)


def _load(device: VirtualDevice) -> dict[str, int]:
    platform = device.platform
    toolchain = get_toolchain("zig", platform.core)
    objects = toolchain.compile([SourceText("bench.c", PROGRAM)], flags=("-O2",))
    script = (
        f"SECTIONS {{ . = 0x{platform.flash.start:x}; .text : {{ KEEP(*(.text*)) *(.rodata*) }}"
        f" . = 0x{platform.ram.start + platform.stack_bytes:x}; .bss : {{ *(.*bss*) }} }}\n"
    )
    content = ELFFile(io.BytesIO(toolchain.link(objects, script).read_bytes()))
    code, table = (content.get_section_by_name(name) for name in (".text", ".symtab"))
    assert code is not None and isinstance(table, SymbolTableSection)
    device.write(platform.flash.start, code.data())
    return {symbol.name: symbol["st_value"] for symbol in table.iter_symbols()}


def _call(device: VirtualDevice, function: int, argument: int) -> tuple[float, int, int]:
    """(seconds of CPU time, instructions, cycles)"""
    end = device.platform.flash.end - 4
    device.reset()
    device.core.write_register("ra", end)
    device.core.write_register("a0", argument)
    instructions, cycles = device.instructions, device.cycles
    start = time.process_time()
    device.execute(function, end)
    seconds = time.process_time() - start
    return seconds, device.instructions - instructions, device.cycles - cycles


def main() -> None:
    """Print the table."""
    with VirtualDevice(load_platform("riscv32")) as device:
        device.board.add_instructions("cfu", [DOT])
        labels = _load(device)
        _call(device, labels["fill"], 0)
        best: dict[str, float] = {}
        counts: dict[str, tuple[int, int]] = {}
        results: dict[str, bytes] = {}
        for _ in range(ROUNDS):
            for name in ("custom", "plain"):
                seconds, *totals = _call(device, labels[name], REPEAT)
                counts[name] = (int(totals[0]), int(totals[1]))
                best[name] = min(seconds, best.get(name, seconds))
                results[name] = device.read(labels["result"], 4)
        assert results["custom"] == results["plain"], "the two programs differ"
        products = REPEAT * 16384
        customs = products // 4
        others = counts["custom"][0] - customs
        plain_ns = best["plain"] / counts["plain"][0] * 1e9
        custom_ns = (best["custom"] * 1e9 - others * plain_ns) / customs
        assert device.board.instruction_uses("cfu")["dot"] == customs * ROUNDS
    print(f"{'program':8} {'instructions':>13} {'cycles':>11} {'seconds':>8} {'ns/product':>11}")
    for name, seconds in best.items():
        instructions, cycles = counts[name]
        each = seconds / products * 1e9
        print(f"{name:8} {instructions:13,} {cycles:11,} {seconds:8.3f} {each:11.2f}")
    print(f"a plain instruction {plain_ns:.2f} ns, a custom instruction {custom_ns:.2f} ns")


if __name__ == "__main__":
    main()

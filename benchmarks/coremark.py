"""CoreMark on every core that has a timing model, beside published scores and the cores' own RTL.

    python benchmarks/coremark.py [--cores NAME ...] [--json FILE]

Prints CoreMark/MHz, a million divided by the cycles of an iteration, by the timing model, beside
the published score with the same class of compiler, or that of the core's RTL for the same binary;
exit status 1 where one is further off than wanted. CoreMark's own checksums have to be right. Its
source is that of the Python package pythondata-cpu-ibex (``pip install '.[rtl]'``), only the port
below is covp's. An iteration is a run of several less a run of one. There are no wait states.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from covp.chip.platform_file import Platform, load_platform
from covp.compilers.toolchain import get_toolchain
from covp.errors import ToolchainError
from covp.runtime.session import Session

PACKAGE = "pythondata_cpu_ibex"
FOLDER = "system_verilog/vendor/eembc_coremark"
FILES = (
    "core_list_join.c", "core_main.c", "core_matrix.c", "core_state.c", "core_util.c", "coremark.h",
)  # fmt: skip
CHECKSUMS = (0xE714, 0x1FD7, 0x8E3A)
"""Of the list, the matrix and the state machine, for the seeds of a performance run."""
FURTHER = 4
"""Iterations beyond the first one that are measured."""

PORT_H = """
#ifndef CORE_PORTME_H
#define CORE_PORTME_H
#include <stddef.h>
#include <stdint.h>
#define HAS_FLOAT 0
#define HAS_TIME_H 0
#define USE_CLOCK 0
#define HAS_STDIO 0
#define HAS_PRINTF 0
#define MULTITHREAD 1
#define SEED_METHOD SEED_VOLATILE
#define MEM_METHOD MEM_STACK
#define MAIN_HAS_NOARGC 1
#define MAIN_HAS_NORETURN 0
#define PERFORMANCE_RUN 1
#define COMPILER_VERSION ""
#define COMPILER_FLAGS ""
#define MEM_LOCATION ""
#define main coremark_main
typedef int16_t ee_s16;
typedef uint16_t ee_u16;
typedef int ee_s32;
typedef double ee_f32;
typedef uint8_t ee_u8;
typedef unsigned int ee_u32;
typedef uintptr_t ee_ptr_int;
typedef size_t ee_size_t;
typedef ee_u32 CORE_TICKS;
typedef struct CORE_PORTABLE_S { ee_u8 portable_id; } core_portable;
#define align_mem(x) (void *)(((ee_ptr_int)(x) + 3) & ~(ee_ptr_int)3)
extern ee_u32 default_num_contexts;
void portable_init(core_portable *port, int *argc, char *argv[]);
void portable_fini(core_portable *port);
static inline int ee_printf(const char *format, ...) { (void)format; return 0; }
#endif
"""
PORT_C = """
#include "coremark.h"
volatile ee_s32 seed1_volatile = 0, seed2_volatile = 0, seed3_volatile = 0x66;
volatile ee_s32 seed4_volatile = 1, seed5_volatile = 0;
ee_u32 default_num_contexts = 1;
ee_u16 checksums[3];
void start_time(void) {}
void stop_time(void) {}
CORE_TICKS get_time(void) { return 0; }
secs_ret time_in_secs(CORE_TICKS ticks) { return ticks; }
void portable_init(core_portable *port, int *argc, char *argv[]) {
    (void)argc, (void)argv;
    port->portable_id = 1;
}
void portable_fini(core_portable *port) {
    core_results *results = (core_results *)((char *)port - offsetof(core_results, port));
    checksums[0] = results->crclist;
    checksums[1] = results->crcmatrix;
    checksums[2] = results->crcstate;
    port->portable_id = 0;
}
int coremark_main(void);
void run(int iterations) {
    seed4_volatile = iterations;
    coremark_main();
}
"""


@dataclass(frozen=True)
class Build:
    """How CoreMark is compiled.

    Attributes:
        compiler: "zig" (clang) or "gcc".
        flags: of it.
    """

    compiler: str
    flags: tuple[str, ...]


OMAX = Build(
    "zig", ("-O3", "-mllvm", "-enable-dfa-jump-thread", "-mllvm", "-inline-threshold=1000")
)
"""What armclang -Omax does beyond -O3 is not public: LLVM's own options that come near it."""


@dataclass(frozen=True)
class Published:
    """A published score.

    Attributes:
        core: whose.
        compiler: as published, with its options.
        per_mhz: CoreMark/MHz.
        source: who measured it, and where it says so; what code and data lay in.
        build: here.
        allowed: relative difference that is wanted.
    """

    core: str
    compiler: str
    per_mhz: float
    source: str
    build: Build
    allowed: float


@dataclass(frozen=True)
class Board:
    """The scores of a board at all levels of optimization, all code and data in its TCM.

    Attributes:
        core, megahertz: its.
        name: in the list of scores.
        compiler: of all of them.
        scores: level to iterations a second.
        allowed: relative difference that is wanted.
    """

    core: str
    name: str
    megahertz: int
    compiler: str
    scores: dict[str, float]
    allowed: float

    def published(self) -> Iterator[Published]:
        """One for each level."""
        for level, score in self.scores.items():
            yield Published(
                self.core,
                f"{self.compiler} -{level}",
                score / self.megahertz,
                f"measured, TCM: github.com/Masmiseim36/Coremark_iMXRT, {self.name}",
                Build("gcc", (f"-{level}",)),
                self.allowed,
            )


ARM = "Arm's product pages of about 2018"
ARM_NOW = "Arm's later ones, as quoted by github.com/sochub/Level"
PAUL = "measured: github.com/PaulStoffregen/CoreMark"
BOARDS = (
    Board("cortex-m4f", "iMX RT1160_CM4", 240, "GCC 12.2",
          {"O0": 134.03, "Og": 386.32, "O1": 490.83, "Os": 511.05, "O2": 605.96, "O3": 634.59},
          0.1),
    Board("cortex-m7f", "iMX RT1160_CM7", 600, "GCC 12.2",
          {"O0": 411.82, "Og": 1352.41, "O1": 1830.83, "Os": 2268.91, "O2": 2422.24, "O3": 2431.67},
          0.1),
    Board("cortex-m33", "iMX RT1180_CM33", 240, "GCC 13.2",
          {"O0": 153.52, "Og": 452.44, "O1": 524.29, "Os": 527.98, "O2": 685.43, "O3": 710.59},
          0.15),
)  # fmt: skip
SIFIVE = Build("gcc", (
    "-O2", "-fno-common", "-funroll-loops", "-finline-functions", "-falign-functions=4",
    "-falign-jumps=4", "-falign-loops=4", "--param=max-inline-insns-auto=20",
    "--param=inline-min-speedup=10",
))  # fmt: skip
"""As in github.com/sifive/benchmark-coremark."""
NORDIC = "Nordic, product specification of a 64 MHz Cortex-M33, docs.nordicsemi.com"
PUBLISHED = (
    Published("cortex-m0plus", "Arm's compiler", 2.46, ARM, OMAX, 0.15),
    Published("cortex-m0plus", "Arm's compiler", 2.39, ARM_NOW, OMAX, 0.15),
    Published("cortex-m0plus", "GCC 10.3 -O3", 457.21 / 250,
              f"{PAUL}/pull/15: RP2040, cached flash",
              Build("gcc", ("-O3",)), 0.15),
    Published("cortex-m0plus", "GCC -O2", 83.85 / 48,
              "measured: github.com/arduino/ArduinoCore-renesas/issues/63: SAMD21, flash",
              Build("gcc", ("-O2",)), 0.15),
    Published("cortex-m3", "Arm's compiler", 3.34, ARM, OMAX, 0.15),
    Published("cortex-m3", "Arm's compiler", 3.45, ARM_NOW, OMAX, 0.15),
    Published("cortex-m4f", "Arm's compiler", 3.42, ARM, OMAX, 0.1),
    Published("cortex-m4f", "Arm's compiler", 3.54, ARM_NOW, OMAX, 0.1),
    Published("cortex-m7f", "Arm's compiler", 5.01, ARM, OMAX, 0.1),
    Published("cortex-m7f", "Arm's compiler", 5.29, ARM_NOW, OMAX, 0.1),
    Published("cortex-m7f", "GCC 5.4 -O2", 2313.57 / 600, f"{PAUL}: Teensy 4.0, TCM",
              Build("gcc", ("-O2",)), 0.1),
    Published("cortex-m33", "Arm's compiler", 4.02, ARM, OMAX, 0.15),
    Published("cortex-m33", "Arm's compiler", 4.1, ARM_NOW, OMAX, 0.15),
    Published("cortex-m33", "armclang 6.16 -Omax", 247 / 64, f"{NORDIC}: cached flash", OMAX, 0.15),
    Published("cortex-m33", "armclang 6.16 -Omax", 239 / 64, f"{NORDIC}: RAM", OMAX, 0.15),
    Published("e31", "SiFive's GCC", 2.73, "SEGGER's page of the HiFive1", SIFIVE, 0.15),
    *(one for board in BOARDS for one in board.published()),
)  # fmt: skip
RTL_CORES = (
    "cv32e40p", "ibex", "ibex-small", "picorv32",
    "vexriscv-lite", "vexriscv-full", "vexriscv-cfu", "vexriscv-imac",
)  # fmt: skip
RTL_BUILDS = (Build("zig", ("-O2",)), Build("gcc", ("-O2",)))
RTL_ALLOWED = {"picorv32": 0.005, "vexriscv": 0.03}
"""By the start of a core's name: those with caches may be further off; others 0.01."""


@dataclass(frozen=True)
class Run:
    """CoreMark on one device: instructions and cycles of an iteration."""

    instructions: float
    cycles: float


def sources() -> dict[str, str]:
    """CoreMark's files and the port. Raises ToolchainError: the package is not installed."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ToolchainError("CoreMark's source is not installed: pip install '.[rtl]'")
    folder = Path(spec.submodule_search_locations[0]) / FOLDER
    files = {name: (folder / name).read_text(encoding="utf-8") for name in FILES}
    return {**files, "core_portme.h": PORT_H, "core_portme.c": PORT_C}


def platform_of(core: str) -> Platform:
    """A platform without wait states that has the core."""
    generic = "cortex-m33" if core.startswith("cortex") else "riscv32"
    platform = load_platform(core if core in RTL_CORES else generic)
    return msgspec.structs.replace(platform, core_name=core)


def run(core: str, device: str, build: Build) -> Run:
    """CoreMark on a device, "virtual" or "rtl". Raises ValueError: the results are wrong."""
    flags = ("-g", "-w", *build.flags)
    with Session(platform_of(core), device=device, toolchain=build.compiler) as session:
        module = session.load_sources(sources(), "coremark", flags=flags)
        costs = []
        for iterations in (1, 1 + FURTHER):
            module["run"](iterations)
            costs.append(session.sync())
        found = session.read(module.address("checksums"), 6)
    checksums = tuple(int.from_bytes(found[at : at + 2], "little") for at in (0, 2, 4))
    if checksums != CHECKSUMS:
        raise ValueError(f"{core}, {build.compiler}: checksums {checksums}, not {CHECKSUMS}")
    first, last = costs
    return Run(
        ((last.instructions or 0) - (first.instructions or 0)) / FURTHER,
        ((last.cycles or 0) - (first.cycles or 0)) / FURTHER,
    )


def row(
    core: str, build: Build, reference: float, kind: str, source: str, allowed: float
) -> dict[str, Any]:
    """A line of the table.

    Args:
        core, build: what runs.
        reference: cycles of an iteration.
        kind: what they are of: "rtl" or a published compiler.
        source: of them.
        allowed: relative difference.
    """
    ours = run(core, "virtual", build)
    version = get_toolchain(build.compiler, platform_of(core).core).version
    return {
        "core": core,
        "compiler": version,
        "flags": " ".join(flag for flag in build.flags if flag != "-mllvm"),
        "instructions": round(ours.instructions),
        "cycles": round(ours.cycles),
        "reference": round(reference),
        "kind": kind,
        "source": source,
        "allowed": allowed,
        "error": round(ours.cycles / reference - 1, 4),
    }


def rows(cores: list[str]) -> Iterator[dict[str, Any]]:
    """All lines of some cores."""
    for one in PUBLISHED:
        if one.core in cores:
            yield row(one.core, one.build, 1e6 / one.per_mhz, one.compiler, one.source, one.allowed)
    for core in RTL_CORES:
        for build in RTL_BUILDS if core in cores else ():
            rtl = run(core, "rtl", build)
            allowed = RTL_ALLOWED.get(core.partition("-")[0], 0.01)
            yield row(core, build, rtl.cycles, "rtl", "the same binary on the core's RTL", allowed)


def main() -> int:
    """Print the table; 1 where a line misses what is wanted."""
    known = [*dict.fromkeys(one.core for one in PUBLISHED), *RTL_CORES]
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cores", nargs="+", default=known, choices=known)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the lines")
    arguments = parser.parse_args()
    done = []
    print(
        f"{'core':14} {'compiler':12} {'CoreMark/MHz':>12} {'published':>10} {'error':>7}"
        "  compared with"
    )
    for one in rows(arguments.cores):
        done.append(one)
        missed = "  MISSED" if abs(one["error"]) > one["allowed"] else ""
        print(
            f"{one['core']:14} {one['compiler']:12} {1e6 / one['cycles']:12.3f} "
            f"{1e6 / one['reference']:10.3f} {one['error']:+7.2%}  "
            f"{one['kind']}; {one['source']} ({one['flags']}){missed}",
            flush=True,
        )
    if arguments.json:
        arguments.json.write_text(json.dumps({"rows": done}, indent=1) + "\n", encoding="utf-8")
    return int(any(abs(one["error"]) > one["allowed"] for one in done))


if __name__ == "__main__":
    sys.exit(main())

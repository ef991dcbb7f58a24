"""The processor cores that covp knows: what the compilers and the emulator need to be told of each.

Data only. Adding a core is adding one `Core(...)` line to `CORES`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from covp.errors import PlatformError, near_misses


@dataclass(frozen=True)
class Core:
    """One processor core.

    Attributes:
        name: what a platform file says under ``core``.
        architecture: "arm" (M-profile, Thumb only), "riscv" (RV32) or "x86" (x86-64 with 32-bit
            pointers, the x32 ABI: this machine, see `covp.device.host`).
        zig_target, zig_cpu: of ``zig cc -target T -mcpu=C``.
        gcc_prefix, gcc_flags: of the GCC cross compiler, e.g. "arm-none-eabi-"; "" where only zig
            can be used.
        unicorn_cpu: name of the CPU model constant, without ``UC_CPU_ARM_``/``UC_CPU_RISCV32_``.
        features: what kernels may use: "dsp" (SMLAD, SXTB16, SMMULR), "fpu" (single precision in
            hardware), "mull" (32x32 to 64 bit multiply), "unaligned" (word and halfword loads at
            any address).
        timing: name of the timing table (``covp/timing/tables.py``) used for estimated cycles.
        zig_flags: further ones of ``zig cc``.
        like: core with the same features as far as integer kernels use them, or "": what is best
            there is a good guess here.
    """

    name: str
    architecture: Literal["arm", "riscv", "x86"]
    zig_target: str
    zig_cpu: str
    gcc_prefix: str
    gcc_flags: tuple[str, ...]
    unicorn_cpu: str
    features: frozenset[str] = field(default_factory=frozenset)
    timing: str | None = None
    zig_flags: tuple[str, ...] = ()
    like: str = ""

    def has(self, feature: str) -> bool:
        """Whether kernels may use the feature."""
        return feature in self.features


def _arm(
    name: str,
    zig_cpu: str,
    gcc_flags: str,
    unicorn_cpu: str,
    features: str,
    hard: bool,
    timing: str,
    like: str = "",
) -> Core:
    return Core(
        name=name,
        architecture="arm",
        zig_target="thumb-freestanding-eabihf" if hard else "thumb-freestanding-eabi",
        zig_cpu=zig_cpu,
        gcc_prefix="arm-none-eabi-",
        gcc_flags=("-mthumb", *gcc_flags.split()),
        unicorn_cpu=unicorn_cpu,
        features=frozenset(features.split()),
        timing=timing,
        like=like,
    )


def _riscv(
    name: str, zig_cpu: str, gcc_flags: str, features: str, timing: str, like: str = ""
) -> Core:
    return Core(
        name=name,
        architecture="riscv",
        zig_target="riscv32-freestanding-none",
        zig_cpu=zig_cpu,
        gcc_prefix="riscv64-unknown-elf-",
        gcc_flags=tuple(gcc_flags.split()),
        unicorn_cpu="ANY",
        features=frozenset(features.split()),
        timing=timing,
        like=like,
    )


_SP_FPU = "-mfloat-abi=hard -mfpu=fpv4-sp-d16"
_SP_FPU5 = "-mfloat-abi=hard -mfpu=fpv5-sp-d16"

CORES: dict[str, Core] = {
    core.name: core
    for core in (
        _arm(
            "cortex-m0plus",
            "cortex_m0plus",
            "-mcpu=cortex-m0plus",
            "CORTEX_M0",
            "",
            False,
            "m0plus",
        ),
        _arm(
            "cortex-m3", "cortex_m3", "-mcpu=cortex-m3", "CORTEX_M3", "mull unaligned", False, "m3"
        ),
        _arm(
            "cortex-m4f",
            "cortex_m4+vfp4d16sp",
            f"-mcpu=cortex-m4 {_SP_FPU}",
            "CORTEX_M4",
            "mull unaligned dsp fpu",
            True,
            "m4",
        ),
        _arm(
            "cortex-m7f",
            "cortex_m7+fp_armv8d16sp",
            f"-mcpu=cortex-m7 {_SP_FPU5}",
            "CORTEX_M7",
            "mull unaligned dsp fpu",
            True,
            "m7",
        ),
        # No such chip is made: for the question what the DSP instructions of a Cortex-M7 bring.
        # The virtual device takes them for undefined; GCC has no -mcpu for it.
        _arm(
            "cortex-m7f-nodsp",
            "cortex_m7-dsp+fp_armv8d16sp",
            f"-march=armv7-m -mtune=cortex-m7 {_SP_FPU5}",
            "CORTEX_M7",
            "mull unaligned fpu",
            True,
            "m7",
        ),
        _arm(
            "cortex-m33",
            "cortex_m33+dsp+fp_armv8d16sp",
            f"-mcpu=cortex-m33 {_SP_FPU5}",
            "CORTEX_M33",
            "mull unaligned dsp fpu",
            True,
            "m33",
            like="cortex-m4f",
        ),
        _riscv("rv32imc", "generic_rv32+m+c", "-march=rv32imc_zicsr -mabi=ilp32", "mull", "rv32"),
        _riscv(
            "rv32imac",
            "generic_rv32+m+a+c",
            "-march=rv32imac_zicsr -mabi=ilp32",
            "mull",
            "rv32",
            like="rv32imc",
        ),
        _riscv(
            "rv32imafc",
            "generic_rv32+m+a+f+c",
            "-march=rv32imafc_zicsr -mabi=ilp32f",
            "mull fpu",
            "rv32",
            like="rv32imc",
        ),
        # Pointers of 4 bytes, so that layouts are those of a 32-bit core. Plain x86-64, without the
        # later extensions: every machine has it, and nothing multiplies and adds in one step.
        Core(
            name="x86-64",
            architecture="x86",
            zig_target="x86_64-linux-muslx32",
            zig_cpu="x86_64",
            gcc_prefix="",
            gcc_flags=(),
            unicorn_cpu="",
            features=frozenset({"mull", "unaligned", "fpu"}),
            zig_flags=("-fno-pic", "-fno-pie"),
        ),
    )
}


def find_core(name: str) -> Core:
    """The core of that name.

    Raises:
        PlatformError: there is none; near misses are suggested.
    """
    try:
        return CORES[name]
    except KeyError:
        raise PlatformError(f"unknown core {name!r}: {near_misses(name, CORES)}") from None

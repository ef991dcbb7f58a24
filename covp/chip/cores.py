"""The processor cores that covp knows: instruction set, timing model and compiler options of each.

Data only. Adding a core is adding one entry to `CORES`: its name decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from covp.errors import PlatformError, near_misses


@dataclass(frozen=True)
class Isa:
    """An instruction set, as far as a core implements it.

    Attributes:
        architecture: "arm" (M-profile, Thumb only), "riscv" (RV32) or "x86" (x86-64 with 32-bit
            pointers, the x32 ABI: this machine, see `covp.device.host`).
        profile: "armv6-m", "armv7-m", "armv7e-m", "armv8-m.main", "rv32" or "x86-64".
        extensions: RISC-V's letters, "i" among them; on Arm "dsp" (SMLAD, SXTB16, SMMULR) and
            "fpu" (single precision).
    """

    architecture: Literal["arm", "riscv", "x86"]
    profile: str
    extensions: frozenset[str] = frozenset()

    def has(self, extension: str) -> bool:
        """Whether the core implements the extension."""
        return extension in self.extensions

    @property
    def is_armv6m(self) -> bool:
        """Whether this is the small profile: Cortex-M0, M0+."""
        return self.profile == "armv6-m"

    @property
    def counts_cycles(self) -> bool:
        """Whether the core can have a cycle counter: DWT_CYCCNT (Armv7-M and later) or mcycle."""
        return self.architecture != "x86" and not self.is_armv6m

    @property
    def misa(self) -> int:
        """RISC-V's CSR misa: 32 bits and the extensions (privileged ISA 20211203, 3.1.1)."""
        return 1 << 30 | sum(1 << (ord(letter) - ord("a")) for letter in self.extensions)

    @property
    def features(self) -> frozenset[str]:
        """The features that kernels may use on every core of this instruction set."""
        if self.architecture == "riscv":
            names = {"m": "mull", "f": "fpu"}
            return frozenset(names[letter] for letter in self.extensions & names.keys())
        if self.is_armv6m:
            return frozenset()
        return self.extensions | {"mull", "unaligned"}


@dataclass(frozen=True)
class Core:
    """One processor core: an instruction set, a microarchitecture and how to compile for it.

    Attributes:
        name: the value of ``core`` in a platform file.
        isa: the instruction set.
        features: those that kernels may use: "dsp" (SMLAD, SXTB16, SMMULR), "fpu" (single
            precision in hardware), "mull" (32x32 to 64 bit multiply), "unaligned" (word and
            halfword loads at any address).
        timing: name of the microarchitecture's timing model in ``covp/device/timing``, used for
            estimated cycles; None: there is none.
        zig_target, zig_cpu: of ``zig cc -target T -mcpu=C``.
        zig_flags: further ones of ``zig cc``.
        gcc_prefix, gcc_flags: of the GCC cross compiler, e.g. "arm-none-eabi-"; "" where only zig
            can be used.
        unicorn_cpu: name of the CPU model constant, without ``UC_CPU_ARM_``/``UC_CPU_RISCV32_``;
            its identification registers are what debuggers see.
        like: core with the same features as far as integer kernels use them, or "": the best
            schedules there are a good guess here.
        allows_misaligned: loads and stores at any address work, if slowly; else those that kernels
            may not use ("unaligned") are faults.
        flushes_data_cache: VexRiscv's instruction 0x500f empties the data cache, which writes
            through; else RISC-V cores have the Zicbom extension where they have a data cache.
    """

    name: str
    isa: Isa
    features: frozenset[str]
    timing: str | None
    zig_target: str
    zig_cpu: str
    gcc_prefix: str
    gcc_flags: tuple[str, ...]
    unicorn_cpu: str
    zig_flags: tuple[str, ...] = ()
    like: str = ""
    allows_misaligned: bool = False
    flushes_data_cache: bool = False

    @property
    def needs_alignment(self) -> bool:
        """Whether every misaligned load or store is a fault."""
        return not (self.allows_misaligned or self.has("unaligned"))

    @property
    def architecture(self) -> Literal["arm", "riscv", "x86"]:
        """The architecture of the instruction set."""
        return self.isa.architecture

    def has(self, feature: str) -> bool:
        """Whether kernels may use the feature."""
        return feature in self.features


def _arm(
    name: str,
    profile: str,
    extensions: str,
    timing: str,
    zig_cpu: str,
    gcc_flags: str,
    unicorn_cpu: str,
    like: str = "",
) -> Core:
    isa = Isa("arm", profile, frozenset(extensions.split()))
    return Core(
        name=name,
        isa=isa,
        features=isa.features,
        timing=timing,
        zig_target=f"thumb-freestanding-{'eabihf' if isa.has('fpu') else 'eabi'}",
        zig_cpu=zig_cpu,
        gcc_prefix="arm-none-eabi-",
        gcc_flags=("-mthumb", *gcc_flags.split()),
        unicorn_cpu=unicorn_cpu,
        like=like,
    )


def _riscv(
    name: str,
    extensions: str,
    timing: str = "rv32",
    like: str = "",
    allows_misaligned: bool = False,
) -> Core:
    isa = Isa("riscv", "rv32", frozenset(extensions))
    abi = "ilp32f" if isa.has("f") else "ilp32"
    return Core(
        name=name,
        isa=isa,
        features=isa.features,
        timing=timing,
        zig_target="riscv32-freestanding-none",
        zig_cpu="+".join(("generic_rv32", *extensions.removeprefix("i"))),
        gcc_prefix="riscv64-unknown-elf-",
        gcc_flags=(f"-march=rv32{extensions}_zicsr", f"-mabi={abi}"),
        unicorn_cpu="ANY",
        like=like,
        allows_misaligned=allows_misaligned,
        flushes_data_cache=name.startswith("vexriscv"),
    )


_SP_FPU = "-mfloat-abi=hard -mfpu=fpv4-sp-d16"
_SP_FPU5 = "-mfloat-abi=hard -mfpu=fpv5-sp-d16"

_ARM = (
    _arm(
        "cortex-m0plus", "armv6-m", "", "m0plus",
        "cortex_m0plus", "-mcpu=cortex-m0plus", "CORTEX_M0",
    ),
    _arm("cortex-m3", "armv7-m", "", "m3", "cortex_m3", "-mcpu=cortex-m3", "CORTEX_M3"),
    _arm(
        "cortex-m4f", "armv7e-m", "dsp fpu", "m4",
        "cortex_m4+vfp4d16sp", f"-mcpu=cortex-m4 {_SP_FPU}", "CORTEX_M4",
    ),
    _arm(
        "cortex-m7f", "armv7e-m", "dsp fpu", "m7",
        "cortex_m7+fp_armv8d16sp", f"-mcpu=cortex-m7 {_SP_FPU5}", "CORTEX_M7",
    ),
    # No such chip is made: for the question what the DSP instructions of a Cortex-M7 bring.
    # The virtual device takes them for undefined; GCC has no -mcpu for it.
    _arm(
        "cortex-m7f-nodsp", "armv7-m", "fpu", "m7",
        "cortex_m7-dsp+fp_armv8d16sp", f"-march=armv7-m -mtune=cortex-m7 {_SP_FPU5}", "CORTEX_M7",
    ),
    _arm(
        "cortex-m33", "armv8-m.main", "dsp fpu", "m33",
        "cortex_m33+dsp+fp_armv8d16sp", f"-mcpu=cortex-m33 {_SP_FPU5}", "CORTEX_M33",
        like="cortex-m4f",
    ),
)  # fmt: skip

_RISCV = (
    _riscv("rv32imc", "imc"),
    _riscv("rv32imac", "imac", like="rv32imc"),
    _riscv("rv32imafc", "imafc", like="rv32imc"),
    _riscv("cv32e40p", "imc", timing="cv32e40p", like="rv32imc", allows_misaligned=True),
    _riscv("ibex", "imc", timing="ibex", like="rv32imc", allows_misaligned=True),
    _riscv("ibex-small", "imc", timing="ibex-small", like="rv32imc", allows_misaligned=True),
    _riscv("picorv32", "imc", timing="picorv32", like="rv32imc"),
    _riscv("serv", "i", timing="serv"),
    _riscv("vexriscv", "im", timing="vexriscv", like="rv32imc"),
    _riscv("vexriscv-lite", "im", timing="vexriscv-lite", like="rv32imc"),
    _riscv("vexriscv-full", "im", timing="vexriscv", like="rv32imc"),
    _riscv("vexriscv-cfu", "im", timing="vexriscv-cfu", like="rv32imc"),
    _riscv("vexriscv-imac", "imac", timing="vexriscv-imac", like="rv32imc"),
    _riscv("e31", "imac", timing="e31", like="rv32imc"),
)

# Pointers of 4 bytes, so that layouts are those of a 32-bit core. Plain x86-64, without the later
# extensions: every machine has it, and nothing multiplies and adds in one step.
_X86 = Core(
    name="x86-64",
    isa=Isa("x86", "x86-64", frozenset({"fpu"})),
    features=frozenset({"mull", "unaligned", "fpu"}),
    timing=None,
    zig_target="x86_64-linux-muslx32",
    zig_cpu="x86_64",
    gcc_prefix="",
    gcc_flags=(),
    unicorn_cpu="",
    zig_flags=("-fno-pic", "-fno-pie"),
)

CORES: dict[str, Core] = {core.name: core for core in (*_ARM, *_RISCV, _X86)}


def find_core(name: str) -> Core:
    """The core of that name.

    Raises:
        PlatformError: there is no such core; near misses are suggested.
    """
    try:
        return CORES[name]
    except KeyError:
        raise PlatformError(f"unknown core {name!r}: {near_misses(name, CORES)}") from None

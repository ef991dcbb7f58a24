"""``covp core``: a core of one's own in a folder, and whether its RTL does what it should."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from covp.chip.cores import core_names
from covp.chip.isa import Isa
from covp.cli import options
from covp.cli.new import write_template
from covp.cli.output import echo, print_json, print_table
from covp.device.rtl.cores import BUSES
from covp.errors import PlatformError, UsageError
from covp.report.table import Table, Value, numbers, texts

if TYPE_CHECKING:
    from covp.testing.core_check import CoreCheck

_TEMPLATES = Path(__file__).parent / "templates"
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,59}")


@click.group()
def core() -> None:
    """A core of your own: a folder for it, and a check of its RTL."""


@core.command()
@click.argument("name")
@click.option("--isa", default="rv32imc", show_default=True, metavar="ISA")
@click.option("--bus", type=click.Choice([*BUSES]), default="obi", show_default=True)
@click.option("--package", metavar="NAME", help="Python package with the Verilog sources.")
@click.option(
    "--root",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder with the Verilog sources; default: the folder NAME itself.",
)
def new(name: str, isa: str, bus: str, package: str | None, root: Path | None) -> None:
    """Write the folder NAME: core.yaml, rtl.yaml, a wrapper to fill in, and a board with it."""
    target = Path(name)
    if not _NAME.fullmatch(target.name):
        raise UsageError(f"{name!r} cannot be a name: lower case letters, digits, - and _")
    if target.name in core_names():
        raise UsageError(f"{name!r} is a core of covp's own; choose another name")
    if target.exists():
        raise UsageError(f"{target} exists already; choose another name")
    if package and root:
        raise UsageError("--package and --root: the sources are in one of them")
    try:
        parsed = Isa.parse(isa)
    except PlatformError as error:
        raise UsageError(f"--isa: {error}") from None
    if parsed.architecture != "riscv":
        raise UsageError(f"--isa {isa}: cores with RTL are RISC-V, as rv32imc")
    where = f"root: {root.absolute()}" if root else "# the sources are beside this file: ./core.v"
    words = {
        "@name@": target.name,
        "@isa@": parsed.name,
        "@bus@": bus,
        "@where@": f"package: {package}" if package else where,
        "@ports@": (_TEMPLATES / "core_ports" / f"{bus}.sv").read_text("utf-8"),
    }
    write_template([_TEMPLATES / "core"], target, words)
    echo(
        f"{target} written; now: name the sources in {target}/rtl.yaml, connect the core in "
        f"{target}/wrapper.sv, then covp core check {target}/board.yaml"
    )


@core.command()
@click.argument("platform")
@click.option(
    "--instructions",
    type=click.IntRange(1, 1_000_000),
    default=10_000,
    show_default=True,
    help="Random instructions, at least.",
)
@options.seed
@options.as_json
def check(platform: str, instructions: int, seed: int, as_json: bool) -> int:
    """Compare the RTL of PLATFORM's core with the virtual device, instruction by instruction.

    Loads, stores, alignments, branches, traps, interrupts, phases, random instructions, wait
    states: the first instruction that leaves something else is named, with its address and code.
    """
    from covp.chip.platform_file import load_platform
    from covp.testing.core_check import CoreChecked, check_core

    def tell(name: str) -> None:
        if not as_json:
            echo(f"running {name}", err=True)

    board = load_platform(platform)
    rows = list(check_core(board, instructions, seed, tell))
    wrong = next((row for row in rows if row.difference), None)
    if as_json:
        print_json(CoreChecked(core=board.core.name, equal=wrong is None, checks=rows))
        return int(wrong is not None)
    columns = [*texts("check"), *numbers("programs", "instructions"), *texts("RTL")]
    cells: list[list[Value]] = [
        [row.name, row.programs, row.instructions, _result(row)] for row in rows
    ]
    print_table(Table(f"{board.core.name} beside the virtual device", columns, cells))
    for row in rows:
        for note in (*row.notes, *([row.skipped] if row.skipped else [])):
            echo(f"{row.name}: {note}")
    if wrong is not None:
        echo(f"FAILED: {wrong.name}: {wrong.difference}")
        return 1
    echo("registers, memory, faults and counts of instructions are equal")
    return 0


def _result(row: CoreCheck) -> str:
    return "skipped" if row.skipped else "DIFFERS" if row.difference else "equal"

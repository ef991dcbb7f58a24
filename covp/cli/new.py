"""``covp new``: what a project of one's own starts from."""

from __future__ import annotations

import keyword
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
import yaml

from covp.accelerator import Accelerator
from covp.accelerator.registry import built_in_names, find_backend
from covp.accelerator.rtl.buses import MEMORY_BUSES, REGISTER_BUSES, Bus
from covp.accelerator.rtl.verilog import unit_verilog
from covp.base.cache import write_atomically
from covp.base.plural import pluralize
from covp.base.temporary import temporary_folder
from covp.chip.cores import find_core, is_core_path
from covp.chip.platform_file import platform_names, read_platform
from covp.cli import options
from covp.cli.output import echo
from covp.errors import PlatformError, UsageError

_F = TypeVar("_F", bound=Callable[..., Any])
_TEMPLATES = Path(__file__).parent / "templates"
_NAME = re.compile(r"^[a-z][a-z0-9_]*$")
_BOARD = re.compile(r"[A-Za-z][A-Za-z0-9_.+-]{0,59}")
_MAPS = {
    "arm": (0x00000000, 0x20000000, 0x50080000),
    "riscv": (0x20000000, 0x80000000, 0x70000000),
}
"""First addresses of flash, RAM and accelerators, as most chips of the architecture have them."""


_RTL_WORDS = {
    "@rtl@": '    rtl = UnitRtl(sources=("@name@_core.v", "@name@_registers.v", "@name@.v"))\n',
    "@rtl_readme@": """
In Verilog it is @name@.v, with registers in @name@_registers.v and the datapath in @name@_core.v:

    covp run toycar -p riscv32 -a @name@.py:rtl=yes
    covp verify @name@.py --against rtl     # bits, registers and cycles of the RTL beside the model

When the declared job changes, `covp new rtl @name@.py` writes @name@.v and @name@_registers.v anew.
""",
}


def _bus_option(kind: str, buses: Sequence[Bus], default: str) -> Callable[[_F], _F]:
    return click.option(
        f"--{kind}",
        type=click.Choice([bus.name for bus in buses]),
        default=default,
        show_default=True,
        help=f"Bus of the Verilog's {kind}.",
    )


_register_bus = _bus_option("registers", REGISTER_BUSES, "apb")
_memory_bus = _bus_option("memory", MEMORY_BUSES, "obi")
_new_folder = click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Folder to make; by default NAME.",
)


@click.group()
def new() -> None:
    """Create a project from a template."""


@new.command()
@click.argument("name")
@_new_folder
@click.option(
    "--rtl", is_flag=True, help="Write it in Verilog, too; `-a NAME.py:rtl=yes` runs that."
)
@_register_bus
@_memory_bus
def accelerator(name: str, output: Path | None, rtl: bool, registers: str, memory: str) -> None:
    """Write a working accelerator NAME: register map, model, tests, a pyproject."""
    target, words = _accelerator_folder(name, output, "mac8")
    names = ["Accelerator", "Job", *["UnitRtl"] * rtl, "number", "result", "table", "tensor"]
    words["@imports@"] = ", ".join(names)
    for word, text in _RTL_WORDS.items():
        words[word] = fill(text, words) if rtl else ""
    templates = [_TEMPLATES / "accelerator", *[_TEMPLATES / "accelerator_rtl"] * rtl]

    def add_verilog(folder: Path) -> None:
        if rtl:
            _write_verilog(folder / f"{name}.py", folder, registers, memory)

    write_template(templates, target, words, add_verilog)
    echo(f"{target} written; now: cd {target} && pip install -e '.[test]' && pytest")


def _accelerator_folder(
    name: str, output: Path | None, example: str
) -> tuple[Path, dict[str, str]]:
    """Return the folder of a new accelerator and the words of its templates.

    Raises:
        UsageError: it cannot be called so, or the folder exists.
    """
    if not _NAME.match(name) or keyword.iskeyword(name):
        raise UsageError(
            f"{name!r} cannot be a name: lower case letters, digits and _, as in {example}"
        )
    if name in built_in_names():
        raise UsageError(f"{name!r} is an accelerator of covp's own, which -a would find instead")
    target = output or Path(name)
    if target.exists():
        raise UsageError(f"{target} exists already; choose another folder with -o")
    title = "".join(part.capitalize() for part in name.split("_"))
    return target, {"@name@": name, "@Class@": title}


@new.command()
@click.argument("name")
@_new_folder
def instruction(name: str, output: Path | None) -> None:
    """Write a custom instruction NAME of a RISC-V core: model, kernels, Verilog, a test."""
    target, words = _accelerator_folder(name, output, "dot4")
    write_template([_TEMPLATES / "instruction"], target, words)
    echo(f"{target} written; now: cd {target} && covp run kws -p riscv32 -a {name}.py")


@new.command()
@click.argument("name")
@_new_folder
def array(name: str, output: Path | None) -> None:
    """Write an array NAME with a scratchpad: the time of a tile, a test."""
    target, words = _accelerator_folder(name, output, "mac16")
    write_template([_TEMPLATES / "array"], target, words)
    echo(f"{target} written; now: cd {target} && covp run kws -p riscv32 -a {name}.py")


def _write_verilog(unit: str | Path, folder: Path, registers: str, memory: str) -> list[Path]:
    backend = find_backend(str(unit))
    if not isinstance(backend, Accelerator):
        raise UsageError(f"{unit} has no declared job, of which its Verilog could be made")
    files = unit_verilog(backend.name, backend.job, registers, memory)
    for file, text in files.items():
        (folder / file).write_text(text, "utf-8")
    return [folder / file for file in files]


@new.command()
@click.argument("unit", metavar="ACCEL")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default=Path(),
    help="Folder to write into; by default this one.",
)
@_register_bus
@_memory_bus
def rtl(unit: str, output: Path, registers: str, memory: str) -> None:
    """Write ACCEL in Verilog but for its datapath, from its declared job.

    NAME_registers.v has its registers, with the protocol of units; NAME.v connects them with the
    buses and with NAME_core.v, the datapath. Both are written anew when the job has changed.
    """
    try:
        written = _write_verilog(unit, output, registers, memory)
    except OSError as error:
        raise UsageError(f"{output} cannot be written: {error.strerror or error}") from None
    echo(f"{' and '.join(map(str, written))} written")


@new.command()
@click.argument("unit", metavar="ACCEL")
@click.argument("model")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("bench"),
    show_default=True,
    help="Folder to make, or to write into.",
)
@options.platform
@click.option("--jobs", type=click.IntRange(1), help="How many, from the first on; else all.")
def testbench(unit: str, model: str, output: Path, platform: str, jobs: int | None) -> None:
    """Write a cocotb test that replays the jobs of MODEL on the Verilog of ACCEL.

    The jobs are those of a run with the unit's model: what it reads, the registers that the driver
    writes, the bytes that it has to store. The test needs cocotb and a simulator, and nothing of
    covp.
    """
    from covp.accelerator.job_vectors import make_test_bench, recording
    from covp.evaluation import Sample, build, run

    backend = find_backend(unit)
    if not isinstance(backend, Accelerator):
        raise UsageError(f"{unit} has no declared job, whose registers a test could write")
    recorded, vectors = recording(backend)
    made = build(model, platform, [recorded])
    run(made, Sample.random(made.graph, 0), check="none")
    files = make_test_bench(backend, vectors[:jobs], output.absolute())
    try:
        output.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            write_atomically(output / name, text.encode())
    except OSError as error:
        raise UsageError(f"{output} cannot be written: {error.strerror or error}") from None
    count = pluralize(len(vectors[:jobs]), "job")
    echo(f"{output}: {count} of {model}; now: pip install cocotb && pytest {output}")


@new.command()
@click.argument("name")
@click.option("--core", required=True, help="A name from `covp cores`, or a folder of your own.")
@click.option(
    "--flash",
    required=True,
    metavar="SIZE[@ADDRESS]",
    help="Size of the flash, such as 2M@0x08000000.",
)
@click.option(
    "--ram", required=True, metavar="SIZE[@ADDRESS]", help="Size of the RAM, such as 96K."
)
@click.option(
    "--clock",
    default="100M",
    show_default=True,
    metavar="HZ",
    help="Clock of the core, such as 84M.",
)
@click.option(
    "--wait-states", type=click.IntRange(0, 255), help="Wait states of the flash, in core cycles."
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="By default NAME.yaml.")
def platform(
    name: str,
    core: str,
    flash: str,
    ram: str,
    clock: str,
    wait_states: int | None,
    output: Path | None,
) -> None:
    """Write the platform file of board NAME, which runs at once.

    Addresses that are not given are those of most chips with such a core.
    """
    target = output or Path(f"{name}.yaml")
    _demand_place(name, target)
    if not is_core_path(core) and (Path(core) / "core.yaml").is_file():
        core = f"./{core}"
    try:
        architecture = find_core(core).architecture
    except PlatformError as error:
        raise UsageError(str(error)) from None
    if architecture not in _MAPS:
        raise UsageError(f"{core} is this machine's core: a board has one of `covp cores`")
    flash_at, ram_at, units_at = _MAPS[architecture]
    words = {
        "@name@": name,
        "@clock@": f"{options.hertz(clock):_}",
        "@waits@": "" if wait_states is None else f", wait_states: {wait_states}",
        "@units_at@": f"0x{units_at:08X}",
        **_memory("flash", flash, flash_at),
        **_memory("ram", ram, ram_at),
    }
    text = fill((_TEMPLATES / "platform.yaml.in").read_text(encoding="utf-8"), words)
    own = is_core_path(core)
    with temporary_folder("new") as made:
        draft = Path(made) / target.name
        absolute = str(Path(core).absolute()) if own else core
        draft.write_text(text.replace("@core@", absolute), "utf-8")
        try:
            read_platform(draft)
        except PlatformError as error:
            raise UsageError(f"no platform file: {str(error).removeprefix(f'{draft}: ')}") from None
    # in a platform file a core's folder begins at the file's
    core = f"./{os.path.relpath(core, target.parent)}" if own else core
    text = text.replace("@core@", core)
    try:
        write_atomically(target, text.encode())
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error.strerror or error}") from None
    echo(f"{target} written; now: covp run kws -p {target}")


def _demand_place(name: str, target: Path) -> None:
    """Raise UsageError if NAME cannot be a platform's, or the file is not to be written."""
    if not _BOARD.fullmatch(name) or yaml.safe_load(name) != name or name.endswith(".yaml"):
        raise UsageError(
            f"{name!r:.60} cannot be a platform's name: a letter, then letters, digits and _.+-"
        )
    if name in platform_names():
        raise UsageError(f"{name!r} is a platform of covp's own: -p {name} takes it as it is")
    if target.suffix not in (".yaml", ".yml"):
        raise UsageError(f"{target}: a platform file ends in .yaml, as in -o {target}.yaml")
    if target.exists():
        raise UsageError(f"{target} exists already; choose another file with -o")


def _memory(kind: str, stated: str, usual: int) -> dict[str, str]:
    """Return the words of a memory of the template."""
    size, sign, address = stated.partition("@")
    options.size(size)
    try:
        start = int(address, 0) if sign else usual
    except ValueError:
        raise UsageError(
            f"--{kind} {stated:.40}: write a size, or such as 512K@0x08000000"
        ) from None
    return {f"@{kind}@": size, f"@{kind}_at@": f"0x{start:08X}"}


def fill(text: str, words: dict[str, str]) -> str:
    """Return a template's text with its words replaced."""
    for word, value in words.items():
        text = text.replace(word, value)
    return text


def write_template(
    templates: Sequence[Path],
    target: Path,
    words: dict[str, str],
    add: Callable[[Path], None] = lambda folder: None,
) -> None:
    """Copy folders of ``*.in`` files with words replaced in names and texts; all or nothing.

    Args:
        templates: the folders.
        target: a new folder.
        words: to what stands for each.
        add: writes more files into the folder that it is given.

    Raises:
        UsageError: the folder cannot be written.
    """

    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with temporary_folder("new", target.parent) as folder:
            made = Path(folder) / "made"
            made.mkdir()
            for file in (file for template in templates for file in template.iterdir()):
                if file.name.endswith(".in"):
                    text = fill(file.read_text(encoding="utf-8"), words)
                    (made / fill(file.name.removesuffix(".in"), words)).write_text(text, "utf-8")
            add(made)
            made.rename(target)
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error.strerror or error}") from None

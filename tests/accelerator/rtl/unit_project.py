"""The unit of ``covp new accelerator --rtl``, as it is and with mistakes in its Verilog."""

from __future__ import annotations

from pathlib import Path

from covp.cli.main import covp

NAME = "mac8"
_UNITS = Path(__file__).parent / "units"


def new_unit(folder: Path, registers: str = "apb", memory: str = "obi") -> Path:
    """Return the file of a new unit in Verilog and Python, in ``folder``/mac8."""
    target = folder / NAME
    words = ["new", "accelerator", NAME, "--rtl", "-o", str(target)]
    words += ["--registers", registers, "--memory", memory]
    covp.main(words, standalone_mode=False)
    return target / f"{NAME}.py"


def change(unit: Path, file: str, old: str, new: str) -> None:
    """Replace the one place of a text in a file of the unit's Verilog."""
    path = unit.parent / f"{NAME}{'' if file == 'top' else file}.v"
    text = path.read_text()
    assert text.count(old) == 1, (old, text.count(old))
    path.write_text(text.replace(old, new))


def with_two_ports(folder: Path) -> Path:
    """Return the file of the unit with a memory port for loads and one for stores."""
    unit = new_unit(folder)
    (unit.parent / "two_ports.v").write_text((_UNITS / "two_ports.v").read_text())
    text = unit.read_text().replace('"mac8.v")', '"mac8.v", "two_ports.v"), top="two_ports"')
    unit.write_text(text)
    return unit

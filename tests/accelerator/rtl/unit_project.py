"""The unit of ``covp new accelerator --rtl``, as it is and with mistakes in its Verilog."""

from __future__ import annotations

from pathlib import Path

from covp.cli.main import covp

NAME = "mac8"


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

"""`unit_verilog`: a unit in Verilog but for its datapath, from its declared job and two buses.

This part is alike for all units: decoding, the descriptor, checks of the numbers' ranges, START,
STATUS, the interrupt line, and the buses' handshakes. The datapath gets the job's registers and a
pulse when a job begins, and answers with one when it is over.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from covp.accelerator.rtl.buses import MEMORY_BUSES, REGISTER_BUSES, Bus
from covp.errors import UsageError, near_misses
from covp.hardware.job import FIRST_OFFSET, Job, Number, Operand
from covp.hardware.job_unit import ERRORS

_TEMPLATES = Path(__file__).parent / "templates"
_END_OF_PORTS = "    // end of ports\n"
_PORT = re.compile(r"\b(\w+),?$", re.MULTILINE)


def unit_verilog(name: str, job: Job, registers: str, memory: str) -> dict[str, str]:
    """Return the Verilog-2005 files ``NAME.v`` and ``NAME_registers.v``, by name.

    Args:
        name: of the unit, a C identifier.
        job: as its class declares it.
        registers, memory: names of the buses.

    Raises:
        UsageError: there is no such bus.
    """
    register_bus, memory_bus = _bus(REGISTER_BUSES, registers), _bus(MEMORY_BUSES, memory)
    parts = [*job.image, *job.tensors, job.result, *job.varying]
    register_ports, register_logic = _halves(f"registers-{register_bus.name}.v")
    memory_ports, memory_logic = _halves(f"memory-{memory_bus.name}.v")
    names = [part.name for part in parts]
    whole = {
        "register_ports": register_ports,
        "memory_ports": memory_ports,
        "register_connections": _connect(_PORT.findall(_without_comments(register_ports))),
        "job_connections": _connect(names).removesuffix(","),
        "jobs": ", ".join(names),
        "memory_logic": memory_logic,
    }
    own = {
        **_registers(job, parts),
        **{"title": register_bus.title, "ports": register_ports, "logic": register_logic},
    }
    return {
        f"{name}.v": _fill("unit.v.in", {"name": name} | whole),
        f"{name}_registers.v": _fill("registers.v.in", {"name": name} | own),
    }


def _bus(kinds: Iterable[Bus], name: str) -> Bus:
    known = {kind.name: kind for kind in kinds}
    if name not in known:
        raise UsageError(f"unknown bus {name!r}:", hint=near_misses(name, known))
    return known[name]


def _halves(file: str) -> tuple[str, str]:
    """Return the ports and the logic of a bus's template."""
    ports, _, logic = (_TEMPLATES / file).read_text("utf-8").partition(_END_OF_PORTS)
    return ports.rstrip("\n"), logic.rstrip("\n")


def _fill(file: str, words: Mapping[str, str]) -> str:
    text = (_TEMPLATES / file).read_text("utf-8")
    for key, value in words.items():
        text = text.replace(f"@{key}@", value)
    return text


def _without_comments(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if "//" not in line)


def _connect(names: Iterable[str]) -> str:
    """Return connections of ports to wires of their names, some to a line."""
    lines = [""]
    for name in names:
        text = f".{name}({name}),"
        if len(lines[-1]) + len(text) > 88:
            lines.append("")
        lines[-1] += f" {text}" if lines[-1] else text
    return _lines(8, lines)


def _registers(job: Job, parts: list[Operand | Number]) -> dict[str, str]:
    """Return the words of the template of registers that the job decides."""
    offsets = {part.name: FIRST_OFFSET + 4 * i for i, part in enumerate(parts)}
    return {
        "outputs": ",\n".join(f"    output reg [31:0] {name}" for name in offsets),
        "declared": _lines(4, (f"reg  [31:0] next_{name};" for name in offsets)),
        "image": str(len(job.image)),
        "bits": str(max(len(job.image), 1).bit_length()),
        "checks": _lines(8, (line for part in parts for line in _checks(part))),
        "reads": _lines(12, (f"12'h{o:03x}: rdata = next_{n};" for n, o in offsets.items())),
        "writes": _lines(20, (f"12'h{o:03x}: next_{n} <= wdata;" for n, o in offsets.items())),
        "resets": _lines(12, (f"next_{n} <= 32'd0;" for n in offsets)),
        "latches": _lines(20, (f"{n} <= next_{n};" for n in offsets)),
        "fetches": _lines(
            28, (f"{i}: next_{part.name} <= fetch_rdata;" for i, part in enumerate(job.image))
        ),
        **{code: str(ERRORS[code]) for code in ("alignment", "address", "busy")},
    }


def _lines(indent: int, lines: Iterable[str]) -> str:
    return "\n".join(" " * indent + line for line in lines)


def _checks(part: Operand | Number) -> Iterator[str]:
    """Yield the statement that sets `wrong` where a register has a value that no job has."""
    name = f"next_{part.name}"
    if isinstance(part, Operand):
        size = part.dtype.itemsize
        if size > 1:
            low = f"{name}[{size.bit_length() - 2}:0]"
            yield f"if (wrong == 0 && {low} != 0) wrong = 8'd{ERRORS['alignment']};"
        return
    if part.real:
        return
    lowest, highest = int(part.minimum), int(part.maximum)
    signed = lowest < 0
    beyond = []
    if lowest > (-(1 << 31) if signed else 0):
        beyond.append(_compare(name, "<", lowest, signed))
    if highest < ((1 << 31) - 1 if signed else 0xFFFFFFFF):
        beyond.append(_compare(name, ">", highest, signed))
    if beyond:
        code = f"8'd{ERRORS['range']}"
        if lowest > 0:
            code = f"{name} == 0 ? 8'd{ERRORS['size']} : {code}"
        yield f"if (wrong == 0 && ({' || '.join(beyond)})) wrong = {code};"


def _compare(name: str, operator: str, value: int, signed: bool) -> str:
    if signed:
        text = f"-32'sd{-value}" if value < 0 else f"32'sd{value}"
        return f"$signed({name}) {operator} {text}"
    return f"{name} {operator} 32'd{value}"

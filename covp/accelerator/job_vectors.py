"""The jobs of a run as vectors: what a unit reads, its registers, the result that it has to give.

A test bench outside covp replays them on the unit's Verilog (`covp new testbench`).
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from covp.accelerator.declared import Accelerator
from covp.accelerator.rtl.choice import chosen_rtl, with_rtl
from covp.accelerator.rtl.library import verilog_value
from covp.accelerator.rtl.ports import name_ports, read_ports
from covp.accelerator.rtl.sources import top_of
from covp.base.temporary import temporary_folder
from covp.compilers.verilator import QUIET, find_verilator
from covp.errors import UsageError
from covp.hardware.declared_unit import Behaviour, DeclaredUnit
from covp.hardware.job import Job, Operand
from covp.hardware.job_unit import AcceptedJob


@dataclass
class JobVector:
    """A job.

    Attributes:
        registers: that a driver writes before START, by name.
        memory: (address, bytes) that the unit reads: its descriptor and its operands.
        result: address and bytes that it has to write.
    """

    registers: Mapping[str, int]
    memory: list[tuple[int, bytes]] = field(default_factory=list)
    result: tuple[int, bytes] = (0, b"")

    def document(self, job: Job) -> dict[str, Any]:
        """Return it as plain data; registers by their offsets."""
        offsets = {register.name: register.offset for register in job.registers}
        return {
            "registers": {offsets[name]: value for name, value in self.registers.items()},
            "memory": [[address, data.hex()] for address, data in self.memory],
            "result": [self.result[0], self.result[1].hex()],
        }


class _RecordingUnit(DeclaredUnit):
    """A unit's model that keeps a vector of each job that it accepts."""

    not_saved = DeclaredUnit.not_saved | {"_vectors", "_now"}

    def __init__(self, behaviour: Behaviour, vectors: list[JobVector]) -> None:
        self._vectors = vectors
        job = behaviour.job
        operands = [operand.name for operand in (*job.tensors, job.result)]
        self._written = ["DESCRIPTOR", *operands, *(number.name for number in job.varying)]
        super().__init__(behaviour)

    def accept(self) -> AcceptedJob:
        """Compute a job, and keep it."""
        self._now = JobVector({name: self.values[name] for name in self._written})
        found = super().accept()
        self._now.result = found.address, found.result.tobytes()
        self._vectors.append(self._now)
        return found

    def _fetch(self, job: Job) -> int:
        address = self.values["DESCRIPTOR"]
        size = super()._fetch(job)
        if address:
            self._now.memory.append((address, bytes(self.bus.read(address, size))))
        return size

    def _load(self, operand: Operand, address: int, size: int) -> NDArray[Any]:
        found = super()._load(operand, address, size)
        self._now.memory.append((address, found.tobytes()))
        return found


def recording(unit: Accelerator) -> tuple[Accelerator, list[JobVector]]:
    """Return the same accelerator as its model, and a list that its jobs are put into.

    Raises:
        UsageError: its class makes a hardware model of its own.
    """
    if type(unit).make_peripheral is not Accelerator.make_peripheral:
        raise UsageError(f"{unit.name} has a hardware model of its own, whose jobs are not known")
    vectors: list[JobVector] = []
    other = copy.copy(unit)
    other.make_peripheral = lambda: _RecordingUnit(other, vectors)  # type: ignore[method-assign]
    return other, vectors


_TEMPLATE = Path(__file__).parent / "rtl" / "templates" / "test_bench.py.in"
_CLASS = "Vcovp_bench"


def make_test_bench(
    unit: Accelerator, vectors: Sequence[JobVector], folder: Path
) -> dict[str, str]:
    """Return the files of a test bench that replays jobs on a unit's Verilog, by their names.

    Args:
        unit: whose Verilog its parameter ``rtl`` or its class names.
        vectors: its jobs.
        folder: that the files are for; sources are named by their paths from there.

    Raises:
        UsageError: it has no Verilog, or cannot be built from files as they are.
        AcceleratorError: a bus is not found.
        ToolchainError: Verilator is missing or rejects the sources.
    """
    chosen = chosen_rtl(with_rtl(unit), unit.rtl)
    assert chosen is not None
    rtl, place, parameters = chosen
    sources = rtl.files(place)
    if sources.patches:
        raise UsageError(f"{unit.name}: its Verilog has patches, which no test bench applies")
    top, verilator = top_of(rtl, sources), find_verilator()
    given = [
        *("--top-module", top, "--prefix", _CLASS, "-DSYNTHESIS"),
        *(f"-D{define}" for define in sources.defines),
        *(f"-G{name}={verilog_value(value)}" for name, value in parameters.items()),
        *(f"-I{path}" for path in sources.include),
    ]
    with temporary_folder("bench") as temporary:
        files = [str(path) for path in sources.files]
        verilator.translate(unit.name, [*QUIET, *given, "--Mdir", str(temporary), *files])
        ports = read_ports((Path(temporary) / f"{_CLASS}.h").read_text("utf-8"))
    where = f"{sources.files[-1].name}: module {top}"
    defines = dict(define.partition("=")[::2] for define in sources.defines)
    document = {
        "unit": unit.name,
        "top": top,
        "sources": [os.path.relpath(path, folder) for path in sources.files],
        "include": [os.path.relpath(path, folder) for path in sources.include],
        "defines": defines,
        "parameters": dict(parameters),
        **name_ports(where, ports, rtl),
        "jobs": [vector.document(unit.job) for vector in vectors],
    }
    vectors_file = f"{unit.name}_vectors.json"
    text = _TEMPLATE.read_text("utf-8").replace("@name@", unit.name)
    return {
        f"test_{unit.name}_rtl.py": text.replace("@vectors@", vectors_file),
        vectors_file: json.dumps(document, indent=1) + "\n",
    }

"""Accelerators written for version 0.1 go on working, with a warning."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from covp import renamed
from covp.accelerator import Accelerator
from covp.accelerator.registry import find_backend
from covp.verify import verify

# as a user wrote it against 0.1: old modules, old names, the old hook of time
OLD = '''
"""A dot product unit."""

import numpy as np

from covp.accelerator import TIMING, WAIT, Accelerator, Job, Limit, number, result, table, tensor
from covp.accelerator.call import CCall, Part, Words
from covp.machine.arithmetic import exact_matmul, requantize
from covp.machine.job import JobValues
from covp.machine.job_unit import ERRORS, MemoryPort, Work
from covp.machine.custom_instructions import CustomInstruction, InstructionUnit
from covp.machine.peripheral import Peripheral, load_peripheral
from covp.machine.registers import Field, Register, RegisterMap
from covp.graph.resolved import resolve


class Old(Accelerator):
    """Fully connected layers."""

    name = "old"
    operators = ("FULLY_CONNECTED",)
    job = Job(
        tensor("INPUT", "int8", lambda job: job.BATCH * job.IN_CHANNELS),
        table("WEIGHTS", "int8", lambda job: job.IN_CHANNELS * job.OUT_CHANNELS),
        table("BIAS", "int32", lambda job: job.OUT_CHANNELS),
        table("MULTIPLIER", "int32", lambda job: job.OUT_CHANNELS),
        table("SHIFT", "int32", lambda job: job.OUT_CHANNELS),
        result("OUTPUT", "int8", lambda job: job.BATCH * job.OUT_CHANNELS),
        number("BATCH", 1, 16),
        number("IN_CHANNELS", 1, 1024),
        number("OUT_CHANNELS", 1, 1024),
        number("INPUT_ZERO_POINT", -128, 127),
        number("OUTPUT_ZERO_POINT", -128, 127),
        number("LOW", -128, 127),
        number("HIGH", -128, 127),
    )

    def compute(self, job):
        rows = job.INPUT.reshape(job.BATCH, -1).astype(np.int16) - job.INPUT_ZERO_POINT
        sums = exact_matmul(rows, job.WEIGHTS.reshape(job.OUT_CHANNELS, -1).T) + job.BIAS
        return requantize(
            sums, job.MULTIPLIER, job.SHIFT, job.OUTPUT_ZERO_POINT, job.LOW, job.HIGH
        )

    def work(self, job, nbytes: int, port: MemoryPort) -> Work:
        return Work(job.BATCH * 1000, port.cycles(nbytes), 77)
'''


@pytest.mark.costly
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_accelerator_of_version_0_1(tmp_path: Path) -> None:
    file = tmp_path / "old.py"
    file.write_text(OLD)
    backend = find_backend(f"{file}:Old")
    verdict = verify(f"{file}:Old", examples=10)
    assert verdict.failure is None and sum(verdict.accepted.values()) > 0
    # its own formula of time is used
    assert isinstance(backend, Accelerator)
    assert backend.timing(type("Values", (), {"BATCH": 3})(), 8).cycles == 77 + 3000


@pytest.mark.parametrize("old", sorted(renamed._MODULES))
def test_old_modules(old: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"{old} is covp"):
        sys.modules.pop(old, None)
        module = importlib.import_module(old)
    for place in map(importlib.import_module, renamed._MODULES[old]):
        public = [name for name in vars(place) if not name.startswith("_")]
        assert public and all(getattr(module, name) is vars(place)[name] for name in public)
    with pytest.raises(AttributeError):
        module.nonsense  # noqa: B018


def test_the_present_names_warn_of_nothing() -> None:
    code = "import covp, covp.accelerator, covp.verify, covp.machine.engine, covp.cli.main"
    done = subprocess.run([sys.executable, "-W", "error::DeprecationWarning:covp", "-c", code])
    assert done.returncode == 0

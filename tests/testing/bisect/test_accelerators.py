"""`bisect` of layers that run on an accelerator: its model, or what nothing stored."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import covp
from covp.codegen.program import Program
from covp.testing.bisect import bisect
from tests.testing.bisect.conftest import chain, passes

UNIT = '''
"""Fully connected layers of int8."""

import numpy as np

from covp.accelerator import Accelerator, Job, number, result, table, tensor
from covp.hardware.arithmetic import exact_matmul, requantize


class Mac(Accelerator):
    """y = W x + b"""

    name = "mac"
    operators = ("FULLY_CONNECTED",)
    job = Job(
        tensor("INPUT", "int8", lambda job: job.ROWS * job.DEPTH),
        table("WEIGHTS", "int8", lambda job: job.OUTPUTS * job.DEPTH),
        table("BIAS", "int32", lambda job: job.OUTPUTS, optional=True),
        table("MULTIPLIER", "int32", lambda job: job.OUTPUTS),
        table("SHIFT", "int32", lambda job: job.OUTPUTS),
        result("OUTPUT", "int8", lambda job: job.ROWS * job.OUTPUTS),
        number("ROWS", 1, 4096),
        number("DEPTH", 1, 4096),
        number("OUTPUTS", 1, 4096),
        number("INPUT_ZERO_POINT", -128, 127),
        number("OUTPUT_ZERO_POINT", -128, 127),
        number("LOW", -128, 127),
        number("HIGH", -128, 127),
    )

    def registers(self, layer):
        """The sizes beside what has a usual name."""
        sizes = {"ROWS": layer.batch, "DEPTH": layer.in_channels, "OUTPUTS": layer.out_channels}
        return {**super().registers(layer), **sizes}

    def compute(self, job):
        """One product."""
        rows = job.INPUT.reshape(job.ROWS, job.DEPTH).astype(np.int16) - job.INPUT_ZERO_POINT
        sums = exact_matmul(rows, job.WEIGHTS.reshape(job.OUTPUTS, -1).T)
        if job.BIAS is not None:
            sums = sums + job.BIAS
        zero_point = job.OUTPUT_ZERO_POINT
        return requantize(sums, job.MULTIPLIER, job.SHIFT, zero_point, job.LOW, job.HIGH)
'''


def with_unit(tmp_path: Path, platform: str, before: str = "", after: str = "") -> Program:
    """The chain with its fully connected layer on a unit, in whose file a text is another one."""
    assert UNIT.count(before) == 1 or not before
    path = tmp_path / "unit.py"
    path.write_text(UNIT.replace(before, after) if before else UNIT)
    return covp.compile(chain(), platform, [f"{path}:Mac"], allow_slower=True, schedules=None)


@pytest.mark.parametrize("platform", ["riscv32", "cortex-m4"])
def test_a_wrong_model(platform, tmp_path):
    wrong = "job.INPUT_ZERO_POINT + 1"
    program = with_unit(tmp_path, platform, "- job.INPUT_ZERO_POINT", f"- {wrong}")
    finding = bisect(program, folder=tmp_path / "out").finding
    assert finding is not None and finding.cause is not None and finding.test is not None
    assert (finding.layer, finding.target) == ("fully_connected_4", "mac")
    cause = finding.cause
    assert (cause.kind, cause.accelerator) == ("accelerator", "mac")
    text = UNIT.splitlines()
    line = next(number for number, each in enumerate(text, 1) if "def compute" in each)
    assert cause.spot is not None
    assert (cause.spot.function, cause.spot.source) == ("Mac.compute", f"unit.py:{line}")
    assert cause.driver.startswith("mac_run (mac.c:")
    test = finding.test.path
    assert not passes(test)
    (test.parent / "unit.py").write_text(UNIT)
    assert passes(test)


def test_a_driver_that_gives_too_small_a_number(tmp_path):
    program = with_unit(tmp_path, "riscv32")
    file = "chain_04_fully_connected.c"
    text = program.sources[file]
    assert text.count("0x5, /* OUTPUTS */") == 1
    changed = text.replace("0x5, /* OUTPUTS */", "0x4, /* OUTPUTS */")
    program = replace(program, sources={**program.sources, file: changed})
    finding = bisect(program, folder="").finding
    assert finding is not None and finding.cause is not None and finding.test is None
    assert (finding.layer, finding.element) == ("fully_connected_4", (0, 4))
    assert (finding.cause.kind, finding.cause.accelerator) == ("not written", "mac")


@pytest.mark.costly
def test_nothing_differs_on_accelerators(tmp_path):
    program = with_unit(tmp_path, "riscv32")
    assert [layer.target for layer in program.layers] == ["cpu", "cpu", "cpu", "mac", "cpu"]
    assert bisect(program).finding is None


STARTUP = '''
    def startup(self):
        """Before every inference."""
        return [CCall("mac_prepare", "mac_more.h", (42,))]

    def driver(self, base):
        """A job does nothing before that."""
        files = dict(super().driver(base))
        check = "if (mac_ready != 42)\\n        return;\\n    MAC_DESCRIPTOR ="
        files["mac.c"] = files["mac.c"].replace("MAC_DESCRIPTOR =", check, 1)
        files["mac.c"] = files["mac.c"].replace("#include", '#include "mac_more.h"\\n#include', 1)
        declared = "#include <stdint.h>\\nextern int32_t mac_ready;\\nvoid mac_prepare(int32_t);\\n"
        files["mac_more.h"] = f"#ifndef MAC_MORE\\n#define MAC_MORE\\n{declared}#endif\\n"
        body = "int32_t mac_ready;\\nvoid mac_prepare(int32_t x) { mac_ready = x; }\\n"
        files["mac_more.c"] = '#include "mac_more.h"\\n' + body
        return files

    def compute(self, job):'''


def test_what_is_called_before_every_inference(tmp_path):
    text = UNIT.replace("import Accelerator", "import Accelerator, CCall")
    path = tmp_path / "unit.py"
    path.write_text(text.replace("\n    def compute(self, job):", STARTUP))
    spec = f"{path}:Mac"
    program = covp.compile(chain(), "riscv32", [spec], allow_slower=True, schedules=None)
    assert program.startup_function
    assert bisect(program).finding is None
    wrong = path.read_text().replace("- job.INPUT_ZERO_POINT", "- job.INPUT_ZERO_POINT - 1")
    path.write_text(wrong)
    program = covp.compile(chain(), "riscv32", [spec], allow_slower=True, schedules=None)
    finding = bisect(program, folder=tmp_path / "out").finding
    assert finding is not None and finding.cause is not None and finding.test is not None
    assert finding.cause.kind == "accelerator"
    test = finding.test.path
    assert not passes(test)
    (test.parent / "unit.py").write_text(wrong.replace("_POINT - 1", "_POINT"))
    assert passes(test)

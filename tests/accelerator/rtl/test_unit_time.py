"""Formulas of a unit's time, fitted to cycles: known ones are found again, and errors are true."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from covp.accelerator import Accelerator, Job, JobTiming, TimingCheck, number, result, tensor
from covp.accelerator.registry import find_backend
from covp.accelerator.rtl.unit import ComparedJob
from covp.cli.main import covp
from covp.errors import AcceleratorError
from covp.hardware.job import JobValues
from covp.testing.verify import verify
from covp.testing.verify.unit_time import fit_unit_time
from tests.accelerator.rtl.unit_project import new_unit

FOLDER = Path(__file__).parents[3] / "examples" / "rtl_unit"


class Product(Accelerator):
    """Rows by columns."""

    name = "product"
    operators = ("FULLY_CONNECTED",)
    job = Job(
        tensor("INPUT", "int8", lambda job: job.ROWS * job.DEPTH),
        result("OUTPUT", "int8", lambda job: job.ROWS * job.COLUMNS),
        number("ROWS", 1, 4096),
        number("COLUMNS", 1, 4096),
        number("DEPTH", 1, 4096),
        number("ZERO", -128, 127),
    )

    def compute(self, job: Any) -> Any:
        raise NotImplementedError

    def macs(self, job: Any) -> int:
        return int(job.ROWS * job.COLUMNS * job.DEPTH)


def jobs(rtl: Any, count: int = 200) -> list[ComparedJob]:
    """Return jobs of random sizes with cycles by a function of the numbers."""
    rng = np.random.default_rng(1)
    found = []
    for _ in range(count):
        sizes = {name: int(rng.integers(1, 100)) for name in ("ROWS", "COLUMNS", "DEPTH")}
        numbers = {**sizes, "ZERO": int(rng.integers(-128, 127))}
        found.append(ComparedJob(numbers, 0, rtl(**sizes)))
    return found


def timing(method: str, job: JobValues) -> int:
    """Return the cycles by a printed method."""
    names: dict[str, Any] = {"JobTiming": JobTiming, "TimingCheck": TimingCheck}
    exec("class Own:\n" + method, names)
    own = Product()
    return int(names["Own"].timing(own, job, 0).cycles)


def test_a_formula_of_known_terms_is_found_again() -> None:
    def rtl(ROWS: int, COLUMNS: int, DEPTH: int) -> int:
        return 40 + ROWS * COLUMNS * (-(-DEPTH // 8) + 9) + 3 * ROWS

    found = fit_unit_time(Product(), jobs(rtl))
    assert found.worst < 0.005 and abs(found.total) < 0.001
    assert found.jobs + found.left_out == 200
    method = found.method(Product.job)
    for sizes in ((1, 1, 1), (7, 3, 65), (100, 200, 300)):
        job = JobValues(**dict(zip(("ROWS", "COLUMNS", "DEPTH"), sizes, strict=True)))
        assert timing(method, job) == pytest.approx(rtl(*sizes), rel=0.01, abs=1)


def test_errors_are_those_of_jobs_that_were_left_out() -> None:
    def noisy(ROWS: int, COLUMNS: int, DEPTH: int) -> int:
        return int(ROWS * COLUMNS * DEPTH * (1.1 if (ROWS + COLUMNS + DEPTH) % 2 else 0.9)) + 10

    found = fit_unit_time(Product(), jobs(noisy))
    assert 0.08 < found.mean < 0.12 and found.worst < 0.2


def test_too_few_jobs() -> None:
    with pytest.raises(AcceleratorError, match="19 different jobs are too few"):
        fit_unit_time(Product(), jobs(lambda **sizes: 1, 19) * 3)


def test_the_examples_formula_is_a_fitted_one() -> None:
    conv8 = find_backend(str(FOLDER / "conv8.py"))
    text = (FOLDER / "conv8.py").read_text()
    assert "Fitted to the RTL by covp calibrate" in text
    image = {"IN_HEIGHT": 32, "IN_WIDTH": 32, "OUT_HEIGHT": 32, "OUT_WIDTH": 32}
    sizes = {"IN_CHANNELS": 16, "OUT_CHANNELS": 16, "KERNEL_HEIGHT": 3, "KERNEL_WIDTH": 3}
    job = JobValues(**image, **sizes)
    # resnet's second layer takes 817,010 cycles with driver (docs/rtl-units.md)
    assert conv8.timing(job, 0).cycles == pytest.approx(817_000, rel=0.01)  # type: ignore[attr-defined]


@pytest.mark.costly
def test_a_class_that_states_a_wrong_time_fails_and_is_fitted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unit = new_unit(tmp_path)
    own = "    def timing(self, job, nbytes):\n        return JobTiming(1, 0)\n\n"
    text = unit.read_text("utf-8").replace("    def compute(", f"{own}    def compute(")
    imports = "from covp.accelerator import"
    text = text.replace(imports, f"{imports} JobTiming,")
    unit.write_text(text, "utf-8")
    verdict = verify(str(unit), examples=20, seconds=10, models=["toycar"], against_rtl=True)
    assert verdict.failure is not None and verdict.is_of_time
    assert "mac8: timing() is -100% off the cycles of the RTL in all" in verdict.failure
    assert covp.main(["calibrate", "-a", str(unit), "--device", "rtl"], standalone_mode=False) == 0
    printed = capsys.readouterr().out
    assert "def timing(self, job, nbytes):" in printed
    method = printed.partition(":\n\n")[2]
    text = text.replace(own, method + "\n").replace(" JobTiming,", " JobTiming, TimingCheck,")
    unit.write_text(text, "utf-8")
    check = find_backend(str(unit)).known_timing
    assert check is not None and check.beside.startswith("its RTL, ") and 0 < check.error < 0.2

"""docs/peripherals.md: its tables are those of the models, its code runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from covp.chip.platform_file import load_platform
from covp.compilers.toolchain import SourceText, get_toolchain
from covp.hardware.peripheral_models import load_peripheral
from covp.peripherals import _sensor_bus

PAGE = Path(__file__).parents[2] / "docs" / "peripherals.md"
MODELS = (
    "timer", "gpio", "spi_sensor", "i2c_sensor", "sampler", "dma_controller", "mailbox"
)  # fmt: skip


@pytest.mark.parametrize("model", MODELS)
def test_tables_of_registers(model: str) -> None:
    text = PAGE.read_text(encoding="utf-8")
    section = re.split(r"^## ", text, flags=re.M)
    (own,) = [part for part in section if part.startswith(f"{model}\n")]
    assert type(load_peripheral(model)).registers.markdown() in own


def test_the_code_runs() -> None:
    blocks = re.findall(r"(?:^    .*\n|^\n)+", PAGE.read_text(encoding="utf-8"), re.M)
    code = [block for block in blocks if "import covp" in block]
    assert len(code) == 1
    exec("\n".join(line[4:] for line in code[0].splitlines()), {})


def test_the_c_compiles() -> None:
    (code,) = re.findall(r"^```c\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    for platform in ("cortex-m4", "riscv32"):
        compiler = get_toolchain("zig", load_platform(platform).core)
        compiler.compile([SourceText("example.c", code)], flags=("-Wall", "-Wextra", "-Werror"))


def test_the_table_of_the_sensor_is_that_of_its_model() -> None:
    text = PAGE.read_text(encoding="utf-8")
    rows = [line for line in (_sensor_bus.__doc__ or "").splitlines() if line.startswith("|")]
    assert len(rows) == 10 and "\n".join(rows) in text

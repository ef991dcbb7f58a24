"""docs/peripherals.md: its tables are those of the models, its code runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from covp.hardware.peripheral_models import load_peripheral

PAGE = Path(__file__).parents[2] / "docs" / "peripherals.md"
MODELS = ("timer", "gpio")


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

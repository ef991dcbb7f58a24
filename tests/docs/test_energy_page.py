"""docs/energy.md has every coefficient, with its source, as the data files have it."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def generator(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """benchmarks/energy.py."""
    if not (ROOT / "benchmarks").is_dir():
        pytest.skip("not in a checkout")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("energy")


def test_the_tables_are_those_of_the_data(generator: ModuleType) -> None:
    page = (ROOT / "docs" / "energy.md").read_text(encoding="utf-8")
    for name, make in generator.SHORT.items():
        assert generator.replaced(page, name, make()) == page, (
            "python benchmarks/energy.py --coefficients --write"
        )
    assert "| stm32l4r5 | resnet |" in page


def test_the_check_is_arithmetic(generator: ModuleType) -> None:
    """47.095 mW for 226.9117 ms at the rate of one a run: what the coefficient is made from."""
    own = next(
        one
        for one in generator.PUBLISHED
        if generator._key(one) == ("v1.0 (c7761cf8)", "STMicroelectronics", "stm32l4r5")
    )
    deviation = generator._deviation(own, "resnet", 218 * 1.8, 1.8)
    assert deviation == pytest.approx(226.9117e-3 * 120e6 * 392.4e-6 / 10681.6 - 1)
    assert abs(deviation) < 0.003

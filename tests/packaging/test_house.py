"""The bars of the house, counted from the source by `benchmarks/house.py`."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "house.py"


@pytest.fixture(scope="module")
def house() -> ModuleType:
    if not SCRIPT.is_file():
        pytest.skip("not in a checkout")
    spec = importlib.util.spec_from_file_location("house", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_figure_is_above_its_bar(house: ModuleType) -> None:
    above = {
        bar.text: count
        for bar in house.BARS
        if (count := bar.measure()) > (bar.wanted if bar.held is None else bar.held)
    }
    assert above == {}


def test_what_is_counted_is_found(
    house: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each count on a tree that was written for it."""
    (tmp_path / "pyproject.toml").write_text("ignore_imports = []\n")
    same = "".join(f"    first_{n} = call({n})\n" for n in range(8))
    files = {
        "__init__.py": "import covp.upper.a\n\n\nclass Names(ModuleType): ...\n",
        "upper/__init__.py": "",
        "upper/a.py": "from covp.lower import b\n\n\nclass Twice:\n"
        + same
        + "allow_slower = 'SOFTMAX'\nx = import_module(\"covp.lower\")\narena_bytes = 1\n",
        "lower/__init__.py": "def __getattr__(name): ...\n",
        "lower/b.py": "import covp.lower.c\n\n\nclass Twice:\n"
        + same
        + "isinstance(d, VirtualDevice)\nop.arithmetic == 1\n",
        "lower/c.py": 'def counted():\n    """Of all."""\n\n\n'
        'def count():\n    """See `counted`."""\n',
        "codegen/bands.py": "KINDS = ('SOFTMAX',)\n",
    }
    for name, text in files.items():
        path = tmp_path / "covp" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "soft_threshold.py").write_text("from covp.lower import b, c\n")
    monkeypatch.setattr(house, "ROOT", tmp_path)
    monkeypatch.setattr(house, "COVP", tmp_path / "covp")
    for cached in (house.sources, house.trees, house.nodes, house._kinds):
        cached.cache_clear()
    found = {bar.text: bar.measure() for bar in house.BARS}
    for cached in (house.sources, house.trees, house.nodes, house._kinds):
        cached.cache_clear()
    assert list(found.values()) == [41, 4, 2, 2, 3, 4, 1, 2, 2, 1, 1, 1, 1, 1, 4, 1, 2, 1, 1, 1, 1]

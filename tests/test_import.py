"""`import covp` must cost nothing: tools that only ask for a name or an error import it too."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import covp


def test_importing_covp_imports_nothing_heavy() -> None:
    heavy = "{'numpy', 'unicorn', 'yaml', 'msgspec'}"
    code = f"import covp, sys; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.costly
def test_the_strategies_need_no_emulator() -> None:
    code = "import covp.testing, sys; print('unicorn' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("name", covp.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(covp, name).__name__ == name
    assert callable(getattr(covp, name))
    assert name in dir(covp)


@pytest.mark.parametrize("room", ["accelerator", "testing"])
def test_rooms_have_their_names(room: str) -> None:
    code = f"import covp.{room} as r; print([n for n in r.__all__ if not hasattr(r, n)])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_names_come_from_where_type_checkers_look() -> None:
    tree = ast.parse(Path(covp.__path__[0], "__init__.py").read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    stated = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert stated == covp._HOMES


def test_no_other_module_makes_names_up() -> None:
    """A `__getattr__` of a module hides imports from the contracts on their direction."""
    root = Path(covp.__path__[0])
    texts = {path: path.read_text() for path in root.rglob("*.py")}
    assert len(texts) > 500
    names = [
        path.relative_to(root).as_posix()
        for path, text in texts.items()
        if "__getattr__" in text
        for node in ast.parse(text).body
        if getattr(node, "name", "") == "__getattr__"
    ]
    assert names == ["__init__.py"]


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        covp.nothing  # noqa: B018

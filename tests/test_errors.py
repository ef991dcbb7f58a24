"""Errors state apart where they are and what would fix them; the text is made of it."""

from __future__ import annotations

import ast
import pickle
from pathlib import Path

import pytest

import covp
from covp import errors
from covp.errors import CapacityError, CovpError, DeviceFault, ModelError, UsageError


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ModelError("is damaged"), "is damaged"),
        (ModelError("is damaged", where="a.tflite"), "a.tflite: is damaged"),
        (ModelError("is damaged", where=Path("a.tflite")), "a.tflite: is damaged"),
        (UsageError("no model x", hint="did you mean y?"), "no model x; did you mean y?"),
        (UsageError("no model x:", hint="did you mean y?"), "no model x: did you mean y?"),
        (UsageError("no key", where="a.yaml", hint="see b"), "a.yaml: no key; see b"),
        (CapacityError("too large", 2, 1, hint="take less"), "too large; take less"),
    ],
)
def test_the_text_is_made_of_the_fields(error: CovpError, text: str) -> None:
    assert str(error) == text and error.args == (text,)
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy)) == (type(error), text)
    assert (copy.where, copy.hint) == (error.where, error.hint)
    assert text.startswith(f"{error.where}: " if error.where else "")
    assert text.endswith(error.hint or "")


def test_a_fault_is_at_its_source_line_if_that_is_known() -> None:
    assert DeviceFault("timeout").where is None
    assert DeviceFault("timeout", pc=16).where == "0x00000010"
    assert DeviceFault("timeout", pc=16, symbol="f+0x4").where == "f+0x4"
    assert DeviceFault("timeout", pc=16, symbol="f+0x4", source="f.c:3").where == "f.c:3"


@pytest.mark.costly
def test_near_misses_are_a_hint_of_their_own() -> None:
    """No raise statement writes them into its message."""
    seen = 0
    for path in sorted(Path(covp.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Raise) or not isinstance(node.exc, ast.Call):
                continue
            if issubclass(getattr(errors, ast.unparse(node.exc.func), type(None)), CovpError):
                assert "near_misses(" not in "".join(map(ast.unparse, node.exc.args)), path
                seen += "near_misses(" in ast.unparse(node)
    assert seen > 30

"""Accelerators by name, with parameters, and from a user's own file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from covp.accelerator.parameters import Parameter, read_parameters
from covp.accelerator.registry import find_backend, list_backends
from covp.errors import AcceleratorError, CovpError, UsageError

OWN = '''
from covp.accelerator.backend import AcceleratorBackend
from covp.accelerator.parameters import Parameter
from covp.graph.pattern import Pattern, op

class Model:
    def __init__(self, lanes=4):
        self.lanes = lanes

class Base(AcceleratorBackend):
    """A base that is no accelerator yet."""

class Mine(Base):
    """My own accelerator."""
    name = "mine"
    patterns = (Pattern("relu", op("RELU")),)
    peripheral = Model
    parameters = (Parameter("lanes", 4, "lanes", 1, 64), Parameter("fast", False, "be quick"))
    def supports(self, match): return True
    def lower(self, match): return []
    def driver(self, base): return {}
'''


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "own.py"
    path.write_text(OWN)
    return path


def test_a_file_gives_its_class_with_parameters(own: Path) -> None:
    backend = find_backend(f"{own}:Mine:lanes=8,fast=yes")
    assert backend.name == "mine"
    assert backend.values == {"lanes": 8, "fast": True}
    assert backend.spec == "mine:lanes=8,fast=true"
    assert backend.make_peripheral().lanes == 8
    assert backend.make_peripheral() is not backend.make_peripheral()
    assert find_backend(str(own)).values == {"lanes": 4, "fast": False}
    assert find_backend(f"{own}:Mine").description() == "My own accelerator."


@pytest.mark.parametrize(
    ("suffix", "reason"),
    [
        (":Mime", "did you mean Mine"),
        (":Base", "lacks driver, lower, supports, name, patterns, peripheral"),
        (":Model", "not a subclass of AcceleratorBackend"),
        (":Mine:lane=8", "no parameter 'lane': did you mean lanes"),
        (":Mine:lanes=0", "lanes=0 must be at least 1"),
        (":Mine:lanes=65", "must be at most 64"),
        (":Mine:lanes=2.5", "must be an integer"),
        (":Mine:lanes=inf", "must be an integer"),
        (":Mine:fast=maybe", "must be true or false"),
        (":Mine:lanes", "not of the form key=value"),
        (":Mine:lanes=1,lanes=2", "given twice"),
    ],
)
def test_what_is_wrong_with_a_file_or_its_parameters_is_said(
    own: Path, suffix: str, reason: str
) -> None:
    with pytest.raises(CovpError, match=reason) as caught:
        find_backend(f"{own}{suffix}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import nowhere_at_all", "ModuleNotFoundError"),
        ("def broken(:", "SyntaxError"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("x = 1", "defines no complete subclass"),
    ],
)
def test_a_broken_file_is_one_line(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "broken.py"
    path.write_text(text)
    with pytest.raises(AcceleratorError, match=reason) as caught:
        find_backend(str(path))
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_unknown_names_and_files() -> None:
    with pytest.raises(UsageError, match=r"unknown accelerator 'qconv2'.*did you mean qconv2d"):
        find_backend("qconv2")
    with pytest.raises(UsageError, match="no such file"):
        find_backend("nowhere/file.py:Class")


def test_built_in_accelerators_are_listed_with_what_can_be_set() -> None:
    found = {info.name: info for info in list_backends()}
    assert found["qconv2d"].origin == "built in"
    assert "conv2d" in found["qconv2d"].description
    assert "requantize" in {parameter.name for parameter in found["qconv2d"].parameters}
    assert find_backend("qconv2d:requantize=false").values["requantize"] is False


def test_values_keep_their_types() -> None:
    declared = (Parameter("ratio", 0.5, "a ratio"), Parameter("kind", "a", "", choices=("a", "b")))
    assert read_parameters("x", declared, {"ratio": "2"}) == {"ratio": 2.0, "kind": "a"}
    assert read_parameters("x", declared, {"kind": "b"})["kind"] == "b"
    with pytest.raises(UsageError, match="kind=c must be one of a, b"):
        read_parameters("x", declared, {"kind": "c"})
    with pytest.raises(UsageError, match="ratio=nan must be at least"):
        read_parameters("x", (Parameter("ratio", 0.5, "", minimum=0),), {"ratio": "nan"})


@pytest.mark.parametrize(
    ("declared", "reason"),
    [
        ((Parameter("a", 1, ""), Parameter("a", 2, "")), "parameter 'a' is declared twice"),
        ((Parameter("a b", 1, ""),), "parameter 'a b' is not a valid identifier"),
        ((Parameter("a", 5, "", 10, 20),), "parameter a's default 5 must be at least 10"),
        ((Parameter("a", "x", "", choices=("y",)),), "parameter a's default 'x' must be one of y"),
        (("a",), "'a' is not a Parameter"),
    ],
)
def test_declarations_that_are_wrong(declared: Any, reason: str) -> None:
    with pytest.raises(AcceleratorError, match=f"accelerator x: {reason}"):
        read_parameters("x", declared, {})


def test_a_class_that_cannot_be_made_is_one_line(own: Path) -> None:
    own.write_text(own.read_text() + "\n\nclass Odd(Mine):\n    def __init__(self, v): 1 // 0\n")
    with pytest.raises(AcceleratorError, match="Odd cannot be made: ZeroDivisionError"):
        find_backend(f"{own}:Odd")


def test_two_packages_with_one_name_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    class Package:
        def __init__(self, name: str) -> None:
            self.name = name

    class Entry:
        name, value = "twice", "somewhere:Twice"

        def __init__(self, package: str) -> None:
            self.dist = Package(package)

    monkeypatch.setattr(
        "covp.accelerator.registry.entry_points", lambda group: [Entry("one"), Entry("other")]
    )
    with pytest.raises(AcceleratorError, match="twice: the packages one and other bring one each"):
        find_backend("twice")
    (info,) = (info for info in list_backends() if info.name == "twice")
    assert info.origin == "one and other"
    assert "cannot be used" in info.description

"""Users' Python files as modules, and calls of their functions."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import pickle
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from covp.accelerator.registry import find_backend
from covp.base.plugins import call_hook, load_file, module_name
from covp.errors import AcceleratorError, ModelError, UsageError

BACKEND = """
from beside import SCALE

from covp.accelerator import Accelerator, Job, number, result


class Scaled(Accelerator):
    '''Scales.'''

    name = "scaled"
    operators = ("RELU",)
    job = Job(result("OUTPUT", "int8", lambda job: job.COUNT), number("COUNT"))

    def compute(self, job):
        return SCALE
"""


def _described(pickled: bytes) -> tuple[str, object]:
    """Runs in a spawned process."""
    backend = pickle.loads(pickled)
    return type(backend).__name__, backend.compute(None)


def test_a_backend_from_a_file_reaches_a_spawned_process(tmp_path: Path) -> None:
    folder = tmp_path / "odd näme_with.dots"
    folder.mkdir()
    (folder / "beside.py").write_text("SCALE = 7\n")
    (folder / "scaled.py").write_text(BACKEND)
    pickled = pickle.dumps(find_backend(str(folder / "scaled.py")))
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawn) as pool:  # which notices a child that cannot start
        assert pool.submit(_described, pickled).result(120) == ("Scaled", 7)
    assert str(folder) not in sys.path


def test_files_of_one_name_are_two_modules(tmp_path: Path) -> None:
    modules = []
    for folder in ("a_b", "a/b"):
        path = tmp_path / folder / "ops.py"
        path.parent.mkdir(parents=True)
        path.write_text(f"def where():\n    return {folder!r}\n")
        modules.append(load_file(path, ModelError))
    for module, folder in zip(modules, ("a_b", "a/b"), strict=True):
        assert pickle.loads(pickle.dumps(module.where))() == folder


def test_files_beside_files_do_not_collide(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder / "parts").mkdir(parents=True)
        (tmp_path / folder / "constants.py").write_text(f"NAME = {folder!r}\n")
        (tmp_path / folder / "parts" / "inner.py").write_text(f"NAME = {folder!r}\n")
        text = "import constants\nfrom parts import inner\nnames = constants.NAME, inner.NAME\n"
        (tmp_path / folder / "unit.py").write_text(text)
    for folder in ("one", "two", "one"):
        found = load_file(tmp_path / folder / "unit.py", ModelError, again=True)
        assert found.names == (folder, folder)


def test_a_file_is_executed_again_when_its_content_changes(tmp_path: Path) -> None:
    path = tmp_path / "value.py"
    path.write_text("value = [1]\n")
    first = load_file(path, ModelError)
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns
    assert load_file(tmp_path / "." / "value.py", ModelError) is first
    assert load_file(path, ModelError, again=True).value is not first.value
    path.write_text("value = [2]\n")
    os.utime(path, ns=times)
    assert load_file(path, ModelError).value == [2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n1 / 0\n", r":2 cannot be loaded: ZeroDivisionError"),
        ("\n\ndef broken(:\n", r":3 cannot be loaded: SyntaxError"),
        ("import json\njson.loads('{')\n", r":2 cannot be loaded: JSONDecodeError"),
        ("raise SystemExit(3)\n", r":1 cannot be loaded: SystemExit: 3"),
        ("x = '\0'\n", r"cannot be loaded: "),
        ("raise ValueError('a\\nb')\n", r"ValueError: a$"),
    ],
)
def test_a_file_that_raises_is_named_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "broken.py"
    path.write_text(text)
    with pytest.raises(ModelError, match=message) as caught:
        load_file(path, ModelError)
    assert str(caught.value).startswith(str(path))
    assert module_name(path) not in sys.modules


def test_errors_of_covp_in_a_file_stay_what_they_are(tmp_path: Path) -> None:
    path = tmp_path / "usage.py"
    path.write_text("from covp.errors import UsageError\nraise UsageError('no')\n")
    with pytest.raises(UsageError, match=r"^no$"):
        load_file(path, AcceleratorError)


@pytest.mark.parametrize("name", ["file_", "file__zz", "file_a", "other", "file__2fnowhere_2epy"])
def test_names_that_stand_for_no_file(name: str) -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(f"covp.base.plugins.{name}")


def test_a_hook_that_raises_is_named_with_its_owner() -> None:
    assert call_hook("accelerator x", "add", lambda a, b: a + b, 1, 2) == 3

    def fails(error: Exception) -> None:
        raise error

    with pytest.raises(AcceleratorError, match=r"^accelerator x: hook\(\) raised KeyError: 'a'$"):
        call_hook("accelerator x", "hook", fails, KeyError("a"))
    with pytest.raises(ModelError, match=r"^op: compose\(\) raised ValueError: a b$"):
        call_hook("op", "compose", fails, ValueError("a\n  b"), error=ModelError)
    with pytest.raises(UsageError, match=r"^as it is$"):
        call_hook("op", "compose", fails, UsageError("as it is"))

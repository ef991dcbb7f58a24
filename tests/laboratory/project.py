"""A project of a user: a folder with C files and tests, on which pytest runs in a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import covp

DOT = """
#include <stdint.h>
static int32_t calls;
int32_t dot(const int8_t *a, const int8_t *b, int32_t n)
{
    int32_t sum = 0;
    for (int32_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}
int32_t count(void) { return ++calls; }
void ramp(int8_t *a, int32_t n) { for (int32_t i = 0; i < n; i++) a[i] = (int8_t)i; }
"""
HEAD = """
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
"""


_STARTS = """
import contextlib, io, json, sys
import pytest
found = []
for options in json.loads(sys.argv[1]):
    out = io.StringIO()
    with contextlib.redirect_stderr(out):
        status = pytest.main(["-p", "no:covp", "-p", "covp.laboratory.plugin", *options])
    found.append((status, out.getvalue().strip() + "\\n"))
print(json.dumps(found))
"""


@dataclass
class Run:
    """How pytest ended."""

    status: int
    out: str
    outcomes: dict[str, str] = field(default_factory=dict)

    def __contains__(self, text: str) -> bool:
        return text in self.out


class Project:
    """The folder; ``run`` starts pytest there, with the plugin from this checkout."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write("dot.c", DOT)

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    def test(self, body: str, name: str = "test_it.py") -> None:
        head = (
            "import numpy as np\nimport pytest\nfrom hypothesis import given, example, settings\n"
        )
        self.write(name, f"{head}from hypothesis import strategies as st\n{body}")

    def run(self, *options: str) -> Run:
        """pytest's status and output; the outcome of each test by its id."""
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA"]
        command += ["-p", "no:covp", "-p", "covp.laboratory.plugin", "--strict-markers"]
        done = self._process([*command, *options])
        assert "INTERNALERROR" not in done.stdout + done.stderr, done.stdout + done.stderr
        run = Run(done.returncode, done.stdout + done.stderr)
        for line in done.stdout.splitlines():
            word, _, rest = line.partition(" ")
            if word in ("PASSED", "FAILED", "ERROR", "XFAIL"):
                run.outcomes[rest.partition("::")[2].partition(" - ")[0]] = word
        return run

    def starts(self, cases: Iterable[Sequence[str]]) -> list[tuple[object, ...]]:
        """Statuses and messages of pytest with options that it rejects, all in one process."""
        text = json.dumps([list(options) for options in cases])
        done = self._process([sys.executable, "-c", _STARTS, text])
        found = json.loads(done.stdout.splitlines()[-1])
        return list(zip(*found, strict=True))

    def _process(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        drop = {"PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT", "CI"}
        environment = {name: value for name, value in os.environ.items() if name not in drop}
        environment["PYTHONPATH"] = str(Path(covp.__file__).parents[1])
        return subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )

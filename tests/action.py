"""The shell steps of a composite GitHub Action, run as the runner does, without GitHub."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
PATH = ROOT / ".github" / "actions" / "covp-check" / "action.yml"
EXPRESSION = re.compile(r"\$\{\{ *([\w.-]+) *\}\}")


class Action:
    """One use of the action, in a folder; commands are looked up in its folder `bin` first.

    Attributes:
        steps: by name, as the file has them.
        values: what expressions stand for, by their text, such as "inputs.results".
    """

    def __init__(self, folder: Path, given: Mapping[str, str]) -> None:
        content: dict[str, Any] = yaml.safe_load(PATH.read_text(encoding="utf-8"))
        inputs = content["inputs"]
        assert set(given) <= set(inputs)
        assert all(name in given for name, entry in inputs.items() if entry.get("required"))
        self.steps = {step.get("name"): step for step in content["runs"]["steps"]}
        self.values = {f"inputs.{name}": entry.get("default", "") for name, entry in inputs.items()}
        self.values |= {f"inputs.{name}": value for name, value in given.items()}
        self.folder = folder
        self.summary = folder / "summary"
        self._output = folder / "output"
        (folder / "bin").mkdir(exist_ok=True)
        self.command("covp", f"#!{sys.executable}\nfrom covp.cli.main import main\nmain()\n")

    def command(self, name: str, script: str) -> None:
        """Put a command into the path."""
        file = self.folder / "bin" / name
        file.write_text(script, encoding="utf-8")
        file.chmod(0o755)

    def run(self, name: str) -> subprocess.CompletedProcess[str]:
        """Run a step; what it writes to $GITHUB_OUTPUT is known to later ones."""
        step = self.steps[name]
        assert step["shell"] == "bash" and "${{" not in step["run"]
        self._output.write_text("")
        environment = {
            **os.environ,
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "GITHUB_OUTPUT": str(self._output),
            "GITHUB_ACTION_PATH": str(PATH.parent),
            "TMPDIR": str(self.folder),
            **{key: self._expanded(text) for key, text in step["env"].items()},
        }
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.folder, env=environment, capture_output=True, text=True,
        )  # fmt: skip
        for line in self._output.read_text().splitlines():
            key, _, value = line.partition("=")
            self.values[f"steps.{step['id']}.outputs.{key}"] = value
        return done

    def _expanded(self, text: str) -> str:
        return EXPRESSION.sub(lambda found: self.values[found[1]], text)

"""The same C on this machine under GCC's own coverage: an oracle."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path


def gcov(
    folder: Path, source: Path, calls: Sequence[tuple[int, ...]]
) -> tuple[dict[int, int], dict[str, int]]:
    """Line to count, and function to count, of calls of ``f`` in a C file."""
    main = folder / "main.c"
    arguments = ", ".join("int" for _ in calls[0])
    body = "".join(f"f({', '.join(map(str, call))});" for call in calls)
    main.write_text(f"int f({arguments}); int main(void) {{ {body} return 0; }}")
    run(folder, "gcc", "-w", "-O0", "--coverage", "-c", str(source), "-o", "unit.o")
    run(folder, "gcc", "-w", str(main), "unit.o", "--coverage", "-o", "program")
    run(folder, "./program")
    text = run(folder, "gcov", "--json-format", "--stdout", "unit.o")
    (file,) = (one for one in json.loads(text)["files"] if one["file"] == str(source))
    lines = {line["line_number"]: line["count"] for line in file["lines"]}
    return lines, {one["name"]: one["execution_count"] for one in file["functions"]}


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout

"""docs/bisect.md: its commands run, and its example prints what the page says."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from covp.cli.main import main
from tests.docs.test_json import check, described
from tests.docs.test_pages import blocks, run

PAGE = "bisect.md"


@pytest.mark.parametrize("line", "\n".join(blocks(PAGE, "sh")).splitlines())
def test_commands_run(line, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "nothing differs from" in run(line, capsys)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.costly
def test_the_example(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (code,), (text,) = blocks(PAGE, "python"), blocks(PAGE, "text")
    Path("other.py").write_text(code)
    command = "bisect toycar -p riscv32 --against build other.py"
    with pytest.raises(SystemExit) as done:
        main(shlex.split(command))
    assert done.value.code == 1
    printed = capsys.readouterr().out
    assert [line for line in text.splitlines() if line not in printed] == []
    with pytest.raises(SystemExit) as done:
        main([*shlex.split(command), "--json"])
    assert done.value.code == 1
    document = json.loads(capsys.readouterr().out)
    seen = check("covp.bisect/1", document)
    # the keys of one build: tests/cli/test_bisect.py
    single = {key for key in described("covp.bisect/1") if "steps[]" in key or "made." in key}
    assert seen | single == set(described("covp.bisect/1"))
    assert Path(document["found"]["test"]["file"]).is_file()

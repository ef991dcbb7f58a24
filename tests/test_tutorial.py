"""The tutorial, as a new user would follow it: in an empty folder, every command."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from covp.cli.main import main

TUTORIAL = Path(__file__).parent.parent / "docs" / "tutorial-accelerator.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TUTORIAL.read_text(), re.DOTALL)


def run(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as done:
        main(shlex.split(line)[1:])
    output = capsys.readouterr()
    assert done.value.code == 0, f"{line}: {output.err}"
    return output.out


def cycles(text: str) -> int:
    total = next(line for line in text.splitlines() if line.split()[:1] == ["total"])
    return int(total.split()[3].replace(",", ""))


@pytest.mark.costly
def test_every_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (source,) = blocks("python")
    own = [line for line in source.splitlines() if line.strip()]
    assert len(own) < 100, "the promise of the tutorial"
    (tmp_path / "depthwise.py").write_text(source)
    said = {
        line: run(line, capsys)
        for block in blocks("sh")
        for line in block.splitlines()
        if line.strip()
    }
    assert len(said) == 10
    one, four, sixteen, shared = (
        cycles(text) for line, text in said.items() if "macs_per_cycle" in line
    )
    assert one > four > sixteen
    assert shared > sixteen
    with_both = next(text for line, text in said.items() if line.endswith("depthwise.py --profile"))
    alone = next(text for line, text in said.items() if line.endswith("-a gemm --profile"))
    assert cycles(alone) > 5 * cycles(with_both)
    assert (tmp_path / "mine" / "mine.py").is_file()


@pytest.mark.costly
def test_the_mistake_that_it_speaks_of_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (source,) = blocks("python")
    wrong = source.replace(" - job.INPUT_ZERO_POINT", "")
    assert wrong != source
    (tmp_path / "depthwise.py").write_text(wrong)
    with pytest.raises(SystemExit) as done:
        main(["verify", "depthwise.py", "--examples", "100"])
    assert done.value.code == 1
    output = capsys.readouterr().out
    assert "elements differ from the reference" in output
    assert "def test_the_smallest_failing_layer" in output

"""docs/coverage.md: its code prints what the page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.test_pages import blocks


def test_the_example(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (code,), (text,) = blocks("coverage.md", "python"), blocks("coverage.md", "text")
    exec(code, {})
    printed = capsys.readouterr().out
    assert printed.startswith(text)
    assert Path("clamp.info").read_text().startswith("TN:\nSF:")

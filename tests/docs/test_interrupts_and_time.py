"""docs/interrupts-and-time.md: its code runs and prints what the page says."""

from __future__ import annotations

import pytest

from tests.docs.test_pages import blocks

PAGE = "interrupts-and-time.md"


@pytest.mark.costly
def test_the_code_prints_what_stands_below_it(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    codes, texts = blocks(PAGE, "python"), blocks(PAGE, "text")
    assert len(codes) == len(texts) == 5
    for code, text in zip(codes, texts, strict=True):
        exec(code, names)
        assert capsys.readouterr().out.strip() == text.strip()

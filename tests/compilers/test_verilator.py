"""How the C++ of a design is compiled: small ones in one piece, large ones in several."""

from __future__ import annotations

from pathlib import Path

import pytest

from covp.compilers import verilator


def test_large_designs_are_compiled_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verilator, "_PIECE", 100)
    parts = []
    for number, size in enumerate((60, 60, 10, 200, 10, 10)):
        parts.append(tmp_path / f"{number}.cpp")
        parts[-1].write_text(" " * size)
    made = verilator._pieces(parts)
    assert [[part.stem for part in piece] for piece in made] == [
        ["0", "1"],
        ["2", "3"],
        ["4", "5"],
    ]
    assert verilator._pieces(parts[:1]) == [parts[:1]]

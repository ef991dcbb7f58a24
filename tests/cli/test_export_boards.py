"""What `covp export` says of boards."""

from __future__ import annotations

from pathlib import Path

import yaml

from covp.chip.platform_file import load_platform, platforms_dir

from .conftest import Call, small_model


def test_a_board_without_support_is_silent_and_says_so(call: Call, tmp_path: Path) -> None:
    """Nothing is polled that the chip may not have, and nobody waits for text."""
    path = tmp_path / "small.tflite"
    path.write_bytes(small_model())
    content = yaml.safe_load((platforms_dir() / "stm32h743.yaml").read_text())
    del content["firmware"]
    board = tmp_path / "own.yaml"
    board.write_text(yaml.safe_dump(content))
    assert load_platform(board).board == "silent"
    for layout in ("make", "arduino"):
        folder = tmp_path / layout
        done = call("export", path, "-p", board, "--layout", layout, "-o", folder)
        said = "no board support for stm32h743: its firmware prints nothing and sets no clock"
        assert (
            (said in done.err) == (said in (folder / "README.md").read_text()) == (layout == "make")
        )

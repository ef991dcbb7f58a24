"""docs/real-boards.md quotes what the code says, and names what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from covp.chip.platform_file import load_platform
from covp.cli.main import COMMANDS

ROOT = Path(__file__).parents[2]
DOC = ROOT / "docs" / "real-boards.md"


@pytest.fixture
def text() -> str:
    if not DOC.is_file():
        pytest.skip("not in a checkout")
    return DOC.read_text(encoding="utf-8")


def test_messages_are_those_of_the_code(text: str) -> None:
    table = text.partition("| message |")[2].partition("\n\n")[0]
    cells = [row.split("|")[1] for row in table.splitlines()[2:]]
    quoted = [part for cell in cells for part in re.findall("`([^`]+)`", cell)]
    assert len(quoted) > 15
    files = [*(ROOT / "covp/device").glob("*.py"), *(ROOT / "covp/runtime").glob("*.py")]
    # strings that are split over lines, put together
    code = re.sub(r'"\s*\n\s*f?"', "", "".join(file.read_text() for file in files))
    assert [part for part in quoted if part not in code] == []


def test_commands_and_boards_exist(text: str) -> None:
    for command in re.findall(r"^ +covp (\w+)", text, re.M):
        assert command in COMMANDS
    for name in re.findall(r"^ +covp .*-p ([\w-]+)", text, re.M):
        load_platform(name)
    for name, board in re.findall(r"^\| [^|]+ \| `([\w-]+)` \| `(board/\S+)` \|", text, re.M):
        stated = load_platform(name).openocd
        assert stated is not None
        assert board in (stated.board, "board/st_nucleo_f7.cfg")


def test_the_registers_of_the_text_are_those_of_the_platform_files(text: str) -> None:
    for name in ("stm32f746", "stm32l4r5"):
        stated = load_platform(name).openocd
        assert stated is not None
        init = " ".join(stated.init)
        value = re.search(rf"\*\*{name.upper()}\*\*: FLASH_ACR = (0x\w+)", text)
        assert value is not None
        assert f"0x{int(value[1], 0):08x}" in init

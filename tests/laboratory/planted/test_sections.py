"""The planted bugs themselves: their number, their marks, and twins of nearly the same text."""

from __future__ import annotations

import shutil

import pytest

from covp.chip.platform_file import load_platform
from covp.compilers.toolchain import SourceText, get_toolchain
from tests.laboratory.planted.bench import PLATFORMS
from tests.laboratory.planted.sections import FILES, FOLDER, sections


def test_there_are_many_and_each_says_what_and_where():
    found = [section for file in FILES for section in sections(file).values()]
    assert len({section.name for section in found}) == len(found) >= 100
    assert all(section.what and section.kind for section in found)


@pytest.mark.costly
@pytest.mark.parametrize("toolchain", ["zig", pytest.param("gcc", marks=pytest.mark.slow)])
@pytest.mark.parametrize("platform", PLATFORMS)
def test_compilers_see_nothing_wrong(platform, toolchain):
    """No warning gives a bug away, on any platform."""
    core = load_platform(platform).core
    if toolchain == "gcc" and shutil.which(f"{core.gcc_prefix}gcc") is None:
        pytest.skip(f"no gcc for {platform}")
    sources = [SourceText.read(FOLDER / file) for file in FILES]
    for flags in (("-DBUG",), ()):
        get_toolchain(toolchain, core).compile(sources, flags=("-g", "-Werror", *flags))

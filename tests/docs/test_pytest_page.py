"""The page on pytest: its example finds what it says, its options are those that there are."""

import re
from pathlib import Path

import pytest

from tests.laboratory.project import Project

PAGE = Path(__file__).parents[2] / "docs" / "pytest.md"


@pytest.fixture
def text():
    return PAGE.read_text(encoding="utf-8")


def block(text, language):
    (found,) = re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)
    return found


@pytest.fixture
def project(tmp_path, text):
    """The example."""
    found = Project(tmp_path)
    found.write("dot.c", block(text, "c"))
    found.write("test_dot.py", block(text, "python"))
    return found


@pytest.mark.costly
def test_the_example_finds_the_first_bug(project, text):
    sanitized = project.run("--covp-sanitize")
    assert re.search(
        r"out-of-bounds read .*\(dot\.c:7\): .*\b[ab], which has 0 bytes", sanitized.out
    )
    hexadecimal = re.compile(r"0x[0-9a-f]+")
    printed = hexadecimal.sub("0x", sanitized.out)
    for line in hexadecimal.sub("0x", block(text, "text")).splitlines():
        assert line in printed


@pytest.mark.slow
def test_the_example_finds_the_second_bug(project, text):
    assert project.run().status == 0
    project.write("dot.c", block(text, "c").replace("i <= n", "i < n"))
    assert project.run("--covp-sanitize").status == 0
    overflow = project.run("--covp-ubsan")
    assert re.search(r"undefined behaviour.*\(dot\.c:7\): signed integer overflow", overflow.out)


@pytest.mark.costly
def test_options_and_fixtures_are_those_that_there_are(tmp_path, text):
    help_text = Project(tmp_path).run("--help").out
    offered = set(re.findall(r"^\s+(--covp-[a-z]+)", help_text, re.M))
    assert offered == set(re.findall(r"--covp-[a-z]+", text)) and len(offered) == 8
    fixtures = Project(tmp_path).run("--fixtures").out
    for name in re.findall(r"^\| `(\w+)(?:\(.*?\))?` \|", text, re.M):
        assert re.search(rf"^{name} ", fixtures, re.M)

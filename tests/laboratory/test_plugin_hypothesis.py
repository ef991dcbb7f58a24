"""Hypothesis' tests on the plugin's fixtures: health checks, deadlines, its database, unittest."""

import itertools
import os
import time

import pytest

from .project import Project


@pytest.fixture
def project(tmp_path):
    found = Project(tmp_path)
    # a file that no cache has: it is compiled in the first example, which has a deadline of 200 ms
    mark = f"{time.time_ns()}{os.getpid()}"
    found.write("new.c", f"int twice(int n) {{ return n == {int(mark[-9:])} ? 1 : 2 * n; }}")
    return found


TESTS = """
import unittest
class TestDrawn:
    @given(st.integers(-1000, 1000))
    def test_twice(self, kernel, n):
        assert kernel("new.c", "twice")(n) == 2 * n
@given(n=st.integers(-1000, 1000))
@example(n=7)
def test_wrong(kernel, n):
    print("tried", n)
    assert kernel("new.c", "twice")(n) == 2 * n and n < 300
class TestOfUnittest(unittest.TestCase):
    @pytest.fixture(autouse=True)
    def _kernel(self, kernel):
        self.twice = kernel("new.c", "twice")
    @given(st.integers(-1000, 1000))
    def test_drawn(self, n):
        self.assertEqual(self.twice(n), 2 * n)
"""
REPEAT = """
from hypothesis import Phase, settings
settings.register_profile("repeat", phases=[Phase.reuse])
"""


@pytest.mark.costly
def test_examples_shrink_and_are_repeated_on_each_device(project):
    project.test(TESTS)
    project.write("conftest.py", REPEAT)
    platforms = ("--covp-platform", "riscv32", "--covp-platform", "cortex-m4")
    run = project.run(*platforms)
    wrong = {name for name, word in run.outcomes.items() if word != "PASSED"}
    assert wrong == {"test_wrong[riscv32]", "test_wrong[cortex-m4]"}, run.out
    assert run.outcomes.keys() - wrong == {
        "TestDrawn::test_twice[riscv32]",
        "TestDrawn::test_twice[cortex-m4]",
        "TestOfUnittest::test_drawn",
    }
    assert run.out.count("n=300") == 2  # the least that fails
    again = project.run("--hypothesis-profile=repeat", *platforms, "-k", "wrong")
    for device in ("riscv32", "cortex-m4"):
        part = again.out.partition(f"test_wrong[{device}]")[2]
        tried = [line for line in part.splitlines() if line.startswith("tried")]
        assert "tried 300" in list(itertools.islice(tried, 3)), again.out
